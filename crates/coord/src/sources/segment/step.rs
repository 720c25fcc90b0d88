//! Size of a fetch: one rule for each `step.rule`.

use snowmint_core::ElapsedMillis;

use super::consumption_rate::ConsumptionRate;
use crate::spec::StepPlan;

/// Leaf's rule, in milliseconds: a step that lasted for less is doubled; one that lasted twice as
/// long or more is halved.
const LEAF_LASTS_MS: u64 = 15 * 60_000;

/// A fetch that the budget cuts below this part of the rate's demand waits while prefetched numbers
/// remain. Otherwise a trickle of small fetches would follow every burst.
const WORTH_PART: u64 = 4;

/// Totals of the numbers that were fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FetchTotals {
    /// All fetched numbers, including those of lost results.
    pub(super) fetched: u64,
    /// Numbers that are never issued.
    pub(super) lost: u64,
    /// Prefetched numbers.
    pub(super) left: u64,
}

impl FetchTotals {
    /// Returns how many more may be fetched, so that a kill at that time loses no more than this
    /// percentage of all.
    fn room(self, waste_max_percent: u8) -> u64 {
        let percent = u128::from(waste_max_percent);
        let used_percent = 100_u128.saturating_sub(percent);
        let may_be_lost = u128::from(self.fetched) * percent;
        let would_be_lost = (u128::from(self.lost) + u128::from(self.left)) * 100;
        let room = may_be_lost.saturating_sub(would_be_lost).checked_div(used_percent);
        // A budget of 100 percent sets no bound.
        room.map_or(u64::MAX, |room| u64::try_from(room).unwrap_or(u64::MAX))
    }
}

/// State of the rule that has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepState {
    /// Size and time of the last fetch by Leaf's rule; without the time for the first fetch, which
    /// fills an empty source.
    leaf: Option<(u64, Option<ElapsedMillis>)>,
}

impl StepState {
    /// Returns how many numbers to fetch now, if any. `must`: they are needed, or soon will be.
    pub(super) fn wanted(
        &self,
        plan: StepPlan,
        consumption_rate: &ConsumptionRate,
        tally: FetchTotals,
        must: bool,
        now: ElapsedMillis,
    ) -> Option<u64> {
        match plan {
            StepPlan::Adaptive { min, max, lasts_ms, waste_max_percent } => {
                let step = consumption_rate.step(lasts_ms).clamp(min, max);
                let room = tally.room(waste_max_percent);
                let worth = room >= step / WORTH_PART && room >= min;
                let fetch = must || (worth && consumption_rate.is_low(tally.left, lasts_ms));
                fetch.then(|| step.min(room).max(min))
            }
            StepPlan::Fixed { size } => {
                (must || consumption_rate.is_low(tally.left, 0)).then_some(size)
            }
            StepPlan::Leaf { size, max } => {
                (must || consumption_rate.is_low(tally.left, 0)).then(|| self.leaf(size, max, now))
            }
        }
    }

    /// Records that a fetch requested at this time has come.
    pub(super) fn came(&mut self, plan: StepPlan, requested_at: ElapsedMillis) {
        self.leaf = match plan {
            StepPlan::Leaf { size, max } => {
                let since = self.leaf.map(|_| requested_at);
                Some((self.leaf(size, max, requested_at), since))
            }
            _ => None,
        };
    }

