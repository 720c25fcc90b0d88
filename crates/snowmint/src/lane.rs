//! A block of a handle's IDs for one thread.

use std::ops::Deref;
use std::sync::Arc;

use snowmint_core::Generator;
use snowmint_core::generator::Lane as CoreLane;

use crate::Result;
use crate::clock::HandleClock;
use crate::observer::Tell;
use crate::snowflake::{Back, Snowflake};
use crate::worker::Worker;

/// Takes blocks of IDs from a handle and counts locally, for the hottest loops. The rest of a block
/// is dropped when its tick ends.
///
/// A lane keeps the handle open. After the handle is closed, the lane may still mint the rest of
/// its block, which already counts as taken. A store-backed source may change its worker at any
/// time, so there the lane takes each ID from the shared generator.
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

    /// Mints one ID without waiting.
    ///
    /// # Errors
    /// Same as [`Snowflake::try_mint`].
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

    /// Mints one ID, waiting for a free tick as [`Snowflake::mint`] does.
    ///
    /// # Errors
    /// Same as [`Snowflake::mint`].
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
