//! How fast numbers go, how slow the store is, and what follows from both.

use snowmint_core::ElapsedMillis;

/// Shortest time over which a rate is measured, in milliseconds: below, a burst of a few numbers looks
/// like millions a second.
const MEASURE_MS_MIN: u64 = 1;
/// How much longer than the slowest recent answer of the store the stock must last, in milliseconds.
const MARGIN_MS: u64 = 20;
/// A rate that was measured longer ago says nothing of now, in milliseconds.
const OLD_MS: u64 = 1_000;
/// A rate that falls is believed by a quarter at each look, a rate that rises at once.
const FALL_SHIFT: u32 = 2;

/// What is known of consumption and of the store. Numbers are counted in thousandths a millisecond, so
/// that one number an hour is a rate too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Thousandths of a number, each millisecond.
    rate: u64,
    /// How many had been taken at the last look, and when it was.
    looked: Option<(u64, ElapsedMillis)>,
    /// Whether somebody wanted more then than there was.
    dry: bool,
    /// The slowest recent answer, in milliseconds.
    answer_ms: u64,
}

impl Pace {
    /// Takes in that `taken` numbers have been taken by now. `dry`: somebody wants more than there are.
    ///
    /// A waiting caller looks again and again: the time between two of its looks says nothing of how many
    /// are wanted, only that there were none. Where nobody looked for long, nobody waited.
    pub(super) fn look(&mut self, taken: u64, at: ElapsedMillis, dry: bool) {
        let was_dry = std::mem::replace(&mut self.dry, dry);
        let Some((before, looked_at)) = self.looked else {
            self.looked = Some((taken, at));
            return;
        };
        let passed_ms = at.since(looked_at);
        if passed_ms < MEASURE_MS_MIN {
            return;
        }
        let rate = taken.saturating_sub(before).saturating_mul(1000) / passed_ms;
        let fallen = self.rate - (self.rate >> FALL_SHIFT) + (rate >> FALL_SHIFT);
        let waited = was_dry && passed_ms < OLD_MS;
        self.rate = if waited { rate.max(self.rate) } else { rate.max(fallen) };
        self.looked = Some((taken, at));
    }

    /// Takes in how long the store took to answer.
    pub(super) fn answered(&mut self, took_ms: u64) {
        let fallen = self.answer_ms - (self.answer_ms >> FALL_SHIFT) + (took_ms >> FALL_SHIFT);
        self.answer_ms = took_ms.max(fallen);
    }

    /// How long `left` numbers last at the present rate, in milliseconds; none while nobody takes.
    fn lasts_ms(&self, left: u64) -> Option<u64> {
        lasts_ms(left, self.rate)
    }

    /// The same for whoever watches: while nobody takes, nobody looks, and a rate that is old is none.
    pub(super) fn lasts_now_ms(&self, left: u64, taken: u64, at: ElapsedMillis) -> Option<u64> {
        let (before, looked_at) = self.looked?;
        let passed_ms = at.since(looked_at);
        if passed_ms < OLD_MS {
            return self.lasts_ms(left);
        }
        lasts_ms(left, taken.saturating_sub(before).saturating_mul(1000) / passed_ms)
    }

    /// Whether more should be fetched while `left` numbers are there: when they last for less than half
    /// of what one step should (`wanted_ms`), or hardly until the store can have answered.
    pub(super) fn is_low(&self, left: u64, wanted_ms: u64) -> bool {
        let until_answer_ms = self.answer_ms.saturating_mul(2).saturating_add(MARGIN_MS);
        self.lasts_ms(left).is_some_and(|lasts_ms| lasts_ms < until_answer_ms.max(wanted_ms / 2))
    }

    /// How many numbers are taken while a step should last, or while the store answers twice, whichever
    /// is longer.
    pub(super) fn step(&self, wanted_ms: u64) -> u64 {
        let for_ms = wanted_ms.max(self.answer_ms.saturating_mul(2));
        let step = u128::from(self.rate) * u128::from(for_ms) / 1000;
        u64::try_from(step).unwrap_or(u64::MAX)
    }
}

fn lasts_ms(left: u64, rate: u64) -> Option<u64> {
    left.saturating_mul(1000).checked_div(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: u64 = 10_000;

    fn at(ms: u64) -> ElapsedMillis {
        ElapsedMillis::new(ms)
    }

    fn pace(per_ms: u64) -> Pace {
        let mut pace = Pace::default();
        pace.look(0, at(0), false);
        pace.look(per_ms * 1000, at(1000), false);
        pace
    }

    #[test]
    fn a_step_lasts_as_long_as_is_wanted() {
        assert_eq!(Pace::default().step(WANTED), 0);
        assert_eq!(pace(1).step(WANTED), 10_000);
        assert_eq!(pace(10_000).step(WANTED), 100_000_000);
    }

    #[test]
    fn a_burst_is_followed_at_once_and_forgotten_slowly() {
        let mut pace = pace(1);
        pace.look(1000 + 50_000, at(2000), false);
        assert_eq!(pace.step(WANTED), 500_000);
        for second in 3..40 {
            pace.look(51_000, at(second * 1000), false);
        }
        assert!(pace.step(WANTED) < 100, "after a burst it comes down again");
    }

    #[test]
    fn who_waits_is_not_idle_and_who_stays_away_is() {
        let mut pace = pace(50);
        pace.look(50_000, at(1_500), true);
        let ran_dry = pace.step(WANTED);
        assert!(ran_dry < 500_000, "until it ran dry, nobody took");
        for look in 1..1_000 {
            pace.look(50_000, at(1_500 + 20 * look), true);
        }
        assert_eq!(pace.step(WANTED), ran_dry, "20 s of waiting");
        pace.look(50_000, at(21_490), false);
        assert_eq!(pace.step(WANTED), ran_dry, "and numbers came");
        pace.look(50_000, at(31_490), true);
        let fallen = pace.step(WANTED);
        assert!(fallen < ran_dry, "of which nobody took any");
        pace.look(50_000, at(31_490 + OLD_MS), true);
        assert!(pace.step(WANTED) < fallen, "nor did anybody wait");
        pace.look(250_000, at(31_490 + OLD_MS + 100), true);
        assert_eq!(pace.step(WANTED), 20_000_000, "who waited takes");
    }

    #[test]
    fn a_slow_store_is_asked_earlier_and_for_more() {
        let wanted = 100;
        let mut pace = pace(1);
        assert!(pace.is_low(49, wanted) && !pace.is_low(51, wanted));
        pace.answered(500);
        assert!(pace.is_low(1_019, wanted) && !pace.is_low(1_021, wanted));
        assert_eq!(pace.step(wanted), 1_000);
        for _ in 0..40 {
            pace.answered(0);
        }
        assert_eq!(pace.step(wanted), 100);
    }

    #[test]
    fn whoever_watches_sees_the_rate_of_now() {
        let pace = pace(50);
        assert_eq!(pace.lasts_now_ms(100, 50_000, at(1_999)), Some(2));
        assert_eq!(pace.lasts_now_ms(100, 50_000, at(2_000)), None, "a burst is over");
        assert_eq!(pace.lasts_now_ms(100, 50_010, at(11_000)), Some(100_000), "one each second");
        assert_eq!(Pace::default().lasts_now_ms(100, 0, at(2_000)), None);
    }

    #[test]
    fn nobody_takes_then_nothing_is_low() {
        assert!(!Pace::default().is_low(0, WANTED));
        let mut once = Pace::default();
        once.look(5, at(10), false);
        once.look(500, at(10), false);
        assert!(!once.is_low(0, WANTED), "a moment has no rate");
    }
}
