//! A handle for counters.

use snowmint_coord::{Source, SourceStats};

use super::context::StoreContext;
use snowmint_coord::Result;

/// Numbers for each key, each greater than every number returned for that key before. Cheap to
/// clone.
///
/// The numbers are not dense: a restart or a new section owner skips up to a step. A key belongs to
/// one process at a time. In a library, the first process that uses a key of a section owns the
/// section until it closes; another process gets
/// [`ErrorKind::NotOwner`](crate::ErrorKind::NotOwner). Processes that share keys should use
/// servers (`snowmint serve`): with a URL like `snowmint://HOST:PORT,HOST:PORT`, each number comes
/// from the servers, whichever of them owns the key.
#[derive(Clone, Debug)]
pub struct Counter {
    source: Source,
    ctx: StoreContext,
}

impl Counter {
    pub(crate) fn new(source: Source, ctx: StoreContext) -> Self {
        Self { source, ctx }
    }

    /// Returns the next number of a key (1 to 255 bytes), waiting for the store up to
    /// [`Options::wait_max_ms`](crate::options::Options::wait_max_ms).
    ///
    /// # Errors
    /// - `NotOwner` when another process owns the key.
    /// - `Unavailable` when the store is unreachable and the prefetched numbers are spent, or when
    ///   the lease of this process has expired.
    /// - `Invalid` for a bad key.
    pub async fn next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        Ok(self.next_many(key, 1).await?.0)
    }

    /// Returns `count` consecutive numbers of a key, as the first and the last.
    ///
    /// # Errors
    /// Same as [`next`](Self::next); `LimitExceeded` above 1,000,000.
    pub async fn next_many(&self, key: impl AsRef<[u8]>, count: u64) -> Result<(u64, u64)> {
        self.source.count(key.as_ref(), count, self.ctx.wait_max_ms).await
    }

    /// Returns the next number of each of several keys, in their order: for example, of all
    /// recipients of one message. Takes less time than separate calls, since the keys are looked up
    /// in memory together.
    ///
    /// A key that is named twice gets two numbers, in any order.
    ///
    /// # Errors
    /// Same as [`next`](Self::next), for the first key without a number: the numbers of the other
    /// keys are lost.
    pub async fn next_each<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<u64>> {
        self.source.count_each(&bytes_of(keys), self.ctx.wait_max_ms).await
    }

    /// Like [`next_each`](Self::next_each), if the numbers of all keys are prefetched. Never waits.
    ///
    /// # Errors
    /// Same as [`try_next`](Self::try_next).
    pub fn try_next_each<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<u64>> {
        self.source.try_count_each(&bytes_of(keys))
    }

    /// Returns the next number of a key, if it is prefetched. Never waits.
    ///
    /// # Errors
    /// Same as [`next`](Self::next); `Unsupported` if numbers come from servers, since none are
    /// prefetched.
    pub fn try_next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        Ok(self.source.try_count(key.as_ref(), 1)?.0)
    }

    /// Returns the bound of a key: the highest number that it may have returned; 0 if there is
    /// none.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    pub async fn bound(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.source.bound_of(key.as_ref(), self.ctx.wait_max_ms).await
    }

    /// Returns the state of the source.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// Returns the source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }
}

fn bytes_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
