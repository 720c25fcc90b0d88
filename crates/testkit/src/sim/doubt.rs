//! Stores that are restored to an older state: while no node runs, or silently, under running
//! nodes; and the operator's recovery, soon, late, or never.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use snowmint_coord::recovery::{Configured, Recovery, RecoveryRequest, Reports};
use snowmint_coord::{FastForward, History, Mark, NodeSettings, Standing, Store, StoreIdentity};
use snowmint_core::UnixMillis;

use super::machine::{Machine, Process};
use super::planted;
use super::sources::STRIPED;
use super::store::StoreContent;
use super::world::World;
use crate::history::{Check, Checked};

/// Lead over the store's clock that no window reaches, in milliseconds: two windows, the longest
/// lead, the clocks' skew, and a margin.
pub(super) const AHEAD_MS: u64 = 60_000 + 40_000 + 10_000 + 10_000;
/// Time in milliseconds within which each process that reaches a store has called it.
const CALLED_MS: u64 = 30_000;

/// State of the store at some earlier time.
#[derive(Clone, Debug)]
pub(super) struct Backup {
    content: StoreContent,
    /// Identity of the store, in its history, and its count of writes.
    identity: StoreIdentity,
    /// Whether the store was recovered since.
    outdated: bool,
}

impl Backup {
    /// Returns whether it has a doubt that was recovered since, with its reports.
    fn is_of_recovered_doubt(&self) -> bool {
        self.outdated && History::says_doubt(&self.identity.id)
    }
}

/// Time for which a restored store stays in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InDoubt {
    UntilMs(u64),
    Forever,
}

impl World {
    pub(super) async fn back_up(&mut self) {
        let identity = self.store.identity().await.unwrap();
        self.backup = Some(Backup { content: self.store.backup(), identity, outdated: false });
    }

    /// Returns the content of the backup.
    pub(super) fn backup_content(&self) -> Option<StoreContent> {
        self.backup.as_ref().map(|backup| backup.content.clone())
    }

    /// Restores the store to an older state. An operator moves it past all that may have been
    /// promised since, and notifies all processes by a new identity.
    pub(super) async fn restore(&mut self) -> Checked {
        let Some(backup) = self.backup.clone() else { return Ok(()) };
        let before = self.store.identity().await.unwrap();
        self.count_outdated(&backup);
        let stop_all = self.rng.percent(70);
        if stop_all {
            for index in 0..self.machines.len() {
                self.kill(index).await;
            }
        }
        self.store.restore(backup.content);
        if stop_all {
            // A restored server has none of its old connections.
            self.link.cut();
            self.start_on_a_rolled_back_store().await?;
        }
        self.move_forward(&before, true).await;
        self.count(if stop_all { "restored" } else { "restored under running nodes" });
        Ok(())
    }

    /// Moves the store past all promises, as an operator does who knows them, and the state that the
    /// store had before.
    pub(super) async fn move_forward(&mut self, before: &StoreIdentity, new_identity: bool) {
        let (marks_max, numbers_max) = self.oracle.marks_max();
        let ahead = Mark::new(self.true_ms() + AHEAD_MS);
        // Without its own clock, the store cannot bound the promises: the operator gives the bound.
        let known = if self.store_clock.is_some() { Mark::ZERO } else { Mark::new(marks_max) };
        // With a new identity, processes begin new journals: none of these returns.
        let journals = self.standing().await.journals.into_iter().filter(|_| new_identity);
        let forward = FastForward {
            forget_journals: journals.map(|journal| journal.id).collect(),
            marks_at_least: ahead.max(known),
            segments: self.oracle.past(numbers_max, |_| true).await,
            writes_at_least: before.writes,
            recoveries_at_least: History::of(&before.id).recoveries,
            new_identity,
            ..FastForward::default()
        };
        self.store.fast_forward(&forward).await.unwrap();
        self.oracle.recovered().await;
        // The store is another one now, or has another server.
        self.backup = None;
        for machine in self.machines.iter_mut().filter(|_| new_identity) {
            machine.set_aside = true;
            machine.backup = None;
        }
    }

