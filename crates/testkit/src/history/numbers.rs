//! Numbers of a segment source: none occurs twice, and none is missing without a reason.

use std::collections::BTreeMap;

use super::{Check, Checked, Violation};

/// The first number of every source.
const FIRST: u64 = 1;

/// All returned numbers, as ranges: dense sources of any size take little memory.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Disjoint ranges from the first number to the one after the last; adjacent ranges are merged.
    ranges: BTreeMap<u64, u64>,
    used: u64,
}

impl Numbers {
    /// Records that `[first, end)` was returned.
    ///
    /// # Errors
    /// Some of it was returned before.
    pub fn record(&mut self, first: u64, end: u64) -> Checked {
        if first >= end {
            return Ok(());
        }
        let before = self.ranges.range(..end).next_back().map(|(first, end)| (*first, *end));
        if let Some((begin, stop)) = before.filter(|(_, stop)| *stop > first) {
            let twice = (first.max(begin), end.min(stop) - 1);
            let what = format!("{} to {} were returned twice", twice.0, twice.1);
            return Err(Check::Unique.broken(what));
        }
        let begin = match before.filter(|(_, stop)| *stop == first) {
            Some((begin, _)) => begin,
            None => first,
        };
        let stop = self.ranges.remove(&end).unwrap_or(end);
        self.ranges.insert(begin, stop);
        self.used += end - first;
        Ok(())
    }

    /// Returns the count of returned numbers.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Returns the number after the highest one that was returned.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(FIRST, |(_, end)| *end)
    }

    /// Returns how many numbers below the store's mark were never returned.
    ///
    /// # Errors
    /// A returned number lies at or above the mark.
    pub fn missing(&self, mark: u64) -> Result<u64, Violation> {
        let outside = |number| format!("{number} was returned, outside {FIRST} to below {mark}");
        let first = self.ranges.first_key_value().map_or(FIRST, |(first, _)| *first);
        for number in [first, self.end() - 1] {
            if self.used > 0 && !(FIRST..mark).contains(&number) {
                return Err(Check::Mark.broken(outside(number)));
            }
        }
        Ok(mark - FIRST - self.used)
    }

    /// Checks that all numbers below the store's mark are accounted for: returned, or among those
    /// that servers report as `lost`. Of these, `unheard` numbers may have been returned: their
    /// requester does not know that the store gave them to another process.
    ///
    /// # Errors
    /// More are missing, or fewer.
    pub fn accounted(&self, mark: u64, lost: u64, unheard: u64) -> Checked {
        let missing = self.missing(mark)?;
        if (lost.saturating_sub(unheard)..=lost).contains(&missing) {
            return Ok(());
        }
        Err(Check::Account.broken(format!(
            "of the numbers below {mark}, {missing} were never returned, and {lost} are reported lost, {unheard} of them unheard"
        )))
    }

    /// Checks that at most `lost_max` numbers are missing below the store's mark.
    ///
    /// # Errors
    /// More are missing.
    pub fn wasted_at_most(&self, mark: u64, lost_max: u64) -> Checked {
        let missing = self.missing(mark)?;
        if missing <= lost_max {
            return Ok(());
        }
        Err(Check::Waste.broken(format!(
            "of the numbers below {mark}, {missing} were never returned; {lost_max} may be lost"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_twice_is_found() {
        let mut numbers = Numbers::default();
        numbers.record(10, 20).unwrap();
        numbers.record(30, 40).unwrap();
        for (first, end) in [(10, 11), (19, 21), (5, 11), (5, 50), (12, 13), (39, 40), (30, 31)] {
            assert!(numbers.record(first, end).is_err(), "{first} to {end}");
        }
        numbers.record(20, 30).unwrap();
        assert_eq!((numbers.ranges.len(), numbers.used(), numbers.end()), (1, 30, 40));
        numbers.record(9, 10).unwrap();
        numbers.record(41, 42).unwrap();
        assert!(numbers.record(9, 10).is_err());
        assert_eq!(numbers.ranges.len(), 2);
    }

    #[test]
    fn numbers_that_are_missing_without_a_reason_are_found() {
        let mut numbers = Numbers::default();
        numbers.accounted(1, 0, 0).unwrap();
        numbers.record(1, 50).unwrap();
        numbers.record(60, 71).unwrap();
        numbers.accounted(71, 10, 0).unwrap();
        numbers.accounted(81, 20, 0).unwrap();
        assert!(numbers.accounted(71, 9, 0).is_err(), "a gap");
        assert!(numbers.accounted(71, 11, 0).is_err(), "more is reported lost than is");
        numbers.accounted(71, 11, 1).unwrap();
        assert!(numbers.accounted(71, 9, 1).is_err(), "a gap, whatever was unheard");
        assert!(numbers.accounted(70, 9, 0).is_err(), "above the mark");
        numbers.wasted_at_most(71, 10).unwrap();
        assert!(numbers.wasted_at_most(71, 9).is_err());
        let mut zero = Numbers::default();
        zero.record(0, 2).unwrap();
        assert!(zero.accounted(2, 0, 0).is_err(), "below the first");
    }
}
