//! Sections of counters, and slots of global-order sources: acquiring them, keeping them ahead of
//! need, and handing them over.
//!
//! Sections are exclusive slots ([`exclusive`](crate::model::exclusive)). The lease on them is the
//! member's own, so an idle section costs nothing. Sections that are wanted at the same time are
//! acquired, extended and relinquished in one call each.

mod acquiring;
mod assignment;
mod call_gate;
mod cost;
mod owned_section;
mod unconfirmed;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use snowmint_core::ElapsedMillis;

use self::call_gate::{BATCH_MAX, CallGate};
use self::owned_section::OwnedSection;
use self::unconfirmed::Unconfirmed;
use super::{Now, RequestNumbers};
use crate::error::{Result, chain};
use crate::ids::{Incarnation, Mark, Term};
use crate::machine::demand::Demand;
use crate::machine::section_assignment::{FRESH_MS, SectionAssignment};
use crate::model::exclusive::{Acquire, Relinquish, RenewalWatch};
use crate::model::lease::{Extend, Extended, Lease, NotExtended};
use crate::model::member::{MemberInfo, Serves};
use crate::model::pool::{Pool, SECTIONS};

/// Wait before the members are listed again, after a caller was redirected.
const LIST_AGAIN_MS: u64 = 200;

/// Action due for sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SectionsAction {
    /// Acquire these, and report the result.
    Acquire(Acquire),
    /// Extend these, and report the results.
    Extend(Vec<Extend>),
    /// Stop minting from these, then relinquish them, and report the result.
    Relinquish(Relinquish),
    /// List the members, and report the result.
    List,
}

/// Change of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SectionChange {
    /// This member owns it. The store knows the acquire by this request number.
    Owned(u16, Lease, u64),
    /// Its window reaches to this mark.
    Open(u16, Mark),
    /// This member no longer owns it.
    Shut(u16),
}

/// Member that acts.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) member: Incarnation,
    pub(crate) owner: String,
    /// This process's previous member, which has certainly stopped minting.
    pub(crate) before: Option<Incarnation>,
    /// Our own address; empty if this member serves no callers.
    pub(crate) address: String,
    /// Kinds of slots that this member serves.
    pub(crate) serves: Serves,
    /// Interval between two lists of the members.
    pub(crate) list_every_ms: u64,
    /// Largest distance between our clock and the store's.
    pub(crate) skew_max_ms: u64,
}

/// Notices of peers that the members have changed: their number, at each step.
#[derive(Clone, Copy, Debug, Default)]
struct NoticeCounts {
    received: u64,
    /// Those before the list in flight began.
    listing: u64,
    listed: u64,
}

/// Sections of one member.
#[derive(Debug)]
pub(crate) struct SectionsMachine {
    pool: Pool,
    requests: RequestNumbers,
    held: BTreeMap<u16, OwnedSection>,
    /// Those of `held` with marks to move: a few of thousands.
    moving: BTreeSet<u16>,
    /// Sections to be acquired.
    wanted: BTreeMap<u16, Demand>,
    /// Whether a section that this member does not own was ever wanted.
    was_wanted: bool,
    /// Owner of a section as the store reported it, and when.
    blocked: HashMap<u16, (Incarnation, ElapsedMillis)>,
    /// Acquire that was sent, or is to be sent again.
    acquire: Option<Acquire>,
    /// Whether held sections stay although others are to own them: these do not know yet.
    keeps: bool,
    /// Sections to be relinquished.
    leaving: BTreeSet<u16>,
    unconfirmed: Unconfirmed,
    acquiring: CallGate,
    extending: CallGate,
    relinquishing: CallGate,
    listing: CallGate,
    listed_at: Option<ElapsedMillis>,
    notices: NoticeCounts,
    /// Whether the store was asked for the members, with or without a result.
    is_listed: bool,
    members: Vec<MemberInfo>,
    watch: RenewalWatch,
    /// Section owners, for the servers at the last computation.
    assignment: SectionAssignment,
    /// The store has rejected, by its own time, the mark of a global-order slot that our clock
    /// asked for.
    ahead: bool,
}

