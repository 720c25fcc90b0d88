//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the buckets, in microseconds, inclusive.
pub const BOUNDS_US: [u64; 18] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    500_000, 1_000_000, 2_500_000, 5_000_000,
];

/// Histogram of durations: two additions to plain atomics each, also while it is read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Times {
    counts: [AtomicU64; BOUNDS_US.len()],
    longer: AtomicU64,
    sum_us: AtomicU64,
}

/// Counts of [`Times`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimesSeen {
    /// Durations up to each of [`BOUNDS_US`], and above the bound before it.
    pub counts: [u64; BOUNDS_US.len()],
    /// Durations above all bounds.
    pub longer: u64,
    /// Sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Times {
    /// Adds `count` durations of `took_us` microseconds each.
    pub fn add(&self, took_us: u64, count: u64) {
        let place = BOUNDS_US.partition_point(|bound| *bound < took_us);
        // Relaxed: these numbers are for people, and order nothing else.
        self.counts.get(place).unwrap_or(&self.longer).fetch_add(count, Ordering::Relaxed);
        if took_us > 0 {
            self.sum_us.fetch_add(took_us.saturating_mul(count), Ordering::Relaxed);
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn seen(&self) -> TimesSeen {
        let mut counts = [0; BOUNDS_US.len()];
        for (seen, count) in counts.iter_mut().zip(&self.counts) {
            *seen = count.load(Ordering::Relaxed);
        }
        let longer = self.longer.load(Ordering::Relaxed);
        TimesSeen { counts, longer, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

impl TimesSeen {
    /// Returns how many durations there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(self.longer, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_equal_to_a_bound_counts_within_it() {
        let times = Times::default();
        for (took_us, place) in [(0, 0), (10, 0), (11, 1), (5_000_000, 17)] {
            let before = times.seen();
            times.add(took_us, 3);
            let after = times.seen();
            assert_eq!(after.counts[place], before.counts[place] + 3, "{took_us}");
            assert_eq!(after.count(), before.count() + 3);
            assert_eq!(after.sum_us, before.sum_us + 3 * took_us);
        }
        times.add(5_000_001, 1);
        assert_eq!(times.seen().longer, 1);
    }
}
