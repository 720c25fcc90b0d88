//! Results that come back to the driver loop from the store and the journal.

use super::super::compare::Compared;
use super::super::entry::{Entered, JOURNAL_LEAD_MS_MAX};
use super::super::journal_write::{JournalMark, Written};
use super::super::lease::{Held, LeaseKey};
use super::{Done, Driver, ENTER_RETRY_MS_MAX, Stage, uses_again};
use crate::error::{Error, ErrorKind, Result, chain};
use crate::lease::{Extend, Extended, Mark, Release};
use crate::machine::{Granted, LeaseAction, LeaseEvent, Now, PresenceMachine, WindowAction};
use crate::member::Incarnation;

/// Shortest lead that an operator must have accepted: a journal's own lead is shorter.
const ACCEPTED_LEAD_MS_MIN: u64 = JOURNAL_LEAD_MS_MAX + 1;

impl Driver {
    pub(super) fn done(&mut self, now: Now, done: Done) {
        match done {
            Done::Entered(answer) => self.entered(now, answer),
            Done::Renewed(who, answer) => {
                let Stage::In { member, presence } = &mut self.stage else { return };
                if member.incarnation != who {
                    return;
                }
                let lapsed = !presence.is_live(now);
                presence.renewed(now, &answer);
                let gone = presence.gone().map(|error| match error.kind() {
                    ErrorKind::NotFound => {
                        Error::not_found("this member is unknown to the store; it rejoins")
                    }
                    _ => error.clone(),
                });
                if let Some(error) = gone {
                    self.lose(&error);
                } else if lapsed && answer.is_ok() {
                    self.sections_lapsed(now);
                }
            }
            Done::ClockChecked(Ok(compared)) => {
                if compared == Compared::Agrees {
                    self.core.around.believe_clock();
                }
                self.clock_agrees();
            }
            Done::ClockChecked(Err(error)) => self.clock_disagrees(&error),
            Done::Claimed { key, member, request, answer, left } => {
                self.strays.claim_answered();
                if left.refused || answer.is_err() {
                    self.strays.doubt(now.elapsed);
                }
                self.owe(left.owed);
                if self.is_member(member) {
                    self.claimed(now, &key, request, answer);
                }
            }
            Done::Extended { member, items, answers } => {
                if self.is_member(member) {
                    self.extended(now, &items, &answers);
                }
            }
            Done::Sections(member, done) => self.sections_done(now, member, done),
            Done::Journal(written) => self.journal_written(now, written),
            Done::Released(done) => self.owed.done(&done),
            Done::Listed(member, answer) => self.listed(now, member, answer),
            Done::Standing(Ok(standing)) => self.keeper.saw_journals(standing.journals),
            // Read again with the next renewal.
            Done::Standing(Err(_)) => self.journals_of.clear(),
            Done::Failed(error) => tracing::error!(%error, "a task of the node failed"),
            Done::Catalog(answer) => {
                self.catalog_busy = false;
                match answer {
                    Ok(catalog) => self.apply_catalog(&catalog),
                    Err(error) => {
                        tracing::warn!(error = %chain(&error), "the catalog could not be read")
                    }
                }
            }
        }
    }

    pub(super) fn is_member(&self, incarnation: Incarnation) -> bool {
        matches!(&self.stage, Stage::In { member, .. } if member.incarnation == incarnation)
    }

