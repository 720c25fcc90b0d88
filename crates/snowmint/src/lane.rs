//! A thread's own stretch of a handle's IDs.

use std::ops::Deref;
use std::sync::Arc;

use snowmint_core::Generator;
use snowmint_core::generator::Lane as CoreLane;

use crate::Result;
use crate::clock::HandleClock;
use crate::observer::Tell;
use crate::snowflake::{Back, Snowflake};
use crate::worker::Worker;

/// Takes blocks from a handle and counts locally, for the hottest loops. What is left of a block when
/// its tick ends is dropped.
///
/// It keeps the handle open. What it has taken when the handle is closed it may still mint: that
/// counts as taken. On a source of a store, which may change its worker at any time, it takes each ID
/// from the shared generator.
#[derive(Debug)]
pub struct Lane(Kind);

#[derive(Debug)]
enum Kind {
    Worker { lane: CoreLane<Shared>, worker: Arc<Worker> },
    Stored(Snowflake),
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
    pub(crate) fn new(handle: &Snowflake, block: usize) -> Self {
        Self(match &handle.back {
            Back::Worker(worker) => Kind::Worker {
                lane: CoreLane::new(Shared(Arc::clone(worker)), block),
                worker: Arc::clone(worker),
            },
            Back::Stored(_) => Kind::Stored(handle.clone()),
        })
    }

    /// One ID, without waiting for a tick or for anybody.
    ///
    /// # Errors
    /// As [`Snowflake::try_mint`].
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64> {
        match &mut self.0 {
            Kind::Worker { lane, worker } => match lane.try_mint() {
                Ok(id) if worker.generator.clock().is_calm() => Ok(id),
                other => worker.see_to(other)?.map_err(|why| worker.refused(why)),
            },
            Kind::Stored(handle) => handle.try_mint(),
        }
    }

    /// One ID, waiting for a free tick as [`Snowflake::mint`] does.
    ///
    /// # Errors
    /// As [`Snowflake::mint`].
    #[inline]
    pub fn mint(&mut self) -> Result<u64> {
        match &mut self.0 {
            Kind::Worker { lane, worker } => match lane.try_mint() {
                Ok(id) if worker.generator.clock().is_calm() => Ok(id),
                other => {
                    let patience = worker.generator.patience();
                    worker.mint_slowly(other, patience, || lane.try_mint())
                }
            },
            Kind::Stored(handle) => handle.mint(),
        }
    }
}
