//! A thread that keeps a [`CachedClock`] fresh, for embedders that want one.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{CachedClock, Clock};

/// Default interval between two refreshes, in microseconds.
pub const REFRESH_EVERY_US: u64 = 500;

/// Time without a use after which the refresher parks, in microseconds.
const IDLE_US: u64 = 100_000;

/// A thread that refreshes a [`CachedClock`] until this handle is dropped.
///
/// **Freshness.** A cached time is at most `every` old, plus the scheduler's delay in waking the
/// thread; [`Refresher::gap_us_max`] is the longest gap seen. **Idle.** After 0.1 s without a use
/// it empties the cache and parks: an idle process has no wake-ups, and the next read goes to the
/// underlying clock. **Ends** with its handle.
#[derive(Debug)]
pub struct Refresher {
    shared: Arc<RefresherInner>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct RefresherInner {
    stop: AtomicBool,
    gap_us_max: AtomicU64,
}

impl Refresher {
    /// Starts a thread that refreshes the clock of `owner` every [`REFRESH_EVERY_US`]. The owner is
    /// the clock itself, shared by several generators, or a generator that contains it. The second
    /// saves one pointer for each ID.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn spawn<T, C>(owner: Arc<T>) -> io::Result<Self>
    where
        T: AsRef<CachedClock<C>> + Send + Sync + 'static,
        C: Clock + 'static,
    {
        Self::spawn_every(owner, Duration::from_micros(REFRESH_EVERY_US))
    }

    /// Starts a thread that refreshes the clock of `owner` at the given interval.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn spawn_every<T, C>(owner: Arc<T>, every: Duration) -> io::Result<Self>
    where
        T: AsRef<CachedClock<C>> + Send + Sync + 'static,
        C: Clock + 'static,
    {
        let shared = Arc::new(RefresherInner::default());
        let thread = thread::Builder::new().name("snowmint-clock".into()).spawn({
            let shared = Arc::clone(&shared);
            move || run((*owner).as_ref(), &shared, every)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the longest time between two refreshes so far, in microseconds of elapsed time.
    #[must_use]
    pub fn gap_us_max(&self) -> u64 {
        self.shared.gap_us_max.load(Ordering::Relaxed)
    }
}

impl Drop for Refresher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic, so there is nothing to propagate.
            let _ = thread.join();
        }
    }
}

fn run<C: Clock>(clock: &CachedClock<C>, shared: &RefresherInner, every: Duration) {
    clock.refreshed_by(Some(thread::current()));
    let every_us = u64::try_from(every.as_micros()).unwrap_or(u64::MAX).max(1);
    let mut refreshed_us = None;
    let mut unused_us: u64 = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        clock.refresh();
        let now_us = clock.get_ref().read().elapsed_us;
        if let Some(last_us) = refreshed_us.replace(now_us) {
            shared.gap_us_max.fetch_max(now_us.saturating_sub(last_us), Ordering::Relaxed);
        }
        if clock.take_used() {
            unused_us = 0;
        } else {
            unused_us = unused_us.saturating_add(every_us);
        }
        if unused_us < IDLE_US {
            thread::park_timeout(every);
        } else {
            clock.park();
            refreshed_us = None;
            unused_us = 0;
        }
    }
    clock.refreshed_by(None);
    clock.forget();
}
