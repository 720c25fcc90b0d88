//! Forecasts of what will run out, read from the store at intervals: frequent scrapes put no load
//! on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_coord::{Forecast, Node, Timer, lock, within};

/// Milliseconds for which a result counts, and until the next try after a failure.
const FRESH_MS: u64 = 60_000;
const RETRY_MS: u64 = 5_000;

/// Newest forecasts.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    known: Mutex<Arc<[Forecast]>>,
    /// Next time to read the store, in elapsed milliseconds.
    next_ms: AtomicU64,
}

impl Forecasts {
    /// Returns the current forecasts. A caller that finds them old reads the store, and waits at
    /// most this long.
    pub(super) async fn now(
        &self,
        node: &Node,
        timer: &dyn Timer,
        within_ms: u64,
    ) -> Arc<[Forecast]> {
        let now_ms = timer.elapsed().get();
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let fresh_until = now_ms.saturating_add(FRESH_MS);
        let is_first = |next_ms| {
            let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
            self.next_ms.compare_exchange(next_ms, fresh_until, set, seen).is_ok()
        };
        if now_ms >= next_ms && is_first(next_ms) {
            match within(timer, within_ms, node.forecast()).await.and_then(Result::ok) {
                Some(newest) => *lock(&self.known) = newest.into(),
                None => self.next_ms.store(now_ms.saturating_add(RETRY_MS), Ordering::Relaxed),
            }
        }
        Arc::clone(&lock(&self.known))
    }
}
