//! Sections of counters, and slots of sources of global order: which are taken, kept ahead of need, and
//! handed over.
//!
//! Sections are ordered slots ([`ordered`](crate::ordered)): the lease on them is the member's own, so an
//! idle section costs nothing. Those that are wanted at the same time are taken, extended and let go in
//! one call each.

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
use crate::ordered::{LetGo, Take, Watch};
use crate::pool::{Pool, SECTIONS};
use crate::sources::{FRESH_MS, Shares, Want};

/// How soon the members are listed again, when somebody was sent elsewhere.
const LIST_AGAIN_MS: u64 = 200;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SectionsAction {
    /// Take these, and hand in the answer.
    Take(Take),
    /// Extend these, and hand in the answers.
    Extend(Vec<Extend>),
    /// Stop answering from these, then let them go, and hand in the answer.
    LetGo(LetGo),
    /// List the members, and hand in the answer.
    List,
}

/// What has changed about a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SectionChange {
    /// It is ours. The store knows our hold by this request number.
    Held(u16, Lease, u64),
    /// Its window reaches to here.
    Open(u16, Mark),
    /// It is not ours any more.
    Shut(u16),
}

/// Who acts.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) member: Incarnation,
    pub(crate) owner: String,
    /// The member that we were before, which surely answers no more.
    pub(crate) before: Option<Incarnation>,
    /// Our own address; empty if we serve nobody.
    pub(crate) address: String,
    /// What we answer for.
    pub(crate) serves: Serves,
    /// How often the members are listed.
    pub(crate) list_every_ms: u64,
    /// How far apart our clock and the store's may be.
    pub(crate) skew_max_ms: u64,
}

/// The sections of one member.
#[derive(Debug)]
pub(crate) struct SectionsMachine {
    pool: Pool,
    requests: Requests,
    held: BTreeMap<u16, Held>,
    /// Those of them whose marks are to be moved on: of thousands that are held, a few.
    moving: BTreeSet<u16>,
    /// To be taken.
    wanted: BTreeMap<u16, Want>,
    /// Whether a section that was not ours was ever wanted.
    was_wanted: bool,
    /// Whose the store said a section is, and when.
    blocked: HashMap<u16, (Incarnation, ElapsedMillis)>,
    /// Sent, or to be sent again.
    take: Option<Take>,
    /// To be let go.
    leaving: BTreeSet<u16>,
    orphans: Orphans,
    taking: Turn,
    extending: Turn,
    letting: Turn,
    listing: Turn,
    listed_at: Option<ElapsedMillis>,
    members: Vec<MemberInfo>,
    watch: Watch,
    /// Who should have what, of those who served when it was last asked.
    shares: Shares,
    /// The store has refused, by its time, to move a slot of global order as far as our clock says.
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
            take: None,
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

    /// Members before us, which surely answer no more: what they had is taken at once.
    pub(crate) fn ended(&mut self, members: impl IntoIterator<Item = Incarnation>) {
        self.watch.ended(members);
    }

    /// The membership is over: nothing is held, and what is on its way counts for nothing. What was
    /// seen of others still counts.
    pub(crate) fn lose(&mut self) {
        self.lapse();
        self.orphans = Orphans::default();
    }

    /// Nothing is held any more as far as we know, and what is on its way counts for nothing. The store may hold
    /// for us what we asked for.
    pub(crate) fn lapse(&mut self) {
        self.held.clear();
        self.moving.clear();
        self.wanted.clear();
        self.blocked.clear();
        self.leaving.clear();
        self.orphans.lapse();
        self.take = None;
        (self.taking, self.extending, self.letting) = Default::default();
        self.listing = Turn::default();
        self.listed_at = None;
    }

    /// Takes in what callers want.
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

