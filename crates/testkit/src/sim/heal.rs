//! The trouble ends: everybody must mint again.

use std::sync::atomic::Ordering;

use snowmint_coord::{AfterCrash, Values};
use snowmint_core::UnixMillis;

use super::history::Mint;
use super::machine::Process;
use super::ordeal::POISON_MS;
use super::truth::Violation;
use super::wall::Mood;
use super::world::{Checked, World};
use super::{Profile, RESUME_MS};

impl World {
    /// Whoever runs must mint again, by itself where clocks and store were sane.
    pub(super) async fn heal(&mut self) -> Checked {
        let healed_at_ms = self.time.now_ms();
        let true_ms = self.true_ms();
        self.line.up.store(true, Ordering::SeqCst);
        for machine in &mut self.machines {
            machine.weather.trouble_percent.store(0, Ordering::SeqCst);
            machine.weather.away.store(false, Ordering::SeqCst);
            machine.weather.claims_unanswered.store(false, Ordering::SeqCst);
            machine.wall.mood = Mood::Steady;
            machine.clock.set(UnixMillis::new(true_ms));
            machine.gate.open();
        }
        // Claims that hung come to an end, presences lapse.
        self.pass(60_000).await;
        for index in 0..self.machines.len() {
            self.look(index).await;
            let starting = matches!(self.machines[index].process, Process::Starting(_));
            if self.profile != Profile::Network || starting {
                self.kill(index).await;
            }
            match self.profile {
                // What an operator says when marks lie ahead of a clock that was wrong, or of all.
                Profile::Clocks => self.machines[index].after_crash = AfterCrash::AnotherSlot,
                Profile::Poisoned => {
                    self.machines[index].after_crash = AfterCrash::Lead { max_ms: 2 * POISON_MS };
                }
                Profile::Network | Profile::Restores => {}
            }
        }
        self.pass(60_000).await;
        for index in 0..self.machines.len() {
            self.start(index);
        }
        self.pass(100_000).await;
        for index in 0..self.machines.len() {
            self.must_mint(index, self.profile == Profile::Poisoned).await?;
        }
        let took_ms = self.time.now_ms() - healed_at_ms;
        if took_ms > RESUME_MS {
            return Err(Violation(format!("everybody minted again only after {took_ms} ms")));
        }
        if self.profile == Profile::Poisoned {
            self.pass(3 * POISON_MS).await;
            for index in 0..self.machines.len() {
                self.must_mint(index, false).await?;
            }
        }
        Ok(())
    }

    /// Everything mints, or only what may lead the clock.
    async fn must_mint(&mut self, index: usize, only_leaders: bool) -> Checked {
        self.look(index).await;
        let Process::Running(node, _) = &self.machines[index].process else {
            let machine = &self.machines[index];
            let why = machine.refused.as_ref().map(ToString::to_string);
            let what = format!("node {index} does not start although all is well: {why:?}");
            return Err(Violation(what));
        };
        let node = node.clone();
        if !node.readiness().ready && self.profile != Profile::Poisoned {
            let reasons = node.readiness().reasons.join("; ");
            return Err(Violation(format!("node {index} is not ready: {reasons}")));
        }
        for which in 0..self.sources.len() {
            let source = &self.sources[which];
            if only_leaders && !source.leads {
                continue;
            }
            let (opening, name) = (node.clone(), source.name);
            let batch = tokio::spawn(async move {
                let source = opening.source(name).await?;
                source.mint(10, None, 10_000).await
            });
            while !batch.is_finished() {
                self.pass(20).await;
            }
            let machine = &self.machines[index];
            let by = Mint { node: index, life: machine.life, at_ms: self.time.now_ms() };
            let party = machine.party(index);
            match batch.await.unwrap() {
                Ok(Values::Numbers(ids)) => self.minted(which, &ids, by, party).await?,
                Ok(other) => return Err(Violation(format!("not numbers: {other:?}"))),
                Err(error) => {
                    let what = format!("node {index}, source {name}, does not mint: {error}");
                    return Err(Violation(what));
                }
            }
        }
        Ok(())
    }
}
