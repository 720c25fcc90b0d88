//! A simulated world: several nodes on one store, a network that fails in every way, clocks that step,
//! and processes that are killed. Everything follows from a seed, so a failure can be replayed.
//!
//! What is checked: no ID of a source comes twice; the IDs of one worker number in one life of a node
//! increase (where the source's policy promises it); and when the trouble ends, everybody mints again.

mod history;
mod random;
mod store;
mod time;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_coord::{
    MemoryClock, MemoryStore, Node, NodeSettings, Parts, Source, SourceSpec, Store, Values,
};
use snowmint_core::{Layout, ManualClock, UnixMillis};
use tokio::task::JoinHandle;

use history::{History, Mint};
use random::Chance;
use store::{Faulty, Weather};
use time::TrueTime;

/// 2026-06-01T00:00:00Z.
const START_MS: u64 = 1_780_272_000_000;
const YEAR_MS: u64 = 31_556_952_000;
/// The environment variable that replays one seed.
pub const SEED_VARIABLE: &str = "SNOWMINT_SIM_SEED";

/// The sources of every run, and whether the IDs of one worker increase. The layout's epoch is early,
/// so that clocks can be decades wrong.
const SOURCES: [(&str, &str, bool); 6] = [
    ("hold", r#"{"epoch":"1970-01-01T00:00:00Z"}"#, true),
    ("fail", r#"{"epoch":"1970-01-01T00:00:00Z","on_rollback":"fail","burst":"3ms"}"#, true),
    ("borrow", r#"{"epoch":"1970-01-01T00:00:00Z","on_rollback":"borrow"}"#, true),
    ("ring", r#"{"epoch":"1970-01-01T00:00:00Z","on_rollback":"ring"}"#, false),
    ("values", r#"{"layout":"clock-sequence","epoch":"1970-01-01T00:00:00Z"}"#, false),
    ("numbers", r#"{"kind":"segment","step":{"min":5}}"#, false),
];

/// How a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The network fails and processes are killed; clocks stay within 2 s. Everybody must recover
    /// without being restarted.
    Network,
    /// Clocks step by anything up to decades besides. Who has seen such a clock may have to wait for
    /// it, or be restarted.
    Clocks,
}

/// What became of a run that kept every promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many IDs were minted.
    pub minted: usize,
    /// Of everything that was minted: equal for equal seeds.
    pub digest: u64,
}

/// Runs a world from a seed, for `steps` happenings.
///
/// # Panics
/// When a promise is broken. The message says how to replay the run.
#[must_use]
pub fn run(seed: u64, profile: Profile, steps: u32) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(World::new(seed, profile).run(steps))
}

struct World {
    profile: Profile,
    replay: String,
    chance: Chance,
    time: TrueTime,
    /// The store's own clock, where it has one: true time.
    store_clock: Option<MemoryClock>,
    store: Arc<MemoryStore>,
    nodes: Vec<SimNode>,
    layouts: Vec<Option<Layout>>,
    history: History,
}

/// A machine: its clock and its network stay while processes come and go.
struct SimNode {
    clock: Arc<ManualClock>,
    weather: Arc<Weather>,
    life: u32,
    process: Process,
}

enum Process {
    Stopped,
    Starting(JoinHandle<Option<(Node, Vec<Option<Source>>)>>),
    Running(Node, Vec<Option<Source>>),
}

impl World {
    fn new(seed: u64, profile: Profile) -> Self {
        let chance = Chance::new(seed);
        let start = UnixMillis::new(START_MS);
        let store_clock = chance.percent(50).then(|| MemoryClock::new(start));
        let store = match &store_clock {
            Some(clock) => MemoryStore::with_clock("default", clock.clone()).unwrap(),
            None => MemoryStore::new("default").unwrap(),
        };
        let nodes = (0..chance.between(2, 4))
            .map(|_| SimNode {
                clock: Arc::new(ManualClock::new(start)),
                weather: Arc::default(),
                life: 0,
                process: Process::Stopped,
            })
            .collect();
        let layouts = SOURCES.iter().map(|(_, spec, increases)| {
            let spec = SourceSpec::from_json(spec).unwrap();
            match spec.check().unwrap() {
                snowmint_coord::spec::Plan::Snowflake(plan) => increases.then_some(plan.layout),
                _ => None,
            }
        });
        let replay =
            format!("replay: {SEED_VARIABLE}={seed} cargo test -p snowmint-testkit ({profile:?})");
        Self {
            profile,
            history: History::new(replay.clone()),
            replay,
            chance,
            time: TrueTime::default(),
            store_clock,
            store: Arc::new(store),
            nodes,
            layouts: layouts.collect(),
        }
    }

    async fn run(mut self, steps: u32) -> Outcome {
        self.define().await;
        for _ in 0..steps {
            self.happen().await;
        }
        self.heal().await;
        Outcome { minted: self.history.len(), digest: self.history.digest() }
    }

    async fn define(&self) {
        let around = Parts {
            timer: Arc::new(self.time.clone()),
            clock: Arc::new(ManualClock::new(UnixMillis::new(START_MS))),
            observer: Arc::new(()),
        };
        let handle: Arc<dyn Store> = Arc::new(self.store.handle("default").unwrap());
        let node = Node::open(handle, NodeSettings::default(), around).await.unwrap();
        for (name, spec, _) in SOURCES {
            node.define(name, &SourceSpec::from_json(spec).unwrap()).await.unwrap();
        }
    }

    /// Time passes for everybody, in jumps to the next moment at which something happens.
    async fn pass(&self, ms: u64) {
        let end_ms = self.time.now_ms() + ms;
        while self.time.now_ms() < end_ms {
            let before_ms = self.time.now_ms();
            let passed_ms = self.time.pass_until(end_ms) - before_ms;
            for node in &self.nodes {
                node.clock.advance_ms(passed_ms);
            }
            if let Some(clock) = &self.store_clock {
                clock.set(clock.now().saturating_add(passed_ms));
            }
            settle().await;
        }
    }

    async fn happen(&mut self) {
        let index = usize::try_from(self.chance.below(self.nodes.len() as u64)).unwrap();
        match self.chance.below(100) {
            0..=39 => self.mint(index),
            40..=69 => self.pass(self.chance.between(1, 50)).await,
            70..=77 => self.pass(self.chance.between(50, 5_000)).await,
            78..=79 => self.pass(self.chance.between(5_000, 60_000)).await,
            80..=84 => self.step_clock(index),
            85..=88 => self.start(index),
            89 => self.kill(index).await,
            90 => self.close(index).await,
            91..=93 => self.change_weather(index),
            94..=95 => self.alter(index).await,
            _ => self.mint_waiting(index).await,
        }
        self.look(index).await;
    }

    /// A process that was starting may have come up.
    async fn look(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if let Process::Starting(starting) = &mut node.process
            && starting.is_finished()
        {
            node.process = match starting.await.unwrap() {
                Some((node, sources)) => Process::Running(node, sources),
                None => Process::Stopped,
            };
        }
    }

    fn start(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if !matches!(node.process, Process::Stopped) {
            return;
        }
        node.life += 1;
        let inner: Arc<dyn Store> = Arc::new(self.store.handle("default").unwrap());
        let weather = Arc::clone(&node.weather);
        let store = Faulty::new(inner, weather, self.chance.clone(), self.time.clone());
        let parts = Parts {
            timer: Arc::new(self.time.clone()),
            clock: Arc::clone(&node.clock) as _,
            observer: Arc::new(()),
        };
        // Some keep their name over restarts, some have none.
        let owner = if index == 0 { String::new() } else { format!("machine-{index}") };
        let settings = NodeSettings { owner, host: "sim".into(), ..NodeSettings::default() };
        node.process = Process::Starting(tokio::spawn(async move {
            let node = Node::open(Arc::new(store), settings, parts).await.ok()?;
            let mut sources = Vec::new();
            for (name, ..) in SOURCES {
                sources.push(node.source(name).await.ok());
            }
            Some((node, sources))
        }));
    }

    /// The process is gone from one moment to the next.
    async fn kill(&mut self, index: usize) {
        match std::mem::replace(&mut self.nodes[index].process, Process::Stopped) {
            Process::Starting(starting) => starting.abort(),
            process => drop(process),
        }
        settle().await;
    }

    /// A clean end, as long as it may take.
    async fn close(&mut self, index: usize) {
        if let Process::Running(node, _) = &self.nodes[index].process {
            let node = node.clone();
            let closing = tokio::spawn(async move { node.close().await });
            while !closing.is_finished() {
                self.pass(500).await;
            }
            self.nodes[index].process = Process::Stopped;
        }
    }

    fn by(&self, index: usize) -> Mint {
        Mint { node: index, life: self.nodes[index].life, at_ms: self.time.now_ms() }
    }

    /// Some IDs of some source, without waiting.
    fn mint(&mut self, index: usize) {
        let which = usize::try_from(self.chance.below(SOURCES.len() as u64)).unwrap();
        let count = self.chance.between(1, 40);
        let by = self.by(index);
        let Process::Running(_, sources) = &self.nodes[index].process else { return };
        let Some(source) = &sources[which] else { return };
        for _ in 0..count {
            let Ok(id) = source.try_mint() else { return };
            self.history.add(which, id, by, self.layouts[which].as_ref());
        }
    }

    /// A batch, waiting for it while the world goes on.
    async fn mint_waiting(&mut self, index: usize) {
        let which = usize::try_from(self.chance.below(SOURCES.len() as u64)).unwrap();
        let count = u32::try_from(self.chance.between(1, 60)).unwrap();
        let Process::Running(_, sources) = &self.nodes[index].process else { return };
        let Some(source) = sources[which].clone() else { return };
        let batch = tokio::spawn(async move { source.mint(count, None, 2_000).await });
        while !batch.is_finished() {
            self.pass(20).await;
        }
        let by = self.by(index);
        if let Ok(Values::Numbers(ids)) = batch.await.unwrap() {
            assert_eq!(ids.len(), count as usize, "a batch is exact\n{}", self.replay);
            for id in ids {
                self.history.add(which, id, by, self.layouts[which].as_ref());
            }
        }
    }

    fn step_clock(&self, index: usize) {
        let clock = &self.nodes[index].clock;
        let true_ms = START_MS + self.time.now_ms();
        let wall_ms = match self.profile {
            Profile::Network => true_ms + self.chance.below(4_001) - 2_000,
            Profile::Clocks => match self.chance.below(8) {
                0 => true_ms,
                1 => true_ms - self.chance.below(10),
                2 => true_ms - self.chance.below(10_000),
                3 => true_ms - self.chance.below(86_400_000),
                4 => true_ms - self.chance.below(20 * YEAR_MS),
                5 => true_ms + self.chance.below(10_000),
                6 => true_ms + self.chance.below(3_600_000),
                _ => true_ms + self.chance.below(10 * YEAR_MS),
            },
        };
        clock.set(UnixMillis::new(wall_ms));
    }

    fn change_weather(&self, index: usize) {
        let weather = &self.nodes[index].weather;
        let trouble = [0, 0, 5, 30][usize::try_from(self.chance.below(4)).unwrap()];
        weather.trouble_percent.store(trouble, Ordering::SeqCst);
        weather.away.store(self.chance.percent(20), Ordering::SeqCst);
    }

    /// Somebody changes a source's policy while everybody mints.
    async fn alter(&mut self, index: usize) {
        let which = usize::try_from(self.chance.below(3)).unwrap();
        let (name, ..) = SOURCES[which];
        let policy = self.chance.pick(&["hold", "fail", "borrow", "wait"]).copied().unwrap();
        let burst = self.chance.below(5);
        let spec = format!(
            r#"{{"epoch":"1970-01-01T00:00:00Z","on_rollback":"{policy}","burst":"{burst}ms"}}"#
        );
        let Process::Running(node, _) = &self.nodes[index].process else { return };
        let node = node.clone();
        let spec = SourceSpec::from_json(&spec).unwrap();
        let altering = tokio::spawn(async move { drop(node.alter(name, &spec, None).await) });
        while !altering.is_finished() {
            self.pass(10).await;
        }
    }

    /// The trouble ends: whoever runs must mint again, by itself where clocks were sane.
    async fn heal(&mut self) {
        let true_ms = START_MS + self.time.now_ms();
        for node in &self.nodes {
            node.weather.trouble_percent.store(0, Ordering::SeqCst);
            node.weather.away.store(false, Ordering::SeqCst);
            node.clock.set(UnixMillis::new(true_ms));
        }
        // Late messages arrive, claims that hung come to an end, presences lapse.
        self.pass(60_000).await;
        for index in 0..self.nodes.len() {
            self.look(index).await;
            let starting = matches!(self.nodes[index].process, Process::Starting(_));
            if self.profile == Profile::Clocks || starting {
                self.kill(index).await;
            }
        }
        self.pass(60_000).await;
        for index in 0..self.nodes.len() {
            self.start(index);
        }
        self.pass(60_000).await;
        for index in 0..self.nodes.len() {
            self.look(index).await;
            self.must_mint(index).await;
        }
    }

    async fn must_mint(&mut self, index: usize) {
        let Process::Running(node, _) = &self.nodes[index].process else {
            panic!("node {index} does not start although all is well\n{}", self.replay);
        };
        let node = node.clone();
        assert!(node.readiness().ready, "node {index}: {:?}\n{}", node.readiness(), self.replay);
        for (which, (name, ..)) in SOURCES.iter().enumerate() {
            let opening = node.clone();
            let batch = tokio::spawn(async move {
                let source = opening.source(name).await?;
                source.mint(10, None, 10_000).await
            });
            while !batch.is_finished() {
                self.pass(20).await;
            }
            let by = self.by(index);
            match batch.await.unwrap() {
                Ok(Values::Numbers(ids)) => {
                    for id in ids {
                        self.history.add(which, id, by, self.layouts[which].as_ref());
                    }
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => panic!("node {index}, source {name}: {error}\n{}", self.replay),
            }
        }
    }
}

/// Lets everything run that can run without time passing.
async fn settle() {
    for _ in 0..25 {
        tokio::task::yield_now().await;
    }
}
