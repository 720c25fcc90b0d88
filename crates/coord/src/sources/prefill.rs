//! A bounded queue in front of a generator, filled ahead of need, like Baidu's cached generator.
//!
//! Taking from it costs one pop, whatever the generator does. A filler refills it when less than
//! the threshold is left, and at intervals where the definition sets one. It requests no more IDs
//! than the queue has room for, so no ID of a tick that fills the queue half-way is lost. A
//! callback that fails is counted and stops nothing.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_queue::ArrayQueue;
use snowmint_core::{MintError, Short};
use tokio::sync::Notify;

use crate::spec::PrefillPlan;

/// IDs that the filler requests from the generator at a time.
const CHUNK: usize = 1_024;

/// Callback for an ID that finds the queue full. Without it, such IDs are discarded and counted.
pub type FullHook = Arc<dyn Fn(u64) + Send + Sync>;
/// Callback for an empty queue; may return an ID from another place.
pub type EmptyHook = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// Callbacks of an application. A callback that panics is counted, and the queue keeps working.
#[derive(Clone, Default)]
pub struct PrefillHooks {
    /// Takes an ID that finds the queue full.
    pub on_full: Option<FullHook>,
    /// Supplies an ID when the queue is empty.
    pub on_empty: Option<EmptyHook>,
}

impl fmt::Debug for PrefillHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefillHooks")
            .field("on_full", &self.on_full.is_some())
            .field("on_empty", &self.on_empty.is_some())
            .finish()
    }
}

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefillStats {
    /// Most IDs that it can hold.
    pub capacity: u64,
    /// IDs put in so far.
    pub tail: u64,
    /// IDs taken out so far.
    pub cursor: u64,
    /// IDs that found it full and were discarded.
    pub discarded: u64,
    /// Takers that found it empty.
    pub dry: u64,
    /// Callbacks that failed.
    pub failed_callbacks: u64,
}

/// Queue of prefilled IDs.
pub(crate) struct Prefill {
    plan: PrefillPlan,
    queue: ArrayQueue<u64>,
    tail: AtomicU64,
    cursor: AtomicU64,
    discarded: AtomicU64,
    dry: AtomicU64,
    failed_callbacks: AtomicU64,
    hooks: Mutex<PrefillHooks>,
    /// Whether the filler was called and has not come yet.
    called: AtomicBool,
    closed: AtomicBool,
    needed: Notify,
    filled: Notify,
    served: Notify,
    /// Reason why the last fill stopped short.
    error: Mutex<Option<MintError>>,
}

impl Prefill {
    pub(crate) fn new(plan: PrefillPlan) -> Self {
        Self {
            queue: ArrayQueue::new(plan.capacity.max(1)),
            plan,
            tail: AtomicU64::new(0),
            cursor: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            dry: AtomicU64::new(0),
            failed_callbacks: AtomicU64::new(0),
            hooks: Mutex::default(),
            called: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            needed: Notify::new(),
            filled: Notify::new(),
            served: Notify::new(),
            error: Mutex::default(),
        }
    }

    pub(crate) const fn plan(&self) -> &PrefillPlan {
        &self.plan
    }

    pub(crate) fn set_hooks(&self, hooks: PrefillHooks) {
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks;
    }

    pub(crate) fn hooks(&self) -> PrefillHooks {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the next ID, if there is one.
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        let id = self.queue.pop();
        if id.is_some() {
            // Relaxed: no decision depends on this count.
            self.cursor.fetch_add(1, Ordering::Relaxed);
        }
        if self.queue.len() < self.plan.refill_below {
            self.call_filler();
        }
        id.or_else(|| self.take_from_callback())
    }

    /// Takes the next ID for a queue that replaces this one.
    pub(crate) fn take_prefilled(&self) -> Option<u64> {
        self.queue.pop()
    }

    #[cold]
    fn take_from_callback(&self) -> Option<u64> {
        self.dry.fetch_add(1, Ordering::Relaxed);
        let on_empty = self.hooks().on_empty?;
        self.guarded(|| on_empty()).flatten()
    }

