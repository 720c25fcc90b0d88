//! Numbers of the segment source: none is missing without a reason, and no more are wasted than
//! allowed.

use snowmint_coord::NumberStats;

use super::Profile;
use super::sources::NUMBERS;
use super::world::World;
use crate::history::{Check, Checked, Resource};

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
        self.oracle.set_astray(true);
    }

    /// Checks a process's own account: each fetched number was returned, is prefetched, or is
    /// reported as lost. Also checks that it holds no more than it may lose: half of what it
    /// fetched (`step.waste_max`), and two small fetches.
    pub(super) fn accounts(&self, index: usize, stats: NumberStats) -> Checked {
        let life = (index, self.machines[index].life);
        let used = self.used.get(&life).copied().unwrap_or(0);
        let accounted = used + stats.prefetched + stats.lost;
        if stats.fetched != accounted {
            let what = format!("machine {index} returned {used} numbers, and reports {stats:?}");
            self.oracle.fail(Check::Account.broken(what));
        }
        if stats.prefetched > stats.fetched / 2 + 2 * (BATCH_MAX + STEP_MIN) {
            let what = format!("machine {index} holds too many numbers: {stats:?}");
            self.oracle.fail(Check::Waste.broken(what));
        }
        self.oracle.judge(Ok(()))
    }

    /// Checks that the store has skipped no number. Restoring a store and moving it forward skips
    /// many.
    pub(super) async fn is_dense(&self) -> Checked {
        if self.profile == Profile::Restores {
            return Ok(());
        }
        let resource = Resource::Numbers(NUMBERS.into());
        let mark = self.oracle.mark(&resource).await.unwrap_or(1);
        let gap = self.oracle.gap(&resource, 1, mark);
        let broken =
            |gap| Check::Dense.broken(format!("{gap} of {resource} was promised to no machine"));
        self.oracle.judge(gap.map_or(Ok(()), |gap| Err(broken(gap))))
    }
}
