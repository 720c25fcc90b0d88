//! End of the trouble: every process must mint again.

use std::sync::atomic::Ordering;

use snowmint_coord::{AfterCrash, Error, IdBatch, Node};
use snowmint_core::UnixMillis;

use super::machine::Process;
use super::rare_faults::POISON_MS;
use super::sources::NUMBERS;
use super::wall::Mood;
use super::world::World;
use super::{Profile, RESUME_MS};
use crate::history::{Check, Checked, Mint, Violation};

impl World {
    /// Ends all trouble, and begins none.
    pub(super) fn calm(&mut self) {
        let true_ms = self.true_ms();
        self.link.up.store(true, Ordering::SeqCst);
        self.link.let_on();
        for machine in &mut self.machines {
            machine.conditions.calm();
            machine.conditions.claims_unanswered.store(false, Ordering::SeqCst);
            machine.conditions.reads_behind.store(false, Ordering::SeqCst);
            machine.wall.mood = Mood::Steady;
            machine.clock.set(UnixMillis::new(true_ms));
            machine.gate.open();
        }
    }

    /// Checks that every running process mints again, by itself where clocks and store were sane.
    pub(super) async fn check_recovery(&mut self) -> Checked {
        let healed_at_ms = self.time.now_ms();
        self.calm();
        let waited = self.in_doubt.is_some();
        if waited {
            self.recover().await?;
        }
        // Processes that waited for the recovery continue by themselves.
        let restarts = self.profile != Profile::Network && !waited;
        if !restarts {
            // Hanging claims end.
            self.pass(30_000).await;
        }
        for index in 0..self.machines.len() {
            self.look(index).await;
            let starting = matches!(self.machines[index].process, Process::Starting(_));
            if restarts || starting {
                self.kill(index).await;
            }
            match self.profile {
                // The operator's choice when marks lie ahead of a clock that was wrong, or ahead of
                // all clocks.
                Profile::Clocks => self.machines[index].after_crash = AfterCrash::OtherWorker,
                Profile::Poisoned => {
                    self.machines[index].after_crash = AfterCrash::Lead { max_ms: 2 * POISON_MS };
                }
                Profile::Network | Profile::Restores => {}
            }
        }
        for index in 0..self.machines.len() {
            self.start(index);
        }
        let only_leaders = self.profile == Profile::Poisoned;
        for index in 0..self.machines.len() {
            self.must_mint(index, only_leaders, healed_at_ms + RESUME_MS).await?;
        }
        if self.profile == Profile::Network {
            self.must_rise(healed_at_ms + RESUME_MS).await?;
        }
        if only_leaders {
            // Now the clock has reached the marks, except for what leading processes took
            // meanwhile.
            self.pass(POISON_MS).await;
            let end_ms = self.time.now_ms() + RESUME_MS;
            for index in 0..self.machines.len() {
                self.must_mint(index, false, end_ms).await?;
            }
        }
        Ok(())
    }

    /// Checks that a machine mints before `end_ms`: from everything, or only from sources that may
    /// lead the clock.
    async fn must_mint(&mut self, index: usize, only_leaders: bool, end_ms: u64) -> Checked {
        while let Some(reason) = self.mints_all(index, only_leaders).await? {
            if self.time.now_ms() >= end_ms {
                let what = format!("not within {RESUME_MS} ms of calm: {reason}");
                return self.oracle.judge(Err(Check::Healing.broken(what)));
            }
            self.pass(5_000).await;
        }
        Ok(())
    }

    /// Returns the reason why a machine does not mint from everything; `None` if it does.
    async fn mints_all(
        &mut self,
        index: usize,
        only_leaders: bool,
    ) -> Result<Option<String>, Violation> {
        self.look(index).await;
        let machine = &self.machines[index];
        let Process::Running(node, _) = &machine.process else {
            let reason = machine.refused.as_ref().map(ToString::to_string).unwrap_or_default();
            return Ok(Some(format!("machine {index} does not start: {reason}")));
        };
        let node = node.clone();
        for which in 0..self.sources.len() {
            if only_leaders && !self.sources[which].leads {
                continue;
            }
            if let Err(error) = self.mints_from(index, &node, which).await? {
                let name = self.sources[which].name;
                return Ok(Some(format!("machine {index}, source {name}, does not mint: {error}")));
            }
        }
        let readiness = node.readiness();
        if !readiness.ready && !only_leaders {
            let reasons = readiness.summary();
            return Ok(Some(format!("machine {index} is not ready: {reasons}")));
        }
        Ok(None)
    }

    /// Mints from a source, which the machine opens if it has not.
    pub(super) async fn mints_from(
        &mut self,
        index: usize,
        node: &Node,
        which: usize,
    ) -> Result<Result<(), Error>, Violation> {
        let (node, name) = (node.clone(), self.sources[which].name);
        let batch = tokio::spawn(async move {
            let source = node.source(name).await?;
            let minted = source.mint(10, None, 10_000).await?;
            Ok((minted, source.stats().numbers))
        });
        while !batch.is_finished() {
            self.pass(20).await;
        }
        let machine = &self.machines[index];
        let by = Mint { node: index, life: machine.life, at_ms: self.time.now_ms() };
        let process_life = machine.process_life(index);
        match batch.await.unwrap() {
            Ok((IdBatch::Numbers(ids), numbers)) => {
                self.minted(which, &ids, by, process_life).await?;
                let numbers = numbers.filter(|_| self.sources[which].name == NUMBERS);
                numbers.map_or(Ok(()), |found_stats| self.accounts(index, found_stats))?;
                Ok(Ok(()))
            }
            Ok((other, _)) => panic!("not numbers: {other:?}"),
            Err(error) => Ok(Err(error)),
        }
    }
}
