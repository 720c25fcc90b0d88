//! Results that come back to the driver loop from the store and the journal.

use std::cmp::Reverse;

use super::super::compare::ClockCheck;
use super::super::join::{JOURNAL_LEAD_MS_MAX, NewMember};
use super::super::journal_writer::{JournalMark, Written};
use super::super::lease::{ActiveLease, LeaseKey};
use super::super::source_info::ReadCatalog;
use super::state::{Completion, Driver, Stage};
use super::{PAST_MAX, reuses_numbers};
use crate::error::{Error, ErrorKind, Result, chain};
use crate::ids::{Incarnation, Mark};
use crate::journal::JournalLease;
use crate::machine::{Granted, LeaseAction, LeaseEvent, Now, PresenceMachine, WindowAction};
use crate::model::lease::{Extend, Extended, Release};
use crate::platform::backoff::backoff_ms;

/// Shortest lead that an operator must have accepted: a journal's own lead is shorter.
const ACCEPTED_LEAD_MS_MIN: u64 = JOURNAL_LEAD_MS_MAX + 1;

impl Driver {
    pub(super) fn on_completion(&mut self, now: Now, completion: Completion) {
        match completion {
            Completion::Joined(result) => self.joined(now, result),
            Completion::Renewed(who, result) => {
                let Stage::In { member, presence } = &mut self.stage else { return };
                if member.incarnation != who {
                    return;
                }
                let has_expired = !presence.is_live(now);
                presence.renewed(now, &result);
                let gone = presence.gone().map(|error| match error.kind() {
                    ErrorKind::NotFound => {
                        Error::not_found("store does not know this member, which rejoins")
                    }
                    _ => error.clone(),
                });
                if let Some(error) = gone {
                    self.lose(&error);
                } else if has_expired && result.is_ok() {
                    self.reacquire_sections(now);
                }
            }
            Completion::ClockChecked(Ok(compared)) => {
                if compared == ClockCheck::Agrees {
                    self.core.ctx.believe_clock();
                }
                self.clock_agrees();
            }
            Completion::ClockChecked(Err(error)) => self.clock_disagrees(&error),
            Completion::Claimed { key, member, request, result, left } => {
                self.leaks.claim_done();
                if left.refused || result.is_err() {
                    self.leaks.doubt(now.elapsed);
                }
                self.add_releases(left.pending_releases);
                if self.is_member(member) {
                    self.claimed(now, &key, request, result);
                }
            }
            Completion::Extended { member, items, results } => {
                if self.is_member(member) {
                    self.extended(now, &items, &results);
                }
            }
            Completion::Sections(member, done) => self.sections_returned(now, member, done),
            Completion::Journal(written) => self.journal_written(now, written),
            Completion::Released(done) => self.pending_releases.done(&done),
            Completion::Listed(member, result) => self.listed(now, member, result),
            Completion::Standing(Ok(standing)) => {
                self.journal_writer.saw_journals(standing.journals)
            }
            // Read again with the next renewal.
            Completion::Standing(Err(_)) => self.journals_of.clear(),
            Completion::Failed(error) => tracing::error!(%error, "node task failed"),
            Completion::Catalog(member, result) => {
                self.catalog_busy = false;
                match result {
                    // A membership that has ended since may belong to a history that was lost.
                    Ok(ReadCatalog { below: Some(error), .. }) if self.is_member(member) => {
                        self.core.ctx.doubt(&error);
                    }
                    Ok(ReadCatalog { catalog, .. }) => self.apply_catalog(&catalog),
                    Err(error) => {
                        tracing::warn!(error = %chain(&error), "failed to read the catalog")
                    }
                }
            }
        }
    }

    pub(super) fn is_member(&self, incarnation: Incarnation) -> bool {
        matches!(&self.stage, Stage::In { member, .. } if member.incarnation == incarnation)
    }

