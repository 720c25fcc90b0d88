//! Stores that are put back to an older state: while nobody runs, or silently, under nodes that run; and what an
//! operator does then, soon, late, or never.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use snowmint_coord::recovery::{Configured, Recovery, RecoveryRequest};
use snowmint_coord::{FastForward, Mark, NodeSettings, Standing, Store, StoreIdentity};
use snowmint_core::UnixMillis;

use super::machine::{Machine, Process};
use super::sources::STRIPED;
use super::store::Content;
use super::world::World;
use crate::history::{Check, Checked};

/// Longer than any window reaches ahead of the store's clock: two windows, the longest lead, the
/// clocks' skew, and a bit.
pub(super) const AHEAD_MS: u64 = 60_000 + 40_000 + 10_000 + 10_000;
/// Within so long whoever reaches a store has asked it something.
const ASKED_MS: u64 = 30_000;

/// What the store held at some earlier time.
#[derive(Clone, Debug)]
pub(super) struct Backup {
    content: Content,
    /// Which store that was, and how far it had come.
    store: String,
    writes: u64,
}

/// How long a store that was put back stays in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InDoubt {
    UntilMs(u64),
    Forever,
}

impl World {
    pub(super) async fn back_up(&mut self) {
        let identity = self.store.identity().await.unwrap();
        let (store, writes) = (identity.store(), identity.writes);
        self.backup = Some(Backup { content: self.store.backup(), store, writes });
    }

    /// The store comes back in an older state. An operator moves it past all that may have been
    /// promised since, and tells everybody by a new identity.
    pub(super) async fn restore(&mut self) -> Checked {
        let Some(backup) = self.backup.clone() else { return Ok(()) };
        let writes_before = self.store.identity().await.unwrap().writes;
        let stop_all = self.chance.percent(70);
        if stop_all {
            for index in 0..self.machines.len() {
                self.kill(index).await;
            }
        }
        self.store.restore(backup.content);
        if stop_all {
            // A server that is put back has none of its old connections.
            self.line.cut();
            self.start_on_a_store_that_went_back().await?;
        }
        self.move_forward(writes_before, true).await;
        self.count(if stop_all { "restored" } else { "restored under running nodes" });
        Ok(())
    }

    /// An operator who knows of all that was promised moves the store past it.
    pub(super) async fn move_forward(&mut self, writes_at_least: u64, new_identity: bool) {
        let (marks_max, numbers_max) = self.truth.marks_max();
        let ahead = Mark::new(self.true_ms() + AHEAD_MS);
        // Without a clock of its own, the store cannot bound what was promised: the operator asks.
        let known = if self.store_clock.is_some() { Mark::ZERO } else { Mark::new(marks_max) };
        // Who is to begin with a new journal comes back with none of these.
        let journals = self.standing().await.journals.into_iter().filter(|_| new_identity);
        let forward = FastForward {
            forget_journals: journals.map(|journal| journal.id).collect(),
            marks_at_least: ahead.max(known),
            segments: self.truth.past(numbers_max, |_| true).await,
            writes_at_least,
            new_identity,
            ..FastForward::default()
        };
        self.store.fast_forward(&forward).await.unwrap();
        self.truth.recovered().await;
        self.forget_backup();
        for machine in self.machines.iter_mut().filter(|_| new_identity) {
            machine.set_aside = true;
            machine.backup = None;
        }
    }

    /// Put back to before a recovery, the store would be recovered by a number that whoever has no journal may have seen:
    /// it is put in doubt once more then, and has to be recovered once more.
    fn forget_backup(&mut self) {
        self.backup = None;
    }

    /// Whoever has a journal that has seen more must refuse the store.
    async fn start_on_a_store_that_went_back(&mut self) -> Checked {
        let writes = self.store.identity().await.unwrap().writes;
        self.leads_astray();
        for index in 0..self.machines.len() {
            let machine = &self.machines[index];
            let knows_better = machine.writes_seen().is_some_and(|seen| seen > writes);
            if knows_better && !machine.set_aside {
                self.must_not_start(index, "a store that went back").await?;
                self.count("a store that went back is refused");
            }
        }
        self.truth.set_astray(false);
        Ok(())
    }

    /// A machine that reaches the store is started, and must refuse it.
    pub(super) async fn must_not_start(&mut self, index: usize, what: &str) -> Checked {
        self.machines[index].weather.calm();
        self.machines[index].waits_for_recovery = false;
        let up = self.line.up.swap(true, Ordering::SeqCst);
        self.line.let_on();
        self.start(index);
        self.come_up(index).await;
        let refused = self.machines[index].is_stopped();
        self.kill(index).await;
        self.line.up.store(up, Ordering::SeqCst);
        let what = format!("machine {index} started on {what}");
        self.truth.judge(if refused { Ok(()) } else { Err(Check::Refusal.broken(what)) })
    }

