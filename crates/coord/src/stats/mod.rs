//! Counts of a node, for monitoring.

mod times;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_core::clock::{Direction, Outcome};
use snowmint_core::{ClockStep, ElapsedMillis, Observer};

use crate::error::{Error, Verb};
use crate::platform::clock::NodeObserver;
use crate::platform::lock::lock;

pub use times::{BOUNDS_US, Times, TimesSeen};

const DIRECTIONS: [Direction; 2] = [Direction::Back, Direction::Ahead];
const OUTCOMES: [Outcome; 5] =
    [Outcome::Unaffected, Outcome::Held, Outcome::Led, Outcome::Moved, Outcome::Refused];

/// State of a node, and its counts since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStats {
    /// Whether it is a member of the store.
    pub joined: bool,
    /// Whether it mints offline, without having reached the store.
    pub without_store: bool,
    /// Milliseconds for which other members must still see it as live.
    pub presence_ms: u64,
    /// Number of times that it lost its membership and rejoined.
    pub rejoins: u64,
    /// Journal writes that failed.
    pub journal_errors: u64,
    /// Milliseconds by which its clock was ahead of its last time reference; `None` without one.
    pub clock_offset_ms: Option<i64>,
    /// Clock steps that generators met, with zeros for kinds that may still come.
    pub clock_steps: Vec<StepCount>,
    /// Store calls, by verb.
    pub store_calls: Vec<StoreCalls>,
    /// Counter sections that it owns.
    pub sections: u64,
}

/// Count of one kind of clock step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCount {
    /// Direction in which the clock was set.
    pub direction: Direction,
    /// Policy of the source.
    pub policy: &'static str,
    /// Outcome of the step.
    pub outcome: Outcome,
    /// Number of such steps.
    pub count: u64,
}

/// Results of one verb of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCalls {
    /// The verb.
    pub verb: &'static str,
    /// Durations of its calls; for calls without a result, the time until they were given up.
    pub took: TimesSeen,
    /// Errors by [code](crate::ErrorKind::code); `unavailable` is always among them.
    pub errors: Vec<(&'static str, u64)>,
}

#[derive(Debug)]
struct Calls {
    took: Times,
    errors: BTreeMap<&'static str, u64>,
}

impl Default for Calls {
    fn default() -> Self {
        let errors = BTreeMap::from([("unavailable", 0)]);
        Self { took: Times::default(), errors }
    }
}

/// Counts of one node. Its mutexes guard plain data, only while a count is added.
#[derive(Debug, Default)]
pub(crate) struct NodeMetrics {
    steps: Mutex<Vec<StepCount>>,
    calls: Mutex<BTreeMap<&'static str, Calls>>,
    clock_offset_ms: Mutex<Option<i64>>,
    /// Elapsed time.
    live_until: AtomicU64,
    rejoins: AtomicU64,
    journal_errors: AtomicU64,
}

impl NodeMetrics {
    /// Records a call to the store, with its result or after its time limit.
    pub(crate) fn called(&self, verb: Verb, took_us: u64, error: Option<&Error>) {
        let mut calls = lock(&self.calls);
        let of_verb = calls.entry(verb.label()).or_default();
        of_verb.took.add(took_us, 1);
        if let Some(error) = error {
            *of_verb.errors.entry(error.kind().code()).or_default() += 1;
        }
    }

    /// Records the offset of our clock from its time reference, if there is one.
    pub(crate) fn compared(&self, offset_ms: Option<i64>) {
        *lock(&self.clock_offset_ms) = offset_ms;
    }

    /// Records the time until which other members must see us as live.
    pub(crate) fn live_until(&self, until: ElapsedMillis) {
        self.live_until.store(until.get(), Ordering::Relaxed);
    }

