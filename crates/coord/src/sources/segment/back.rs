//! What stands behind a segment source's name.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::SegmentSource;
use crate::error::Result;
use crate::spec::SegmentPlan;

/// What numbers come from now: another one after each restripe, and after a change to a step of 1 or back.
#[derive(Debug)]
pub(crate) struct SegmentBack(ArcSwap<SegmentSource>);

impl SegmentBack {
    pub(crate) fn new(source: Arc<SegmentSource>) -> Self {
        Self(ArcSwap::new(source))
    }

    pub(crate) fn now(&self) -> Arc<SegmentSource> {
        self.0.load_full()
    }

    /// Asks the source there is, and the one after it if it was replaced meanwhile.
    #[inline]
    pub(crate) fn ask<T, E>(
        &self,
        ask: impl Fn(&Arc<SegmentSource>) -> Result<T, E>,
    ) -> Result<T, E> {
        let asked = self.0.load();
        let answer = ask(&asked);
        if answer.is_err() && self.replaced(&asked) { ask(&self.0.load()) } else { answer }
    }

    pub(crate) fn replaced(&self, asked: &Arc<SegmentSource>) -> bool {
        !Arc::ptr_eq(asked, &self.0.load())
    }

    /// The definition was changed.
    pub(crate) fn alter(&self, plan: &SegmentPlan, version: u64, enabled: bool) {
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