    fn leaf(&self, size: u64, max: u64, now: ElapsedMillis) -> u64 {
        // The definition may have changed since.
        let Some((last, Some(since))) = self.leaf else { return size };
        let last = last.clamp(size, max);
        match now.since(since) {
            0..LEAF_LASTS_MS if last <= max / 2 => last * 2,
            lasted_ms if lasted_ms >= 2 * LEAF_LASTS_MS && last / 2 >= size => last / 2,
            _ => last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn at(ms: u64) -> ElapsedMillis {
        ElapsedMillis::new(ms)
    }

    fn adaptive(waste_max_percent: u8) -> StepPlan {
        StepPlan::Adaptive { min: 100, max: 1_000_000, lasts_ms: 10_000, waste_max_percent }
    }

    /// A rate of `per_second` numbers in the last second.
    fn consumption_rate(per_second: u64) -> ConsumptionRate {
        let mut consumption_rate = ConsumptionRate::default();
        consumption_rate.measure(0, at(0), false);
        consumption_rate.measure(per_second, at(1000), false);
        consumption_rate
    }

    #[test]
    fn a_kill_never_loses_more_than_the_budget_or_the_least_step() {
        for percent in [1, 10, 50, 99, 100] {
            let plan = adaptive(percent);
            let mut tally = FetchTotals::default();
            let steps = StepState::default();
            // Bursts and silence: numbers are used up to the last, or not at all.
            for round in 0_u64..500 {
                let must = round % 3 == 0;
                let step = steps.wanted(plan, &consumption_rate(5_000), tally, must, at(0));
                assert!(!must || step.is_some());
                let Some(step) = step else {
                    tally.left = 0;
                    continue;
                };
                assert!((100..=50_000).contains(&step), "{step}");
                tally.fetched += step;
                tally.left += step;
                let at_risk = u128::from(tally.left) * 100;
                let allowed = u128::from(tally.fetched) * u128::from(percent);
                assert!(at_risk <= allowed || step == 100, "{percent}: {tally:?}");
                tally.left /= 1 + round % 4;
            }
            assert!(tally.fetched > 10_000, "{percent}: {tally:?}");
        }
    }

    #[test]
    fn lost_numbers_count_and_returned_ones_do_not() {
        let tally = FetchTotals { fetched: 10_000, lost: 0, left: 0 };
        assert_eq!(tally.room(50), 10_000);
        assert_eq!(FetchTotals { lost: 4_000, ..tally }.room(50), 2_000);
        assert_eq!(FetchTotals { lost: 4_000, left: 1_000, ..tally }.room(50), 0);
        assert_eq!(FetchTotals { lost: 10_000, ..tally }.room(50), 0);
        assert_eq!(FetchTotals { lost: 10_000, ..tally }.room(100), u64::MAX);
        let most = FetchTotals { fetched: u64::MAX, lost: u64::MAX, left: u64::MAX };
        assert_eq!((most.room(1), most.room(99)), (0, 0));
    }

    #[test]
    fn a_burst_of_a_few_numbers_brings_no_million() {
        // 1000 numbers in a millisecond, then silence.
        let mut consumption_rate = ConsumptionRate::default();
        consumption_rate.measure(0, at(0), false);
        consumption_rate.measure(1_000, at(1), false);
        let tally = FetchTotals { fetched: 1_000, ..FetchTotals::default() };
        let wanted = |percent| {
            StepState::default().wanted(adaptive(percent), &consumption_rate, tally, true, at(1))
        };
        assert_eq!(wanted(50), Some(1_000));
        assert_eq!(wanted(10), Some(111));
        assert_eq!(wanted(100), Some(1_000_000));
    }

    #[test]
    fn a_fixed_step_is_always_the_same() {
        let plan = StepPlan::Fixed { size: 7 };
        let steps = StepState::default();
        for must in [true, false] {
            let tally = FetchTotals { fetched: 7, lost: 0, left: 1 };
            assert_eq!(steps.wanted(plan, &consumption_rate(5_000), tally, must, at(0)), Some(7));
        }
        let plenty = FetchTotals { fetched: 1_000, lost: 0, left: 1_000 };
        assert_eq!(steps.wanted(plan, &consumption_rate(5_000), plenty, false, at(0)), None);
    }

    #[test]
    fn leafs_step_doubles_and_halves_as_leafs_does() {
        let plan = StepPlan::Leaf { size: 1_000, max: 5_000 };
        let mut steps = StepState::default();
        let mut now = 0;
        let mut fetch = |passed_ms: u64| {
            now += passed_ms;
            let tally = FetchTotals::default();
            let step =
                steps.wanted(plan, &ConsumptionRate::default(), tally, true, at(now)).unwrap();
            steps.came(plan, at(now));
            step
        };
        let soon = 15 * MINUTE_MS - 1;
        assert_eq!([fetch(0), fetch(0)], [1_000; 2], "the first two are as the table says");
        assert_eq!([fetch(soon), fetch(0), fetch(0)], [2_000, 4_000, 4_000], "8000 is too many");
        assert_eq!([fetch(soon + 1), fetch(30 * MINUTE_MS - 1)], [4_000; 2]);
        assert_eq!([fetch(30 * MINUTE_MS), fetch(60 * MINUTE_MS)], [2_000, 1_000]);
        assert_eq!(fetch(600 * MINUTE_MS), 1_000, "not below the first");
    }

    #[test]
    fn leafs_step_follows_an_altered_definition() {
        let plan = StepPlan::Leaf { size: 1_000, max: 100_000 };
        let mut steps = StepState::default();
        for _ in 0..6 {
            steps.came(plan, at(0));
        }
        assert_eq!(steps.leaf(1_000, 100_000, at(0)), 32_000);
        assert_eq!(steps.leaf(1_000, 3_000, at(0)), 3_000);
        assert_eq!(steps.leaf(50_000, 100_000, at(0)), 100_000);
        steps.came(adaptive(50), at(0));
        assert_eq!(steps.leaf(1_000, 100_000, at(0)), 1_000);
    }
}
