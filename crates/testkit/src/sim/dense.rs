//! Numbers of the segment source: none is missing without a reason, and no more are wasted than
//! allowed.

use snowmint_coord::NumberStats;

use super::Profile;
use super::sources::NUMBERS;
use super::world::World;
use crate::history::{Check, Checked, Right};

/// Most numbers of one batch, and fewest that are fetched.
pub(super) const BATCH_MAX: u64 = 60;
pub(super) const STEP_MIN: u64 = 5;

impl World {
    /// Records that a machine returned `count` numbers in its present life.
    pub(super) fn used(&mut self, index: usize, count: usize) {
        let life = self.machines[index].life;
        *self.used.entry((index, life)).or_default() += count as u64;
    }

    /// Notes that the address may now lead to another store than the joined one: a process that
    /// learns of it drops its prefetched numbers.
    pub(super) fn leads_astray(&self) {
        self.truth.set_astray(true);
    }

    /// Checks a process's own account: each fetched number was returned, is prefetched, or is
    /// reported as lost. Also checks that it holds no more than it may lose: half of what it
    /// fetched (`step.waste_max`), and two small fetches.
    pub(super) fn accounts(&self, index: usize, said: NumberStats) -> Checked {
        let life = (index, self.machines[index].life);
        let used = self.used.get(&life).copied().unwrap_or(0);
        let accounted = used + said.prefetched + said.lost;
        if said.fetched != accounted {
            let what = format!("machine {index} answered {used} numbers, and says {said:?}");
            self.truth.fail(Check::Account.broken(what));
        }
        if said.prefetched > said.fetched / 2 + 2 * (BATCH_MAX + STEP_MIN) {
            let what = format!("machine {index} holds too many numbers: {said:?}");
            self.truth.fail(Check::Waste.broken(what));
        }
        self.truth.judge(Ok(()))
    }

    /// Checks that the store has skipped no number. Restoring a store and moving it forward skips
    /// many.
    pub(super) async fn is_dense(&self) -> Checked {
        if self.profile == Profile::Restores {
            return Ok(());
        }
        let right = Right::Numbers(NUMBERS.into());
        let mark = self.truth.mark(&right).await.unwrap_or(1);
        let gap = self.truth.gap(&right, 1, mark);
        let broken = |gap| Check::Dense.broken(format!("{gap} of {right} was promised to nobody"));
        self.truth.judge(gap.map_or(Ok(()), |gap| Err(broken(gap))))
    }
}