    /// Recovers the store, and often keeps a backup from before: of the doubt with all reports, or
    /// an older one.
    async fn fast_forward(&mut self, forward: &FastForward) {
        let older = self.backup.take();
        self.back_up().await;
        let in_doubt = self.backup.take();
        self.store.fast_forward(forward).await.unwrap();
        let kept = match self.rng.below(10) {
            0..=3 => in_doubt,
            4..=6 => older,
            _ => None,
        };
        self.backup = kept.map(|backup| Backup { outdated: true, ..backup });
    }

    /// Restores, now and then, a backup from before a recovery.
    pub(super) async fn restore_outdated(&mut self) -> Checked {
        let has_one = self.backup.as_ref().is_some_and(|backup| backup.outdated);
        if !has_one || self.in_doubt.is_some() || !self.rng.percent(10) {
            return Ok(());
        }
        if self.rng.percent(80) { self.restore_under_nodes().await } else { self.restore().await }
    }

    /// Records that a backup from before a recovery is restored.
    fn count_outdated(&self, backup: &Backup) {
        if backup.is_of_recovered_doubt() {
            self.count("a recovered doubt restored");
        } else if backup.outdated {
            self.count("restored to before a recovery");
        }
    }

    /// Returns whether a journal that will report knows how often the store was recovered. If only
    /// a process without a journal does, the store is recovered once more under a number that this
    /// process has seen. Then it is put in doubt again, and must be recovered again.
    async fn is_recovery_known(&self) -> bool {
        let recoveries = History::of(&self.standing().await.id).recoveries;
        let knows = |seen: StoreIdentity| History::of(&seen.id).recoveries == recoveries;
        let mut reporters = self.machines.iter().filter(|it| !it.forgets && !it.set_aside);
        reporters.any(|machine| machine.journal_seen().is_some_and(knows))
    }

    /// Checks that each machine with a journal that has seen more rejects the store.
    async fn start_on_a_rolled_back_store(&mut self) -> Checked {
        let writes = self.store.identity().await.unwrap().writes;
        self.leads_astray();
        for index in 0..self.machines.len() {
            let machine = &self.machines[index];
            let knows_better = machine.writes_seen().is_some_and(|seen| seen > writes);
            if knows_better && !machine.set_aside {
                self.must_not_start(index, "a rolled-back store").await?;
                self.count("a rolled-back store is refused");
            }
        }
        self.oracle.set_astray(false);
        Ok(())
    }

    /// Starts a machine that reaches the store, and checks that it rejects it.
    pub(super) async fn must_not_start(&mut self, index: usize, what: &str) -> Checked {
        self.machines[index].conditions.calm();
        self.machines[index].waits_for_recovery = false;
        let up = self.link.up.swap(true, Ordering::SeqCst);
        self.end_transactions();
        self.start(index);
        self.come_up(index).await;
        let refused = self.machines[index].is_stopped();
        self.kill(index).await;
        self.link.up.store(up, Ordering::SeqCst);
        let what = format!("machine {index} started on {what}");
        self.oracle.judge(if refused { Ok(()) } else { Err(Check::Rejection.broken(what)) })
    }

    /// Ends transactions that were left open: they would only delay the others.
    pub(super) fn end_transactions(&self) {
        for machine in &self.machines {
            machine.conditions.holds_up_ms.store(0, Ordering::SeqCst);
        }
        self.link.let_on();
    }

