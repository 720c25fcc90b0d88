//! Elapsed time that moves when the simulation moves it, wakes sleepers in a fixed order, and lets
//! a process be frozen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use snowmint_coord::{BootTimer, Timer};
use snowmint_core::ElapsedMillis;
use tokio::sync::oneshot;

use super::random::SimRng;

/// Maximum number of rounds for tasks that retry without time passing.
const SETTLE_MAX: usize = 12;

/// True time, the same for all nodes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct TrueTime {
    state: Arc<Mutex<TimeState>>,
}

#[derive(Debug, Default)]
struct TimeState {
    now_ms: u64,
    /// Sleepers by deadline, then by order of arrival.
    sleepers: BTreeMap<(u64, u64), oneshot::Sender<()>>,
    count: u64,
    /// Number of times that a task went to the end of the queue.
    yields: u64,
}

impl TrueTime {
    fn state(&self) -> MutexGuard<'_, TimeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.state().now_ms
    }

    /// Moves time to the next deadline, and no further than `end_ms`. Its sleepers wake.
    pub(super) fn pass_until(&self, end_ms: u64) -> u64 {
        let state = &mut *self.state();
        let next_ms = loop {
            match state.sleepers.first_entry() {
                // Sleepers that were dropped must not wake others early.
                Some(first) if first.get().is_closed() => drop(first.remove()),
                Some(first) => break first.key().0.min(end_ms),
                None => break end_ms,
            }
        };
        let now_ms = state.now_ms.max(next_ms);
        state.now_ms = now_ms;
        while let Some(first) = state.sleepers.first_entry()
            && first.key().0 <= now_ms
        {
            let _ = first.remove().send(());
        }
        now_ms
    }

    /// Lets everything run that can run without time passing.
    pub(super) async fn settle(&self) {
        for _ in 0..SETTLE_MAX {
            let before = self.state().yields;
            // This task comes after all that can run, and after all that they make run.
            tokio::task::yield_now().await;
            if self.state().yields == before {
                return;
            }
        }
    }

    pub(super) async fn sleep_ms(&self, ms: u64) {
        if ms == 0 {
            self.state().yields += 1;
            return tokio::task::yield_now().await;
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            state.count += 1;
            let place = (state.now_ms.saturating_add(ms), state.count);
            state.sleepers.insert(place, sender);
        }
        // The sender is only dropped with the simulation.
        let _ = receiver.await;
    }
}

/// Gate for everything that a process waits for: shut while it is frozen (SIGSTOP, a suspended
/// machine, a long pause). Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    time: TrueTime,
    /// Waiting tasks, in order; `None` while the gate is open.
    shut: Arc<Mutex<Option<Vec<oneshot::Sender<()>>>>>,
    /// Total time for which it was shut; and since when it is.
    was_shut: Arc<Mutex<(u64, Option<u64>)>>,
}

impl Gate {
    pub(super) fn new(time: TrueTime) -> Self {
        Self { time, shut: Arc::default(), was_shut: Arc::default() }
    }

    fn was_shut(&self) -> MutexGuard<'_, (u64, Option<u64>)> {
        self.was_shut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns for how long it was shut until now.
    fn shut_ms(&self) -> u64 {
        let (past_ms, since_ms) = *self.was_shut();
        past_ms + since_ms.map_or(0, |since_ms| self.time.now_ms() - since_ms)
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn shut(&self) {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
        let now_ms = self.time.now_ms();
        self.was_shut().1.get_or_insert(now_ms);
    }

    pub(super) fn open(&self) {
        let past_ms = self.shut_ms();
        *self.was_shut() = (past_ms, None);
        let waiting = self.shut.lock().unwrap_or_else(PoisonError::into_inner).take();
        for waiter in waiting.into_iter().flatten() {
            let _ = waiter.send(());
        }
    }

    /// Returns at once, or when the process resumes.
    pub(super) async fn pass(&self) {
        loop {
            let (sender, receiver) = oneshot::channel();
            match &mut *self.shut.lock().unwrap_or_else(PoisonError::into_inner) {
                None => return,
                Some(waiting) => waiting.push(sender),
            }
            let _ = receiver.await;
        }
    }
}

/// Life of a process: tasks that wait for its end are notified in the order in which they came.
/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Life(Gate);

impl Life {
    pub(super) fn begun(time: &TrueTime) -> Self {
        let gate = Gate::new(time.clone());
        gate.shut();
        Self(gate)
    }

