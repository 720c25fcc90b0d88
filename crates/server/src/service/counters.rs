//! Counters: numbers of a key, its bound, and who answers for it.

use std::sync::Arc;

use snowmint_coord::Shares;

use super::{Error, Service};
use crate::access::Right;

/// Numbers of one key that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Service {
    /// Takes `count` numbers of a key in a row, as `INCRBY` does.
    ///
    /// # Errors
    /// Without the right to mint; more than `limits.incrby_max`, a source of another kind, a key of another server's, or what the
    /// store refuses.
    pub async fn count(&self, name: &str, key: &str, count: u64) -> Result<Counted, Error> {
        self.admit(Right::Mint, name, count).await?;
        let (limit, wait_ms) = self.live.limit(|limits| (limits.incrby_max, limits.wait_max.ms()));
        let limit = self.limit(name, limit, u64::MAX);
        if count > limit {
            return Err(Error::too_many("numbers in a row", count, limit, "limits.incrby_max"));
        }
        let (source, tally) = self.tallied(name).await?;
        let counted = match source.count(key.as_bytes(), count, wait_ms).await {
            Ok(counted) => counted,
            Err(error) => {
                let source = self.reopened(name, error).await?;
                source.count(key.as_bytes(), count, wait_ms).await?
            }
        };
        tally.add(self.protocol, count);
        Ok(Counted { first: counted.0, last: counted.1 })
    }

    /// The highest number that anybody may have been answered for a key; 0 if there is none.
    ///
    /// # Errors
    /// As [`Service::count`].
    pub async fn counted(&self, name: &str, key: &str) -> Result<u64, Error> {
        self.admit(Right::Mint, name, 1).await?;
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        match self.opened(name).await?.counted(key.as_bytes(), wait_ms).await {
            Ok(bound) => Ok(bound),
            Err(error) => {
                Ok(self.reopened(name, error).await?.counted(key.as_bytes(), wait_ms).await?)
            }
        }
    }

    /// Makes every later number of a key greater than `highest`.
    ///
    /// # Errors
    /// Without the right to administer; above `limits.bound_max`, for everybody, since nothing lowers it again;
    /// and as [`Service::count`].
    pub async fn raise(&self, name: &str, key: &str, highest: u64) -> Result<(), Error> {
        self.admit(Right::Admin, name, 1).await?;
        let (limit, wait_ms) = self.live.limit(|limits| (limits.bound_max, limits.wait_max.ms()));
        if highest > limit {
            return Err(Error::bad_request(format!(
                "bound: {highest} is above {limit} (limits.bound_max); all keys of the counter's section would go \
                 on above it, and nothing lowers them again"
            )));
        }
        match self.opened(name).await?.raise(key.as_bytes(), highest, wait_ms).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let source = self.reopened(name, error).await?;
                Ok(source.raise(key.as_bytes(), highest, wait_ms).await?)
            }
        }
    }

    /// Who answers for which sections.
    #[must_use]
    pub fn shares(&self) -> Arc<Shares> {
        self.node.shares()
    }
}
