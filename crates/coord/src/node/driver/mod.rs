//! Driver loop that feeds events to the machines and does the resulting actions. Everything that
//! waits is a task of its own, bounded in time; the loop itself only decides.
//!
//! One function says when an action is due: `next_…_ms` returns the milliseconds until then, and
//! none while nothing is pending. The action is done when it returns 0, and the loop sleeps until
//! the least of all. So the loop cannot sleep past an action, nor wake for one that is not due.

mod clock;
mod closing;
mod completions;
mod departure;
mod global_order;
mod leak_audit;
mod leaks;
mod leases;
mod offline;
mod pending;
mod pending_releases;
mod report;
mod sections;
mod state;
mod store_knowledge;
mod supply;
mod unwritten;

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_core::Clock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::global_order::GlobalOrderSources;
use self::leak_audit::LeakAudit;
use self::pending::PendingReleases;
pub(super) use self::state::Driver;
use self::state::{Completion, Stage};
use super::command::{DriverCommand, node_closed};
use super::journal_writer::JournalWriter;
use super::lease::ActiveLease;
use super::settings::NodeSettings;
use super::state::NodeState;
use super::store_knowledge::StoreFingerprint;
use super::{compare, join};
use crate::error::Verb;
use crate::ids::Mark;
use crate::journal::{Disk, disk};
use crate::machine::{IDLE_POLL_MS, Now, PresenceAction, SectionsMachine, Serving, WindowMachine};
use crate::model::pool::{Reuse, sections_pool};

/// Longest sleep of the loop: the clock may be set meanwhile.
const POLL_MS_MAX: u64 = 1_000;
/// Shortest time between two reads of the catalog, however many notices of changes arrive.
const CATALOG_EVERY_MS: u64 = 100;
/// Number of renewals in a time to live. Unless the node is idle, clocks and catalog are checked as
/// often.
const RENEWALS_PER_TTL: u64 = 3;
/// Number of ended leases that are remembered. Each takes room in the journal.
pub(super) const PAST_MAX: usize = 256;

impl Driver {
    pub(super) fn new(
        core: Arc<NodeState>,
        commands: mpsc::Receiver<DriverCommand>,
        journal_writer: JournalWriter,
        disk: Arc<dyn Disk>,
        fingerprint: StoreFingerprint,
        seed: u64,
    ) -> Self {
        let past = journal_writer.past_leases();
        let past = if reuses_numbers(&core.settings) { past } else { Vec::new() };
        let before = journal_writer.past_member();
        let mut sections = SectionsMachine::new(sections_pool(), seed);
        sections.ended(journal_writer.earlier_members());
        Self {
            core,
            commands,
            tasks: JoinSet::new(),
            stage: Stage::Out { retry_at_ms: 0, failures: 0, error: None },
            fingerprint,
            clock_fault: None,
            leases: BTreeMap::new(),
            past,
            past_mark: Mark::ZERO,
            before,
            journal_writer,
            disk,
            clock_compared_at_ms: 0,
            catalog_busy: false,
            catalog_read_at_ms: 0,
            journals_of: String::new(),
            pending_releases: PendingReleases::default(),
            leaks: LeakAudit::default(),
            sections,
            unwritten: Vec::new(),
            serving: Serving::default(),
            departure: None,
            global_order: GlobalOrderSources::default(),
            membership: 0,
        }
    }

    fn settings(&self) -> &NodeSettings {
        &self.core.settings
    }

    /// Runs until the node is closed or dropped.
    pub(super) async fn run(mut self) {
        let mut now = self.now();
        loop {
            self.poll(now);
            let next_poll_ms = self.next_poll_ms(now);
            // The order is fixed, here and wherever a node waits, so that a simulation repeats
            // exactly. Results of tasks come first: their number is limited, while commands may
            // arrive without end.
            let done = tokio::select! {
                biased;
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => Some(done),
                command = self.commands.recv() => match command {
                    Some(DriverCommand::Attach { source, reply }) => {
                        self.attach(&source, reply);
                        None
                    }
                    Some(DriverCommand::AnnounceStop { reply }) => {
                        self.announce_stop(reply);
                        None
                    }
                    Some(DriverCommand::HandOver { reply }) => {
                        self.begin_hand_over(reply);
                        None
                    }
                    Some(DriverCommand::Close { reply }) => {
                        let outcome = self.close().await;
                        self.reply_to_closers(reply, &outcome).await;
                        return;
                    }
                    None => {
                        // Dropped without close: generators stop, and slots stay held until this
                        // member's presence expires.
                        self.close_leases(&node_closed());
                        self.close_sections();
                        self.core.close_prefetched();
                        return;
                    }
                },
                () = self.core.ctx.wake.notified() => None,
                () = self.core.ctx.timer.sleep_ms(next_poll_ms) => None,
            };
            now = self.now();
            match done {
                Some(Ok(completion)) => self.on_completion(now, completion),
                Some(Err(error)) => tracing::error!(%error, "node task failed"),
                None => {}
            }
        }
    }

