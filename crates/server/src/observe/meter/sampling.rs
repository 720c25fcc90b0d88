//! Samples of the metrics for the last hour.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use snowmint_coord::{Node, TimesSeen};
use snowmint_core::{ElapsedMillis, UnixMillis};
use snowmint_wire::report::LastHour;

use super::history::{BUCKETS, Gauges, PROTOCOLS, Totals};
use super::{Meter, Protocol};

impl Meter {
    /// Adds a sample. The first call only begins the counts.
    pub(crate) fn sample(&self, node: &Node, ready: bool, elapsed: ElapsedMillis, at: UnixMillis) {
        let stats: Vec<_> = node.running().iter().map(|source| source.stats()).collect();
        let numbers = stats.iter().filter_map(|stats| stats.numbers.as_ref());
        let gauges = Gauges {
            at,
            ready,
            window_runway_ms: stats.iter().filter_map(|stats| stats.window_ms).min(),
            prefetch_runway_ms: numbers.filter_map(|numbers| numbers.lasts_ms).min(),
            clock_ahead_ms: node.stats().clock_offset_ms,
        };
        self.history.add(self.totals(elapsed), gauges);
    }

    /// Returns the samples of the last hour.
    pub(crate) fn last_hour(&self) -> LastHour {
        self.history.last_hour(Protocol::ALL.map(Protocol::name))
    }

    /// Returns the IDs that were issued since the start.
    pub(crate) fn issued(&self) -> u64 {
        let tallies = self.tallies.read().unwrap_or_else(PoisonError::into_inner);
        let of = |protocol| tallies.values().map(move |tally| tally.issued(protocol));
        Protocol::ALL.into_iter().flat_map(of).fold(0, u64::saturating_add)
    }

    fn totals(&self, elapsed: ElapsedMillis) -> Totals {
        let tallies = self.tallies.read().unwrap_or_else(PoisonError::into_inner);
        let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
        let mut totals = Totals {
            elapsed,
            ids: Protocol::ALL
                .map(|protocol| sum(&mut tallies.values().map(|tally| tally.issued(protocol)))),
            errors: [0; PROTOCOLS],
            sources: BTreeMap::new(),
            took: [0; BUCKETS],
        };
        for (name, tally) in tallies.iter() {
            let all = sum(&mut Protocol::ALL.iter().map(|protocol| tally.issued(*protocol)));
            totals.sources.insert(name.clone(), all);
        }
        drop(tallies);
        for (errors, protocol) in totals.errors.iter_mut().zip(Protocol::ALL) {
            let Some(seen) = self.protocol_snapshot(protocol) else { continue };
            *errors = sum(&mut seen.errors.iter().map(|(_, count)| *count));
            let TimesSeen { counts, longer, .. } = seen.times;
            for (took, count) in totals.took.iter_mut().zip(counts.into_iter().chain([longer])) {
                *took = took.saturating_add(count);
            }
        }
        totals
    }
}
