//! The last hour of the metrics: a ring of samples with a bounded size.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use snowmint_coord::lock;
use snowmint_coord::stats::BOUNDS_US;
use snowmint_core::{ElapsedMillis, UnixMillis};
use snowmint_wire::report::LastHour;

/// Milliseconds between samples.
pub(crate) const SAMPLE_EVERY_MS: u64 = 5_000;
/// Samples of an hour.
const SAMPLES_MAX: usize = 720;
/// Sources of one sample, and of a response: those with the most IDs.
const SOURCES_MAX: usize = 16;
/// Bound of a duration above the last of [`BOUNDS_US`].
const LONGER_US: u64 = 5_000_001;

/// Number of protocols.
pub(super) const PROTOCOLS: usize = 3;
/// Buckets of durations, that of the longest included.
pub(super) const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Samples, and the counts at the newest one.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    samples: VecDeque<Sample>,
    /// Counts since the start; `None` before the first sample.
    totals: Option<Totals>,
}

/// Counts since the start, at one moment.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) elapsed: ElapsedMillis,
    pub(super) ids: [u64; PROTOCOLS],
    pub(super) errors: [u64; PROTOCOLS],
    pub(super) sources: BTreeMap<String, u64>,
    /// Durations of requests, by bucket.
    pub(super) took: [u64; BUCKETS],
}

/// State at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauges {
    pub(super) at: UnixMillis,
    pub(super) ready: bool,
    pub(super) window_runway_ms: Option<u64>,
    pub(super) prefetch_runway_ms: Option<u64>,
    pub(super) clock_ahead_ms: Option<i64>,
}

/// State at one moment, and the counts since the sample before.
#[derive(Debug)]
struct Sample {
    gauges: Gauges,
    span_ms: u64,
    ids: [u64; PROTOCOLS],
    errors: [u64; PROTOCOLS],
    sources: Vec<(String, u64)>,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
}

impl History {
    pub(super) fn add(&self, totals: Totals, gauges: Gauges) {
        let mut ring = lock(&self.0);
        if let Some(before) = ring.totals.take() {
            if ring.samples.len() >= SAMPLES_MAX {
                ring.samples.pop_front();
            }
            ring.samples.push_back(Sample::between(&before, &totals, gauges));
        }
        ring.totals = Some(totals);
    }

    /// Returns the samples; `names` are those of the protocols, in the order of the counts.
    pub(super) fn last_hour(&self, names: [&str; PROTOCOLS]) -> LastHour {
        let ring = lock(&self.0);
        let samples = &ring.samples;
        let by_protocol = |counts: fn(&Sample) -> &[u64; PROTOCOLS]| {
            let of = |(place, name): (usize, &str)| {
                let values = samples.iter().filter_map(|sample| counts(sample).get(place).copied());
                (name.to_owned(), values.collect())
            };
            names.into_iter().enumerate().map(of).collect::<BTreeMap<_, _>>()
        };
        let gauge = |value: fn(&Gauges) -> Option<u64>| {
            samples.iter().map(|sample| value(&sample.gauges)).collect()
        };
        LastHour {
            every_ms: SAMPLE_EVERY_MS,
            times_ms: samples.iter().map(|sample| sample.gauges.at.get()).collect(),
            spans_ms: samples.iter().map(|sample| sample.span_ms).collect(),
            ready: samples.iter().map(|sample| sample.gauges.ready).collect(),
            ids: by_protocol(|sample| &sample.ids),
            sources: by_source(samples),
            errors: by_protocol(|sample| &sample.errors),
            request_p50_us: samples.iter().map(|sample| sample.p50_us).collect(),
            request_p99_us: samples.iter().map(|sample| sample.p99_us).collect(),
            window_runway_ms: gauge(|gauges| gauges.window_runway_ms),
            prefetch_runway_ms: gauge(|gauges| gauges.prefetch_runway_ms),
            clock_ahead_ms: samples.iter().map(|sample| sample.gauges.clock_ahead_ms).collect(),
        }
    }
}