    /// Requests another fill: the last one was cut short.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::Release);
    }

    /// Calls the filler once until it comes, however many takers ask.
    fn call_filler(&self) {
        if !self.called.load(Ordering::Relaxed) && !self.called.swap(true, Ordering::AcqRel) {
            self.needed.notify_one();
        }
    }

    fn guarded<T>(&self, callback: impl FnOnce() -> T) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(callback));
        if outcome.is_err() {
            self.failed_callbacks.fetch_add(1, Ordering::Relaxed);
        }
        outcome.ok()
    }

    /// Puts an ID at the end; a full queue gives it to `on_full`, or discards it.
    pub(crate) fn put(&self, id: u64) {
        match self.queue.push(id) {
            Ok(()) => {
                self.tail.fetch_add(1, Ordering::Relaxed);
            }
            Err(id) => match self.hooks().on_full {
                Some(on_full) => drop(self.guarded(|| on_full(id))),
                None => {
                    self.discarded.fetch_add(1, Ordering::Relaxed);
                }
            },
        }
    }

    /// Fills the queue from a generator until it is full or the generator fails. One call at a
    /// time.
    pub(crate) fn fill_from(
        &self,
        mut try_fill: impl FnMut(&mut [u64]) -> Result<(), Short>,
    ) -> Result<(), MintError> {
        // From here on a taker that finds too few IDs calls again.
        self.called.store(false, Ordering::Release);
        let mut chunk = [0; CHUNK];
        loop {
            let room = self.queue.capacity().saturating_sub(self.queue.len()).min(CHUNK);
            let Some(out) = chunk.get_mut(..room).filter(|out| !out.is_empty()) else {
                self.note(None);
                return Ok(());
            };
            let outcome = try_fill(out);
            let made = outcome.map_or_else(|short| short.made, |()| room);
            for id in out.iter().take(made) {
                self.put(*id);
            }
            if made > 0 {
                self.filled.notify_waiters();
            }
            if let Err(short) = outcome {
                self.note(Some(short.error));
                return Err(short.error);
            }
        }
    }

    fn note(&self, error: Option<MintError>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Returns the reason why the last fill stopped short, if it did.
    pub(crate) fn error(&self) -> Option<MintError> {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the filler is needed.
    pub(crate) async fn needed(&self) {
        if !self.called.load(Ordering::Acquire) && !self.is_closed() {
            self.needed.notified().await;
        }
    }

    /// Returns the notification of each time that IDs are put in.
    pub(crate) const fn filled(&self) -> &Notify {
        &self.filled
    }

    /// Records that there is a new generator.
    pub(crate) fn serve(&self) {
        self.served.notify_one();
    }

    /// Waits until there is a generator newer than at the last call, or the queue is closed.
    pub(crate) async fn served(&self) {
        if !self.is_closed() {
            self.served.notified().await;
        }
    }

    /// Ends the filler. IDs in the queue are never issued.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        while self.queue.pop().is_some() {}
        self.needed.notify_one();
        self.served.notify_one();
        self.filled.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn stats(&self) -> PrefillStats {
        PrefillStats {
            capacity: u64::try_from(self.queue.capacity()).unwrap_or(u64::MAX),
            tail: self.tail.load(Ordering::Relaxed),
            cursor: self.cursor.load(Ordering::Relaxed),
            discarded: self.discarded.load(Ordering::Relaxed),
            dry: self.dry.load(Ordering::Relaxed),
            failed_callbacks: self.failed_callbacks.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Prefill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefill").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use snowmint_core::UnixMillis;

    use super::*;

    fn prefill(capacity: usize) -> Prefill {
        Prefill::new(PrefillPlan {
            capacity,
            boost: 0,
            refill_below: (capacity / 2).max(1),
            threshold_percent: 50,
            schedule_ms: None,
            wait_max_ms: None,
        })
    }

    /// A generator that counts, with `per_tick` IDs in a tick: after each tick it fails once.
    fn ticks(per_tick: u64) -> impl FnMut(&mut [u64]) -> Result<(), Short> {
        let mut next = 0;
        move |out| {
            for (made, slot) in out.iter_mut().enumerate() {
                if next % (per_tick + 1) == per_tick {
                    next += 1;
                    let error = MintError::TickFull { next: UnixMillis::ZERO, retry_after_ms: 1 };
                    return Err(Short { made, error });
                }
                *slot = next;
                next += 1;
            }
            Ok(())
        }
    }

    /// The first `count` IDs that `ticks` makes.
    fn all(per_tick: u64, count: usize) -> Vec<u64> {
        (0..).filter(|id| id % (per_tick + 1) != per_tick).take(count).collect()
    }

    #[test]
    fn no_id_of_a_part_filled_tick_is_lost_or_doubled() {
        for (capacity, per_tick) in [(1, 1), (1, 7), (2, 3), (8, 5), (16, 16), (1_024, 1_000)] {
            let prefill = prefill(capacity);
            let mut generator = ticks(per_tick);
            let mut taken = Vec::new();
            for round in 0..500 {
                let _ = prefill.fill_from(&mut generator);
                for _ in 0..=round % capacity {
                    taken.extend(prefill.take());
                }
            }
            taken.extend(std::iter::from_fn(|| prefill.take()));
            assert_eq!(taken, all(per_tick, taken.len()), "{capacity} {per_tick}");
            let stats = prefill.stats();
            assert_eq!((stats.tail, stats.cursor), (stats.tail, stats.tail));
            assert_eq!(stats.discarded, 0);
            assert!(stats.tail >= 250);
        }
    }

    #[test]
    fn many_takers_never_get_the_same_id_even_at_size_one() {
        for capacity in [1, 2, 64] {
            let prefill = prefill(capacity);
            const WANTED: usize = 60_000;
            let taken: Vec<Vec<u64>> = thread::scope(|scope| {
                let takers: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut own = Vec::new();
                            while !prefill.is_closed() {
                                match prefill.take() {
                                    Some(id) => own.push(id),
                                    None => thread::yield_now(),
                                }
                            }
                            own
                        })
                    })
                    .collect();
                let mut generator = ticks(100);
                while prefill.stats().cursor < WANTED as u64 {
                    let _ = prefill.fill_from(&mut generator);
                    thread::yield_now();
                }
                // All IDs are taken before the takers stop.
                while prefill.stats().cursor < prefill.stats().tail {
                    thread::yield_now();
                }
                prefill.close();
                takers.into_iter().map(|taker| taker.join().unwrap()).collect()
            });
            let count: usize = taken.iter().map(Vec::len).sum();
            let distinct: HashSet<u64> = taken.iter().flatten().copied().collect();
            assert_eq!(distinct.len(), count, "size {capacity}: an ID came twice");
            assert!(count >= WANTED);
            let mut sorted: Vec<_> = distinct.into_iter().collect();
            sorted.sort_unstable();
            assert_eq!(sorted, all(100, count), "size {capacity}: an ID was lost");
            assert!(taken.iter().all(|own| own.is_sorted()), "each taker's IDs increase");
        }
    }

    #[test]
    fn id_for_a_full_queue_is_discarded_or_passed_to_the_hook() {
        let prefill = prefill(2);
        for id in 1..=5 {
            prefill.put(id);
        }
        assert_eq!((prefill.stats().tail, prefill.stats().discarded), (2, 3));
        let rejected = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&rejected);
        let on_full: FullHook = Arc::new(move |id| sink.lock().unwrap().push(id));
        prefill.set_hooks(PrefillHooks { on_full: Some(on_full), on_empty: None });
        prefill.put(6);
        assert_eq!(*rejected.lock().unwrap(), [6]);
        assert_eq!(prefill.stats().discarded, 3);
    }

    #[test]
    fn empty_queue_calls_the_hook_and_counts() {
        let prefill = prefill(2);
        assert_eq!(prefill.take(), None);
        let on_empty: EmptyHook = Arc::new(|| Some(99));
        prefill.set_hooks(PrefillHooks { on_full: None, on_empty: Some(on_empty) });
        assert_eq!(prefill.take(), Some(99));
        let stats = prefill.stats();
        assert_eq!((stats.dry, stats.cursor), (2, 0));
    }

    #[test]
    fn callbacks_that_fail_stop_no_later_fill() {
        let prefill = prefill(4);
        let on_full: FullHook = Arc::new(|id| panic!("no room for {id}"));
        let on_empty: EmptyHook = Arc::new(|| panic!("dry"));
        prefill.set_hooks(PrefillHooks { on_full: Some(on_full), on_empty: Some(on_empty) });
        assert_eq!(prefill.take(), None);
        let mut generator = ticks(1_000);
        for _ in 0..3 {
            prefill.fill_from(&mut generator).unwrap();
            prefill.put(7);
            while prefill.take().is_some() {}
        }
        let stats = prefill.stats();
        assert_eq!((stats.tail, stats.cursor), (12, 12));
        assert_eq!(stats.failed_callbacks, 7);
    }

    #[tokio::test]
    async fn the_filler_is_called_below_the_threshold_and_once() {
        let prefill = prefill(8);
        prefill.needed().await;
        let mut generator = ticks(1_000);
        prefill.fill_from(&mut generator).unwrap();
        let is_called = || prefill.called.load(Ordering::SeqCst);
        for taken in 1..=8 {
            prefill.take().unwrap();
            assert_eq!(is_called(), taken > 4, "{taken} taken of 8");
        }
        prefill.needed().await;
        prefill.fill_from(&mut generator).unwrap();
        assert!(!is_called());
    }
}