impl SectionsMachine {
    pub(crate) fn new(pool: Pool, seed: u64) -> Self {
        Self {
            pool,
            requests: RequestNumbers::new(seed),
            held: BTreeMap::new(),
            moving: BTreeSet::new(),
            wanted: BTreeMap::new(),
            was_wanted: false,
            blocked: HashMap::new(),
            acquire: None,
            keeps: false,
            leaving: BTreeSet::new(),
            unconfirmed: Unconfirmed::default(),
            acquiring: CallGate::default(),
            extending: CallGate::default(),
            relinquishing: CallGate::default(),
            listing: CallGate::default(),
            listed_at: None,
            notices: NoticeCounts::default(),
            is_listed: false,
            members: Vec::new(),
            watch: RenewalWatch::default(),
            assignment: SectionAssignment::default(),
            ahead: false,
        }
    }

    /// Records earlier members of this process, which have certainly stopped minting: their slots
    /// are acquired at once.
    pub(crate) fn ended(&mut self, members: impl IntoIterator<Item = Incarnation>) {
        self.watch.ended(members);
    }

    /// Records that the membership is over: nothing is held, and calls in flight have no effect.
    /// Observations of other members still count.
    pub(crate) fn lose(&mut self) {
        self.expire_all();
        self.unconfirmed = Unconfirmed::default();
    }

    /// Records that this member can rely on no section any more, and that calls in flight have no
    /// effect. The store may still hold the requested slots for this member.
    pub(crate) fn expire_all(&mut self) {
        self.held.clear();
        self.moving.clear();
        self.wanted.clear();
        self.blocked.clear();
        self.leaving.clear();
        self.unconfirmed.expire_all();
        self.acquire = None;
        (self.acquiring, self.extending, self.relinquishing) = Default::default();
        self.listing = CallGate::default();
        self.listed_at = None;
    }

    /// Handles the demand of callers.
    pub(crate) fn want(&mut self, wants: BTreeMap<u16, Demand>, now: ElapsedMillis) {
        for (section, want) in wants {
            if self.leaving.contains(&section) {
                continue;
            }
            if let Some(held) = self.held.get_mut(&section) {
                held.want = Some(want);
                self.moving.insert(section);
                continue;
            }
            let is_fresh = |(_, at): &(Incarnation, ElapsedMillis)| now.since(*at) < FRESH_MS;
            if !self.blocked.get(&section).is_some_and(is_fresh) {
                self.was_wanted = true;
                self.wanted.insert(section, want);
            }
        }
    }

    /// Returns the actions that are due. `again`: a caller was redirected since the last poll.
    pub(crate) fn poll(&mut self, now: Now, actor: &Actor, again: bool) -> Vec<SectionsAction> {
        let mut due = Vec::new();
        due.extend(self.acquire_due(now, actor).map(SectionsAction::Acquire));
        due.extend(self.extend_due(now, actor.skew_max_ms).map(SectionsAction::Extend));
        due.extend(self.relinquish_due(now.elapsed, actor).map(SectionsAction::Relinquish));
        if self.list_due(now.elapsed, actor, again) {
            due.push(SectionsAction::List);
        }
        due
    }

    /// Returns the milliseconds until the next extend.
    fn next_extend_ms(&self, now: ElapsedMillis) -> Option<u64> {
        self.extending.next_ms(now).filter(|_| !self.moving.is_empty())
    }

