//! Client of the owners of rights that one process at a time may use.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;

/// Servers that own counter sections and global-order sources, called by a process that owns none.
///
/// If that process acquired sections, it would take them from the servers that callers use, and
/// callers would be redirected to a process that serves no requests. So it calls an owner each
/// time. Each result goes to a request that arrived before the call was sent, and is greater than
/// all numbers returned to any caller before.
///
/// On retry: a repeat takes other numbers; the first ones, if any, are lost (a gap, never a
/// duplicate). An implementation may repeat a call itself.
#[async_trait]
pub trait OwnerClient: Send + Sync + fmt::Debug + 'static {
    /// Takes `count` consecutive numbers of a key of a counter source and returns the first and the
    /// last. Ends within `within_ms` milliseconds.
    ///
    /// Fails as a local counter source would; `Unavailable` when no server responded in time.
    async fn count(
        &self,
        source: &str,
        key: &[u8],
        count: u64,
        within_ms: u64,
    ) -> Result<(u64, u64)>;

    /// Returns the bound of a key: the highest number that any caller may have received, or 0 if
    /// none.
    ///
    /// Fails as [`count`](Self::count) does.
    async fn bound_of(&self, source: &str, key: &[u8], within_ms: u64) -> Result<u64>;

    /// Mints exactly `count` IDs of a global-order source, in their final form: disguised, if the
    /// source is.
    ///
    /// Fails as [`count`](Self::count) does.
    async fn mint(&self, source: &str, count: u32, within_ms: u64) -> Result<Vec<u64>>;
}