    pub(crate) fn add_rejoin(&self) {
        self.rejoins.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn journal_failed(&self) {
        self.journal_errors.fetch_add(1, Ordering::Relaxed);
    }

    fn stepped(&self, step: &ClockStep) {
        let ClockStep { direction, policy, outcome, .. } = *step;
        let mut steps = lock(&self.steps);
        let is_it = |seen: &&mut StepCount| {
            (seen.direction, seen.policy, seen.outcome) == (direction, policy, outcome)
        };
        match steps.iter_mut().find(is_it) {
            Some(seen) => seen.count = seen.count.saturating_add(1),
            None => steps.push(StepCount { direction, policy, outcome, count: 1 }),
        }
    }

    /// Returns the counts of clock steps, with zeros for those that these policies may meet.
    fn steps(&self, policies: impl IntoIterator<Item = &'static str>) -> Vec<StepCount> {
        let mut steps = lock(&self.steps).clone();
        for policy in policies {
            for (direction, outcome) in
                DIRECTIONS.iter().flat_map(|way| OUTCOMES.iter().map(move |done| (*way, *done)))
            {
                let is_it = |seen: &StepCount| {
                    (seen.direction, seen.policy, seen.outcome) == (direction, policy, outcome)
                };
                if !steps.iter().any(is_it) {
                    steps.push(StepCount { direction, policy, outcome, count: 0 });
                }
            }
        }
        steps
    }

    fn store_calls(&self) -> Vec<StoreCalls> {
        let calls = lock(&self.calls);
        let one = |(verb, calls): (&&'static str, &Calls)| StoreCalls {
            verb,
            took: calls.took.seen(),
            errors: calls.errors.iter().map(|(code, count)| (*code, *count)).collect(),
        };
        calls.iter().map(one).collect()
    }

    /// Returns all counts, except those that the node itself fills in.
    pub(crate) fn stats(
        &self,
        now: ElapsedMillis,
        policies: impl IntoIterator<Item = &'static str>,
    ) -> NodeStats {
        let live_until = ElapsedMillis::new(self.live_until.load(Ordering::Relaxed));
        NodeStats {
            joined: false,
            without_store: false,
            presence_ms: live_until.since(now),
            rejoins: self.rejoins.load(Ordering::Relaxed),
            journal_errors: self.journal_errors.load(Ordering::Relaxed),
            clock_offset_ms: *lock(&self.clock_offset_ms),
            clock_steps: self.steps(policies),
            store_calls: self.store_calls(),
            sections: 0,
        }
    }
}

/// Counts clock steps, and notifies the observer.
pub(crate) struct CountingObserver {
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) inner: NodeObserver,
}

impl Observer for CountingObserver {
    fn clock_step(&self, step: &ClockStep) {
        self.metrics.stepped(step);
        self.inner.clock_step(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_steps_are_counted_by_kind_and_forwarded() {
        let metrics = Arc::new(NodeMetrics::default());
        let observer = CountingObserver { metrics: Arc::clone(&metrics), inner: Arc::new(()) };
        let step = ClockStep {
            direction: Direction::Back,
            by_ms: 7,
            policy: "hold",
            outcome: Outcome::Held,
        };
        observer.clock_step(&step);
        observer.clock_step(&step);
        let steps = metrics.steps(["hold", "fail"]);
        assert_eq!(steps.len(), 2 * DIRECTIONS.len() * OUTCOMES.len());
        let counted: Vec<_> = steps.iter().filter(|step| step.count > 0).collect();
        let StepCount { policy, count, .. } = counted[0];
        assert_eq!((counted.len(), *policy, *count), (1, "hold", 2));
    }

    #[test]
    fn calls_are_counted_by_verb_and_errors_by_code() {
        let metrics = NodeMetrics::default();
        metrics.called(Verb::Extend, 700, None);
        let away = Error::unavailable("store is unavailable");
        metrics.called(Verb::Extend, 5_000_000, Some(&away));
        metrics.called(Verb::Now, 90, None);
        let [extend, now] = &metrics.store_calls()[..] else { panic!("two verbs") };
        assert_eq!(
            (extend.verb, extend.took.count(), extend.took.sum_us),
            ("extend", 2, 5_000_700)
        );
        assert_eq!(extend.errors, [("unavailable", 1)]);
        assert_eq!((now.verb, &now.errors[..]), ("now", &[("unavailable", 0)][..]));
    }
}
