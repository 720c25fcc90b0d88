//! The only place with elapsed time and asynchronous waiting.
//!
//! Leases and pacing use elapsed time, which no clock step affects. It includes the time that the
//! machine was suspended, so that a process that wakes up knows at once that its lease is over.

mod nap;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::ElapsedMillis;
use tokio::sync::watch;

use nap::Nap;

/// Elapsed time, and waits by it.
#[async_trait]
pub trait Timer: Send + Sync + fmt::Debug + 'static {
    /// Returns the milliseconds since some start; never decreases.
    fn elapsed(&self) -> ElapsedMillis;

    /// Returns the same in microseconds, for measurements only, never for decisions.
    fn elapsed_us(&self) -> u64 {
        self.elapsed().get().saturating_mul(1000)
    }

    /// Waits until [`elapsed`](Self::elapsed) has risen by at least `ms`.
    async fn sleep_ms(&self, ms: u64);

    /// Waits for about `us` microseconds, and wakes up more exactly than
    /// [`sleep_ms`](Self::sleep_ms) where the machine can. May return early: for callers that check
    /// the time again.
    async fn sleep_us(&self, us: u64) {
        self.sleep_ms(us.div_ceil(1_000)).await;
    }
}

/// Returns the result of a call, or `None` when it takes longer than `within_ms`.
pub async fn within<C: Future>(timer: &dyn Timer, within_ms: u64, call: C) -> Option<C::Output> {
    tokio::select! {
        biased;
        result = call => Some(result),
        () = timer.sleep_ms(within_ms) => None,
    }
}

/// Timer with the time since the machine started, suspend included (CLOCK_BOOTTIME on Linux;
/// elsewhere the monotonic clock). Its waits need a Tokio runtime with time enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootTimer;

/// Maximum time, in milliseconds, that a wait interrupted by suspend continues after the wake-up,
const PART_MS: u64 = 1_000;
/// or this fraction of its remaining time, if longer: a task that waits for a day need not check
/// the time each second.
const PART_SHARE: u64 = 8;
/// Maximum delay of Tokio's timers, in milliseconds: they and the system call below them use whole
/// milliseconds.
const LATE_MS: u64 = 2;
/// Maximum length of a nap, in microseconds; tasks that share one wait no longer.
const NAP_US_MAX: u64 = 1_000;

/// One nap for the whole process, as it has one clock.
static NAP: Nap = Nap::new();

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl BootTimer {
    /// Returns the elapsed time in nanoseconds, for measurements only, never for decisions.
    #[must_use]
    pub fn elapsed_ns(self) -> u64 {
        let time = rustix::time::clock_gettime(CLOCK);
        // Time since boot is never negative, and its nanoseconds are below 10^9.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }
}

#[async_trait]
impl Timer for BootTimer {
    fn elapsed(&self) -> ElapsedMillis {
        ElapsedMillis::new(self.elapsed_us() / 1000)
    }

    fn elapsed_us(&self) -> u64 {
        self.elapsed_ns() / 1000
    }

    #[allow(clippy::disallowed_methods, reason = "this is the home of asynchronous waiting")]
    async fn sleep_ms(&self, ms: u64) {
        // Tokio's clock stops while the machine is suspended, this one does not: wait in parts.
        let end = self.elapsed().saturating_add(ms);
        loop {
            let left_ms = end.since(self.elapsed());
            if left_ms == 0 {
                return;
            }
            let part_ms = left_ms.min(PART_MS.max(left_ms / PART_SHARE));
            tokio::time::sleep(std::time::Duration::from_millis(part_ms)).await;
        }
    }

    async fn sleep_us(&self, us: u64) {
        match us / 1_000 {
            0..=LATE_MS if us > 0 => {
                NAP.wait(us.min(NAP_US_MAX), self.sleep_ms(us.div_ceil(1_000))).await;
            }
            ms => self.sleep_ms(ms.saturating_sub(LATE_MS)).await,
        }
    }
}

/// A timer that stands still until it is moved. Clones share the time.
#[derive(Clone, Debug)]
pub struct ManualTimer {
    now_ms: Arc<watch::Sender<u64>>,
}

impl ManualTimer {
    /// Creates a timer that starts at `ms`.
    #[must_use]
    pub fn new(ms: u64) -> Self {
        Self { now_ms: Arc::new(watch::Sender::new(ms)) }
    }

    /// Moves the time forward by `ms` and wakes the tasks with a finished wait.
    pub fn advance_ms(&self, ms: u64) {
        self.now_ms.send_modify(|now| *now = now.saturating_add(ms));
    }

    /// Returns the number of waits in progress.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.now_ms.receiver_count()
    }
}

#[async_trait]
impl Timer for ManualTimer {
    fn elapsed(&self) -> ElapsedMillis {
        ElapsedMillis::new(*self.now_ms.borrow())
    }

    async fn sleep_ms(&self, ms: u64) {
        let mut now = self.now_ms.subscribe();
        let end = now.borrow_and_update().saturating_add(ms);
        // The sender lives in self, so the wait ends by time only.
        let _ = now.wait_for(|now| *now >= end).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn boot_time_passes_while_waiting() {
        let before = BootTimer.elapsed();
        BootTimer.sleep_ms(20).await;
        assert!(BootTimer.elapsed().since(before) >= 20);
    }

    #[tokio::test]
    async fn microseconds_pass_in_steps_none_of_which_is_too_long() {
        for us in [0_u64, 1, 300, 1_000, 2_999, 3_000, 7_500] {
            // A busy machine wakes tasks late, and naps are shared with other tasks: but not
            // always.
            let mut tries = 0;
            loop {
                let begun_us = BootTimer.elapsed_us();
                let passed_us = || BootTimer.elapsed_us() - begun_us;
                let mut steps = 0;
                while let left_us @ 1.. = us.saturating_sub(passed_us()) {
                    BootTimer.sleep_us(left_us).await;
                    steps += 1;
                }
                let late_us = passed_us() - us;
                // A sleep, two naps of a millisecond and one of the rest, or fewer. A runtime's own
                // timer would be later.
                if steps <= 4 && late_us < 500 {
                    break;
                }
                tries += 1;
                assert!(tries < 2_000, "{us} us took {steps} steps and {late_us} us more");
            }
        }
    }

    #[tokio::test]
    async fn manual_time_wakes_at_the_limit() {
        let timer = ManualTimer::new(5);
        let sleeper = tokio::spawn({
            let timer = timer.clone();
            async move {
                timer.sleep_ms(10).await;
                timer.elapsed().get()
            }
        });
        while timer.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        timer.advance_ms(9);
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        timer.advance_ms(1);
        assert_eq!(sleeper.await.unwrap(), 15);
    }
}
