//! Processor time of this process. When it had to wait for a processor, its figures describe the
//! machine more than the measured target.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;

/// Processor time of one or several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    /// Running time.
    pub(super) ran_ns: u64,
    /// Time when the threads could have run but no processor was free; `None` where the system does
    /// not report it.
    pub(super) waited_ns: Option<u64>,
}

/// Processor use of a run, for people and machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Processors {
    /// Number of threads that sent requests.
    pub(super) threads: usize,
    /// Running time of these threads together, in seconds.
    pub(super) ran_s: f64,
    /// Running time as a fraction of the possible running time.
    pub(super) busy: f64,
    /// Time spent waiting for a processor, as a fraction of the possible running time.
    pub(super) waited: Option<f64>,
}

impl Got {
    /// Returns the times of this thread since its start.
    pub(super) fn by_this_thread() -> Self {
        Self { ran_ns: nanos(clock_gettime(ClockId::ThreadCPUTime)), waited_ns: waited_ns() }
    }

    /// Returns the times after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let waited = self.waited_ns.zip(before.waited_ns);
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: waited.map(|(after, before)| after.saturating_sub(before)),
        }
    }

    /// Returns the sum of both.
    pub(super) fn and(self, other: Self) -> Self {
        let waited = self.waited_ns.zip(other.waited_ns);
        Self {
            ran_ns: self.ran_ns.saturating_add(other.ran_ns),
            waited_ns: waited.map(|(one, other)| one.saturating_add(other)),
        }
    }

    /// Returns the processor use of this many threads in a run of this length.
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

/// Reads the waiting time: on Linux, the second number of the thread's scheduler statistics.
fn waited_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_a_part_of_the_available_time() {
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
