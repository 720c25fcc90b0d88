//! A block of a handle's IDs for one thread.

use std::ops::Deref;
use std::sync::Arc;

use snowmint_core::Generator;
use snowmint_core::generator::Lane as CoreLane;

use crate::clock::HandleClock;
use crate::observer::LoggingObserver;
use crate::snowflake::{Backend, Snowflake};
use crate::worker::Worker;
use snowmint_coord::Result;

/// Takes blocks of IDs from a handle and counts locally, for the hottest loops. The rest of a block
/// is dropped when its tick ends.
///
/// A lane keeps the handle open. After the handle is closed, the lane may still mint the rest of
/// its block, which already counts as taken. A store-backed source may change its worker at any
/// time, so there the lane takes each ID from the shared generator.
#[derive(Debug)]
pub struct Lane(LaneKind);

#[derive(Debug)]
enum LaneKind {
    Worker { lane: CoreLane<WorkerGenerator>, worker: Arc<Worker> },
    StoreBacked(Snowflake),
}

#[derive(Debug)]
struct WorkerGenerator(Arc<Worker>);

impl Deref for WorkerGenerator {
    type Target = Generator<HandleClock, LoggingObserver>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0.generator
    }
}

impl Lane {
    pub(crate) fn new(handle: &Snowflake, block: usize) -> Self {
        Self(match &handle.backend {
            Backend::Worker(worker) => LaneKind::Worker {
                lane: CoreLane::new(WorkerGenerator(Arc::clone(worker)), block),
                worker: Arc::clone(worker),
            },
            Backend::StoreBacked(_) => LaneKind::StoreBacked(handle.clone()),
        })
    }

    /// Mints one ID without waiting.
    ///
    /// # Errors
    /// Same as [`Snowflake::try_mint`].
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64> {
        match &mut self.0 {
            LaneKind::Worker { lane, worker } => match lane.try_mint() {
                Ok(id) if worker.generator.clock().needs_no_check() => Ok(id),
                other => worker.maintain_window(other)?.map_err(|error| worker.refused(error)),
            },
            LaneKind::StoreBacked(handle) => handle.try_mint(),
        }
    }

    /// Mints one ID, waiting for a free tick as [`Snowflake::mint`] does.
    ///
    /// # Errors
    /// Same as [`Snowflake::mint`].
    #[inline]
    pub fn mint(&mut self) -> Result<u64> {
        match &mut self.0 {
            LaneKind::Worker { lane, worker } => match lane.try_mint() {
                Ok(id) if worker.generator.clock().needs_no_check() => Ok(id),
                other => {
                    let wait_policy = worker.generator.wait_policy();
                    worker.mint_slowly(other, wait_policy, || lane.try_mint())
                }
            },
            LaneKind::StoreBacked(handle) => handle.mint(),
        }
    }
}

impl Snowflake {
    /// Returns a lane for one thread. For a worker that you named, it takes `block` IDs at a time
    /// and counts locally. IDs increase within the lane; between lanes, by tick.
    #[must_use]
    pub fn lane(&self, block: usize) -> Lane {
        Lane::new(self, block)
    }
}