    /// Restores the store silently, under running nodes. A node that has seen more reaches it
    /// first, and puts it in doubt. The case of a process without memory that comes first lies
    /// outside the promise.
    pub(super) async fn restore_under_nodes(&mut self) -> Checked {
        if self.backup.is_none() {
            self.back_up().await;
            let lost_ms = self.rng.between(1_000, 30_000);
            self.all_try(lost_ms).await?;
        }
        let Some(backup) = self.backup.clone() else { return Ok(()) };
        let Some(observer) = self.pick(|machine| machine.awake().is_some()) else { return Ok(()) };
        self.link.up.store(true, Ordering::SeqCst);
        self.machines[observer].conditions.calm();
        self.all_try(5_000).await?;
        let seen = self.machines[observer].awake().and_then(|(node, _)| node.store().seen());
        let old = &backup.identity;
        let knows = |seen: &StoreIdentity| seen.store() == old.store() && seen.writes > old.writes;
        // Raised values count as a recovery, too.
        let recoveries = |id: &str| History::of(id).recoveries;
        let is_known = recoveries(&self.standing().await.id) == recoveries(&old.id)
            || self.is_recovery_known().await;
        if !seen.as_ref().is_some_and(knows) || !is_known {
            return Ok(());
        }
        if self.rng.percent(50) {
            self.restripe_and_mint(observer).await?;
        }
        if backup.is_of_recovered_doubt() {
            self.die_unreported(observer).await?;
        }
        for index in (0..self.machines.len()).filter(|index| *index != observer) {
            self.machines[index].conditions.away.store(true, Ordering::SeqCst);
        }
        self.link.cut();
        self.count_outdated(&backup);
        let lasts_ms = if backup.is_of_recovered_doubt() { 10_000 } else { 120_000 };
        self.store.restore(backup.content);
        self.leads_astray();
        if self.rng.percent(30) {
            self.move_otherwise().await;
        }
        let end_ms = self.time.now_ms() + CALLED_MS;
        while self.standing().await.doubt.is_none() {
            if self.time.now_ms() >= end_ms {
                let what = format!("machine {observer} does not find the store rollback");
                return self.oracle.judge(Err(Check::Rejection.broken(what)));
            }
            self.pass(200).await;
        }
        for machine in &mut self.machines {
            machine.conditions.away.store(false, Ordering::SeqCst);
            machine.waits_for_recovery = self.rng.percent(70);
        }
        let until_ms = self.time.now_ms() + self.rng.between(1_000, lasts_ms);
        let forever = self.rng.percent(30);
        self.in_doubt = Some(if forever { InDoubt::Forever } else { InDoubt::UntilMs(until_ms) });
        self.count("rolled back under running nodes");
        Ok(())
    }

    /// Raises values of the store, or recovers another namespace of it. Neither collects what the
    /// processes of this namespace know.
    pub(super) async fn move_otherwise(&mut self) {
        if let Some(other) = self.store.other_namespace().filter(|_| self.rng.percent(50)) {
            other.fast_forward(&FastForward::default()).await.unwrap();
            self.count("another namespace recovered");
            return;
        }
        // A doubt that was restored ends by a recovery only.
        if self.standing().await.doubt.is_some() {
            return;
        }
        let values_only = planted::raises_values_only(self.bug);
        let raised = FastForward { same_server: true, values_only, ..FastForward::default() };
        self.store.handle(None).fast_forward(&raised).await.unwrap();
        self.count("values raised");
    }

    /// Kills another machine right after it has minted, which only its journal knows.
    async fn die_unreported(&mut self, observer: usize) -> Checked {
        let is_one = |index: &usize| {
            let machine = &self.machines[*index];
            *index != observer && !machine.forgets && machine.awake().is_some()
        };
        let all: Vec<_> = (0..self.machines.len()).filter(is_one).collect();
        let Some(index) = self.rng.pick(&all).copied() else { return Ok(()) };
        self.machines[index].conditions.calm();
        self.restripe_and_mint(index).await?;
        self.kill(index).await;
        Ok(())
    }

    /// Mints after a restripe: only the lost state shows by which stripe these numbers became IDs.
    async fn restripe_and_mint(&mut self, index: usize) -> Checked {
        self.restripe(index).await;
        let Some((node, _)) = self.machines[index].awake() else { return Ok(()) };
        let node = node.clone();
        let Some(which) = self.sources.iter().position(|source| source.name == STRIPED) else {
            return Ok(());
        };
        self.mints_from(index, &node, which).await?.ok();
        Ok(())
    }

    async fn standing(&self) -> Standing {
        self.store.standing().await.unwrap()
    }

    pub(super) fn is_never_recovered(&self) -> bool {
        self.in_doubt == Some(InDoubt::Forever)
    }

    /// Recovers the store when the operator's recovery is due.
    pub(super) async fn recover_if_due(&mut self) -> Checked {
        match self.in_doubt {
            Some(InDoubt::UntilMs(until_ms)) if self.time.now_ms() >= until_ms => {
                self.recover().await
            }
            _ => Ok(()),
        }
    }

