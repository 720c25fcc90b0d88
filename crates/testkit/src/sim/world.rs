//! The world and its events.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::{IdBatch, MemoryClock, Node, NodeSettings, Store};
use snowmint_core::UnixMillis;

use super::density::BATCH_MAX;
use super::doubt::{Backup, InDoubt};
use super::forwarding::{ForwardedRequest, Reached};
use super::machine::{Machine, Process};
use super::monotonicity::{self, OrderedRequest};
use super::network::StoreLink;
use super::oracle::Oracle;
use super::planted::Bug;
use super::random::SimRng;
use super::sources::{NUMBERS, PoolSize, SimSource};
use super::store::{SimStore, StoreKind};
use super::time::{Rate, TrueTime};
use super::{Profile, RunOutcome, START_MS};
use crate::history::{Checked, History, Mint, Order, ProcessLife, Violation};

pub(super) struct World {
    pub(super) profile: Profile,
    pub(super) bug: Option<Bug>,
    pub(super) rng: SimRng,
    pub(super) time: TrueTime,
    /// The store's own clock, where it has one: true time.
    pub(super) store_clock: Option<MemoryClock>,
    pub(super) kind: StoreKind,
    pub(super) store: Arc<dyn SimStore>,
    /// Number of the newest server.
    pub(super) servers: u64,
    pub(super) link: Arc<StoreLink>,
    pub(super) backup: Option<Backup>,
    /// State of a store that was restored while nodes run, and that no operator has recovered.
    pub(super) in_doubt: Option<InDoubt>,
    pub(super) oracle: Oracle,
    pub(super) machines: Vec<Machine>,
    pub(super) pool_size: PoolSize,
    pub(super) sources: Vec<SimSource>,
    history: History,
    pub(super) monotonicity: Order<OrderedRequest>,
    /// Processes that others can call, and the forwarded requests.
    pub(super) reached: Reached,
    pub(super) forwarded: Vec<ForwardedRequest>,
    /// Count of numbers that each machine returned in each of its lives.
    pub(super) used: BTreeMap<(usize, u32), u64>,
}

impl World {
    pub(super) fn new(seed: u64, profile: Profile, bug: Option<Bug>) -> Self {
        let rng = SimRng::new(seed);
        let start = UnixMillis::new(START_MS);
        let store_clock = rng.percent(50).then(|| MemoryClock::new(start));
        // A generator of its own keeps all other choices of a seed independent of the kind.
        let is_keyed = bug.is_some_and(Bug::is_of_keys);
        let kind = match bug {
            Some(_) if !is_keyed => StoreKind::Rows,
            _ => StoreKind::any(&SimRng::new(!seed), store_clock.is_some(), is_keyed),
        };
        let store = kind.make(store_clock.as_ref(), 0);
        let pool_size = match (profile, rng.below(10)) {
            // A clock that was years wrong uses up a slot for years: there must be enough.
            (Profile::Clocks, _) => PoolSize::Wide,
            (Profile::Poisoned, _) => PoolSize::Narrow,
            (_, 0..=1) => PoolSize::Wide,
            (_, 2..=4) => PoolSize::Narrow,
            _ => PoolSize::Tight,
        };
        let time = TrueTime::default();
        let machines = (0..usize::try_from(rng.between(2, 4)).unwrap()).map(|index| {
            let mut machine = Machine::new(index, bug, &rng, &time);
            // Only a process that has met the store can see that it was rolled back.
            machine.starts_without_store &= profile != Profile::Restores;
            machine
        });
        Self {
            profile,
            bug,
            machines: machines.collect(),
            time,
            store_clock,
            link: Arc::new(StoreLink::new()),
            backup: None,
            in_doubt: None,
            oracle: Oracle::new(Arc::clone(&store), bug.map(Bug::found_by)),
            kind,
            store,
            servers: 0,
            pool_size,
            sources: SimSource::all(pool_size),
            history: History::default(),
            monotonicity: Order::default(),
            reached: Reached::default(),
            forwarded: Vec::new(),
            used: BTreeMap::new(),
            rng,
        }
    }

