//! Backing of a source, by its kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use snowmint_core::UnixMillis;

use super::named::{UlidSource, UuidSource};
use super::queue::Queue;
use super::running::prefill_of;
use super::segment::Refill;
use super::{
    Afar, ByStore, CounterSource, Defined, Minter, Ordered, Remembered, Row, SegmentSource,
    Several, Surroundings,
};
use crate::catalog::SourceState;
use crate::error::{Error, Result};
use crate::spec::{Minted, Order, Plan, SegmentPlan, SnowflakePlan};

/// Backing that a source mints from.
#[derive(Debug)]
pub(crate) enum Back {
    Snowflake(SnowflakeBack),
    ByStore(Box<ByStore>),
    Segment(SegmentBack),
    Several(Arc<Several>),
    Counter(Arc<CounterSource>),
    Uuid(Box<UuidSource>),
    Ulid(UlidSource),
    Afar(Afar),
}

impl Back {
    /// Opens the backing that the source's current definition asks for.
    pub(super) fn open(
        name: &str,
        defined: &Defined,
        remembered: &Remembered,
        around: &Arc<Surroundings>,
    ) -> Result<Self> {
        Ok(match (Afar::back(name, &defined.plan, around), &defined.plan) {
            (Some(afar), _) => afar,
            (None, plan) if !plan.stores().is_empty() => {
                Self::Several(Arc::new(Several::new(name, plan, Arc::clone(around))))
            }
            (
                None,
                Plan::Snowflake(plan @ SnowflakePlan { minted: Minted::Store { worker }, .. }),
            ) => {
                let source = ByStore::new(name, plan, *worker, defined.version, Arc::clone(around));
                Self::ByStore(Box::new(source))
            }
            (None, Plan::Snowflake(plan)) => {
                let mut back = SnowflakeBack::default();
                if plan.order == Order::Global {
                    back.ordered = Some(Ordered::new(name, plan));
                    around.sections.begin();
                }
                back.queue.set(name, prefill_of(plan, defined.state), &back.minter, around);
                Self::Snowflake(back)
            }
            (None, Plan::Segment(plan)) => {
                let (version, around) = (defined.version, Arc::clone(around));
                let enabled = defined.state == SourceState::Enabled;
                let refill = Refill::remembering(remembered, plan.stripe);
                let source =
                    SegmentSource::new(name, plan.clone(), version, refill, enabled, around);
                Self::Segment(SegmentBack::new(source))
            }
            (None, Plan::Counter(plan)) => {
                Self::Counter(Arc::new(CounterSource::new(name, *plan, Arc::clone(around))))
            }
            (None, Plan::Uuid(plan)) => {
                Self::Uuid(Box::new(UuidSource::new(*plan, Arc::clone(&around.clock))?))
            }
            (None, Plan::Ulid) => Self::Ulid(UlidSource::new(Arc::clone(&around.clock))),
        })
    }
}

/// Current segment source; each restripe and each change to or from a step of 1 replaces it.
#[derive(Debug)]
pub(crate) struct SegmentBack(ArcSwap<SegmentSource>);

impl SegmentBack {
    pub(super) fn new(source: Arc<SegmentSource>) -> Self {
        Self(ArcSwap::new(source))
    }

    pub(crate) fn now(&self) -> Arc<SegmentSource> {
        self.0.load_full()
    }

    /// Calls the current source, and its successor if it was replaced meanwhile.
    #[inline]
    pub(super) fn ask<T, E>(
        &self,
        ask: impl Fn(&Arc<SegmentSource>) -> Result<T, E>,
    ) -> Result<T, E> {
        let asked = self.0.load();
        let answer = ask(&asked);
        if answer.is_err() && self.replaced(&asked) { ask(&self.0.load()) } else { answer }
    }

    pub(super) async fn row(&self, length: u64, within_ms: u64) -> Result<Row> {
        let now = self.now();
        match now.row(length, within_ms).await {
            Err(_) if self.replaced(&now) => self.now().row(length, within_ms).await,
            row => row,
        }
    }

    pub(super) fn replaced(&self, asked: &Arc<SegmentSource>) -> bool {
        !Arc::ptr_eq(asked, &self.0.load())
    }

    /// Applies a changed definition.
    pub(super) fn alter(&self, plan: &SegmentPlan, version: u64, enabled: bool) {
        let now = self.0.load();
        if now.serves(plan) {
            return now.alter(plan.clone(), version, enabled);
        }
        // No prefetched number goes back to the store: the store has set the mark above it.
        self.succeed(&now, &now.successor(plan.clone(), version, enabled));
    }

    /// Drops the prefetched numbers unused: the store may issue them again.
    pub(crate) fn drop_stock(&self) {
        let now = self.0.load();
        self.succeed(&now, &now.without_stock());
    }

    fn succeed(&self, now: &SegmentSource, next: &Arc<SegmentSource>) {
        // In this order: a caller that finds the old source closed finds the new one.
        self.0.store(Arc::clone(next));
        // The old source's prefetched numbers count as lost.
        let _ = now.close();
    }
}

#[derive(Debug, Default)]
pub(crate) struct SnowflakeBack {
    /// Absent while no window is held.
    pub(super) minter: Arc<ArcSwapOption<Minter>>,
    /// Error that explains why the minter is absent.
    pub(super) why: Mutex<Option<Error>>,
    /// Prefill queue, used where the definition asks for it.
    pub(crate) queue: Queue,
    /// Present in global-order sources only.
    pub(super) ordered: Option<Ordered>,
    /// Time up to which the store has granted windows, in Unix milliseconds.
    granted_until: AtomicU64,
}

impl SnowflakeBack {
    pub(crate) fn serve(&self, minter: Arc<Minter>) {
        self.minter.store(Some(minter));
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.queue.serve();
    }

    /// Records the time up to which the store has granted windows.
    pub(crate) fn granted_until(&self, until: UnixMillis) {
        self.granted_until.store(until.get(), Ordering::Relaxed);
    }

    /// Returns the time recorded last by `granted_until()`.
    pub(crate) fn mark(&self) -> UnixMillis {
        UnixMillis::new(self.granted_until.load(Ordering::Relaxed))
    }

    /// Drops the prefilled IDs unused.
    pub(crate) fn drop_stock(&self, around: &Arc<Surroundings>) {
        self.queue.drop_stock(&self.minter, around);
    }

    pub(crate) fn minter(&self) -> Option<Arc<Minter>> {
        self.minter.load_full()
    }

    /// Returns the error that explains why the minter is absent, if one is known.
    pub(crate) fn why(&self) -> Option<Error> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops minting for now.
    pub(crate) fn stop(&self) {
        self.minter.store(None);
    }

    pub(crate) fn suspend(&self, why: Error) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.minter.store(None);
    }
}