    /// Runs every server with a journal, waits for their reports, and moves the store past them,
    /// and past what only processes without a journal knew.
    pub(super) async fn recover(&mut self) -> Checked {
        self.link.up.store(true, Ordering::SeqCst);
        self.end_transactions();
        for index in 0..self.machines.len() {
            if self.machines[index].set_aside {
                self.kill(index).await;
            }
            if self.machines[index].journalled {
                self.machines[index].conditions.calm();
                self.machines[index].gate.open();
            }
        }
        self.run_journalled().await;
        let end_ms = self.time.now_ms() + CALLED_MS;
        let before = self.standing().await;
        let mut reports = planted::reports(self.bug, &before, before.clone());
        while self.silent(&reports).is_some() && self.time.now_ms() < end_ms {
            self.pass(500).await;
            self.run_journalled().await;
            reports = planted::reports(self.bug, &before, self.standing().await);
        }
        if let Some(index) = self.silent(&reports) {
            let what = format!("the journal of machine {index} reports nothing");
            self.oracle.fail(Check::Healing.broken(what));
        }
        let forward = self.plan(reports).await;
        self.fast_forward(&forward).await;
        self.oracle.set_astray(false);
        self.oracle.recovered().await;
        self.in_doubt = None;
        self.count("recovered by what journals reported");
        self.oracle.judge(Ok(()))
    }

    /// Starts every server with a journal that does not run, so that it reports and waits.
    async fn run_journalled(&mut self) {
        for index in 0..self.machines.len() {
            self.look(index).await;
            if self.machines[index].journalled {
                self.machines[index].waits_for_recovery = true;
                self.start(index);
            }
        }
    }

    /// Returns a machine with a journal of all that it was ever promised, and without a report that
    /// counts.
    fn silent(&self, reports: &Reports) -> Option<usize> {
        let reports = |index: usize| has_reported(reports.counted(), index);
        let is_silent = |index: &usize| !self.machines[*index].forgets && !reports(*index);
        (0..self.machines.len()).find(is_silent)
    }

    /// Plans a recovery as `snowmint worker recover` does; the operator names what no journal
    /// knows.
    async fn plan(&self, reports: Reports) -> FastForward {
        // A party without a machine has poisoned a mark, and reported it.
        let forgets = |index: usize| self.machines.get(index).is_none_or(|machine| machine.forgets);
        let (mark, numbers) = self.oracle.promised(forgets);
        let segments = self.oracle.past(numbers, forgets).await;
        let missing = reports.counted().missing();
        let without: Vec<_> = missing.map(|journal| journal.id.clone()).collect();
        let (sources, settings) = (BTreeMap::new(), NodeSettings::default());
        let (store, now): (&dyn Store, _) = (&*self.store, UnixMillis::new(self.true_ms()));
        let namespace = store.namespace();
        let configured = Configured { sources: &sources, settings: &settings, namespace };
        let look = Recovery::look(Some(store), reports, Vec::new(), &without, configured, now);
        let recovery = look.await.unwrap();
        let values = segments.into_iter().map(|(name, next)| (name, next.into()));
        let segments = values.collect();
        let request = RecoveryRequest { segments, ..RecoveryRequest::default() };
        let forward = recovery.plan(&request).unwrap();
        let ahead = Mark::new((self.true_ms() + AHEAD_MS).max(mark));
        let marks_at_least = forward.marks_at_least.max(ahead);
        FastForward { marks_at_least, ..forward }
    }

    /// Checks that all processes keep rejecting the store, also newly started ones, while no
    /// operator recovers it.
    pub(super) async fn must_refuse(&mut self) -> Checked {
        self.calm();
        for index in 0..self.machines.len() {
            self.start(index);
        }
        self.pass(CALLED_MS).await;
        for _ in 0..2 {
            for index in 0..self.machines.len() {
                self.must_mint_nothing(index).await?;
            }
            self.pass(2 * CALLED_MS).await;
        }
        self.count("refused for ever");
        Ok(())
    }

    async fn must_mint_nothing(&mut self, index: usize) -> Checked {
        self.look(index).await;
        let Process::Running(node, _) = &self.machines[index].process else { return Ok(()) };
        let node = node.clone();
        for which in 0..self.sources.len() {
            if self.mints_from(index, &node, which).await?.is_ok() {
                let name = self.sources[which].name;
                let what = format!("machine {index} mints from {name} on a store in doubt");
                self.oracle.fail(Check::Rejection.broken(what));
            }
        }
        self.oracle.judge(Ok(()))
    }
}

/// Returns whether a journal of a machine has reported.
fn has_reported(standing: &Standing, index: usize) -> bool {
    let is_its = |host: &str| host == Machine::host(index);
    standing.journals.iter().any(|journal| is_its(&journal.host) && journal.has_reported)
}
