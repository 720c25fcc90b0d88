//! Sections of counters, and slots of global-order sources: acquiring them, keeping them ahead of
//! need, and handing them over.
//!
//! Sections are exclusive slots ([`ordered`](crate::ordered)). The lease on them is the member's
//! own, so an idle section costs nothing. Sections that are wanted at the same time are acquired,
//! extended and relinquished in one call each.

mod cost;
mod held;
mod orphans;
mod shares;
mod taking;
mod turn;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use snowmint_core::ElapsedMillis;

use self::held::Held;
use self::orphans::Orphans;
use self::turn::{AT_ONCE, Turn};
use super::{Now, Requests};
use crate::error::{Result, chain};
use crate::lease::{Extend, Extended, Lease, Mark, NotExtended, Term};
use crate::member::{Incarnation, MemberInfo, Serves};
use crate::ordered::{Acquire, Relinquish, Watch};
use crate::pool::{Pool, SECTIONS};
use crate::sources::{FRESH_MS, Shares, Want};

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
    Held(u16, Lease, u64),
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

/// Sections of one member.
#[derive(Debug)]
pub(crate) struct SectionsMachine {
    pool: Pool,
    requests: Requests,
    held: BTreeMap<u16, Held>,
    /// Those of `held` with marks to move: a few of thousands.
    moving: BTreeSet<u16>,
    /// Sections to be acquired.
    wanted: BTreeMap<u16, Want>,
    /// Whether a section that this member does not own was ever wanted.
    was_wanted: bool,
    /// Owner of a section as the store reported it, and when.
    blocked: HashMap<u16, (Incarnation, ElapsedMillis)>,
    /// Acquire that was sent, or is to be sent again.
    acquire: Option<Acquire>,
    /// Sections to be relinquished.
    leaving: BTreeSet<u16>,
    orphans: Orphans,
    taking: Turn,
    extending: Turn,
    letting: Turn,
    listing: Turn,
    listed_at: Option<ElapsedMillis>,
    members: Vec<MemberInfo>,
    watch: Watch,
    /// Section owners, for the servers at the last computation.
    shares: Shares,
    /// The store has rejected, by its own time, the mark of a global-order slot that our clock
    /// asked for.
    ahead: bool,
}

