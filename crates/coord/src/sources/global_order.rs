//! Global-order sources: every ID is greater than every ID returned to any caller, by any server,
//! before it was requested. An ID also has its time (like the timestamp oracles of Percolator and
//! `TiDB`).
//!
//! One process at a time mints: the owner of the slot of the source's name. [`SectionWindows`] keeps
//! this ownership, as it does for sections of counters. The slot's mark is a time, moved ahead in
//! small steps and only while IDs are minted, so that the next owner hardly waits for its clock.

use std::sync::atomic::{AtomicU64, Ordering};

use snowmint_core::UnixMillis;

use super::counter::hash_slot;
use super::generator_set::GeneratorConfig;
use super::section_windows::SectionWindows;
use crate::machine::demand::Demand;
use crate::model::pool::SECTIONS;
use crate::spec::SnowflakePlan;

/// Length of a window ahead of now, in milliseconds, and at least this many units of the layout.
const WINDOW_MS: u64 = 500;
const WINDOW_UNITS: u64 = 3;

/// State that only a global-order source has.
#[derive(Debug)]
pub(crate) struct GlobalOrder {
    slot: u16,
    window_ms: u64,
    lead_max_ms: AtomicU64,
    /// End of the window for which more was already requested.
    requested: AtomicU64,
}

impl GlobalOrder {
    pub(super) fn new(name: &str, plan: &SnowflakePlan) -> Self {
        let units_ms = u64::from(plan.layout.unit_ms()).saturating_mul(WINDOW_UNITS);
        Self {
            slot: SECTIONS + hash_slot(name.as_bytes()),
            window_ms: WINDOW_MS.max(units_ms),
            lead_max_ms: AtomicU64::new(GeneratorConfig::of(plan).lead_max_ms()),
            requested: AtomicU64::new(0),
        }
    }

    /// Applies a changed definition.
    pub(super) fn alter(&self, plan: &SnowflakePlan) {
        self.lead_max_ms.store(GeneratorConfig::of(plan).lead_max_ms(), Ordering::Relaxed);
    }

    /// Returns the slot whose owner mints.
    pub(crate) const fn slot(&self) -> u16 {
        self.slot
    }

    pub(super) fn want(&self, taken_until: UnixMillis) -> Demand {
        let lead_max_ms = self.lead_max_ms.load(Ordering::Relaxed);
        Demand::Time { taken_until, window_ms: self.window_ms, lead_max_ms }
    }

    /// Requests more once half of the window is used.
    #[inline]
    pub(super) fn request_ahead(
        &self,
        sections: &SectionWindows,
        taken_until: UnixMillis,
        end: UnixMillis,
    ) {
        if end.since(taken_until) <= self.window_ms / 2
            && self.requested.load(Ordering::Relaxed) != end.get()
            && self.requested.swap(end.get(), Ordering::Relaxed) != end.get()
        {
            sections.want(self.slot, self.want(taken_until));
        }
    }
}