impl Sample {
    fn between(before: &Totals, now: &Totals, gauges: Gauges) -> Self {
        let mut sources: Vec<(String, u64)> = now
            .sources
            .iter()
            .map(|(name, count)| {
                let known = before.sources.get(name).copied().unwrap_or_default();
                (name.clone(), count.saturating_sub(known))
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        keep_most(&mut sources);
        let took = rises(&before.took, &now.took);
        Self {
            gauges,
            span_ms: now.elapsed.since(before.elapsed),
            ids: rises(&before.ids, &now.ids),
            errors: rises(&before.errors, &now.errors),
            sources,
            p50_us: bound_of(&took, 50),
            p99_us: bound_of(&took, 99),
        }
    }
}

fn rises<const N: usize>(before: &[u64; N], now: &[u64; N]) -> [u64; N] {
    let mut rises = *now;
    for (rise, before) in rises.iter_mut().zip(before) {
        *rise = rise.saturating_sub(*before);
    }
    rises
}

/// Keeps the sources with the most IDs.
fn keep_most(sources: &mut Vec<(String, u64)>) {
    sources.sort_by(|(_, one), (_, next)| next.cmp(one));
    sources.truncate(SOURCES_MAX);
}

fn by_source(samples: &VecDeque<Sample>) -> BTreeMap<String, Vec<u64>> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in samples.iter().flat_map(|sample| &sample.sources) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut most: Vec<(String, u64)> =
        sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    keep_most(&mut most);
    let of = |sample: &Sample, name: &str| {
        let found = sample.sources.iter().find(|(source, _)| source == name);
        found.map_or(0, |(_, count)| *count)
    };
    let values = |(name, _): (String, u64)| {
        let values = samples.iter().map(|sample| of(sample, &name)).collect();
        (name, values)
    };
    most.into_iter().map(values).collect()
}

/// Returns the bound that this percentage of the durations stayed within.
fn bound_of(took: &[u64; BUCKETS], percent: u128) -> Option<u64> {
    let count: u128 = took.iter().map(|count| u128::from(*count)).sum();
    let wanted = (count * percent).div_ceil(100);
    let mut sum = 0;
    let bounds = BOUNDS_US.into_iter().chain([LONGER_US]);
    let within = took.iter().zip(bounds).find(|(count, _)| {
        sum += u128::from(**count);
        sum >= wanted
    });
    within.map(|(_, bound)| bound).filter(|_| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_hour(history: &History) -> LastHour {
        history.last_hour(["http", "resp", "grpc"])
    }

    fn totals(at_ms: u64, ids: u64, sources: &[(&str, u64)]) -> Totals {
        let mut took = [0; BUCKETS];
        took[2] = ids;
        Totals {
            elapsed: ElapsedMillis::new(at_ms),
            ids: [ids, 0, 0],
            errors: [0, 0, ids / 2],
            sources: sources.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            took,
        }
    }

    fn gauges(at_ms: u64) -> Gauges {
        Gauges {
            at: UnixMillis::new(at_ms),
            ready: true,
            window_runway_ms: Some(30_000),
            prefetch_runway_ms: None,
            clock_ahead_ms: Some(-3),
        }
    }

    #[test]
    fn samples_are_the_rises_since_the_one_before() {
        let history = History::default();
        history.add(totals(0, 10, &[("a", 10)]), gauges(1_000));
        assert!(last_hour(&history).times_ms.is_empty());
        history.add(totals(5_000, 14, &[("a", 11), ("b", 3)]), gauges(6_000));
        history.add(totals(65_000, 14, &[("a", 11), ("b", 3)]), gauges(66_000));
        let body = last_hour(&history);
        assert_eq!((body.times_ms, body.spans_ms), (vec![6_000, 66_000], vec![5_000, 60_000]));
        assert_eq!((&body.ids["http"], &body.errors["grpc"]), (&vec![4, 0], &vec![2, 0]));
        assert_eq!((&body.sources["a"], &body.sources["b"]), (&vec![1, 0], &vec![3, 0]));
        assert_eq!(body.request_p99_us, [Some(50), None]);
        assert_eq!((body.clock_ahead_ms[0], body.prefetch_runway_ms[0]), (Some(-3), None));
    }

    #[test]
    fn ring_keeps_an_hour_and_the_busiest_sources() {
        let history = History::default();
        let names: Vec<String> = (0..40).map(|number| format!("source-{number:02}")).collect();
        for round in 0..SAMPLES_MAX as u64 + 50 {
            let counts: Vec<(&str, u64)> =
                names.iter().zip(1..).map(|(name, rate)| (name.as_str(), round * rate)).collect();
            history.add(totals(round * SAMPLE_EVERY_MS, round, &counts), gauges(round));
        }
        let body = last_hour(&history);
        assert_eq!(body.times_ms.len(), SAMPLES_MAX);
        assert_eq!(body.times_ms[0], 50);
        let kept: Vec<&String> = body.sources.keys().collect();
        assert_eq!(kept, names[40 - SOURCES_MAX..].iter().collect::<Vec<_>>());
    }

    #[test]
    fn bounds_hold_their_share_of_the_durations() {
        let mut took = [0; BUCKETS];
        assert_eq!(bound_of(&took, 50), None);
        took[0] = 98;
        took[BUCKETS - 1] = 2;
        assert_eq!((bound_of(&took, 50), bound_of(&took, 99)), (Some(10), Some(LONGER_US)));
        took[0] = 198;
        assert_eq!(bound_of(&took, 99), Some(10));
    }
}