    /// The store is put back under nodes that run, and nobody says so. One of them that has seen more reaches it first,
    /// and puts it in doubt: what happens where somebody without a memory comes first lies outside the promise.
    pub(super) async fn put_back_under_nodes(&mut self) -> Checked {
        let Some(backup) = self.backup.clone() else { return Ok(()) };
        let Some(witness) = self.pick(|machine| machine.awake().is_some()) else { return Ok(()) };
        self.line.up.store(true, Ordering::SeqCst);
        self.machines[witness].weather.calm();
        self.pass(5_000).await;
        let seen = self.machines[witness].awake().and_then(|(node, _)| node.store().seen());
        let knows =
            |seen: &StoreIdentity| seen.store() == backup.store && seen.writes > backup.writes;
        if !seen.as_ref().is_some_and(knows) {
            return Ok(());
        }
        if self.chance.percent(50) {
            self.restripe_and_mint(witness).await?;
        }
        for index in (0..self.machines.len()).filter(|index| *index != witness) {
            self.machines[index].weather.away.store(true, Ordering::SeqCst);
        }
        self.line.cut();
        self.store.restore(backup.content);
        self.leads_astray();
        let end_ms = self.time.now_ms() + ASKED_MS;
        while self.standing().await.doubt.is_none() {
            if self.time.now_ms() >= end_ms {
                let what = format!("machine {witness} does not find that the store went back");
                return self.truth.judge(Err(Check::Refusal.broken(what)));
            }
            self.pass(200).await;
        }
        for machine in &mut self.machines {
            machine.weather.away.store(false, Ordering::SeqCst);
            machine.waits_for_recovery = self.chance.percent(70);
        }
        let until_ms = self.time.now_ms() + self.chance.between(1_000, 120_000);
        let forever = self.chance.percent(30);
        self.in_doubt = Some(if forever { InDoubt::Forever } else { InDoubt::UntilMs(until_ms) });
        self.count("put back under running nodes");
        Ok(())
    }

    /// The state that is lost alone says by which stripe these numbers became IDs.
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

    /// The operator comes, if it is time.
    pub(super) async fn recover_if_due(&mut self) -> Checked {
        match self.in_doubt {
            Some(InDoubt::UntilMs(until_ms)) if self.time.now_ms() >= until_ms => {
                self.recover().await
            }
            _ => Ok(()),
        }
    }

    /// An operator has every server with a journal run, waits for what they report, and moves the store past that, and past
    /// what only those without a journal knew.
    pub(super) async fn recover(&mut self) -> Checked {
        self.line.up.store(true, Ordering::SeqCst);
        for index in 0..self.machines.len() {
            if self.machines[index].set_aside {
                self.kill(index).await;
            }
            let machine = &mut self.machines[index];
            if machine.journalled {
                machine.weather.calm();
                machine.waits_for_recovery = true;
                machine.gate.open();
                self.start(index);
            }
        }
        let end_ms = self.time.now_ms() + ASKED_MS;
        while self.silent().await.is_some() && self.time.now_ms() < end_ms {
            self.pass(500).await;
        }
        if let Some(index) = self.silent().await {
            let what = format!("the journal of machine {index} has reported nothing");
            self.truth.fail(Check::Healing.broken(what));
        }
        let standing = self.standing().await;
        let forward = self.plan(&standing).await;
        self.store.fast_forward(&forward).await.unwrap();
        self.truth.set_astray(false);
        self.truth.recovered().await;
        self.in_doubt = None;
        self.forget_backup();
        self.count("recovered by what journals reported");
        self.truth.judge(Ok(()))
    }

    /// A machine with a journal that has all that it was ever promised, and that has not reported.
    async fn silent(&self) -> Option<usize> {
        let standing = self.standing().await;
        let has_reported = |index: usize| {
            let of = |host: &str| host == Machine::host(index);
            standing.journals.iter().any(|journal| of(&journal.host) && journal.has_reported)
        };
        let speaks = |index: &usize| !self.machines[*index].forgets && !has_reported(*index);
        (0..self.machines.len()).find(speaks)
    }

    /// As `snowmint worker recover` plans it, by an operator who names what no journal knows.
    async fn plan(&self, standing: &Standing) -> FastForward {
        // Whoever is no machine has poisoned a mark, and said so.
        let forgets = |index: usize| self.machines.get(index).is_none_or(|machine| machine.forgets);
        let (mark, numbers) = self.truth.promised(forgets);
        let segments = self.truth.past(numbers, forgets).await;
        let without: Vec<_> = standing.missing().map(|journal| journal.id.clone()).collect();
        let (sources, settings) = (BTreeMap::new(), NodeSettings::default());
        let configured = Configured { sources: &sources, settings: &settings };
        let (store, now): (&dyn Store, _) = (&*self.store, UnixMillis::new(self.true_ms()));
        let look = Recovery::look(Some(store), Vec::new(), &without, configured, now);
        let recovery = look.await.unwrap();
        let request = RecoveryRequest { segments, ..RecoveryRequest::default() };
        let forward = recovery.plan(&request).unwrap();
        let ahead = Mark::new((self.true_ms() + AHEAD_MS).max(mark));
        let marks_at_least = forward.marks_at_least.max(ahead);
        FastForward { marks_at_least, ..forward }
    }

    /// Nobody recovers the store: everybody goes on refusing, whoever starts too.
    pub(super) async fn must_refuse(&mut self) -> Checked {
        self.calm();
        for index in 0..self.machines.len() {
            self.start(index);
        }
        self.pass(ASKED_MS).await;
        for _ in 0..2 {
            for index in 0..self.machines.len() {
                self.must_mint_nothing(index).await?;
            }
            self.pass(2 * ASKED_MS).await;
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
                self.truth.fail(Check::Refusal.broken(what));
            }
        }
        self.truth.judge(Ok(()))
    }
}
