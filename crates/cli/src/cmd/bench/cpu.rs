//! Whether this process had the processors that it needed. Where it had to wait for one, its figures say
//! more about the machine than about what it measures.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;

/// What one thread, or several, got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    /// How long they ran.
    pub(super) ran_ns: u64,
    /// How long they could have run, and no processor was free; none where the system does not say.
    pub(super) waited_ns: Option<u64>,
}

/// How the processors were, for people and machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Processors {
    /// Threads that sent requests.
    pub(super) threads: usize,
    /// How long these ran, in seconds, together.
    pub(super) ran_s: f64,
    /// The same as a part of what they could have run.
    pub(super) busy: f64,
    /// How long they waited for a processor, as a part of the run.
    pub(super) waited: Option<f64>,
}

impl Got {
    /// Of this thread, since it was started.
    pub(super) fn by_this_thread() -> Self {
        Self { ran_ns: nanos(clock_gettime(ClockId::ThreadCPUTime)), waited_ns: waited_ns() }
    }

    /// What came after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let waited = self.waited_ns.zip(before.waited_ns);
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: waited.map(|(after, before)| after.saturating_sub(before)),
        }
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        let waited = self.waited_ns.zip(other.waited_ns);
        Self {
            ran_ns: self.ran_ns.saturating_add(other.ran_ns),
            waited_ns: waited.map(|(one, other)| one.saturating_add(other)),
        }
    }

    /// Of so many threads in a run of this length.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub(super) fn in_all(self, threads: usize, run_ns: u64) -> Processors {
        let could_ns = (run_ns.max(1) as f64) * (threads.max(1) as f64);
        Processors {
            threads,
            ran_s: self.ran_ns as f64 / 1e9,
            busy: self.ran_ns as f64 / could_ns,
            waited: self.waited_ns.map(|waited_ns| waited_ns as f64 / could_ns),
        }
    }
}

fn nanos(time: Timespec) -> u64 {
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
}

/// Linux: the second number of the thread's scheduler statistics.
fn waited_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_had_is_a_part_of_what_could_have_been_had() {
        let second = |ran_ns, waited_ns| Got { ran_ns, waited_ns: Some(waited_ns) };
        let got = second(900, 100).since(second(400, 100)).and(second(250, 250));
        let all = got.in_all(2, 500);
        assert_eq!((all.busy, all.waited), (0.75, Some(0.25)));
        let unknown = got.and(Got::default());
        assert_eq!(unknown.in_all(1, 1).waited, None);
    }

    #[test]
    fn a_thread_that_works_runs() {
        let before = Got::by_this_thread();
        let mut number = 1_u64;
        while Got::by_this_thread().since(before).ran_ns < 1_000_000 {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
    }
}
