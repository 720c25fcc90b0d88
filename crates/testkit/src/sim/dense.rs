//! The numbers of the segment source: none is missing without a reason, and no more are wasted than may be.

use snowmint_coord::NumberStats;

use super::Profile;
use super::sources::NUMBERS;
use super::world::World;
use crate::history::{Checked, Right, Violation};

/// The most numbers of one batch, and the fewest that are fetched.
pub(super) const BATCH_MAX: u64 = 60;
pub(super) const STEP_MIN: u64 = 5;

impl World {
    /// So many numbers were answered by a machine in the life that it has.
    pub(super) fn used(&mut self, index: usize, count: usize) {
        let life = self.machines[index].life;
        *self.used.entry((index, life)).or_default() += count as u64;
    }

    /// Whether a process's own account is right: what it fetched was answered, is in stock, or is said to be lost;
    /// and whether it holds no more than it may lose: half of what it fetched (`step.waste_max`), and two
    /// small fetches.
    pub(super) fn accounts(&self, index: usize, said: NumberStats) -> Checked {
        let used = self.used.get(&(index, self.machines[index].life)).copied().unwrap_or(0);
        if said.fetched != used + said.stock + said.lost {
            let what = format!("machine {index} answered {used} numbers, and says {said:?}");
            return Err(Violation(what));
        }
        if said.stock > said.fetched / 2 + 2 * (BATCH_MAX + STEP_MIN) {
            return Err(Violation(format!("machine {index} holds too many numbers: {said:?}")));
        }
        Ok(())
    }

    /// Whether the store has skipped no number. Who puts a store back and moves it on skips many.
    pub(super) async fn is_dense(&self) -> Checked {
        if self.profile == Profile::Restores {
            return Ok(());
        }
        let right = Right::Numbers(NUMBERS.into());
        let mark = self.truth.mark(&right).await.unwrap_or(1);
        match self.truth.gap(&right, 1, mark) {
            Some(gap) => Err(Violation(format!("{gap} of {right} was promised to nobody"))),
            None => Ok(()),
        }
    }
}
