//! Acquires of sections, and their results.

use std::collections::BTreeSet;

use snowmint_core::ElapsedMillis;

use super::held::Held;
use super::{Actor, SectionChange, SectionsMachine};
use crate::error::{Error, ErrorKind, Result};
use crate::machine::Now;
use crate::ordered::{Acquire, Acquired, LENGTH_MAX};
use crate::pool::SECTIONS;
use crate::sources::Want;

impl SectionsMachine {
    pub(super) fn acquire_due(&mut self, now: Now, actor: &Actor) -> Option<Acquire> {
        if !self.taking.may_begin(now.elapsed) {
            return None;
        }
        if self.acquire.is_none() && (self.orphans.are_due() || !self.wanted.is_empty()) {
            let (slots, length) = self.what_to_take(now.elapsed, actor);
            self.orphans.asked(slots.iter().filter_map(|slot| u16::try_from(*slot).ok()));
            self.acquire = Some(Acquire {
                pool: self.pool.clone(),
                member: actor.member,
                owner: actor.owner.clone(),
                slots,
                silent: self.watch.silent(now.elapsed),
                supersedes: actor.before,
                length,
                request: self.requests.next(now.chance),
            });
        }
        let acquire = self.acquire.clone()?;
        self.taking.began(now.elapsed, acquire.slots.len());
        Some(acquire)
    }

    /// Returns the slots to acquire, and how far to move their marks in the same call. Global-order
    /// slots are acquired separately: their marks are times. Sections of counters: those that are
    /// wanted, plus as many more of our own as are held already. So a server with few keys has few
    /// sections, and a server with many keys soon has all of its sections, without a wait for each.
    fn what_to_take(&mut self, now: ElapsedMillis, actor: &Actor) -> (Vec<u64>, u64) {
        let at_once = self.taking.at_once;
        if let Some(orphans) = self.orphans.turn(at_once, !self.wanted.is_empty()) {
            return (orphans, 0);
        }
        let ordered = self.wanted.range(SECTIONS..);
        let ordered: Vec<u64> = ordered.take(at_once).map(|(slot, _)| u64::from(*slot)).collect();
        if !ordered.is_empty() {
            return (ordered, 0);
        }
        let wanted: Vec<u64> =
            self.wanted.keys().take(at_once).map(|section| u64::from(*section)).collect();
        let step_of = |want: &Want| match want {
            Want::Numbers { step, .. } => *step,
            Want::Time { .. } => 0,
        };
        let step = self.wanted.values().map(step_of).max().unwrap_or(0);
        let shares = self.shares_now(now, actor);
        let is_new = |section: &u16| {
            !self.held.contains_key(section)
                && !self.wanted.contains_key(section)
                && !self.blocked.contains_key(section)
                && shares.is_own(*section)
        };
        let room = at_once.saturating_sub(wanted.len());
        let more = (0..SECTIONS).filter(is_new).map(u64::from).take(self.held.len().min(room));
        (wanted.iter().copied().chain(more).collect(), step.min(LENGTH_MAX))
    }

    /// Handles the sections that callers asked this member for and that another member should own.
    pub(crate) fn disown(&mut self, sections: BTreeSet<u16>, now: ElapsedMillis) {
        let is_held = |section: &u16| self.held.contains_key(section);
        let is_known = |section: &u16| is_held(section) || self.wanted.contains_key(section);
        self.orphans.disown(sections.into_iter().filter(|section| !is_known(section)), now);
    }

    /// Handles the result of an acquire.
    pub(crate) fn taken(
        &mut self,
        now: ElapsedMillis,
        request: u64,
        answer: Result<Acquired>,
    ) -> (Vec<SectionChange>, Option<Error>) {
        let Some(acquire) = self.acquire.take_if(|acquire| acquire.request == request) else {
            return (Vec::new(), None);
        };
        let taken = match answer {
            Ok(taken) => taken,
            Err(error) => {
                self.taking.ended(now, true);
                if matches!(error.kind(), ErrorKind::Unavailable) {
                    // It may have been done: repeat the same request.
                    self.acquire = Some(acquire);
                }
                return (Vec::new(), Some(error));
            }
        };
        self.taking.ended(now, false);
        let mut changes = Vec::new();
        for lease in taken.leases {
            let Ok(section) = u16::try_from(lease.slot) else { continue };
            self.blocked.remove(&section);
            self.orphans.asked(std::iter::once(section));
            let enough = |want: &Want| match want {
                Want::Numbers { until, .. } => *until <= lease.mark.get(),
                Want::Time { .. } => false,
            };
            let want = self.wanted.remove(&section).filter(|want| !enough(want));
            if want.is_some() {
                self.moving.insert(section);
            } else {
                self.moving.remove(&section);
            }
            self.held.insert(
                section,
                Held {
                    term: lease.term,
                    mark: lease.mark,
                    want,
                    extend: None,
                    extended_at: None,
                    doublings: 0,
                },
            );
            if self.orphans.found(section) {
                self.leaving.insert(section);
                continue;
            }
            let mark = lease.mark;
            changes.push(SectionChange::Held(section, lease, request));
            changes.push(SectionChange::Open(section, mark));
        }
        for (slot, holder) in taken.held {
            let Ok(section) = u16::try_from(slot) else { continue };
            self.wanted.remove(&section);
            self.orphans.not_ours(section, now);
            if !self.orphans.found(section) {
                self.blocked.insert(section, (holder, now));
            }
        }
        (changes, None)
    }
}
