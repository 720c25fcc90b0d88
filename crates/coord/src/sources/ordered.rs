//! Sources of global order: every ID is greater than every ID that anybody was answered, anywhere, before
//! it was asked for, and says its time (as the timestamp oracles of Percolator and `TiDB`).
//!
//! One process at a time mints, the one that has the slot of the source's name; [`Sections`] says so, as
//! for sections of counters. The slot's mark is a time, moved ahead a little at a time and only while
//! somebody mints, so that whoever comes next need not wait long for its clock.

use std::sync::atomic::{AtomicU64, Ordering};

use snowmint_core::{Clock as _, Refusal, UnixMillis};

use super::WINDOW_WAIT_MS;
use super::counter::hash_slot;
use super::minter::Make;
use super::sections::{Absent, Sections, Want};
use super::shares::Server;
use super::{SnowflakeBack, SourceInner};
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::pool::SECTIONS;
use crate::spec::SnowflakePlan;

/// How far ahead of now a window reaches, in milliseconds, and at least this many units of the layout.
const WINDOW_MS: u64 = 500;
const WINDOW_UNITS: u64 = 3;

/// What makes a source one of global order.
#[derive(Debug)]
pub(crate) struct Ordered {
    slot: u16,
    window_ms: u64,
    lead_max_ms: AtomicU64,
    /// The end of the window for which more was asked already.
    asked: AtomicU64,
}

impl Ordered {
    pub(super) fn new(name: &str, plan: &SnowflakePlan) -> Self {
        let units_ms = u64::from(plan.layout.unit_ms()).saturating_mul(WINDOW_UNITS);
        Self {
            slot: SECTIONS + hash_slot(name.as_bytes()),
            window_ms: WINDOW_MS.max(units_ms),
            lead_max_ms: AtomicU64::new(Make::of(plan).lead_max_ms()),
            asked: AtomicU64::new(0),
        }
    }

    /// The definition was changed.
    pub(super) fn alter(&self, plan: &SnowflakePlan) {
        self.lead_max_ms.store(Make::of(plan).lead_max_ms(), Ordering::Relaxed);
    }

    /// Who has this slot mints.
    pub(crate) const fn slot(&self) -> u16 {
        self.slot
    }

    fn want(&self, taken_until: UnixMillis) -> Want {
        let lead_max_ms = self.lead_max_ms.load(Ordering::Relaxed);
        Want::Time { taken_until, window_ms: self.window_ms, lead_max_ms }
    }

    /// Asks for more once half of the window is over.
    fn look_ahead(&self, sections: &Sections, taken_until: UnixMillis, end: UnixMillis) {
        if end.since(taken_until) <= self.window_ms / 2
            && self.asked.load(Ordering::Relaxed) != end.get()
            && self.asked.swap(end.get(), Ordering::Relaxed) != end.get()
        {
            sections.want(self.slot, self.want(taken_until));
        }
    }
}

impl SourceInner {
    /// Fills the buffer in global order: with as many IDs as the error says, or with all.
    pub(super) fn fill_in_order(
        &self,
        back: &SnowflakeBack,
        ordered: &Ordered,
        out: &mut [u64],
    ) -> Result<(), (usize, Error)> {
        let sections = &self.around.sections;
        let lease = sections.lease();
        let minter = back.minter.load();
        let Some(minter) = minter.as_ref() else { return Err((0, self.not_here(ordered))) };
        let filled = minter.try_fill(out);
        let (taken_until, end) = minter.reach();
        ordered.look_ahead(sections, taken_until, end);
        // First taken, then looked: whatever held this thread up before held it up before it looked.
        if !self.around.is_leased(lease) {
            return Err((0, self.lapsed()));
        }
        filled.map_err(|short| {
            let why = match short.why {
                Refusal::Closed => self.not_here(ordered),
                why @ Refusal::WindowSpent { .. } => {
                    // Also when it was asked for before: the answer may have been lost.
                    sections.want(ordered.slot, ordered.want(taken_until));
                    Error::refused("mint", &self.name, why)
                }
                why => Error::refused("mint", &self.name, why),
            };
            (short.made, why)
        })
    }

    #[cold]
    fn not_here(&self, ordered: &Ordered) -> Error {
        let now = self.around.timer.elapsed();
        let elsewhere = |server: Server| {
            let section = ordered.slot % SECTIONS;
            Error::new("mint", ErrorKind::Elsewhere { section, address: server.address })
        };
        let kind = match self.around.sections.absent(
            ordered.slot,
            ordered.want(self.around.clock.unix_ms()),
            now,
        ) {
            Absent::Closed => ErrorKind::Closed { what: format!("source {}", self.name) },
            Absent::OnItsWay => {
                ErrorKind::Unavailable { what: format!("the right to order source {}", self.name) }
            }
            Absent::With(server) => return elsewhere(server),
            Absent::StillWith(server) => {
                return elsewhere(server).with_retry(Retry::AfterMs(WINDOW_WAIT_MS));
            }
        };
        Error::new("mint", kind)
    }

    #[cold]
    fn lapsed(&self) -> Error {
        let what = format!("our lease on the order of source {}", self.name);
        Error::new("mint", ErrorKind::Unavailable { what })
    }
}
