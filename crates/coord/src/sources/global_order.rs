//! Global-order sources: every ID is greater than every ID returned to any caller, by any server,
//! before it was requested. An ID also has its time (like the timestamp oracles of Percolator and
//! `TiDB`).
//!
//! One process at a time mints: the owner of the slot of the source's name. [`SectionWindows`] keeps
//! this ownership, as it does for sections of counters. The slot's mark is a time, moved ahead in
//! small steps and only while IDs are minted, so that the next owner hardly waits for its clock.

use std::sync::atomic::{AtomicU64, Ordering};

use snowmint_core::{Clock as _, MintError, UnixMillis};

use super::counter::hash_slot;
use super::generator_set::GeneratorConfig;
use super::retry_policy::WINDOW_WAIT_MS;
use super::section_windows::{NotOwned, SectionWindows};
use super::snowflake::SnowflakeBacking;
use super::source_inner::SourceInner;
use crate::error::{Error, Result, Retry};
use crate::machine::demand::Demand;
use crate::machine::section_assignment::Server;
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

    fn want(&self, taken_until: UnixMillis) -> Demand {
        let lead_max_ms = self.lead_max_ms.load(Ordering::Relaxed);
        Demand::Time { taken_until, window_ms: self.window_ms, lead_max_ms }
    }

    /// Requests more once half of the window is used.
    fn request_ahead(&self, sections: &SectionWindows, taken_until: UnixMillis, end: UnixMillis) {
        if end.since(taken_until) <= self.window_ms / 2
            && self.requested.load(Ordering::Relaxed) != end.get()
            && self.requested.swap(end.get(), Ordering::Relaxed) != end.get()
        {
            sections.want(self.slot, self.want(taken_until));
        }
    }
}

impl SourceInner {
    /// Fills the buffer in global order: fully, or with the number of IDs in the error.
    pub(super) fn fill_in_order(
        &self,
        backing: &SnowflakeBacking,
        global_order: &GlobalOrder,
        out: &mut [u64],
    ) -> Result<(), (usize, Error)> {
        let sections = &self.ctx.sections;
        let lease = sections.lease();
        let generators = backing.generators.load();
        let Some(generators) = generators.as_ref() else {
            return Err((0, self.not_here(global_order)));
        };
        let filled = generators.try_fill(out);
        let (taken_until, end) = generators.reach();
        global_order.request_ahead(sections, taken_until, end);
        // The lease is checked after taking, so the check covers any delay of this thread up to
        // then.
        if !self.ctx.is_leased(lease) {
            return Err((0, self.lease_expired()));
        }
        filled.map_err(|short| {
            let error = match short.error {
                MintError::Closed => self.not_here(global_order),
                error @ MintError::WindowSpent { .. } => {
                    // Also when it was requested before: the result may have been lost.
                    sections.want(global_order.slot, global_order.want(taken_until));
                    self.minted_nothing(error)
                }
                error => self.minted_nothing(error),
            };
            (short.made, error)
        })
    }

    #[cold]
    fn not_here(&self, global_order: &GlobalOrder) -> Error {
        let now = self.ctx.timer.elapsed();
        let not_owner =
            |server: Server| Error::not_owner(global_order.slot % SECTIONS, server.address);
        match self.ctx.sections.absent(
            global_order.slot,
            global_order.want(self.ctx.clock.unix_ms()),
            now,
        ) {
            NotOwned::Closed => {
                Error::closed(format!("source {:?} is closed; open it again", self.name))
            }
            NotOwned::Pending => Error::unavailable(format!(
                "order of source {:?} is being acquired; retry",
                self.name
            )),
            NotOwned::With(server) => not_owner(server),
            NotOwned::HandingOver(server) => {
                not_owner(server).with_retry(Retry::AfterMs(WINDOW_WAIT_MS))
            }
        }
    }

    #[cold]
    fn lease_expired(&self) -> Error {
        Error::unavailable(format!(
            "lease on the order of source {:?} expired; retry while it is renewed",
            self.name
        ))
    }
}
