//! Sections of counters and global-order sources that this node serves.

use std::sync::Arc;

use snowmint_core::Clock as _;

use super::state::{Completion, Driver, SectionsDone, Stage};
use crate::error::{Verb, chain};
use crate::ids::Incarnation;
use crate::machine::section_assignment::Server;
use crate::machine::{Actor, Now, SectionChange, SectionsAction, WithdrawalReasons};
use crate::model::exclusive::Relinquish;
use crate::model::pool::SECTIONS;

impl Driver {
    /// Returns this node as a section owner; none while it has not joined the store, or uses no
    /// sections.
    pub(super) fn actor(&self) -> Option<Actor> {
        let Stage::In { member, .. } = &self.stage else { return None };
        self.core.ctx.sections.are_used().then(|| Actor {
            member: member.incarnation,
            owner: member.owner.clone(),
            before: self.before,
            address: member.address.clone(),
            serves: self.serving.serves(),
            list_every_ms: self.settings().list_every_ms(),
            skew_max_ms: self.settings().clock_skew_max_ms,
        })
    }

    pub(super) fn poll_sections(&mut self, now: Now) {
        let Some(actor) = self.actor() else { return };
        let Stage::In { presence, .. } = &self.stage else { return };
        let sections = &self.core.ctx.sections;
        sections.lease_until(self.membership, presence.lease_until());
        self.sections.want(sections.take_wanted(), now.elapsed);
        self.sections.misdirected(sections.take_misdirected(), now.elapsed);
        self.poll_serving(now, &actor);
        let Some(actor) = self.actor() else { return };
        let again = self.core.ctx.sections.take_recheck();
        self.sections.notices(self.core.ctx.sections.member_notices.received());
        for action in self.sections.poll(now, &actor, again) {
            self.spawn_sections(actor.member, action);
        }
    }

    /// Gives up slots that this node cannot use, or that peers cannot reach here, and announces it.
    fn poll_serving(&mut self, now: Now, actor: &Actor) {
        // A node without an address keeps the slots that it was first to acquire, and no peer sends
        // callers to it.
        if actor.address.is_empty() || !self.serving.is_due(now.elapsed) {
            return;
        }
        let core = Arc::clone(&self.core);
        let (unreached, named) = self.sections.reached(now.elapsed, actor);
        let servers: Vec<Server> = self.sections.others().cloned().collect();
        let clock = self.sections.take_clock_ahead()
            || self.clock_fault.is_some()
            || self.global_order.are_behind(&core, now.wall);
        let unreachable = core.ctx.peer_probes.poll(&servers, &named);
        let journal = core.ctx.journal_budget.check_disk(now.elapsed).is_err();
        let reasons = WithdrawalReasons { clock, journal, unreached, unreachable };
        if self.serving.poll(now.elapsed, reasons)
            && let Some(actor) = self.actor()
        {
            let (serves, owner) = (self.serving.serves(), &actor.owner);
            if self.serving.is_stopping() {
                tracing::info!("handing over to the peers before the stop");
            } else {
                tracing::warn!(?serves, %owner, clock, journal, unreached, "sections of this server changed");
            }
            let leaving = self.sections.give_up(now.elapsed, &actor);
            self.hand_over(&leaving);
            self.publish_assignment(now, &actor);
        }
        if let Some(status) = self.serving.announcement(now.elapsed) {
            let member = actor.member;
            self.tasks.spawn(async move {
                let announced = core.ctx.store.announce(member, &status);
                let result = core.ctx.store_call(Verb::Announce, announced).await;
                Completion::Sections(member, SectionsDone::Announced(status.revision, result))
            });
        }
    }

    fn spawn_sections(&mut self, member: Incarnation, action: SectionsAction) {
        let core = Arc::clone(&self.core);
        self.tasks.spawn(async move {
            let ctx = &core.ctx;
            let (store, wall) = (&ctx.store, ctx.clock.unix_ms());
            let done = match action {
                SectionsAction::Acquire(acquire) => {
                    let acquired =
                        ctx.store_call(Verb::Acquire, store.acquire(&acquire, wall)).await;
                    SectionsDone::Acquired(acquire.request, acquired)
                }
                SectionsAction::Extend(items) => {
                    let results = match ctx.extend(&items, wall).await {
                        Ok(results) => results,
                        Err(error) => vec![Err(error); items.len()],
                    };
                    SectionsDone::Extended(items, results)
                }
                SectionsAction::Relinquish(relinquish) => {
                    let result =
                        ctx.store_call(Verb::Relinquish, store.relinquish(&relinquish, wall)).await;
                    let Relinquish { slots, .. } = relinquish;
                    SectionsDone::Relinquished(slots, result)
                }
                SectionsAction::List => {
                    let members = ctx.store_call(Verb::Members, store.members(wall)).await;
                    SectionsDone::Listed(members)
                }
            };
            Completion::Sections(member, done)
        });
    }