    fn extend_due(&mut self, now: Now, skew_max_ms: u64) -> Option<Vec<Extend>> {
        if self.next_extend_ms(now.elapsed) != Some(0) {
            return None;
        }
        let mut due = Vec::new();
        for section in &self.moving {
            let Some(held) = self.held.get_mut(section) else { continue };
            if let Some(want) = held.want.take()
                && held.extend.is_none()
            {
                let requests = &mut self.requests;
                let extend = held.next(&self.pool, *section, want, now, skew_max_ms, requests);
                held.extend = Some(extend);
            }
            due.extend(held.extend.clone());
            if due.len() >= self.extending.batch_max {
                break;
            }
        }
        if due.is_empty() {
            return None;
        }
        self.extending.began(now.elapsed, due.len());
        Some(due)
    }

    /// Returns the milliseconds until the next relinquish.
    fn next_relinquish_ms(&self, now: ElapsedMillis) -> Option<u64> {
        self.relinquishing.next_ms(now).filter(|_| !self.leaving.is_empty())
    }

    fn relinquish_due(&mut self, now: ElapsedMillis, actor: &Actor) -> Option<Relinquish> {
        if self.next_relinquish_ms(now) != Some(0) {
            return None;
        }
        // A call in flight may still move a mark, and nothing is minted from it.
        self.relinquishing.began(now, self.leaving.len());
        let held = |section: &u16| Some((u64::from(*section), self.held.get(section)?.term));
        let slots = self.leaving.iter().filter_map(held).collect();
        Some(Relinquish { pool: self.pool.name.clone(), member: actor.member, slots })
    }

    /// Returns whether other members matter: one holds a section that this member wants, or may
    /// want one that this member holds.
    fn watches(&self, actor: &Actor) -> bool {
        let counts = !self.held.is_empty() || self.was_wanted;
        !self.blocked.is_empty() || (counts && !actor.address.is_empty())
    }

    /// Handles the number of notices so far that the members have changed: they are listed at once.
    pub(crate) const fn notices(&mut self, received: u64) {
        self.notices.received = received;
    }

    /// Returns how many of these notices came before the last list.
    pub(crate) const fn listed_notices(&self) -> u64 {
        self.notices.listed
    }

    /// Returns the milliseconds until the next list of members.
    fn next_list_ms(&self, now: ElapsedMillis, actor: &Actor, again: bool) -> Option<u64> {
        if self.notices.received > self.notices.listed {
            return self.listing.next_ms(now);
        }
        let every_ms = if again { LIST_AGAIN_MS } else { actor.list_every_ms };
        let since_ms = self.listed_at.map_or(u64::MAX, |at| now.since(at));
        let next_ms = self.listing.next_ms(now).filter(|_| again || self.watches(actor))?;
        Some(next_ms.max(every_ms.saturating_sub(since_ms)))
    }

    fn list_due(&mut self, now: ElapsedMillis, actor: &Actor, again: bool) -> bool {
        let is_due = self.next_list_ms(now, actor, again) == Some(0);
        if is_due {
            self.listing.began(now, 0);
            self.notices.listing = self.notices.received;
        }
        is_due
    }

    /// Handles the results of extends.
    pub(crate) fn extended(
        &mut self,
        now: ElapsedMillis,
        items: &[Extend],
        results: &[Result<Extended>],
    ) -> Vec<SectionChange> {
        let mut changes = Vec::new();
        let mut failed = None;
        for (item, result) in items.iter().zip(results) {
            let Ok(section) = u16::try_from(item.slot) else { continue };
            let Some(held) = self.held.get_mut(&section) else { continue };
            if held.extend.as_ref().is_none_or(|extend| extend.request != item.request) {
                continue;
            }
            match result {
                Ok(extended) => {
                    held.mark = extended.mark;
                    held.extended_at = Some(now);
                    self.settled(section);
                    if !self.leaving.contains(&section) {
                        changes.push(SectionChange::Open(section, extended.mark));
                    }
                }
                Err(error) => match NotExtended::by(error.kind()) {
                    NotExtended::Unknown => failed = Some(error),
                    // Requested again when it is wanted again.
                    NotExtended::Refused => {
                        self.ahead |= section >= SECTIONS;
                        self.settled(section);
                        failed = Some(error);
                    }
                    // Acquired again when it is wanted.
                    NotExtended::Lost => {
                        tracing::warn!(section, error = %chain(&error), "section lost to another server");
                        self.forget(section, now);
                        changes.push(SectionChange::Shut(section));
                    }
                },
            }
        }
        if let Some(error) = failed {
            tracing::warn!(error = %chain(&error), "failed to extend windows of sections");
        }
        self.extending.ended(now, failed.is_some());
        changes
    }