    /// What is due. `again`: somebody was sent elsewhere since the last look.
    pub(crate) fn look(&mut self, now: Now, actor: &Actor, again: bool) -> Vec<SectionsAction> {
        let mut due = Vec::new();
        due.extend(self.take_due(now, actor).map(SectionsAction::Take));
        due.extend(self.extend_due(now, actor.skew_max_ms).map(SectionsAction::Extend));
        due.extend(self.let_go_due(now.elapsed, actor).map(SectionsAction::LetGo));
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

    fn let_go_due(&mut self, now: ElapsedMillis, actor: &Actor) -> Option<LetGo> {
        if self.leaving.is_empty() || !self.letting.may_begin(now) {
            return None;
        }
        // What is on its way may still move a mark, and nobody answers from it.
        self.letting.began(now, self.leaving.len());
        let held = |section: &u16| Some((u64::from(*section), self.held.get(section)?.term));
        let slots = self.leaving.iter().filter_map(held).collect();
        Some(LetGo { pool: self.pool.name.clone(), member: actor.member, slots })
    }

    /// Whether others matter: somebody has what we want, or may want what we have.
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

    /// The answers to extends.
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
                    // Asked for again when it is wanted again.
                    NotExtended::Refused => {
                        self.ahead |= section >= SECTIONS;
                        self.settled(section);
                        failed = Some(error);
                    }
                    // It is taken anew when it is wanted.
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

    /// Whether the store has found our clock ahead since this was last asked.
    pub(crate) const fn take_ahead(&mut self) -> bool {
        std::mem::replace(&mut self.ahead, false)
    }

    /// It is known what became of a section's extend.
    fn settled(&mut self, section: u16) {
        let Some(held) = self.held.get_mut(&section) else { return };
        held.extend = None;
        if held.want.is_none() {
            self.moving.remove(&section);
        }
    }

    /// The answer to a let-go.
    pub(crate) fn let_go(
        &mut self,
        now: ElapsedMillis,
        slots: &[(u64, Term)],
        answer: &Result<()>,
    ) {
        self.letting.ended(now, answer.is_err());
        if answer.is_ok() {
            for (slot, term) in slots {
                let Ok(section) = u16::try_from(*slot) else { continue };
                // Not what was taken anew since.
                if self.held.get(&section).is_none_or(|held| held.term == *term) {
                    self.forget(section, now);
                }
            }
        }
    }

    /// It is not ours any more.
    fn forget(&mut self, section: u16, now: ElapsedMillis) {
        self.orphans.not_ours(section, now);
        self.held.remove(&section);
        self.moving.remove(&section);
        self.leaving.remove(&section);
    }

    /// The answer to a listing. Answers what is to be let go: whoever answers from it must stop first.
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

    /// Answers what is to be let go, as things stand: whoever answers from it must stop first.
    pub(crate) fn give_up(&mut self, now: ElapsedMillis, actor: &Actor) -> Vec<u16> {
        let shares = self.shares_now(now, actor);
        let not_ours = |section: &u16| !shares.is_own(*section) && !self.leaving.contains(section);
        let leaving: Vec<u16> = self.held.keys().copied().filter(not_ours).take(AT_ONCE).collect();
        self.leaving.extend(&leaving);
        let is_held = |section: u16| self.held.contains_key(&section);
        self.orphans.leave(|section| !shares.is_own(section) && !is_held(section));
        self.wanted.retain(|section, _| shares.is_own(*section));
        // What others make of the rest is not followed.
        self.blocked.retain(|section, _| shares.is_own(*section));
        leaving
    }

    /// Whether all that was ever asked for is done.
    pub(crate) fn look_in_ms(&self, now: ElapsedMillis, actor: &Actor) -> Option<u64> {
        let take = (self.take.is_some() || !self.wanted.is_empty() || self.orphans.are_due())
            .then(|| self.taking.in_ms(now))
            .flatten();
        let extend = (!self.moving.is_empty()).then(|| self.extending.in_ms(now)).flatten();
        let let_go = (!self.leaving.is_empty()).then(|| self.letting.in_ms(now)).flatten();
        let list = self.watches(actor).then(|| {
            let since_ms = self.listed_at.map_or(u64::MAX, |at| now.since(at));
            let due_ms = actor.list_every_ms.saturating_sub(since_ms);
            self.listing.in_ms(now).map(|ms| ms.max(due_ms))
        });
        [take, extend, let_go, list.flatten()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