    pub(super) fn sections_done(&mut self, now: Now, member: Incarnation, done: SectionsDone) {
        // Results for an earlier member have no effect.
        let Some(actor) = self.actor().filter(|actor| actor.member == member) else { return };
        let ctx = Arc::clone(&self.core.ctx);
        let mut assignment_changes = true;
        match done {
            SectionsDone::Acquired(request, result) => {
                let (changes, error) = self.sections.acquired(now.elapsed, request, result);
                if let Some(error) = error {
                    tracing::warn!(error = %chain(&error), "failed to acquire sections");
                }
                self.apply(&changes);
            }
            SectionsDone::Extended(items, results) => {
                let changes = self.sections.extended(now.elapsed, &items, &results);
                self.apply(&changes);
                assignment_changes = false;
            }
            SectionsDone::Relinquished(slots, result) => {
                self.sections.relinquished(now.elapsed, &slots, &result);
                // Callers learn of these before the next ones are relinquished.
                self.publish_assignment(now, &actor);
                let leaving = self.sections.give_up(now.elapsed, &actor);
                self.hand_over(&leaving);
            }
            SectionsDone::Listed(result) => {
                let leaving = self.sections.listed(now.elapsed, &actor, result);
                self.hand_over(&leaving);
                ctx.sections.member_notices.set_listed(self.sections.listed_notices());
            }
            SectionsDone::Announced(revision, result) => {
                if let Err(error) = &result {
                    tracing::warn!(error = %chain(&error), "failed to announce the status of this server");
                }
                self.serving.announced(now.elapsed, revision, result.is_ok());
                assignment_changes = false;
            }
        }
        if assignment_changes {
            self.publish_assignment(now, &actor);
        }
        ctx.sections.notify();
    }

    /// Stops minting from sections that another member is to own.
    pub(super) fn hand_over(&mut self, leaving: &[u16]) {
        if leaving.is_empty() {
            return;
        }
        tracing::info!(sections = leaving.len(), "handing over sections");
        for section in leaving {
            self.shut_section(*section);
        }
        // Calls that are taking numbers end before the next owner has the sections.
        self.core.ctx.sections.quiesce();
    }

    /// Publishes the section owners, to which callers are sent.
    fn publish_assignment(&mut self, now: Now, actor: &Actor) {
        let assignment = self.sections.assignment(now.elapsed, actor);
        self.core.ctx.sections.publish_assignment(assignment);
    }

    fn apply(&mut self, changes: &[SectionChange]) {
        let core = Arc::clone(&self.core);
        let sections = &core.ctx.sections;
        for change in changes {
            match change {
                SectionChange::Owned(slot, lease, _) if *slot >= SECTIONS => {
                    self.global_order.hold(*slot, lease);
                }
                SectionChange::Open(slot, mark) if *slot >= SECTIONS => {
                    self.global_order.open(&core, *slot, *mark);
                }
                SectionChange::Owned(section, lease, request) => {
                    sections.hold(*section, lease, *request);
                }
                SectionChange::Open(section, mark) => sections.open(*section, *mark),
                SectionChange::Shut(section) => self.shut_section(*section),
            }
        }
    }

    fn shut_section(&mut self, section: u16) {
        if section >= SECTIONS {
            self.global_order.shut(&self.core, section);
        } else {
            self.core.ctx.sections.shut(section);
        }
    }

    /// Stops serving all sections and global-order slots, for good.
    pub(super) fn close_sections(&mut self) {
        self.core.ctx.sections.close();
        self.global_order.shut_all(&self.core);
    }

    /// Begins a membership, in which no other member has had a section of this node yet.
    pub(super) fn begin_sections(&mut self, now: Now) {
        self.membership = self.core.ctx.sections.joined();
        self.serving.joined();
        if let Some(actor) = self.actor() {
            self.publish_assignment(now, &actor);
        }
    }

    /// Acquires all sections again after this node's lease had expired for a while, since other
    /// members may have had any of them: the acquire shows this. The store still knowing this
    /// member proves nothing: a delayed copy of the join may have arrived.
    pub(super) fn reacquire_sections(&mut self, now: Now) {
        self.core.ctx.sections.shut_all();
        self.global_order.shut_all(&self.core);
        self.sections.expire_all();
        self.begin_sections(now);
    }

    /// Ends a membership: its numbers are no longer used.
    pub(super) fn end_sections(&mut self) {
        self.core.ctx.sections.shut_all();
        self.global_order.shut_all(&self.core);
        self.sections.lose();
    }
}
