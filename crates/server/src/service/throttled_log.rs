//! Log lines of failed requests. Callers cause these lines, at the rate of their requests, so each
//! code is logged at intervals, with the number of omitted lines.

use std::sync::atomic::{AtomicU64, Ordering};

use snowmint_wire::error::Code;

use crate::error::Cause;

/// Target of these lines: a log needs no second limit for them.
pub const FAILED_REQUESTS_TARGET: &str = module_path!();
/// Milliseconds after a line in which the same code is not logged again.
const EVERY_MS: u64 = 1_000;

/// Lines of each code, in the order of [`Code::ALL`].
#[derive(Debug)]
pub(crate) struct ThrottledLog([CodeLog; Code::ALL.len()]);

#[derive(Debug, Default)]
struct CodeLog {
    /// Elapsed time from which the next line may be logged, in milliseconds.
    again_at_ms: AtomicU64,
    omitted: AtomicU64,
}

impl Default for ThrottledLog {
    fn default() -> Self {
        Self(std::array::from_fn(|_| CodeLog::default()))
    }
}

impl ThrottledLog {
    /// Logs a request that failed with this code. Errors that are normal under load, and redirects,
    /// go to a level that is off by default.
    #[cold]
    pub(crate) fn log(&self, code: Code, cause: &Cause, now_ms: u64) {
        if matches!(code, Code::TickFull | Code::NotOwner) {
            tracing::debug!(%code, "{cause}");
        } else if let Some(unsaid) = self.due(code, now_ms) {
            let unsaid = (unsaid > 0).then_some(unsaid);
            tracing::warn!(%code, unsaid, "{cause}");
        }
    }

    /// Returns the number of omitted lines, if the code is logged now.
    fn due(&self, code: Code, now_ms: u64) -> Option<u64> {
        let code_log = self.0.get(code as usize)?;
        // Relaxed: the thread that wins the exchange logs, and nothing else is ordered by it.
        let again_at_ms = code_log.again_at_ms.load(Ordering::Relaxed);
        let next_ms = now_ms.saturating_add(EVERY_MS);
        let exchange = |next_ms| {
            let order = Ordering::Relaxed;
            code_log.again_at_ms.compare_exchange(again_at_ms, next_ms, order, order).is_ok()
        };
        if now_ms >= again_at_ms && exchange(next_ms) {
            return Some(code_log.omitted.swap(0, Ordering::Relaxed));
        }
        code_log.omitted.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_logged_once_a_second_with_a_count() {
        let log = ThrottledLog::default();
        let due = |now_ms| log.due(Code::WindowSpent, now_ms);
        assert_eq!(due(0), Some(0), "the first at once");
        assert!((0..100).all(|ms| due(ms).is_none()));
        assert_eq!(log.due(Code::Unavailable, 50), Some(0), "another code by itself");
        assert_eq!((due(999), due(1_000), due(1_999)), (None, Some(101), None));
        assert_eq!(due(5_000), Some(1));
    }
}
