//! Acquires of sections, and their results.

use std::collections::BTreeSet;

use snowmint_core::ElapsedMillis;

use super::owned_section::OwnedSection;
use super::{Actor, SectionChange, SectionsMachine};
use crate::error::{Error, ErrorKind, Result};
use crate::machine::Now;
use crate::machine::demand::Demand;
use crate::model::exclusive::{Acquire, Acquired, LENGTH_MAX};
use crate::model::pool::SECTIONS;

impl SectionsMachine {
    /// Returns the milliseconds until the next acquire.
    pub(super) fn next_acquire_ms(&self, now: ElapsedMillis) -> Option<u64> {
        let waits = self.acquire.is_some() || !self.wanted.is_empty() || self.unconfirmed.are_due();
        self.acquiring.next_ms(now).filter(|_| waits)
    }

    pub(super) fn acquire_due(&mut self, now: Now, actor: &Actor) -> Option<Acquire> {
        if self.next_acquire_ms(now.elapsed) != Some(0) {
            return None;
        }
        if self.acquire.is_none() {
            let (slots, length) = self.slots_to_acquire(now.elapsed, actor);
            self.unconfirmed.requested(slots.iter().filter_map(|slot| u16::try_from(*slot).ok()));
            self.acquire = Some(Acquire {
                pool: self.pool.clone(),
                member: actor.member,
                owner: actor.owner.clone(),
                slots,
                stalled: self.watch.stalled(now.elapsed),
                supersedes: actor.before,
                length,
                request: self.requests.next(now.chance),
            });
        }
        let acquire = self.acquire.clone()?;
        self.acquiring.began(now.elapsed, acquire.slots.len());
        Some(acquire)
    }

    /// Returns the slots to acquire, and how far to move their marks in the same call. Global-order
    /// slots are acquired separately: their marks are times. Sections of counters: those that are
    /// wanted, plus as many more of our own as are held already. So a server with few keys has few
    /// sections, and a server with many keys soon has all of its sections, without a wait for each.
    fn slots_to_acquire(&mut self, now: ElapsedMillis, actor: &Actor) -> (Vec<u64>, u64) {
        let batch_max = self.acquiring.batch_max;
        if let Some(unconfirmed) = self.unconfirmed.turn(batch_max, !self.wanted.is_empty()) {
            return (unconfirmed, 0);
        }
        let ordered = self.wanted.range(SECTIONS..);
        let ordered: Vec<u64> = ordered.take(batch_max).map(|(slot, _)| u64::from(*slot)).collect();
        if !ordered.is_empty() {
            return (ordered, 0);
        }
        let wanted: Vec<u64> =
            self.wanted.keys().take(batch_max).map(|section| u64::from(*section)).collect();
        let step_of = |want: &Demand| match want {
            Demand::Numbers { step, .. } => *step,
            Demand::Time { .. } => 0,
        };
        let step = self.wanted.values().map(step_of).max().unwrap_or(0);
        let assignment = self.assignment_now(now, actor);
        let is_new = |section: &u16| {
            !self.held.contains_key(section)
                && !self.wanted.contains_key(section)
                && !self.blocked.contains_key(section)
                && assignment.is_own(*section)
        };
        let room = batch_max.saturating_sub(wanted.len());
        let more = (0..SECTIONS).filter(is_new).map(u64::from).take(self.held.len().min(room));
        (wanted.iter().copied().chain(more).collect(), step.min(LENGTH_MAX))
    }

    /// Handles the sections that callers asked this member for and that another member should own.
    pub(crate) fn misdirected(&mut self, sections: BTreeSet<u16>, now: ElapsedMillis) {
        let is_held = |section: &u16| self.held.contains_key(section);
        let is_known = |section: &u16| is_held(section) || self.wanted.contains_key(section);
        self.unconfirmed
            .misdirected(sections.into_iter().filter(|section| !is_known(section)), now);
    }

    /// Handles the result of an acquire.
    pub(crate) fn acquired(
        &mut self,
        now: ElapsedMillis,
        request: u64,
        result: Result<Acquired>,
    ) -> (Vec<SectionChange>, Option<Error>) {
        let Some(acquire) = self.acquire.take_if(|acquire| acquire.request == request) else {
            return (Vec::new(), None);
        };
        let acquired = match result {
            Ok(acquired) => acquired,
            Err(error) => {
                self.acquiring.ended(now, true);
                if matches!(error.kind(), ErrorKind::Unavailable) {
                    // It may have been done: repeat the same request.
                    self.acquire = Some(acquire);
                }
                return (Vec::new(), Some(error));
            }
        };
        self.acquiring.ended(now, false);
        let mut changes = Vec::new();
        for lease in acquired.leases {
            let Ok(section) = u16::try_from(lease.slot) else { continue };
            self.blocked.remove(&section);
            self.unconfirmed.requested(std::iter::once(section));
            let enough = |want: &Demand| match want {
                Demand::Numbers { until, .. } => *until <= lease.mark.get(),
                Demand::Time { .. } => false,
            };
            let want = self.wanted.remove(&section).filter(|want| !enough(want));
            if want.is_some() {
                self.moving.insert(section);
            } else {
                self.moving.remove(&section);
            }
            self.held.insert(
                section,
                OwnedSection {
                    term: lease.term,
                    mark: lease.mark,
                    want,
                    extend: None,
                    extended_at: None,
                    doublings: 0,
                },
            );
            if self.unconfirmed.found(section) {
                self.leaving.insert(section);
                continue;
            }
            let mark = lease.mark;
            changes.push(SectionChange::Owned(section, lease, request));
            changes.push(SectionChange::Open(section, mark));
        }
        for (slot, holder) in acquired.held {
            let Ok(section) = u16::try_from(slot) else { continue };
            self.wanted.remove(&section);
            self.unconfirmed.not_ours(section, now);
            if !self.unconfirmed.found(section) {
                self.blocked.insert(section, (holder, now));
            }
        }
        (changes, None)
    }
}
