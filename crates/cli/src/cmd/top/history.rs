//! Rates from the last hour of servers.

use snowmint_wire::http::HistoryBody;

use super::figures::Rate;

/// Samples of a picture: five minutes.
pub(super) const SLOTS: usize = 60;

/// Rates of the last minutes, the newest first; `None` where no server has a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots([Option<Rate>; SLOTS]);

impl Default for Slots {
    fn default() -> Self {
        Self([None; SLOTS])
    }
}

impl Slots {
    /// Adds the counts of a history that ended `age_ms` ago.
    pub(super) fn add(&mut self, history: &HistoryBody, counts: &[u64], age_ms: u64) {
        let Some(newest) = history.times_ms.last() else { return };
        let samples = history.times_ms.iter().zip(&history.spans_ms).zip(counts);
        for ((time, span), count) in samples {
            let ago = newest.saturating_sub(*time).saturating_add(age_ms);
            let rounded = ago.saturating_add(history.every_ms / 2).checked_div(history.every_ms);
            let place = rounded.and_then(|place| usize::try_from(place).ok());
            let slot = place.and_then(|place| self.0.get_mut(place));
            if let (Some(slot), Some(rate)) = (slot, Rate::of(*count, *span)) {
                *slot = Some([slot.unwrap_or_default(), rate].into_iter().sum());
            }
        }
    }

    /// Draws the slots as bars, the oldest first, each against the highest of all.
    pub(super) fn picture(&self) -> String {
        const BARS: [char; 9] = ['▁', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let highest = self.0.iter().flatten().max().copied().unwrap_or_default();
        let bar = |slot: &Option<Rate>| match slot {
            None => ' ',
            // The lowest bar is zero, so that a little is seen.
            Some(rate) if rate.is_zero() => '▁',
            Some(rate) => BARS.get(rate.eighths_of(highest).max(2)).copied().unwrap_or('█'),
        };
        self.0.iter().rev().map(bar).collect()
    }
}

/// Returns the newest rate of a history: the sum of these counts in its last sample.
pub(super) fn newest<'c>(
    history: &HistoryBody,
    counts: impl IntoIterator<Item = &'c Vec<u64>>,
) -> Option<Rate> {
    let span = history.spans_ms.last()?;
    let last = counts.into_iter().filter_map(|counts| counts.last());
    Rate::of(last.fold(0, |sum, count| sum.saturating_add(*count)), *span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(times_ms: &[u64]) -> HistoryBody {
        let spans_ms = vec![5_000; times_ms.len()];
        HistoryBody { every_ms: 5_000, times_ms: times_ms.to_vec(), spans_ms, ..Default::default() }
    }

    #[test]
    fn slots_add_up_servers_by_the_age_of_their_samples() {
        let mut slots = Slots::default();
        // Clocks of servers differ; a server that is gone scrolls away.
        slots.add(&history(&[1_000, 6_002, 11_004]), &[5_000, 10_000, 40_000], 0);
        slots.add(&history(&[900_000, 905_000]), &[0, 5_000], 10_000);
        let shown: Vec<String> = slots.0.iter().flatten().map(|rate| rate.to_string()).collect();
        assert_eq!(shown, ["8,000", "2,000", "2,000", "0"]);
        assert_eq!(slots.picture().trim_start(), "▁▂▂█");
        assert_eq!(slots.picture().chars().count(), SLOTS);
    }

    #[test]
    fn odd_histories_give_no_slots() {
        for (history, counts) in [
            (HistoryBody::default(), &[1][..]),
            (HistoryBody { every_ms: 0, ..history(&[1, 2]) }, &[1, 1]),
            (HistoryBody { spans_ms: vec![0], ..history(&[1]) }, &[1]),
            (history(&[1]), &[]),
            (history(&[0, u64::MAX]), &[1]),
        ] {
            let mut slots = Slots::default();
            slots.add(&history, counts, u64::MAX);
            assert_eq!(slots, Slots::default(), "{history:?}");
        }
    }
}