    /// Does everything that is due.
    fn poll(&mut self, now: Now) {
        let is_due = self.stage.next_poll_ms(now) == Some(0);
        if let Stage::Out { failures, error, .. } = &mut self.stage
            && is_due
        {
            self.stage = Stage::Joining { failures: *failures, error: error.take() };
            self.spawn_join();
        }
        self.poll_doubt();
        self.poll_presence(now);
        self.note_demand(now);
        self.resume_offline(now);
        self.leases.values_mut().for_each(ActiveLease::see);
        self.poll_offline(now);
        self.poll_leases(now);
        self.poll_departure(now);
        self.poll_sections(now);
        self.poll_catalog(now);
        self.poll_journal(now);
        self.poll_releases(now);
        self.poll_leaks(now);
        self.report(now);
    }

    fn spawn_join(&mut self) {
        let core = Arc::clone(&self.core);
        let (knowledge, before) = (self.knowledge(), self.before);
        self.tasks.spawn(async move {
            let joining = join::join_store(&core.ctx, &core.settings, &knowledge, before);
            Completion::Joined(joining.await)
        });
    }

    fn poll_presence(&mut self, now: Now) {
        let Stage::In { member, presence } = &mut self.stage else { return };
        let member = member.incarnation;
        if let Some(PresenceAction::Renew(renewed)) = presence.poll(now) {
            let half_ms = renewed.ttl_ms / RENEWALS_PER_TTL / 2;
            self.read_journals();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let ctx = &core.ctx;
                let wall = ctx.clock.unix_ms();
                let renewal = ctx.store.renew(member, renewed, wall);
                Completion::Renewed(member, ctx.store_call(Verb::Renew, renewal).await)
            });
            // The checks go with the renewal that is nearest to their due time.
            let since_ms = now.elapsed.get().saturating_sub(self.clock_compared_at_ms);
            if since_ms.saturating_add(half_ms) < self.poll_interval_ms() {
                return;
            }
            self.clock_compared_at_ms = now.elapsed.get();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let checked = compare::while_running(&core.ctx, &core.settings, member);
                Completion::ClockChecked(checked.await)
            });
        }
    }

    fn poll_catalog(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        let member = member.incarnation;
        // Extends and reserves report the catalog's version, and peers notify this node; otherwise
        // it is read at intervals, by a poll that comes for another reason.
        let is_late = self.since_catalog_ms(now) >= self.poll_interval_ms();
        if !self.catalog_busy && (is_late || self.next_catalog_ms(now) == Some(0)) {
            self.core.ctx.take_stale();
            self.catalog_busy = true;
            self.catalog_read_at_ms = now.elapsed.get();
            let (core, who) = (Arc::clone(&self.core), self.fingerprint.who.clone());
            self.tasks
                .spawn(async move { Completion::Catalog(member, core.read_catalog(&who).await) });
        }
    }

    /// Reads the list of journals when the store has a new start. Each start may bring another
    /// journal, which a store that was rolled back may not know; so this node's journal must know
    /// it.
    pub(super) fn read_journals(&mut self) {
        // Where the store is reached through servers, the servers' journals count.
        let reads_journals = self.journal_writer.is_kept()
            && matches!(self.stage, Stage::In { .. })
            && self.core.ctx.store.owner_client().is_none();
        let Some(seen) = self.core.ctx.store.seen().filter(|_| reads_journals) else { return };
        if seen.id == self.journals_of {
            return;
        }
        self.journals_of = seen.id;
        let (core, knowledge) = (Arc::clone(&self.core), self.knowledge());
        self.tasks.spawn(async move {
            Completion::Standing(knowledge.read_journals(&core.ctx, &core.settings).await)
        });
    }

    /// Returns whether the node is idle: then it calls the store as rarely as possible.
    fn is_idle(&self) -> bool {
        let mut windows = self.leases.values().flat_map(|held| held.windows()).peekable();
        windows.peek().is_some() && windows.all(WindowMachine::is_idle)
    }

    /// Returns the interval between checks of the clocks and the catalog.
    fn poll_interval_ms(&self) -> u64 {
        let ttl_ms = self.settings().presence_ttl_ms;
        if self.is_idle() { ttl_ms.max(IDLE_POLL_MS) } else { ttl_ms / RENEWALS_PER_TTL }
    }

    fn since_catalog_ms(&self, now: Now) -> u64 {
        now.elapsed.get().saturating_sub(self.catalog_read_at_ms)
    }

    /// Returns the milliseconds until the catalog is read because it has changed.
    fn next_catalog_ms(&self, now: Now) -> Option<u64> {
        let waits = !self.catalog_busy && self.core.ctx.is_stale();
        waits.then(|| CATALOG_EVERY_MS.saturating_sub(self.since_catalog_ms(now)))
    }

    fn poll_journal(&mut self, now: Now) {
        self.journal_writer.hears(self.core.ctx.journal_budget.take());
        // The flag is taken first, so the count that is read below includes its writes.
        let is_due = self.core.ctx.take_unjournalled();
        if !self.see_store() {
            return;
        }
        if is_due {
            self.journal_writer.want_soon(now);
        }
        if self.journal_writer.next_poll_ms(now) == Some(0) {
            // Each write moves all marks as far as possible, so that they are due together.
            self.leases.values_mut().for_each(|held| held.journal(now));
        }
        let held = self.leases.values().flat_map(|held| held.windows());
        if let Some(write) = self.journal_writer.begin(now, held, &self.past) {
            let disk = Arc::clone(&self.disk);
            self.tasks.spawn(async move {
                match disk::on(&*disk, move || write.run()).await {
                    Ok(written) => Completion::Journal(written),
                    Err(error) => Completion::Failed(error),
                }
            });
        }
    }

    /// Adds to the journal's record what this process has seen of the joined store. Returns whether
    /// the store was not recovered since: then the node joins again first.
    pub(super) fn see_store(&mut self) -> bool {
        // Before the store was compared, this process knows nothing of the store in its journal.
        if !matches!(self.stage, Stage::In { .. }) || self.core.ctx.doubts.check().is_err() {
            return true;
        }
        let (seen, writes) = (self.core.ctx.store.seen(), self.core.ctx.writes_seen());
        if let Some(seen) = &seen
            && self.was_recovered(seen)
        {
            return false;
        }
        self.journal_writer.saw_catalog(self.core.ctx.catalog_seen());
        // A write count belongs to the history in which it was counted: stored with an older start,
        // it would belong to a history that other processes have replaced.
        match &seen {
            Some(seen) => {
                (self.fingerprint.store, self.fingerprint.writes) = (seen.id.clone(), seen.writes);
            }
            None => self.fingerprint.writes = self.fingerprint.writes.max(writes),
        }
        self.journal_writer.saw(seen, writes);
        true
    }

    fn next_poll_ms(&self, now: Now) -> u64 {
        let joined = matches!(self.stage, Stage::In { .. });
        let leases = self
            .leases
            .values()
            .filter(|_| joined)
            .filter_map(|held| held.machine.next_poll_ms(now, &held.seen))
            .min();
        let offline = self.leases.values().filter_map(|held| held.next_offline_poll_ms(now)).min();
        let sections =
            self.actor().and_then(|actor| self.sections.next_poll_ms(now.elapsed, &actor));
        let next = [
            self.stage.next_poll_ms(now),
            leases,
            self.journal_writer.next_poll_ms(now),
            self.next_release_ms(now),
            self.leaks.next_poll_ms(now).filter(|_| joined),
            offline,
            sections,
            self.next_catalog_ms(now).filter(|_| joined),
        ];
        next.into_iter().flatten().min().unwrap_or(POLL_MS_MAX).clamp(1, POLL_MS_MAX)
    }
}

impl Drop for Driver {
    /// Ends minting however the driver ends, also with its runtime. Later results of the store are
    /// not used. Nothing is minted once the directory's lock is gone, which proves to the next
    /// process that this one has ended.
    fn drop(&mut self) {
        self.core.ctx.journal_budget.end();
        self.close_leases(&node_closed());
        self.close_sections();
        self.core.close_prefetched();
    }
}

/// Returns whether a worker number may be claimed again. Knowledge about numbers that may not would
/// fill the journal, a little with each start.
fn reuses_numbers(settings: &NodeSettings) -> bool {
    settings.reuse != Reuse::Never
}