    pub(super) async fn run(mut self, steps: u32) -> Result<RunOutcome, Violation> {
        self.define(&*self.store).await;
        self.count(self.kind.name());
        if self.machines.iter().any(|machine| machine.rate != Rate::TRUE) {
            self.count("elapsed clocks run apart");
        }
        for _ in 0..steps {
            self.happen().await?;
            self.oracle.violation().map_or(Ok(()), Err)?;
        }
        if self.profile == Profile::Poisoned {
            // After any other trouble: recovery from this is the subject of the profile.
            self.poison().await;
            if self.rng.percent(50) {
                self.reclaim().await?;
            }
        }
        if self.is_never_recovered() {
            self.must_refuse().await?;
        } else {
            self.check_recovery().await?;
        }
        self.is_dense().await?;
        self.oracle.violation().map_or(Ok(()), Err)?;
        Ok(RunOutcome {
            minted: self.history.len(),
            digest: self.history.digest(),
            next_random: self.rng.number(),
            happened: self.link.happened.all(),
        })
    }

    /// Defines the sources in a store.
    pub(super) async fn define(&self, store: &dyn SimStore) {
        let handle: Arc<dyn Store> = store.handle(None);
        let platform = self.machines[0].platform(&self.time);
        let node = Node::open(handle, NodeSettings::default(), platform).await.unwrap();
        for source in &self.sources {
            node.define(source.name, &source.spec).await.unwrap();
        }
        for (name, spec) in monotonicity::sources() {
            node.define(name, &spec).await.unwrap();
        }
    }

    pub(super) fn count(&self, what: &'static str) {
        self.link.happened.count(what);
    }

    pub(super) fn true_ms(&self) -> u64 {
        START_MS + self.time.now_ms()
    }

    /// Lets time pass for all machines, in jumps to the next moment at which something happens.
    pub(super) async fn pass(&mut self, ms: u64) {
        let end_ms = self.time.now_ms() + ms;
        // Started work first gets as far as it can, so that its waits count.
        self.time.settle().await;
        while self.time.now_ms() < end_ms {
            let before_ms = self.time.now_ms();
            let now_ms = self.time.pass_until(end_ms);
            let passed_ms = now_ms - before_ms;
            for machine in &mut self.machines {
                let rate = machine.rate;
                let elapsed_ms = rate.shown_ms(now_ms) - rate.shown_ms(before_ms);
                machine.wall.pass(&machine.clock, passed_ms, elapsed_ms);
            }
            if let Some(clock) = &self.store_clock {
                clock.set(clock.now().saturating_add(passed_ms));
            }
            self.time.settle().await;
        }
    }

    async fn happen(&mut self) -> Checked {
        self.check_forwarded().await?;
        self.recover_if_due().await?;
        self.restore_outdated().await?;
        let index = usize::try_from(self.rng.below(self.machines.len() as u64)).unwrap();
        match self.rng.below(100) {
            0..=9 if self.checks_order() => self.rise(index).await?,
            10..=14 if self.checks_order() => self.forward(index),
            0..=34 => self.mint(index).await?,
            35..=59 => {
                let ms = self.rng.between(1, 50);
                self.pass(ms).await;
            }
            60..=66 => {
                let ms = self.rng.between(50, 5_000);
                self.pass(ms).await;
            }
            67..=68 => {
                let ms = self.rng.between(5_000, 60_000);
                self.pass(ms).await;
            }
            69..=72 => self.step_clock(index),
            73..=78 => {
                let stopped = self.pick(Machine::is_stopped).unwrap_or(index);
                self.start(stopped);
            }
            79..=80 => {
                let index = self.pick(|machine| machine.awake().is_some()).unwrap_or(index);
                self.kill(index).await;
                // Often it is started again at once, sometimes with another clock.
                if self.rng.percent(60) {
                    if self.rng.percent(40) {
                        self.step_clock(index);
                    }
                    if self.rng.percent(30) {
                        self.start_without_store(index).await?;
                    } else {
                        self.start(index);
                    }
                }
            }
            81..=82 => {
                if self.checks_order() && self.rng.percent(50) {
                    self.hand_over(index).await?;
                }
                self.close(index).await;
                if self.rng.percent(20) {
                    self.start_without_store(index).await?;
                } else if self.rng.percent(50) {
                    self.start(index);
                }
            }
            83..=85 => self.change_conditions(index),
            86 if self.rng.percent(30) => self.restripe(index).await,
            86 => self.alter(index).await,
            87 => self.freeze(index),
            88 if self.rng.percent(30) => self.hold_up(index),
            88 => self.store_dies(),
            89..=90 => self.open_again(index).await,
            91..=93 => self.inject_rare_fault(index).await?,
            94..=96 if self.checks_order() => self.rise_waiting(index).await?,
            _ => self.mint_waiting(index).await?,
        }
        self.look(index).await;
        Ok(())
    }