    fn joined(&mut self, now: Now, result: Result<NewMember>) {
        let Stage::Joining { failures, .. } = self.stage else { return };
        match result {
            Ok(NewMember {
                member,
                identity,
                recalled,
                catalog,
                joined_at,
                ground,
                doubts_raised,
            }) => {
                self.clock_agrees();
                self.core.ctx.saw(0, identity.writes);
                self.fingerprint.store.clone_from(&identity.id);
                self.fingerprint.writes = identity.writes;
                if let Some(catalog) = &catalog {
                    tracing::warn!("joined the store that an operator moved forward");
                    self.forget_lost_history(catalog, identity.writes);
                }
                self.journal_writer.joined(&identity, member.incarnation);
                // Slot defaults that have leapt show that an operator has moved the store, until
                // that has ended the doubt.
                if self.core.ctx.doubts.end(doubts_raised, recalled) {
                    self.fingerprint.ground = ground;
                }
                self.core.saved_definitions.forget();
                let ttl_ms = self.settings().presence_ttl_ms;
                let presence = PresenceMachine::new(ttl_ms, joined_at);
                self.stage = Stage::In { member, presence };
                self.begin_sections(now);
                self.read_journals();
                if let Some(catalog) = &catalog {
                    self.apply_catalog(catalog);
                }
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "failed to join the store");
                self.clock_disagrees(&error);
                self.core.ctx.doubt(&error);
                self.end_offline(&error);
                let failures = failures.saturating_add(1);
                let wait_ms = backoff_ms(failures.saturating_add(1));
                let without = self.leases.values_mut().filter(|held| !held.is_offline());
                for group in without.flat_map(|held| held.groups.values_mut()) {
                    group.suspend(&error);
                    if !matches!(error.kind(), ErrorKind::Unavailable) {
                        group.waiters.notify(&Err(error.clone()));
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
        mut result: Result<Vec<Granted>>,
    ) {
        let awaited = self.leases.get(key).is_some_and(|held| held.machine.awaits(request));
        match &mut result {
            Ok(granted) if awaited => self.end_offline_with(key, granted),
            // The source that it was claimed for was altered meanwhile.
            Ok(granted) => {
                return self.add_releases(granted.iter().map(|it| it.lease.unused()).collect());
            }
            Err(_) => {}
        }
        let Some(held) = self.leases.get_mut(key) else { return };
        let error = result.as_ref().err().cloned();
        let waited = held.machine.claim_error().is_some_and(continues_by_itself);
        let actions = held.machine.on(now, LeaseEvent::Claimed { request, result });
        for action in actions {
            match action {
                LeaseAction::Granted => {
                    if self.core.settings.limits_marks()
                        && let lead_ms @ ACCEPTED_LEAD_MS_MIN.. = held.lead(now.wall)
                    {
                        tracing::warn!(pool = %key.pool, lead_ms, "IDs lead the clock, as the settings allow");
                    }
                    for window in held.machine.windows() {
                        let lease = window.lease();
                        // A line of the audit trail, which operators keep longer than logs.
                        let (who, pool) = (&self.core.settings.owner, &lease.pool);
                        tracing::info!(target: "audit", who, %pool, slot = lease.slot, term = lease.term.get(), "claimed");
                        self.past.retain(|past| past.pool != lease.pool || past.slot != lease.slot);
                    }
                    if let Err(error) = held.make_generators(&self.core.ctx) {
                        tracing::error!(error = %chain(&error), "failed to start generators");
                    }
                }
                LeaseAction::Lost(error) => return self.lose(&error),
                _ => {}
            }
        }
        if let Some(error) = error {
            let pool = &held.pool.name;
            // The first attempt names the time, and the attempts until then tell nothing new.
            match (continues_by_itself(&error), waited) {
                (true, true) => {}
                (true, false) => {
                    tracing::info!(%pool, error = %chain(&error), "no worker number can be claimed yet");
                }
                (false, _) => {
                    tracing::warn!(%pool, error = %chain(&error), "failed to claim a worker number");
                }
            }
            if held.is_offline() {
                return;
            }
            for group in held.groups.values_mut() {
                group.suspend(&error);
                if !matches!(error.kind(), ErrorKind::Unavailable) {
                    group.waiters.notify(&Err(error.clone()));
                }
            }
        }
    }

    fn extended(&mut self, now: Now, items: &[(LeaseKey, Extend)], results: &[Result<Extended>]) {
        let mut lost = None;
        for ((key, extend), result) in items.iter().zip(results) {
            if let Ok(extended) = result {
                self.core.ctx.saw(extended.catalog_version, extended.writes);
                // Also while the journal is idle: it stays evidence of the store's write count, and
                // a failing disk is found before a caller mints.
                self.journal_writer.want();
            }
            let Some(held) = self.leases.get_mut(key) else { continue };
            let event = LeaseEvent::Extended { slot: extend.slot, request: extend.request, result };
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
        let marks = self.journal_writer.end(now, written);
        if marks.is_none() {
            self.core.ctx.metrics.journal_failed();
        }
        self.sections_written(now);
        let error = self.journal_writer.error().cloned();
        let has_waiters = self.journal_writer.is_waited_for() || !self.unwritten.is_empty();
        self.core.ctx.journal_budget.written(now.elapsed, error, has_waiters);
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
            for (index, until) in held.journalled_offline(own.as_deref()) {
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
    pub(super) fn poll_doubt(&mut self) {
        let Some(error) = self.core.ctx.doubts.take_news() else { return };
        if matches!(self.stage, Stage::In { .. }) {
            self.lose(&error);
        } else {
            self.end_offline(&error);
        }
        self.core.drop_prefetched_numbers();
    }

    /// Ends the membership, because the right to mint is lost or in doubt: all generators close for
    /// good, and the node joins again as a new member.
    fn lose(&mut self, error: &Error) {
        tracing::error!(error = %chain(error), "membership lost; rejoining");
        self.core.ctx.metrics.add_rejoin();
        self.end_sections();
        let reason = Error::unavailable("worker number was lost, another is being claimed; retry")
            .with_source(error.clone());
        self.close_leases(&reason);
        self.journal_writer.want();
        if let Stage::In { member, .. } = &self.stage {
            self.sections.ended(self.before.replace(member.incarnation));
        }
        self.stage = Stage::Out { retry_at_ms: 0, failures: 0, error: Some(error.clone()) };
        self.leaks.forget();
        for held in self.leases.values_mut() {
            if let Err(error) = held.restart() {
                tracing::error!(error = %chain(&error), "failed to get random numbers for a rejoin");
            }
        }
    }

    /// Closes all generators, and remembers what they have taken.
    pub(super) fn close_leases(&mut self, reason: &Error) -> Vec<Release> {
        let mut leases = std::mem::take(&mut self.leases);
        let releases =
            leases.values_mut().flat_map(|held| self.close_lease(held, reason)).collect();
        self.leases = leases;
        releases
    }

    /// Closes the generators of one lease, and remembers what they have taken.
    pub(super) fn close_lease(&mut self, held: &mut ActiveLease, reason: &Error) -> Vec<Release> {
        let (known, releases) = held.close(reason);
        let marks = known.iter().map(|lease| lease.mark.max(lease.granted));
        self.past_mark = marks.fold(self.past_mark, Mark::max);
        self.journal_writer.saw_mark(self.past_mark);
        self.remember(known);
        releases
    }

    /// Keeps knowledge about slots that nothing is minted from any more, in place of earlier
    /// knowledge. Beyond a limit the slots with the lowest marks are forgotten: the clock has most
    /// likely passed these in the store, too, so a claim of them waits no longer.
    pub(super) fn remember(&mut self, known: Vec<JournalLease>) {
        self.past
            .retain(|past| known.iter().all(|new| new.pool != past.pool || new.slot != past.slot));
        if reuses_numbers(self.settings()) {
            self.past.extend(known);
        }
        if self.past.len() > PAST_MAX {
            self.past.sort_by_key(|past| Reverse(past.mark));
            self.past.truncate(PAST_MAX);
            self.past.sort_by(|one, other| (&one.pool, one.slot).cmp(&(&other.pool, other.slot)));
        }
    }
}

/// Returns whether a claim fails only until the clock has reached the marks, soon.
fn continues_by_itself(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::PoolFull(full) if full.continues_by_itself())
}