    fn entered(&mut self, now: Now, answer: Result<Entered>) {
        let Stage::Entering { failures } = self.stage else { return };
        match answer {
            Ok(Entered {
                member,
                identity,
                recalled,
                catalog,
                joined_at,
                ground,
                doubts_raised,
            }) => {
                self.clock_agrees();
                self.core.around.saw(0, identity.writes);
                self.witness.store.clone_from(&identity.id);
                self.witness.writes = identity.writes;
                if let Some(catalog) = &catalog {
                    tracing::warn!(
                        "the store was recovered, past all that this process knows: going on"
                    );
                    self.forget_lost_history(catalog, identity.writes);
                }
                self.keeper.joined(&identity, member.incarnation);
                // Slot defaults that have leapt show that an operator has moved the store, until
                // that has ended the doubt.
                if self.core.around.doubts.end(doubts_raised, recalled) {
                    self.witness.ground = ground;
                }
                self.core.kept.forget();
                let ttl_ms = self.settings().presence_ttl_ms;
                let presence = PresenceMachine::new(ttl_ms, joined_at);
                self.stage = Stage::In { member, presence };
                self.begin_sections(now);
                self.look_at_journals();
                if let Some(catalog) = &catalog {
                    self.apply_catalog(catalog);
                }
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the store cannot be joined");
                self.clock_disagrees(&error);
                self.core.around.doubt(&error);
                self.end_alone(&error);
                let failures = failures.saturating_add(1);
                let wait_ms = (50_u64 << failures.min(6)).min(ENTER_RETRY_MS_MAX);
                let without = self.leases.values_mut().filter(|held| !held.is_alone());
                for group in without.flat_map(|held| held.groups.values_mut()) {
                    group.suspend(&error);
                    if !matches!(error.kind(), ErrorKind::Unavailable) {
                        group.waiters.answer(&Err(error.clone()));
                    }
                }
                self.stage = Stage::Out {
                    retry_at_ms: now.elapsed.get().saturating_add(wait_ms),
                    failures,
                    error: Some(error),
                };
            }
        }
    }

    fn claimed(
        &mut self,
        now: Now,
        key: &LeaseKey,
        request: u64,
        mut answer: Result<Vec<Granted>>,
    ) {
        let awaited = self.leases.get(key).is_some_and(|held| held.machine.awaits(request));
        match &mut answer {
            Ok(granted) if awaited => self.take_over(key, granted),
            // The source that it was claimed for was altered meanwhile.
            Ok(granted) => return self.owe(granted.iter().map(|it| it.lease.unused()).collect()),
            Err(_) => {}
        }
        let Some(held) = self.leases.get_mut(key) else { return };
        let error = answer.as_ref().err().cloned();
        let actions = held.machine.on(now, LeaseEvent::Claimed { request, answer });
        for action in actions {
            match action {
                LeaseAction::Granted => {
                    if self.core.settings.limits_marks()
                        && let lead_ms @ ACCEPTED_LEAD_MS_MIN.. = held.lead(now.wall)
                    {
                        tracing::warn!(pool = %key.pool, lead_ms, "IDs lead the clock, which is accepted");
                    }
                    for window in held.machine.windows() {
                        let lease = window.lease();
                        // For the audit trail of who changed what, which is kept where logs are
                        // not.
                        let (who, pool) = (&self.core.settings.owner, &lease.pool);
                        tracing::info!(target: "audit", who, %pool, slot = lease.slot, term = lease.term.get(), "claimed");
                        self.past.retain(|past| past.pool != lease.pool || past.slot != lease.slot);
                    }
                    if let Err(error) = held.make_minters(&self.core.around) {
                        tracing::error!(error = %chain(&error), "no generator");
                    }
                }
                LeaseAction::Lost(error) => return self.lose(&error),
                _ => {}
            }
        }
        if let Some(error) = error {
            tracing::warn!(pool = %held.pool.name, error = %chain(&error), "no worker number");
            if held.is_alone() {
                return;
            }
            for group in held.groups.values_mut() {
                group.suspend(&error);
                if !matches!(error.kind(), ErrorKind::Unavailable) {
                    group.waiters.answer(&Err(error.clone()));
                }
            }
        }
    }

    fn extended(&mut self, now: Now, items: &[(LeaseKey, Extend)], answers: &[Result<Extended>]) {
        let mut lost = None;
        for ((key, extend), answer) in items.iter().zip(answers) {
            if let Ok(extended) = answer {
                self.core.around.saw(extended.catalog_version, extended.writes);
                // Also while the journal is idle: it stays evidence of the store's write count, and
                // a failing disk is found before a caller mints.
                self.keeper.want();
            }
            let Some(held) = self.leases.get_mut(key) else { continue };
            let event = LeaseEvent::Extended { slot: extend.slot, request: extend.request, answer };
            for action in held.machine.on(now, event) {
                match action {
                    LeaseAction::Window { index, action: WindowAction::Open(until) } => {
                        held.open(index, until);
                    }
                    LeaseAction::Lost(error) => lost = Some(error),
                    _ => {}
                }
            }
        }
        if let Some(error) = lost {
            self.lose(&error);
        }
    }