    /// Returns one of the machines for which this is true.
    pub(super) fn pick(&self, is_one: impl Fn(&Machine) -> bool) -> Option<usize> {
        let all: Vec<_> =
            (0..self.machines.len()).filter(|index| is_one(&self.machines[*index])).collect();
        self.rng.pick(&all).copied()
    }

    pub(super) fn minted_count(&self) -> usize {
        self.history.len()
    }

    fn by(&self, index: usize) -> Mint {
        Mint { node: index, life: self.machines[index].life, at_ms: self.time.now_ms() }
    }

    /// Checks IDs that left a process against everything that is known.
    pub(super) async fn minted(
        &mut self,
        which: usize,
        ids: &[u64],
        by: Mint,
        process_life: ProcessLife,
    ) -> Checked {
        let is_dense = self.sources[which].name == NUMBERS;
        let ids = match ids.split_last() {
            Some((_, rest)) if is_dense && self.bug == Some(Bug::NumberLostOnTheWay) => rest,
            _ => ids,
        };
        if is_dense {
            self.used(by.node, ids.len());
        }
        let source = &self.sources[which];
        let mut promised: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
        for id in ids {
            if let Some((resource, from, to)) = source.promised(*id) {
                promised.entry(resource).or_default().push((from, to));
            }
            let added = self.history.add(which, *id, by, source.worker(*id));
            self.oracle.check(added);
        }
        for (resource, parts) in promised {
            self.oracle.minted(&resource, &parts, process_life, by.life).await;
        }
        self.oracle.violation().map_or(Ok(()), Err)
    }

    /// Mints some IDs of some source, without waiting.
    pub(super) async fn mint(&mut self, index: usize) -> Checked {
        let which = usize::try_from(self.rng.below(self.sources.len() as u64)).unwrap();
        let count = self.rng.between(1, 40);
        let (by, process_life) = (self.by(index), self.machines[index].process_life(index));
        let Some((_, sources)) = self.machines[index].awake() else { return Ok(()) };
        let Some(source) = &sources[which] else { return Ok(()) };
        let ids: Vec<_> = (0..count).map_while(|_| source.try_mint().ok()).collect();
        self.minted(which, &ids, by, process_life).await
    }

    /// Mints a batch, and waits for it while the world continues. Sometimes its process is frozen
    /// meanwhile.
    async fn mint_waiting(&mut self, index: usize) -> Checked {
        let which = usize::try_from(self.rng.below(self.sources.len() as u64)).unwrap();
        let count = u32::try_from(self.rng.between(1, BATCH_MAX)).unwrap();
        let Some((_, sources)) = self.machines[index].awake() else { return Ok(()) };
        let Some(source) = sources[which].clone() else { return Ok(()) };
        let batch = tokio::spawn(async move { source.mint(count, None, 2_000).await });
        if self.rng.percent(15) {
            self.pass(1).await;
            self.machines[index].gate.shut();
            let frozen_ms = self.rng.between(100, 90_000);
            self.pass(frozen_ms).await;
            self.machines[index].gate.open();
            self.count("freeze in a call");
        }
        while !batch.is_finished() {
            self.pass(20).await;
        }
        let (by, process_life) = (self.by(index), self.machines[index].process_life(index));
        match batch.await.unwrap() {
            Ok(IdBatch::Numbers(ids)) if ids.len() == count as usize => {
                self.minted(which, &ids, by, process_life).await
            }
            Ok(other) => panic!("{count} IDs were asked for, and got: {other:?}"),
            Err(_) => Ok(()),
        }
    }

    /// Retries a source that could not be opened.
    pub(super) async fn open_again(&mut self, index: usize) {
        let Some((node, sources)) = self.machines[index].awake() else { return };
        let missing = sources.iter().position(Option::is_none);
        let Some(which) = missing else { return };
        let ordered = monotonicity::sources().map(|(name, _)| name);
        let names = self.sources.iter().map(|source| source.name).chain(ordered);
        let (node, name) = (node.clone(), names.collect::<Vec<_>>()[which]);
        let opening = tokio::spawn(async move { node.source(name).await.ok() });
        while !opening.is_finished() {
            self.pass(100).await;
        }
        let opened = opening.await.unwrap();
        if let Process::Running(_, sources) = &mut self.machines[index].process {
            sources[which] = opened;
        }
    }
}