    /// Returns whether the store has found our clock ahead since the last call.
    pub(crate) const fn take_clock_ahead(&mut self) -> bool {
        std::mem::replace(&mut self.ahead, false)
    }

    /// Records that the outcome of a section's extend is known.
    fn settled(&mut self, section: u16) {
        let Some(held) = self.held.get_mut(&section) else { return };
        held.extend = None;
        if held.want.is_none() {
            self.moving.remove(&section);
        }
    }

    /// Handles the result of a relinquish.
    pub(crate) fn relinquished(
        &mut self,
        now: ElapsedMillis,
        slots: &[(u64, Term)],
        result: &Result<()>,
    ) {
        self.relinquishing.ended(now, result.is_err());
        if result.is_ok() {
            for (slot, term) in slots {
                let Ok(section) = u16::try_from(*slot) else { continue };
                // Keep a section that was acquired again since.
                if self.held.get(&section).is_none_or(|held| held.term == *term) {
                    self.forget(section, now);
                }
            }
        }
    }

    /// Records that this member no longer owns the section.
    fn forget(&mut self, section: u16, now: ElapsedMillis) {
        self.unconfirmed.not_ours(section, now);
        self.held.remove(&section);
        self.moving.remove(&section);
        self.leaving.remove(&section);
    }

    /// Handles a list of members. Returns the sections to relinquish, from which minting must stop
    /// first.
    pub(crate) fn listed(
        &mut self,
        now: ElapsedMillis,
        actor: &Actor,
        result: Result<Vec<MemberInfo>>,
    ) -> Vec<u16> {
        self.listing.ended(now, result.is_err());
        self.is_listed = true;
        let Ok(members) = result else { return Vec::new() };
        self.listed_at = Some(now);
        self.notices.listed = self.notices.listing;
        self.watch.record(&members, now);
        self.members = members;
        self.give_up(now, actor)
    }

    /// Sets whether held sections stay although others are to own them.
    pub(crate) const fn keep(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Returns whether a relinquish is pending, or an acquire that may bring more sections.
    pub(crate) fn is_relinquishing(&self) -> bool {
        !self.leaving.is_empty() || self.acquire.is_some()
    }

    /// Returns the sections to relinquish by the current assignment, from which minting must stop
    /// first.
    pub(crate) fn give_up(&mut self, now: ElapsedMillis, actor: &Actor) -> Vec<u16> {
        let assignment = self.assignment_now(now, actor);
        let not_ours =
            |section: &u16| !assignment.is_own(*section) && !self.leaving.contains(section);
        let most = if self.keeps { 0 } else { BATCH_MAX };
        let leaving: Vec<u16> = self.held.keys().copied().filter(not_ours).take(most).collect();
        self.leaving.extend(&leaving);
        let is_held = |section: u16| self.held.contains_key(&section);
        self.unconfirmed.leave(|section| !assignment.is_own(section) && !is_held(section));
        self.wanted.retain(|section, _| assignment.is_own(*section));
        // Owners of the other sections are not tracked.
        self.blocked.retain(|section, _| assignment.is_own(*section));
        leaving
    }

    /// Returns the milliseconds until the next poll; none when nothing is pending.
    pub(crate) fn next_poll_ms(&self, now: ElapsedMillis, actor: &Actor) -> Option<u64> {
        let next = [
            self.next_acquire_ms(now),
            self.next_extend_ms(now),
            self.next_relinquish_ms(now),
            self.next_list_ms(now, actor, false),
        ];
        next.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
