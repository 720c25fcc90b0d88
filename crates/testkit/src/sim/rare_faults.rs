//! Rare faults, and faults in data that seemed safe: directories that are copied or restored, slots
//! that change hands, and marks that are pushed ahead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_coord::{
    ClaimRequest, Extend, Incarnation, Mark, Member, Pool, Preference, Presence, Reuse,
};
use snowmint_core::UnixMillis;

use super::Profile;
use super::disk::Files;
use super::machine::Machine;
use super::world::World;
use crate::history::{Check, Checked, ProcessLife, Resource};

/// Lead to which marks are pushed, in milliseconds.
pub(super) const POISON_MS: u64 = 300_000;
/// Machine number of the party that pushes them.
pub(super) const POISONER: usize = usize::MAX;
/// Distance in milliseconds from which on the times of a file distinguish two writes.
const TIMES_DISTINCT_MS: u64 = 4_000;

impl World {
    pub(super) async fn inject_rare_fault(&mut self, index: usize) -> Checked {
        match self.profile {
            Profile::Network | Profile::Clocks => match self.rng.below(20) {
                0..=5 => self.change_hands().await?,
                // Many events happen in it.
                6 if self.profile == Profile::Network => self.delay_replies(index).await?,
                7..=8 if self.profile == Profile::Network => self.swap().await?,
                9 if self.profile == Profile::Network => self.delay_acquires().await?,
                10..=11 => self.die_after_minting().await?,
                _ => {}
            },
            Profile::Poisoned => {
                if self.rng.percent(10) {
                    self.poison().await;
                } else if self.rng.percent(30) {
                    self.reclaim().await?;
                }
            }
            Profile::Restores if self.in_doubt.is_some() => {}
            Profile::Restores => match self.rng.below(10) {
                0 => self.back_up().await,
                1 if self.rng.percent(30) => self.lose_counts().await?,
                1 => self.restore().await?,
                2 => {
                    let files = self.machines[index].disk.backup();
                    self.machines[index].backup = Some((self.time.now_ms(), files));
                }
                3 => self.restore_files().await,
                4 => self.restore_under_nodes().await?,
                5 => self.fail_over().await?,
                6 => self.restripe(index).await,
                7 => {
                    self.move_otherwise().await;
                    self.oracle.recovered().await;
                }
                _ => {
                    let stopped = self.pick(Machine::is_stopped).unwrap_or(index);
                    self.copy(stopped).await?;
                }
            },
        }
        Ok(())
    }

    /// Moves a slot to another process of the same owner while its holder is frozen. The claim is
    /// applied, its reply gets lost, and the holder resumes before the claim is retried.
    async fn change_hands(&mut self) -> Checked {
        let last = self.machines.len() - 1;
        let (from, to) = if self.rng.percent(50) { (last, last - 1) } else { (last - 1, last) };
        if self.machines[from].awake().is_none() {
            return Ok(());
        }
        self.kill(to).await;
        self.machines[from].gate.shut();
        // Its presence expires, and the clock reaches its mark.
        self.pass(65_000).await;
        for index in [from, to] {
            self.machines[index].conditions.calm();
        }
        self.machines[to].conditions.claims_unanswered.store(true, Ordering::SeqCst);
        self.start(to);
        self.pass(3_000).await;
        self.machines[from].gate.open();
        self.pass(3_000).await;
        self.machines[to].conditions.claims_unanswered.store(false, Ordering::SeqCst);
        self.pass(3_000).await;
        for index in [from, to, from, to] {
            self.look(index).await;
            self.mint(index).await?;
        }
        self.count("a slot changes hands, unanswered");
        Ok(())
    }

    /// Delays the store's replies to a section owner by seconds, and then cuts it off, while its
    /// renewals arrived at once. Meanwhile all machines get the same requests.
    async fn delay_replies(&mut self, index: usize) -> Checked {
        self.all_serve().await;
        let request = self.request();
        self.all_rise(request, 2_000).await?;
        let index = self.serving_machine(request).await?.unwrap_or(index);
        let conditions = Arc::clone(&self.machines[index].conditions);
        conditions.replies_late_ms.store(self.rng.between(3_000, 4_500), Ordering::SeqCst);
        self.all_rise(request, 5_000).await?;
        conditions.away.store(true, Ordering::SeqCst);
        self.all_rise(request, 15_000).await?;
        conditions.replies_late_ms.store(0, Ordering::SeqCst);
        conditions.away.store(false, Ordering::SeqCst);
        self.count("replies come late, then none");
        Ok(())
    }

    /// Kills a process as soon as it has minted; the next one continues by its journal alone.
    async fn die_after_minting(&mut self) -> Checked {
        let continues = |machine: &Machine| {
            machine.journalled
                && machine.starts_without_store
                && !machine.set_aside
                && machine.awake().is_some()
        };
        let Some(index) = self.pick(continues) else { return Ok(()) };
        for _ in 0..self.sources.len() {
            self.mint(index).await?;
        }
        self.kill(index).await;
        self.start_without_store(index).await?;
        self.count("a process dies right after minting");
        Ok(())
    }

