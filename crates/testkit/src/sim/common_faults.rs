//! Everyday trouble: frozen processes, a store that dies, clocks that go wrong, weather, and
//! definitions that are altered meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_coord::NewStripe;
use snowmint_core::UnixMillis;

use super::Profile;
use super::machine::Machine;
use super::sources::{STRIPED, plain_layout};
use super::wall::Mood;
use super::world::World;
use crate::history::Checked;

const YEAR_MS: u64 = 31_556_952_000;

impl World {
    /// Freezes the process, while its machine's clocks continue: SIGSTOP, suspend, a long pause.
    pub(super) fn freeze(&mut self, index: usize) {
        let machine = &self.machines[index];
        if machine.awake().is_none() {
            return;
        }
        machine.gate.shut();
        // Sometimes longer than any lease.
        let frozen_ms = self.rng.between(100, 120_000);
        let (gate, time) = (machine.gate.clone(), self.time.clone());
        let thaws_at = self.time.now_ms() + frozen_ms;
        machine.thaws.store(thaws_at, Ordering::SeqCst);
        let thaws = Arc::clone(&machine.thaws);
        tokio::spawn(async move {
            time.sleep_ms(frozen_ms).await;
            // It may have been killed and frozen again since.
            if thaws.load(Ordering::SeqCst) == thaws_at {
                gate.open();
            }
        });
        self.count("freeze");
    }

    /// Starts a process while its machine cannot reach the store, and mints from it.
    pub(super) async fn start_without_store(&mut self, index: usize) -> Checked {
        if !self.machines[index].is_stopped() {
            return Ok(());
        }
        let conditions = Arc::clone(&self.machines[index].conditions);
        conditions.away.store(true, Ordering::SeqCst);
        self.start(index);
        for _ in 0..self.rng.between(1, 6) {
            // A start without anything to continue from waits 10 s for each source.
            let ms = self.rng.between(20, 20_000);
            self.pass(ms).await;
            self.look(index).await;
            let before = self.minted_count();
            self.mint(index).await?;
            let alone = |machine: &Machine| {
                let awake = machine.awake();
                awake.is_some_and(|(node, _)| node.readiness().without_store_until.is_some())
            };
            if alone(&self.machines[index]) && self.minted_count() > before {
                self.count("minted without the store");
            }
        }
        conditions.away.store(false, Ordering::SeqCst);
        self.count("start without the store");
        Ok(())
    }

    /// Makes the store unreachable for all; it returns unchanged.
    pub(super) fn store_dies(&mut self) {
        if !self.link.up.swap(false, Ordering::SeqCst) {
            return;
        }
        let down_ms = self.rng.between(100, 60_000);
        let (link, time) = (Arc::clone(&self.link), self.time.clone());
        tokio::spawn(async move {
            time.sleep_ms(down_ms).await;
            link.up.store(true, Ordering::SeqCst);
        });
        self.count("the store dies");
    }

    /// Lets the machine's next call delay all other calls for a while.
    pub(super) fn hold_up(&mut self, index: usize) {
        let held_ms = self.rng.between(100, 12_000);
        self.machines[index].conditions.holds_up_ms.store(held_ms, Ordering::SeqCst);
    }

    pub(super) fn step_clock(&mut self, index: usize) {
        let true_ms = self.true_ms();
        let (wall_ms, mood) = match self.profile {
            Profile::Network | Profile::Restores | Profile::Poisoned => {
                let mood = match self.rng.below(4) {
                    0 => Mood::Fast(self.rng.between(1, 5)),
                    1 => Mood::Slow(self.rng.between(1, 5)),
                    _ => Mood::Steady,
                };
                (true_ms + self.rng.below(4_001) - 2_000, mood)
            }
            Profile::Clocks => {
                let wall_ms = match self.rng.below(8) {
                    0 => true_ms,
                    1 => true_ms - self.rng.below(10),
                    2 => true_ms - self.rng.below(10_000),
                    3 => true_ms - self.rng.below(86_400_000),
                    4 => true_ms - self.rng.below(20 * YEAR_MS),
                    5 => true_ms + self.rng.below(10_000),
                    6 => true_ms + self.rng.below(3_600_000),
                    _ => true_ms + self.rng.below(10 * YEAR_MS),
                };
                let mood = match self.rng.below(8) {
                    0 => Mood::Fast(self.rng.between(1, 900)),
                    1 => Mood::Slow(self.rng.between(1, 900)),
                    2 => Mood::Frozen,
                    3 => Mood::Oscillating(self.rng.between(1, 20_000)),
                    _ => Mood::Steady,
                };
                (wall_ms, mood)
            }
        };
        let machine = &mut self.machines[index];
        machine.wall.mood = mood;
        machine.clock.set(UnixMillis::new(wall_ms));
        self.count(match mood {
            Mood::Steady => "a clock steps",
            Mood::Fast(_) | Mood::Slow(_) => "a clock drifts",
            Mood::Frozen => "a clock freezes",
            Mood::Oscillating(_) => "a clock oscillates",
        });
    }

    pub(super) fn change_conditions(&mut self, index: usize) {
        let conditions = &self.machines[index].conditions;
        let percent = self.rng.pick(&[0, 0, 5, 30]).copied().unwrap();
        conditions.fault_percent.store(percent, Ordering::SeqCst);
        let away = self.rng.percent(20);
        conditions.away.store(away, Ordering::SeqCst);
        conditions.reads_behind.store(self.rng.percent(40), Ordering::SeqCst);
        self.count(if away { "a partition" } else { "weather" });
    }

    /// Changes a source's policy while all nodes mint, and some do not learn of it.
    pub(super) async fn alter(&mut self, index: usize) {
        if self.profile == Profile::Poisoned {
            return;
        }
        let which = usize::try_from(self.rng.below(2)).unwrap();
        let name = self.sources[which].name;
        let policy = self.rng.pick(self.pool_size.policies()).copied().unwrap();
        let burst = self.rng.below(5);
        let layout = plain_layout(self.pool_size);
        let spec =
            format!(r#"{{"layout":"{layout}","on_rollback":"{policy}","burst":"{burst}ms"}}"#);
        let Some((node, _)) = self.machines[index].awake() else { return };
        let node = node.clone();
        let spec = snowmint_coord::SourceSpec::from_json(&spec).unwrap();
        let altering = tokio::spawn(async move { drop(node.alter(name, &spec, None).await) });
        while !altering.is_finished() {
            self.pass(10).await;
        }
        let partitioned = |machine: &Machine| machine.conditions.away.load(Ordering::SeqCst);
        let some_are_away = self.machines.iter().any(partitioned);
        self.count(if some_are_away { "altered under partition" } else { "altered" });
    }

    /// Gives a source another stripe while all nodes mint, and some do not learn of it.
    pub(super) async fn restripe(&mut self, index: usize) {
        if self.profile == Profile::Poisoned {
            return;
        }
        let increment = self.rng.pick(&[1, 2, 4, 16]).copied().unwrap();
        let offset = self.rng.below(increment) + 1;
        let Some((node, _)) = self.machines[index].awake() else { return };
        let node = node.clone();
        let stripe = NewStripe { offset, increment, first: None, if_version: None };
        let restriping = tokio::spawn(async move { node.restripe(STRIPED, stripe).await.is_ok() });
        while !restriping.is_finished() {
            self.pass(10).await;
        }
        if restriping.await.unwrap() {
            self.count("restriped");
        }
    }
}