impl SectionsMachine {
    pub(crate) fn new(pool: Pool, seed: u64) -> Self {
        Self {
            pool,
            requests: Requests::new(seed),
            held: BTreeMap::new(),
            moving: BTreeSet::new(),
            wanted: BTreeMap::new(),
            was_wanted: false,
            blocked: HashMap::new(),
            acquire: None,
            leaving: BTreeSet::new(),
            orphans: Orphans::default(),
            taking: Turn::default(),
            extending: Turn::default(),
            letting: Turn::default(),
            listing: Turn::default(),
            listed_at: None,
            members: Vec::new(),
            watch: Watch::default(),
            shares: Shares::default(),
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
        self.lapse();
        self.orphans = Orphans::default();
    }

    /// Records that nothing is held any more as far as this member knows, and that calls in flight
    /// have no effect. The store may still hold for this member the slots that it asked for.
    pub(crate) fn lapse(&mut self) {
        self.held.clear();
        self.moving.clear();
        self.wanted.clear();
        self.blocked.clear();
        self.leaving.clear();
        self.orphans.lapse();
        self.acquire = None;
        (self.taking, self.extending, self.letting) = Default::default();
        self.listing = Turn::default();
        self.listed_at = None;
    }

    /// Handles the demand of callers.
    pub(crate) fn want(&mut self, wants: BTreeMap<u16, Want>, now: ElapsedMillis) {
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
    pub(crate) fn look(&mut self, now: Now, actor: &Actor, again: bool) -> Vec<SectionsAction> {
        let mut due = Vec::new();
        due.extend(self.acquire_due(now, actor).map(SectionsAction::Acquire));
        due.extend(self.extend_due(now, actor.skew_max_ms).map(SectionsAction::Extend));
        due.extend(self.relinquish_due(now.elapsed, actor).map(SectionsAction::Relinquish));
        if self.list_due(now.elapsed, actor, again) {
            due.push(SectionsAction::List);
        }
        due
    }

    fn extend_due(&mut self, now: Now, skew_max_ms: u64) -> Option<Vec<Extend>> {
        if !self.extending.may_begin(now.elapsed) {
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
            if due.len() >= self.extending.at_once {
                break;
            }
        }
        if due.is_empty() {
            return None;
        }
        self.extending.began(now.elapsed, due.len());
        Some(due)
    }

    fn relinquish_due(&mut self, now: ElapsedMillis, actor: &Actor) -> Option<Relinquish> {
        if self.leaving.is_empty() || !self.letting.may_begin(now) {
            return None;
        }
        // A call in flight may still move a mark, and nothing is minted from it.
        self.letting.began(now, self.leaving.len());
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

    fn list_due(&mut self, now: ElapsedMillis, actor: &Actor, again: bool) -> bool {
        let needed = again || self.watches(actor);
        let after_ms = if again { LIST_AGAIN_MS } else { actor.list_every_ms };
        let is_due = self.listed_at.is_none_or(|at| now.since(at) >= after_ms);
        if !needed || !is_due || !self.listing.may_begin(now) {
            return false;
        }
        self.listing.began(now, 0);
        true
    }

    /// Handles the results of extends.
    pub(crate) fn extended(
        &mut self,
        now: ElapsedMillis,
        items: &[Extend],
        answers: &[Result<Extended>],
    ) -> Vec<SectionChange> {
        let mut changes = Vec::new();
        let mut failed = None;
        for (item, answer) in items.iter().zip(answers) {
            let Ok(section) = u16::try_from(item.slot) else { continue };
            let Some(held) = self.held.get_mut(&section) else { continue };
            if held.extend.as_ref().is_none_or(|extend| extend.request != item.request) {
                continue;
            }
            match answer {
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
                        tracing::warn!(section, error = %chain(&error), "a section was lost");
                        self.forget(section, now);
                        changes.push(SectionChange::Shut(section));
                    }
                },
            }
        }
        if let Some(error) = failed {
            tracing::warn!(error = %chain(&error), "windows of sections could not be moved on");
        }
        self.extending.ended(now, failed.is_some());
        changes
    }

    /// Returns whether the store has found our clock ahead since the last call.
    pub(crate) const fn take_ahead(&mut self) -> bool {
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
    pub(crate) fn relinquish(
        &mut self,
        now: ElapsedMillis,
        slots: &[(u64, Term)],
        answer: &Result<()>,
    ) {
        self.letting.ended(now, answer.is_err());
        if answer.is_ok() {
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
        self.orphans.not_ours(section, now);
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
        answer: Result<Vec<MemberInfo>>,
    ) -> Vec<u16> {
        self.listing.ended(now, answer.is_err());
        let Ok(members) = answer else { return Vec::new() };
        self.listed_at = Some(now);
        self.watch.look(&members, now);
        self.members = members;
        self.give_up(now, actor)
    }

    /// Returns the sections to relinquish by the current assignment, from which minting must stop
    /// first.
    pub(crate) fn give_up(&mut self, now: ElapsedMillis, actor: &Actor) -> Vec<u16> {
        let shares = self.shares_now(now, actor);
        let not_ours = |section: &u16| !shares.is_own(*section) && !self.leaving.contains(section);
        let leaving: Vec<u16> = self.held.keys().copied().filter(not_ours).take(AT_ONCE).collect();
        self.leaving.extend(&leaving);
        let is_held = |section: u16| self.held.contains_key(&section);
        self.orphans.leave(|section| !shares.is_own(section) && !is_held(section));
        self.wanted.retain(|section, _| shares.is_own(*section));
        // Owners of the other sections are not tracked.
        self.blocked.retain(|section, _| shares.is_own(*section));
        leaving
    }

    /// Returns the milliseconds until the next poll; none when nothing is pending.
    pub(crate) fn look_in_ms(&self, now: ElapsedMillis, actor: &Actor) -> Option<u64> {
        let acquire = (self.acquire.is_some() || !self.wanted.is_empty() || self.orphans.are_due())
            .then(|| self.taking.in_ms(now))
            .flatten();
        let extend = (!self.moving.is_empty()).then(|| self.extending.in_ms(now)).flatten();
        let relinquish = (!self.leaving.is_empty()).then(|| self.letting.in_ms(now)).flatten();
        let list = self.watches(actor).then(|| {
            let since_ms = self.listed_at.map_or(u64::MAX, |at| now.since(at));
            let due_ms = actor.list_every_ms.saturating_sub(since_ms);
            self.listing.in_ms(now).map(|ms| ms.max(due_ms))
        });
        [acquire, extend, relinquish, list.flatten()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
