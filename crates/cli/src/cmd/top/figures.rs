//! Numbers, rates and durations as people read them.

use std::fmt;
use std::iter::Sum;

use crate::terminal::plural::grouped;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Returns a duration in one unit, rounded down.
pub(super) fn span(ms: u64) -> String {
    match ms {
        _ if ms < SECOND_MS => format!("{ms} ms"),
        _ if ms < 10 * SECOND_MS => format!("{}.{} s", ms / SECOND_MS, ms % SECOND_MS / 100),
        _ if ms < 2 * MINUTE_MS => format!("{} s", ms / SECOND_MS),
        _ if ms < 2 * HOUR_MS => format!("{} min", ms / MINUTE_MS),
        _ if ms < 2 * DAY_MS => format!("{} h", ms / HOUR_MS),
        _ => format!("{} days", ms / DAY_MS),
    }
}

/// Returns the milliseconds by which a clock is ahead (+) of its time reference, or behind it (-).
pub(super) fn offset(ahead_ms: i64) -> String {
    let distance = span(ahead_ms.unsigned_abs());
    match ahead_ms {
        0 => distance,
        1.. => format!("+{distance}"),
        _ => format!("-{distance}"),
    }
}

/// Number of events in 1,000 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rate(u64);

impl Rate {
    /// Returns the rate of `count` events in `ms` milliseconds; `None` where no time has passed.
    pub(super) fn of(count: u64, ms: u64) -> Option<Self> {
        count.saturating_mul(1_000_000).checked_div(ms).map(Self)
    }

    /// Returns the share of the highest rate in eighths, rounded up.
    pub(super) fn eighths_of(self, highest: Self) -> usize {
        let eighths = self.0.saturating_mul(8).div_ceil(highest.0.max(1));
        usize::try_from(eighths.min(8)).unwrap_or(8)
    }

    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        Self(rates.fold(0, |sum, rate| sum.saturating_add(rate.0)))
    }
}

/// Events a second: with one decimal below 10.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            1..100 => f.write_str("<0.1"),
            100..10_000 => write!(f, "{}.{}", self.0 / 1_000, self.0 % 1_000 / 100),
            _ => f.write_str(&grouped(self.0 / 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_rounded_down() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_950, "1.9 s"),
            (19_999, "19 s"),
            (119_999, "119 s"),
            (120_000, "2 min"),
            (2 * HOUR_MS, "2 h"),
            (2 * DAY_MS, "2 days"),
            (u64::MAX, "213503982334 days"),
        ] {
            assert_eq!(span(ms), text);
        }
        for (ahead_ms, text) in [(0, "0 ms"), (3, "+3 ms"), (-1_250, "-1.2 s")] {
            assert_eq!(offset(ahead_ms), text);
        }
    }

    #[test]
    fn rates_are_per_second() {
        for (count, ms, text) in [
            (0, 5_000, "0"),
            (1, 60_000, "<0.1"),
            (1, 5_000, "0.2"),
            (49_999, 5_000, "9,999"),
            (u64::MAX, 1, "18,446,744,073,709,551"),
        ] {
            assert_eq!(Rate::of(count, ms).unwrap().to_string(), text, "{count} {ms}");
        }
        assert_eq!(Rate::of(1, 0), None);
        let rate = |count| Rate::of(count, 1_000).unwrap();
        assert_eq!([0, 1, 50, 100].map(|count| rate(count).eighths_of(rate(100))), [0, 1, 4, 8]);
        assert_eq!(rate(0).eighths_of(rate(0)), 0);
    }
}