    /// Freezes the owner of a key's section until others request its slot; it renews before the
    /// request arrives.
    async fn delay_acquires(&mut self) -> Checked {
        self.all_serve().await;
        let request = self.key_request();
        let Some(holder) = self.serving_machine(request).await? else { return Ok(()) };
        for (index, machine) in self.machines.iter().enumerate() {
            let late_ms = if index == holder { 0 } else { self.rng.between(1_000, 4_000) };
            machine.conditions.acquire_late_ms.store(late_ms, Ordering::SeqCst);
        }
        self.machines[holder].gate.shut();
        let silent_ms = self.rng.between(3_000, 6_000);
        self.pass(silent_ms).await;
        self.machines[holder].gate.open();
        self.all_rise(request, 5_000).await?;
        for machine in &self.machines {
            machine.conditions.acquire_late_ms.store(0, Ordering::SeqCst);
        }
        self.count("a take comes late");
        Ok(())
    }

    /// Lets all machines run, with all sources, for once.
    async fn all_serve(&mut self) {
        self.link.up.store(true, Ordering::SeqCst);
        for index in 0..self.machines.len() {
            let machine = &self.machines[index];
            machine.conditions.calm();
            machine.gate.open();
            self.start(index);
        }
        self.pass(2_000).await;
        for index in 0..self.machines.len() {
            self.look(index).await;
            for _ in 0..self.sources.len() {
                self.open_again(index).await;
            }
        }
    }

    /// Restores an earlier state of a data directory; the change may be hidden.
    async fn restore_files(&mut self) {
        let now_ms = self.time.now_ms();
        let old: Vec<_> = self
            .machines
            .iter()
            .enumerate()
            .filter_map(|(index, machine)| {
                let (at_ms, _) = machine.backup.as_ref().filter(|_| machine.journalled)?;
                (now_ms >= at_ms + TIMES_DISTINCT_MS).then_some(index)
            })
            .collect();
        let Some(index) = self.rng.pick(&old).copied() else { return };
        let Some((_, files)) = self.machines[index].backup.clone() else { return };
        self.kill(index).await;
        let hide = self.rng.percent(50);
        self.machines[index].disk.restore_files(files, hide);
        self.start(index);
        self.come_up(index).await;
        // Whether or not the start was rejected, its memory may be wrong, and an operator sets it
        // aside.
        (self.machines[index].set_aside, self.machines[index].forgets) = (true, true);
        self.count(if hide { "a directory restored, hidden" } else { "a directory restored" });
    }

    /// Copies a data directory, to another machine or in its own place, and checks that it is
    /// rejected there.
    async fn copy(&mut self, index: usize) -> Checked {
        let from = usize::try_from(self.rng.below(self.machines.len() as u64)).unwrap();
        let files = self.machines[from].disk.backup();
        let machine = &self.machines[index];
        if !machine.journalled || !machine.is_stopped() || machine.set_aside || !has_journal(&files)
        {
            return Ok(());
        }
        let own = machine.disk.backup();
        machine.disk.copy_from(files);
        self.start(index);
        self.come_up(index).await;
        let refused = self.machines[index].is_stopped();
        self.kill(index).await;
        self.time.settle().await;
        self.machines[index].disk.swap(own);
        self.count("a directory copied");
        let what = format!("machine {index} started on a copy of machine {from}'s data");
        self.oracle.judge(if refused { Ok(()) } else { Err(Check::Rejection.broken(what)) })
    }

    /// Pushes every slot's mark ahead, by a member that then leaves.
    pub(super) async fn poison(&mut self) {
        for index in 0..self.machines.len() {
            self.kill(index).await;
        }
        // Their presence expires.
        self.pass(40_000).await;
        let now = UnixMillis::new(self.true_ms());
        let member = Member {
            incarnation: Incarnation::new(u128::from(self.rng.number())),
            owner: String::new(),
            host: "poison".into(),
            process: 0,
            address: String::new(),
        };
        let presence = Presence { sample: now, renewals: 0, ttl_ms: 1_000 };
        self.store.join(&member, presence, now).await.unwrap();
        let process_life =
            ProcessLife { machine: POISONER, life: u32::try_from(self.time.now_ms()).unwrap() };
        let pools = [("workers-4", 16, 1), ("workers-3-clock-3", 64, 8)];
        let mut left: u64 = pools.iter().map(|(_, slots, _)| slots).sum();
        for (name, slots, group) in pools {
            let pool = Pool { name: name.into(), slots, group, reuse: Reuse::Recycle };
            let request = ClaimRequest {
                pool,
                member: member.incarnation,
                owner: String::new(),
                count: 16,
                preference: Preference::Any,
                supersedes: None,
                mark_at_most: Mark::MAX,
                request: self.rng.number() >> 1,
            };
            // A process that is late may hold some slots, or all of them.
            for lease in self.store.claim(&request, now).await.unwrap_or_default() {
                let extend = Extend {
                    pool: lease.pool.clone(),
                    slot: lease.slot,
                    term: lease.term,
                    holder: lease.holder,
                    from: lease.mark,
                    to: Mark::new((self.true_ms() + POISON_MS).max(lease.mark.get() + 1)),
                    request: 1,
                    ahead_max_ms: None,
                };
                self.store.extend(std::slice::from_ref(&extend), now).await.unwrap();
                let resource = Resource::Slot(extend.pool, extend.slot);
                self.oracle
                    .granted(resource, extend.from.get(), extend.to.get(), process_life)
                    .await;
                left -= 1;
            }
        }
        self.store.leave(member.incarnation, now).await.unwrap();
        self.count(if left == 0 { "every slot poisoned" } else { "most slots poisoned" });
    }
}

/// Returns whether there is a journal in these files. A machine that died while it made its first
/// journal has only begun: it rightly makes a new one.
fn has_journal(files: &Files) -> bool {
    files.keys().any(|path| path.ends_with("journal"))
}
