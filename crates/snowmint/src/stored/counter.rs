//! A handle for counters.

use snowmint_coord::{Source, SourceStats};

use super::Shared;
use crate::Result;

/// Numbers for each key that are greater than every number that anybody was answered for that key
/// before. A cheap clone.
///
/// They are not dense: a restart, or another owner, skips up to a step. A key belongs to one process at a
/// time. In a library that is the first that asks for one of its section's keys, until it closes; another
/// process is refused with [`ErrorKind::Elsewhere`](crate::ErrorKind::Elsewhere). Processes that should
/// share keys ask servers (`snowmint serve`): opened as `snowmint://HOST:PORT,HOST:PORT`, each number is
/// asked of them, whichever server owns the key.
#[derive(Clone, Debug)]
pub struct Counter {
    source: Source,
    shared: Shared,
}

impl Counter {
    pub(crate) fn new(source: Source, shared: Shared) -> Self {
        Self { source, shared }
    }

    /// The next number of a key (1 to 255 bytes), waiting for the store at most as long as
    /// [`Options::wait_max_ms`](crate::Options::wait_max_ms) says.
    ///
    /// # Errors
    /// `Elsewhere` when another process answers for the key; `Unavailable` when the store is away and
    /// the numbers in hand are spent, or our lease lapsed; `Invalid` for a bad key.
    pub async fn next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        Ok(self.next_many(key, 1).await?.0)
    }

    /// `count` numbers of a key in a row: the first and the last.
    ///
    /// # Errors
    /// As [`next`](Self::next); `TooMany` above 1,000,000.
    pub async fn next_many(&self, key: impl AsRef<[u8]>, count: u64) -> Result<(u64, u64)> {
        self.source.count(key.as_ref(), count, self.shared.wait_max_ms).await
    }

    /// The next number of each of several keys, in their order: of everybody who is sent the same message, say. Takes
    /// less time than one after the other, since their places in memory are looked up together.
    ///
    /// A key that is named twice has two numbers, in any order.
    ///
    /// # Errors
    /// As [`next`](Self::next), for the first key that has none: numbers of the others are lost.
    pub async fn next_each<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<u64>> {
        self.source.count_each(&bytes_of(keys), self.shared.wait_max_ms).await
    }

    /// As [`next_each`](Self::next_each), if all are at hand. Never waits.
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next).
    pub fn try_next_each<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<u64>> {
        self.source.try_count_each(&bytes_of(keys))
    }

    /// The next number of a key, if it is at hand. Never waits.
    ///
    /// # Errors
    /// As [`next`](Self::next); `Unsupported` where servers are asked, as nothing is ever at hand.
    pub fn try_next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        Ok(self.source.try_count(key.as_ref(), 1)?.0)
    }

    /// The highest number that anybody may have been answered for a key; 0 if there is none.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn bound(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.source.counted(key.as_ref(), self.shared.wait_max_ms).await
    }

    /// How the source stands.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// The source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }
}

fn bytes_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
