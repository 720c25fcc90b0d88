//! What a source mints from, by its kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use snowmint_core::UnixMillis;

use super::named::{UlidSource, UuidSource};
use super::queue::Queue;
use super::{Afar, ByStore, CounterSource, Minter, Ordered, Row, SegmentSource, Several};
use crate::error::{Error, Result};
use crate::spec::SegmentPlan;

/// What a source mints from.
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

/// What numbers come from now: another one after each restripe, and after a change to a step of 1 or back.
#[derive(Debug)]
pub(crate) struct SegmentBack(ArcSwap<SegmentSource>);

impl SegmentBack {
    pub(super) fn new(source: Arc<SegmentSource>) -> Self {
        Self(ArcSwap::new(source))
    }

    pub(crate) fn now(&self) -> Arc<SegmentSource> {
        self.0.load_full()
    }

    /// Asks the source there is, and the one after it if it was replaced meanwhile.
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

    /// The definition was changed.
    pub(super) fn alter(&self, plan: &SegmentPlan, version: u64, enabled: bool) {
        let now = self.0.load();
        if now.serves(plan) {
            return now.alter(plan.clone(), version, enabled);
        }
        let next = now.successor(plan.clone(), version, enabled);
        // In this order: who finds the old one closed finds the new one.
        self.0.store(next);
        // Nothing goes back: the store has set the mark behind it.
        now.close();
    }
}

#[derive(Debug, Default)]
pub(crate) struct SnowflakeBack {
    /// None while no window is held.
    pub(super) minter: Arc<ArcSwapOption<Minter>>,
    /// Why there is none.
    pub(super) why: Mutex<Option<Error>>,
    /// In front, where the definition asks for it.
    pub(crate) queue: Queue,
    /// Of a source of global order.
    pub(super) ordered: Option<Ordered>,
    /// How far the store has granted, in Unix milliseconds.
    granted_until: AtomicU64,
}

impl SnowflakeBack {
    pub(crate) fn serve(&self, minter: Arc<Minter>) {
        self.minter.store(Some(minter));
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How far the store has granted.
    pub(crate) fn granted_until(&self, until: UnixMillis) {
        self.granted_until.store(until.get(), Ordering::Relaxed);
    }

    /// The same, as it was told last.
    pub(super) fn mark(&self) -> UnixMillis {
        UnixMillis::new(self.granted_until.load(Ordering::Relaxed))
    }

    pub(crate) fn minter(&self) -> Option<Arc<Minter>> {
        self.minter.load_full()
    }

    /// Nobody mints here for now.
    pub(crate) fn stop(&self) {
        self.minter.store(None);
    }

    pub(crate) fn suspend(&self, why: Error) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.minter.store(None);
    }
}
