//! Backing of a source, by its kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use snowmint_core::UnixMillis;

use super::defined::{Defined, prefill_of};
use super::prefill_holder::PrefillHolder;
use super::segment::Refill;
use super::uuid_source::{UlidSource, UuidSource};
use super::{
    CounterSource, GeneratorSet, GlobalOrder, InitialState, MultiStoreSource, NodeContext,
    NumberRange, RemoteSource, SegmentSource, StoreMinted,
};
use crate::error::{Error, Result};
use crate::model::catalog::SourceState;
use crate::spec::{MinterPlan, Order, Plan, SegmentPlan, SnowflakePlan};

/// Backing that a source mints from.
#[derive(Debug)]
pub(crate) enum Backing {
    Snowflake(SnowflakeBacking),
    StoreMinted(Box<StoreMinted>),
    Segment(SegmentBacking),
    MultiStore(Arc<MultiStoreSource>),
    Counter(Arc<CounterSource>),
    Uuid(Box<UuidSource>),
    Ulid(UlidSource),
    Remote(RemoteSource),
}

impl Backing {
    /// Opens the backing that the source's current definition asks for.
    pub(super) fn open(
        name: &str,
        defined: &Defined,
        initial: &InitialState,
        ctx: &Arc<NodeContext>,
    ) -> Result<Self> {
        Ok(match (RemoteSource::backing(name, &defined.plan, ctx), &defined.plan) {
            (Some(remote), _) => remote,
            (None, plan) if !plan.stores().is_empty() => {
                Self::MultiStore(Arc::new(MultiStoreSource::new(name, plan, Arc::clone(ctx))))
            }
            (
                None,
                Plan::Snowflake(
                    plan @ SnowflakePlan { minter_plan: MinterPlan::Store { worker }, .. },
                ),
            ) => {
                let source =
                    StoreMinted::new(name, plan, *worker, defined.version, Arc::clone(ctx));
                Self::StoreMinted(Box::new(source))
            }
            (None, Plan::Snowflake(plan)) => {
                let mut backing = SnowflakeBacking::default();
                if plan.order == Order::Global {
                    backing.global_order = Some(GlobalOrder::new(name, plan));
                    ctx.sections.begin();
                }
                backing.queue.set(name, prefill_of(plan, defined.state), &backing.generators, ctx);
                Self::Snowflake(backing)
            }
            (None, Plan::Segment(plan)) => {
                let (version, ctx) = (defined.version, Arc::clone(ctx));
                let enabled = defined.state == SourceState::Enabled;
                let refill = Refill::starting_from(initial, plan.stripe);
                let source = SegmentSource::new(name, plan.clone(), version, refill, enabled, ctx);
                Self::Segment(SegmentBacking::new(source))
            }
            (None, Plan::Counter(plan)) => {
                Self::Counter(Arc::new(CounterSource::new(name, *plan, Arc::clone(ctx))))
            }
            (None, Plan::Uuid(plan)) => {
                Self::Uuid(Box::new(UuidSource::new(*plan, Arc::clone(&ctx.clock))?))
            }
            (None, Plan::Ulid) => Self::Ulid(UlidSource::new(Arc::clone(&ctx.clock))),
        })
    }
}

/// Current segment source; each restripe and each change to or from a step of 1 replaces it.
#[derive(Debug)]
pub(crate) struct SegmentBacking(ArcSwap<SegmentSource>);

impl SegmentBacking {
    pub(super) fn new(source: Arc<SegmentSource>) -> Self {
        Self(ArcSwap::new(source))
    }

    pub(crate) fn now(&self) -> Arc<SegmentSource> {
        self.0.load_full()
    }

    /// Calls the current source, and its successor if it was replaced meanwhile.
    #[inline]
    pub(super) fn try_current<T, E>(
        &self,
        call: impl Fn(&Arc<SegmentSource>) -> Result<T, E>,
    ) -> Result<T, E> {
        let current = self.0.load();
        let result = call(&current);
        if result.is_err() && self.replaced(&current) { call(&self.0.load()) } else { result }
    }

    pub(super) async fn reserve_range(&self, length: u64, within_ms: u64) -> Result<NumberRange> {
        let now = self.now();
        match now.reserve_range(length, within_ms).await {
            Err(_) if self.replaced(&now) => self.now().reserve_range(length, within_ms).await,
            row => row,
        }
    }

    pub(super) fn replaced(&self, current: &Arc<SegmentSource>) -> bool {
        !Arc::ptr_eq(current, &self.0.load())
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
    pub(crate) fn drop_prefetched(&self) {
        let now = self.0.load();
        self.succeed(&now, &now.without_prefetched());
    }

    fn succeed(&self, now: &SegmentSource, next: &Arc<SegmentSource>) {
        // Stored before the close, so that a caller that finds the old source closed finds this one.
        self.0.store(Arc::clone(next));
        // The old source's prefetched numbers count as lost.
        let _ = now.close();
    }
}

#[derive(Debug, Default)]
pub(crate) struct SnowflakeBacking {
    /// Absent while no window is held.
    pub(super) generators: Arc<ArcSwapOption<GeneratorSet>>,
    /// Error that explains why the generators are absent.
    pub(super) error: Mutex<Option<Error>>,
    /// Prefill queue, used where the definition asks for it.
    pub(crate) queue: PrefillHolder,
    /// Present in global-order sources only.
    pub(super) global_order: Option<GlobalOrder>,
    /// Time up to which the store has granted windows, in Unix milliseconds.
    granted_until: AtomicU64,
}

impl SnowflakeBacking {
    pub(crate) fn serve(&self, generators: Arc<GeneratorSet>) {
        self.generators.store(Some(generators));
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
    pub(crate) fn drop_prefetched(&self, ctx: &Arc<NodeContext>) {
        self.queue.drop_prefetched(&self.generators, ctx);
    }

    pub(crate) fn generators(&self) -> Option<Arc<GeneratorSet>> {
        self.generators.load_full()
    }

    /// Returns the error that explains why the generators are absent, if one is known.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops minting for now.
    pub(crate) fn stop(&self) {
        self.generators.store(None);
    }

    pub(crate) fn suspend(&self, error: Error) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.generators.store(None);
    }
}
