//! A thread's own stretch of a handle's IDs.

use std::ops::Deref;
use std::sync::Arc;

use snowmint_core::Generator;
use snowmint_core::generator::Lane as CoreLane;

use crate::Result;
use crate::clock::HandleClock;
use crate::observer::Tell;
use crate::worker::Worker;

/// Takes blocks from a handle and counts locally, for the hottest loops. What is left of a block when
/// its tick ends is dropped.
///
/// It keeps the handle open. What it has taken when the handle is closed it may still mint: that
/// counts as taken.
#[derive(Debug)]
pub struct Lane {
    lane: CoreLane<Shared>,
    worker: Arc<Worker>,
}

#[derive(Debug)]
struct Shared(Arc<Worker>);

impl Deref for Shared {
    type Target = Generator<HandleClock, Tell>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0.generator
    }
}

impl Lane {
    pub(crate) fn new(worker: Arc<Worker>, block: usize) -> Self {
        Self { lane: CoreLane::new(Shared(Arc::clone(&worker)), block), worker }
    }

    /// One ID, without waiting for a tick or for anybody.
    ///
    /// # Errors
    /// As [`Snowflake::try_mint`](crate::Snowflake::try_mint).
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64> {
        match self.lane.try_mint() {
            Ok(id) if self.worker.generator.clock().is_calm() => Ok(id),
            other => self.worker.see_to(other)?.map_err(|why| self.worker.refused(why)),
        }
    }

    /// One ID, waiting for a free tick as [`Snowflake::mint`](crate::Snowflake::mint) does.
    ///
    /// # Errors
    /// As [`Snowflake::mint`](crate::Snowflake::mint).
    #[inline]
    pub fn mint(&mut self) -> Result<u64> {
        match self.lane.try_mint() {
            Ok(id) if self.worker.generator.clock().is_calm() => Ok(id),
            other => self
                .worker
                .mint_slowly(other, self.worker.generator.patience(), || self.lane.try_mint()),
        }
    }
}
