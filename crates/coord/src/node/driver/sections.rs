//! Sections of counters and global-order sources that this node serves.

use std::sync::Arc;

use snowmint_core::Clock as _;

use super::{Done, Driver, Stage};
use crate::error::{Result, Verb, chain};
use crate::lease::{Extend, Extended, Term};
use crate::machine::{Actor, Now, Reasons, SectionChange, SectionsAction};
use crate::member::{Incarnation, MemberInfo};
use crate::ordered::{Acquired, Relinquish};
use crate::pool::SECTIONS;
use crate::sources::Server;

/// Result of a task for sections.
pub(super) enum SectionsDone {
    Acquired(u64, Result<Acquired>),
    Extended(Vec<Extend>, Vec<Result<Extended>>),
    Relinquish(Vec<(u64, Term)>, Result<()>),
    Listed(Result<Vec<MemberInfo>>),
    /// Announcement of this revision of the node's status.
    Announced(u64, Result<()>),
}

impl Driver {
    /// Returns this node as a section owner; none while it has not joined the store, or uses no
    /// sections.
    pub(super) fn actor(&self) -> Option<Actor> {
        let Stage::In { member, .. } = &self.stage else { return None };
        self.core.around.sections.are_used().then(|| Actor {
            member: member.incarnation,
            owner: member.owner.clone(),
            before: self.before,
            address: member.address.clone(),
            serves: self.serving.serves(),
            list_every_ms: self.settings().list_every_ms(),
            skew_max_ms: self.settings().clock_skew_max_ms,
        })
    }

    pub(super) fn look_at_sections(&mut self, now: Now) {
        let Some(actor) = self.actor() else { return };
        let Stage::In { presence, .. } = &self.stage else { return };
        let sections = &self.core.around.sections;
        sections.lease_until(self.membership, presence.lease_until());
        self.sections.want(sections.take_wanted(), now.elapsed);
        self.sections.disown(sections.take_disowned(), now.elapsed);
        self.look_at_serving(now, &actor);
        let Some(actor) = self.actor() else { return };
        let again = self.core.around.sections.take_look_again();
        for action in self.sections.look(now, &actor, again) {
            self.spawn_sections(actor.member, action);
        }
    }

    /// Gives up slots that this node cannot use, or that peers cannot reach here, and announces it.
    fn look_at_serving(&mut self, now: Now, actor: &Actor) {
        // A node without an address keeps the slots that it was first to acquire, and no peer sends
        // callers to it.
        if actor.address.is_empty() || !self.serving.is_due(now.elapsed) {
            return;
        }
        let core = Arc::clone(&self.core);
        let (unreached, named) = self.sections.reached(now.elapsed, actor);
        let servers: Vec<Server> = self.sections.others().cloned().collect();
        let clock = self.sections.take_ahead()
            || self.clock_fault.is_some()
            || self.ordered.are_behind(&core, now.wall);
        let unreachable = core.around.peer_probes.look(&servers, &named);
        if self.serving.look(now.elapsed, Reasons { clock, unreached, unreachable })
            && let Some(actor) = self.actor()
        {
            let (serves, owner) = (self.serving.serves(), &actor.owner);
            tracing::warn!(?serves, %owner, clock, unreached, "what this server answers for has changed");
            let leaving = self.sections.give_up(now.elapsed, &actor);
            self.hand_over(&leaving);
            self.share(now, &actor);
        }
        if let Some(status) = self.serving.announcement(now.elapsed) {
            let member = actor.member;
            self.tasks.spawn(async move {
                let announced = core.around.store.announce(member, &status);
                let answer = core.around.store_call(Verb::Announce, announced).await;
                Done::Sections(member, SectionsDone::Announced(status.revision, answer))
            });
        }
    }

    fn spawn_sections(&mut self, member: Incarnation, action: SectionsAction) {
        let core = Arc::clone(&self.core);
        self.tasks.spawn(async move {
            let around = &core.around;
            let (store, wall) = (&around.store, around.clock.unix_ms());
            let done = match action {
                SectionsAction::Acquire(acquire) => {
                    let taken =
                        around.store_call(Verb::Acquire, store.acquire(&acquire, wall)).await;
                    SectionsDone::Acquired(acquire.request, taken)
                }
                SectionsAction::Extend(items) => {
                    let answers = match around.extend(&items, wall).await {
                        Ok(answers) => answers,
                        Err(error) => vec![Err(error); items.len()],
                    };
                    SectionsDone::Extended(items, answers)
                }
                SectionsAction::Relinquish(relinquish) => {
                    let answer = around
                        .store_call(Verb::Relinquish, store.relinquish(&relinquish, wall))
                        .await;
                    let Relinquish { slots, .. } = relinquish;
                    SectionsDone::Relinquish(slots, answer)
                }
                SectionsAction::List => {
                    let members = around.store_call(Verb::Members, store.members(wall)).await;
                    SectionsDone::Listed(members)
                }
            };
            Done::Sections(member, done)
        });
    }

