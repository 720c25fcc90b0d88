//! Consumption rate of numbers and latency of the store, and the fetches that follow from both.

use snowmint_core::ElapsedMillis;

/// Shortest time over which a rate is measured, in milliseconds: below it, a burst of a few numbers
/// looks like millions a second.
const MEASURE_MS_MIN: u64 = 1;
/// Milliseconds that prefetched numbers must last beyond the slowest recent result of the store.
const MARGIN_MS: u64 = 20;
/// Age in milliseconds from which a measured rate no longer counts.
const OLD_MS: u64 = 1_000;
/// Weight of a new measurement as a shift: a falling rate is followed by a quarter each time, a
/// rising one at once.
const FALL_SHIFT: u32 = 2;

/// Measurements of consumption and of the store. Rates are in thousandths of a number per
/// millisecond, so that one number an hour is a rate too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConsumptionRate {
    /// Consumption, in thousandths of a number per millisecond.
    rate: u64,
    /// Numbers taken at the last measurement, and its time.
    looked: Option<(u64, ElapsedMillis)>,
    /// Whether a caller wanted more at that time than was there.
    dry: bool,
    /// Slowest recent result, in milliseconds.
    latency_ms: u64,
}

impl ConsumptionRate {
    /// Records that `taken` numbers are taken by now. `dry`: a caller wants more than there are.
    ///
    /// A waiting caller checks again and again. The time between two checks shows nothing of the
    /// demand, only that no number was there. A long time without any check shows that no caller
    /// waited.
    pub(super) fn measure(&mut self, taken: u64, at: ElapsedMillis, dry: bool) {
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

    /// Records the latency of the store.
    pub(super) fn record_latency(&mut self, took_ms: u64) {
        let fallen = self.latency_ms - (self.latency_ms >> FALL_SHIFT) + (took_ms >> FALL_SHIFT);
        self.latency_ms = took_ms.max(fallen);
    }

    /// Returns how many milliseconds `left` numbers last at the present rate; `None` at rate 0.
    fn lasts_ms(&self, left: u64) -> Option<u64> {
        lasts_ms(left, self.rate)
    }

    /// Returns the same for a monitor: without consumption there are no measurements, and an old
    /// rate counts as none.
    pub(super) fn lasts_now_ms(&self, left: u64, taken: u64, at: ElapsedMillis) -> Option<u64> {
        let (before, looked_at) = self.looked?;
        let passed_ms = at.since(looked_at);
        if passed_ms < OLD_MS {
            return self.lasts_ms(left);
        }
        lasts_ms(left, taken.saturating_sub(before).saturating_mul(1000) / passed_ms)
    }

    /// Returns whether to fetch more while `left` numbers remain: when they last for less than half
    /// of a step's time (`wanted_ms`), or hardly until the store's result.
    pub(super) fn is_low(&self, left: u64, wanted_ms: u64) -> bool {
        let refill_below_ms = self.latency_ms.saturating_mul(2).saturating_add(MARGIN_MS);
        self.lasts_ms(left).is_some_and(|lasts_ms| lasts_ms < refill_below_ms.max(wanted_ms / 2))
    }

    /// Returns how many numbers are taken during a step's time, or during twice the store's
    /// latency, whichever is longer.
    pub(super) fn step(&self, wanted_ms: u64) -> u64 {
        let for_ms = wanted_ms.max(self.latency_ms.saturating_mul(2));
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

    fn rate(per_ms: u64) -> ConsumptionRate {
        let mut rate = ConsumptionRate::default();
        rate.measure(0, at(0), false);
        rate.measure(per_ms * 1000, at(1000), false);
        rate
    }

    #[test]
    fn step_lasts_for_the_wanted_time() {
        assert_eq!(ConsumptionRate::default().step(WANTED), 0);
        assert_eq!(rate(1).step(WANTED), 10_000);
        assert_eq!(rate(10_000).step(WANTED), 100_000_000);
    }

    #[test]
    fn a_burst_is_followed_at_once_and_forgotten_slowly() {
        let mut rate = rate(1);
        rate.measure(1000 + 50_000, at(2000), false);
        assert_eq!(rate.step(WANTED), 500_000);
        for second in 3..40 {
            rate.measure(51_000, at(second * 1000), false);
        }
        assert!(rate.step(WANTED) < 100, "after a burst it comes down again");
    }

    #[test]
    fn waiting_caller_is_not_idle() {
        let mut rate = rate(50);
        rate.measure(50_000, at(1_500), true);
        let ran_dry = rate.step(WANTED);
        assert!(ran_dry < 500_000, "until it ran dry, no caller took any");
        for round in 1..1_000 {
            rate.measure(50_000, at(1_500 + 20 * round), true);
        }
        assert_eq!(rate.step(WANTED), ran_dry, "20 s of waiting");
        rate.measure(50_000, at(21_490), false);
        assert_eq!(rate.step(WANTED), ran_dry, "and numbers came");
        rate.measure(50_000, at(31_490), true);
        let fallen = rate.step(WANTED);
        assert!(fallen < ran_dry, "without demand");
        rate.measure(50_000, at(31_490 + OLD_MS), true);
        assert!(rate.step(WANTED) < fallen, "nor did a caller wait");
        rate.measure(250_000, at(31_490 + OLD_MS + 100), true);
        assert_eq!(rate.step(WANTED), 20_000_000, "who waited takes");
    }

    #[test]
    fn slow_store_is_called_earlier_for_more() {
        let wanted = 100;
        let mut rate = rate(1);
        assert!(rate.is_low(49, wanted) && !rate.is_low(51, wanted));
        rate.record_latency(500);
        assert!(rate.is_low(1_019, wanted) && !rate.is_low(1_021, wanted));
        assert_eq!(rate.step(wanted), 1_000);
        for _ in 0..40 {
            rate.record_latency(0);
        }
        assert_eq!(rate.step(wanted), 100);
    }

    #[test]
    fn monitor_sees_the_current_rate() {
        let rate = rate(50);
        assert_eq!(rate.lasts_now_ms(100, 50_000, at(1_999)), Some(2));
        assert_eq!(rate.lasts_now_ms(100, 50_000, at(2_000)), None, "a burst is over");
        assert_eq!(rate.lasts_now_ms(100, 50_010, at(11_000)), Some(100_000), "one each second");
        assert_eq!(ConsumptionRate::default().lasts_now_ms(100, 0, at(2_000)), None);
    }

    #[test]
    fn rate_without_demand_needs_no_refill() {
        assert!(!ConsumptionRate::default().is_low(0, WANTED));
        let mut once = ConsumptionRate::default();
        once.measure(5, at(10), false);
        once.measure(500, at(10), false);
        assert!(!once.is_low(0, WANTED), "a moment has no rate");
    }
}