    pub(super) fn end(&self) {
        self.0.open();
    }

    pub(super) async fn ended(&self) {
        self.0.pass().await;
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.0.is_shut()
    }
}

/// Rate of a machine's elapsed clock, in thousandths of true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(u64);

impl Rate {
    pub(super) const TRUE: Self = Self(1_000);
    /// Slowest rate. Two clocks differ by at most one part in ten, and a member that waits by its
    /// own clock for a lease to end allows for one part in eight. Larger differences lie outside
    /// the promise.
    pub(super) const SLOWEST: Self = Self(950);
    pub(super) const FASTEST: Self = Self(1_050);
    /// Rate of a planted bug.
    pub(super) const BEYOND: Self = Self(667);

    pub(super) fn any(rng: &SimRng) -> Self {
        Self(rng.between(Self::SLOWEST.0, Self::FASTEST.0))
    }

    /// Returns what the clock shows after this much true time.
    pub(super) const fn shown_ms(self, true_ms: u64) -> u64 {
        true_ms * self.0 / Self::TRUE.0
    }

    /// Returns the true time after which the clock first shows this.
    const fn true_ms(self, shown_ms: u64) -> u64 {
        shown_ms.saturating_mul(Self::TRUE.0).div_ceil(self.0)
    }
}

/// Timer of one process: it shows its machine's elapsed time, suspend included, and wakes no task
/// while the process is frozen.
#[derive(Clone, Debug)]
pub(super) struct ProcessTimer {
    pub(super) time: TrueTime,
    pub(super) rate: Rate,
    pub(super) gate: Gate,
    /// Planted bug: the timer stops while the process is frozen.
    pub(super) sleeps: bool,
    /// Planted bug: a wait of this length never ends.
    pub(super) forgets_ms: Option<u64>,
}

#[async_trait]
impl Timer for ProcessTimer {
    fn elapsed(&self) -> ElapsedMillis {
        let frozen_ms = if self.sleeps { self.gate.shut_ms() } else { 0 };
        ElapsedMillis::new(self.rate.shown_ms(self.time.now_ms() - frozen_ms))
    }

    async fn sleep_ms(&self, ms: u64) {
        if self.forgets_ms == Some(ms) {
            return std::future::pending().await;
        }
        let now_ms = self.time.now_ms();
        let end_ms = self.rate.true_ms(self.rate.shown_ms(now_ms).saturating_add(ms));
        self.time.sleep_ms(end_ms.saturating_sub(now_ms)).await;
        self.gate.pass().await;
    }
}

/// Timer of the world's own handles: for them no time passes between two requests, however busy the
/// real machine is.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorldTimer;

#[async_trait]
impl Timer for WorldTimer {
    fn elapsed(&self) -> ElapsedMillis {
        ElapsedMillis::default()
    }

    async fn sleep_ms(&self, ms: u64) {
        BootTimer.sleep_ms(ms).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of them takes the next number of the seed's generator.
    #[tokio::test]
    async fn waiters_for_a_process_end_wake_in_order() {
        for _ in 0..20 {
            let life = Life::begun(&TrueTime::default());
            let heard = Arc::<Mutex<Vec<u32>>>::default();
            for number in 0..8 {
                let (life, heard) = (life.clone(), Arc::clone(&heard));
                tokio::spawn(async move {
                    life.ended().await;
                    heard.lock().unwrap().push(number);
                });
            }
            tokio::task::yield_now().await;
            life.end();
            tokio::task::yield_now().await;
            assert_eq!(*heard.lock().unwrap(), (0..8).collect::<Vec<_>>());
        }
    }
}
