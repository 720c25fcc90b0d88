//! What will run out, asked of the store now and then: a scrape every few seconds is no load on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use snowmint_coord::{Forecast, Node, Timer};

/// How long an answer counts, and how soon after none the store is asked again, in milliseconds.
const FRESH_MS: u64 = 60_000;
const RETRY_MS: u64 = 5_000;

/// The newest forecasts.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    known: Mutex<Arc<[Forecast]>>,
    /// When the store is asked next, in elapsed milliseconds.
    next_ms: AtomicU64,
}

impl Forecasts {
    /// What is known now. A caller that finds it old asks the store, and waits at most this long.
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
            let asked = tokio::select! {
                biased;
                asked = node.forecast() => asked.ok(),
                () = timer.sleep_ms(within_ms) => None,
            };
            match asked {
                Some(asked) => *self.lock() = asked.into(),
                None => self.next_ms.store(now_ms.saturating_add(RETRY_MS), Ordering::Relaxed),
            }
        }
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<[Forecast]>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
