//! The wait after failures.

use crate::error::Retry;

/// Returns the wait before the next call to a store: longer after each failure in a row, up to 2 s.
/// A store that comes back is found soon, and a struggling store is not loaded.
pub(crate) fn backoff_ms(failures: u32) -> u64 {
    const FIRST_MS: u64 = 50;
    const LAST_MS: u64 = 2_000;
    let doublings = failures.saturating_sub(1).min(6);
    (FIRST_MS << doublings).min(LAST_MS)
}

/// Returns [`backoff_ms`], or the store's own wait if that is longer, up to 60 s.
pub(crate) fn retry_ms(failures: u32, advice: Retry) -> u64 {
    const ADVISED_MS_MAX: u64 = 60_000;
    let advised_ms = match advice {
        Retry::AfterMs(ms) => ms.min(ADVISED_MS_MAX),
        Retry::Now | Retry::Never => 0,
    };
    backoff_ms(failures).max(advised_ms)
}
