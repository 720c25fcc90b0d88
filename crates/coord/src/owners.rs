//! Those who answer for what one process at a time may answer for.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;

/// Servers that answer for counters and for sources of global order, for a process that does not itself.
///
/// Such a process would take sections from those whom everybody asks, and send everybody to where nobody
/// serves. So it asks each time: what is answered goes to a request that came before the question was
/// sent, and is greater than everything that anybody was answered before.
///
/// On retry: a repeat takes other numbers; the first ones, if there were any, are lost (a gap, never a
/// duplicate). An implementation may repeat by itself.
#[async_trait]
pub trait Owners: Send + Sync + fmt::Debug + 'static {
    /// `count` numbers of a key of a counter source in a row: the first and the last. Ends within
    /// `within_ms`.
    ///
    /// Refuses as a source that counts here would; `Unavailable` when nobody answered in time.
    async fn count(
        &self,
        source: &str,
        key: &[u8],
        count: u64,
        within_ms: u64,
    ) -> Result<(u64, u64)>;

    /// The highest number that anybody may have been answered for a key; 0 if there is none.
    ///
    /// Refuses as [`count`](Self::count) does.
    async fn counted(&self, source: &str, key: &[u8], within_ms: u64) -> Result<u64>;

    /// Exactly `count` IDs of a source of global order, as they leave: disguised, if they are.
    ///
    /// Refuses as [`count`](Self::count) does.
    async fn mint(&self, source: &str, count: u32, within_ms: u64) -> Result<Vec<u64>>;
}