    pub(super) fn sections_done(&mut self, now: Now, member: Incarnation, done: SectionsDone) {
        // Results for an earlier member have no effect.
        let Some(actor) = self.actor().filter(|actor| actor.member == member) else { return };
        let around = Arc::clone(&self.core.around);
        let mut shares_change = true;
        match done {
            SectionsDone::Acquired(request, answer) => {
                let (changes, error) = self.sections.taken(now.elapsed, request, answer);
                if let Some(error) = error {
                    tracing::warn!(error = %chain(&error), "no sections of counters");
                }
                self.apply(&changes);
            }
            SectionsDone::Extended(items, answers) => {
                for extended in answers.iter().flatten() {
                    around.saw(extended.catalog_version, extended.writes);
                }
                let changes = self.sections.extended(now.elapsed, &items, &answers);
                self.apply(&changes);
                shares_change = false;
            }
            SectionsDone::Relinquish(slots, answer) => {
                self.sections.relinquish(now.elapsed, &slots, &answer);
                // Callers learn of these before the next ones are relinquished.
                self.share(now, &actor);
                let leaving = self.sections.give_up(now.elapsed, &actor);
                self.hand_over(&leaving);
            }
            SectionsDone::Listed(answer) => {
                let leaving = self.sections.listed(now.elapsed, &actor, answer);
                self.hand_over(&leaving);
            }
            SectionsDone::Announced(revision, answer) => {
                if let Err(error) = &answer {
                    tracing::warn!(error = %chain(&error), "the others could not be told of our state");
                }
                self.serving.announced(now.elapsed, revision, answer.is_ok());
                shares_change = false;
            }
        }
        if shares_change {
            self.share(now, &actor);
        }
        around.sections.tell();
    }

    /// Stops minting from sections that another member is to own.
    fn hand_over(&mut self, leaving: &[u16]) {
        if leaving.is_empty() {
            return;
        }
        tracing::info!(sections = leaving.len(), "handing sections of counters over");
        for section in leaving {
            self.shut_section(*section);
        }
        // Calls that are taking numbers end before the next owner has the sections.
        self.core.around.sections.settle();
    }

    /// Publishes the section owners, to which callers are sent.
    fn share(&mut self, now: Now, actor: &Actor) {
        if let Some(shares) = self.sections.shares(now.elapsed, actor) {
            self.core.around.sections.share(shares);
        }
    }

    fn apply(&mut self, changes: &[SectionChange]) {
        let core = Arc::clone(&self.core);
        let sections = &core.around.sections;
        for change in changes {
            match change {
                SectionChange::Held(slot, lease, _) if *slot >= SECTIONS => {
                    self.ordered.hold(*slot, lease);
                }
                SectionChange::Open(slot, mark) if *slot >= SECTIONS => {
                    self.ordered.open(&core, *slot, *mark);
                }
                SectionChange::Held(section, lease, request) => {
                    sections.hold(*section, lease, *request);
                }
                SectionChange::Open(section, mark) => sections.open(*section, *mark),
                SectionChange::Shut(section) => self.shut_section(*section),
            }
        }
    }

    fn shut_section(&mut self, section: u16) {
        if section >= SECTIONS {
            self.ordered.shut(&self.core, section);
        } else {
            self.core.around.sections.shut(section);
        }
    }

    /// Stops serving all sections and global-order slots, for good.
    pub(super) fn close_sections(&mut self) {
        self.core.around.sections.close();
        self.ordered.shut_all(&self.core);
    }

    /// Begins a membership, in which no other member has had a section of this node yet.
    pub(super) fn begin_sections(&mut self, now: Now) {
        self.membership = self.core.around.sections.joined();
        self.serving.joined();
        if let Some(actor) = self.actor() {
            self.share(now, &actor);
        }
    }

    /// Acquires all sections again after this node's lease had expired for a while, since other
    /// members may have had any of them: the acquire shows this. The store still knowing this
    /// member proves nothing: a delayed copy of the join may have arrived.
    pub(super) fn sections_lapsed(&mut self, now: Now) {
        self.core.around.sections.shut_all();
        self.ordered.shut_all(&self.core);
        self.sections.lapse();
        self.begin_sections(now);
    }

    /// Ends a membership: its numbers are no longer used.
    pub(super) fn end_sections(&mut self) {
        self.core.around.sections.shut_all();
        self.ordered.shut_all(&self.core);
        self.sections.lose();
    }
}