    fn journal_written(&mut self, now: Now, written: Written) {
        let marks = self.keeper.end(now, written);
        if marks.is_none() {
            self.core.around.watch.journal_failed();
        }
        let (trouble, waits) = (self.keeper.error().cloned(), self.keeper.is_waited_for());
        self.core.around.reports.written(now.elapsed, trouble, waits);
        for held in self.leases.values_mut() {
            // A write that began under an earlier lease says nothing about this one.
            let is_ours = |mark: &&JournalMark| {
                mark.pool == held.pool.name
                    && held.windows().iter().any(|window| {
                        window.lease().slot == mark.slot && window.lease().term == mark.term
                    })
            };
            let own = marks.as_ref().map(|marks| {
                let own = marks.iter().filter(is_ours);
                own.map(|mark| (mark.slot, mark.mark)).collect::<Vec<_>>()
            });
            for (index, until) in held.journalled_alone(own.as_deref()) {
                held.open(index, until);
            }
            let event = match &own {
                Some(own) => LeaseEvent::Journalled(own),
                None => LeaseEvent::JournalFailed,
            };
            for action in held.machine.on(now, event) {
                if let LeaseAction::Window { index, action: WindowAction::Open(until) } = action {
                    held.open(index, until);
                }
            }
        }
    }

    /// Ends minting after a call found the store to be another one, or in an older state. Nothing
    /// is minted until the node has joined again: prefetched numbers may be handed out again.
    pub(super) fn look_at_doubt(&mut self) {
        let Some(error) = self.core.around.doubts.take_news() else { return };
        if matches!(self.stage, Stage::In { .. }) {
            self.lose(&error);
        } else {
            self.end_alone(&error);
        }
        self.core.drop_stocks();
    }

    /// Ends the membership, because the right to mint is lost or in doubt: all generators close for
    /// good, and the node joins again as a new member.
    fn lose(&mut self, error: &Error) {
        tracing::error!(error = %chain(error), "the right to mint was lost: joining anew");
        self.core.around.watch.add_rejoin();
        self.end_sections();
        let why = Error::unavailable("worker number was lost, another is being claimed; retry")
            .with_source(error.clone());
        self.shut_all(&why);
        self.keeper.want();
        if let Stage::In { member, .. } = &self.stage {
            self.sections.ended(self.before.replace(member.incarnation));
        }
        self.stage = Stage::Out { retry_at_ms: 0, failures: 0, error: Some(error.clone()) };
        self.strays.forget();
        for held in self.leases.values_mut() {
            if let Err(error) = held.restart() {
                tracing::error!(error = %chain(&error), "no randomness");
            }
        }
    }

    /// Closes all generators, and remembers what they have taken.
    pub(super) fn shut_all(&mut self, why: &Error) -> Vec<Release> {
        let mut leases = std::mem::take(&mut self.leases);
        let releases = leases.values_mut().flat_map(|held| self.shut(held, why)).collect();
        self.leases = leases;
        releases
    }

    /// Closes the generators of one lease, and remembers what they have taken.
    pub(super) fn shut(&mut self, held: &mut Held, why: &Error) -> Vec<Release> {
        let (known, releases) = held.close(why);
        let marks = known.iter().map(|lease| lease.mark.max(lease.granted));
        self.past_mark = marks.fold(self.past_mark, Mark::max);
        self.keeper.saw_mark(self.past_mark);
        self.past
            .retain(|past| known.iter().all(|new| new.pool != past.pool || new.slot != past.slot));
        if uses_again(self.settings()) {
            self.past.extend(known);
        }
        releases
    }
}
