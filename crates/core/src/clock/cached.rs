//! A clock that caches the wall time of another clock.

use super::{Clock, Pause, Reading};
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded};
use crate::time::UnixMillis;

/// Value of an empty cache: reads go to the underlying clock.
const EMPTY: u64 = 0;

/// A cached wall time, for a hot path in which a clock read costs more than the ID (about 21 ns
/// against 5 ns).
///
/// The cache starts no thread. Without refreshes it is empty, and every read goes to the underlying
/// clock. An embedder with a loop calls [`CachedClock::refresh`] there and [`CachedClock::forget`]
/// when the loop stops. An embedder without a loop spawns a [`Refresher`](super::Refresher).
///
/// **Freshness.** A cached time is as old as the last refresh; [`Refresher`](super::Refresher)
/// states its bound. Generators in a hot loop do not rely on it alone. At the end of each range
/// they take (at most [`GRANT_MAX`](crate::generator::GRANT_MAX) IDs) they read the underlying
/// clock, and cache that time.
#[derive(Debug)]
pub struct CachedClock<C> {
    /// Cached wall time in milliseconds: read by every mint, written once a refresh.
    stored_ms: Padded<AtomicU64>,
    /// Touched once a tick at most.
    idle: Padded<Idle>,
    clock: C,
}

/// Signals between readers and the refresher.
#[derive(Debug)]
struct Idle {
    /// A reader read the underlying clock since the last [`CachedClock::take_used`].
    used: AtomicBool,
    /// The refresher is parked, and the next use must wake it.
    #[cfg(feature = "std")]
    parked: AtomicBool,
    #[cfg(feature = "std")]
    refresher: std::sync::Mutex<Option<std::thread::Thread>>,
}

impl<C: Clock> CachedClock<C> {
    /// Returns an empty cache in front of `clock`.
    pub fn new(clock: C) -> Self {
        Self {
            stored_ms: Padded(AtomicU64::new(EMPTY)),
            idle: Padded(Idle {
                used: AtomicBool::new(false),
                #[cfg(feature = "std")]
                parked: AtomicBool::new(false),
                #[cfg(feature = "std")]
                refresher: std::sync::Mutex::new(None),
            }),
            clock,
        }
    }

    /// Returns the underlying clock.
    pub fn get_ref(&self) -> &C {
        &self.clock
    }

    /// Caches the current time. Readers get it until the next refresh.
    pub fn refresh(&self) {
        self.stored_ms.0.store(self.clock.unix_ms().get(), Ordering::Relaxed);
    }

    /// Empties the cache: from here on reads go to the underlying clock.
    pub fn forget(&self) {
        self.stored_ms.0.store(EMPTY, Ordering::Relaxed);
    }

    /// Returns whether a reader read the underlying clock since the last call. Generators do so at
    /// least once a tick; a refresher that calls this less often can detect idleness.
    pub fn take_used(&self) -> bool {
        self.idle.0.used.swap(false, Ordering::SeqCst)
    }

    /// Returns whether the cache holds a time.
    pub fn is_warm(&self) -> bool {
        self.stored_ms.0.load(Ordering::Relaxed) != EMPTY
    }

    fn note_use(&self) {
        // A load first: the cache line stays shared while many threads read.
        if !self.idle.0.used.load(Ordering::SeqCst) {
            self.idle.0.used.store(true, Ordering::SeqCst);
        }
        #[cfg(feature = "std")]
        self.wake_refresher();
    }

    /// Wakes a parked refresher. Sequentially consistent with [`CachedClock::park`]: either the
    /// refresher sees the use and does not park, or this thread sees that it is parked and wakes
    /// it.
    #[cfg(feature = "std")]
    fn wake_refresher(&self) {
        let parked = &self.idle.0.parked;
        if !(parked.load(Ordering::SeqCst) && parked.swap(false, Ordering::SeqCst)) {
            return;
        }
        let Ok(refresher) = self.idle.0.refresher.lock() else { return };
        if let Some(thread) = refresher.as_ref() {
            thread.unpark();
        }
    }

    /// Sets the thread that calls [`CachedClock::park`].
    #[cfg(feature = "std")]
    pub(super) fn refreshed_by(&self, thread: Option<std::thread::Thread>) {
        if let Ok(mut refresher) = self.idle.0.refresher.lock() {
            *refresher = thread;
        }
    }

    /// Empties the cache and parks the calling thread until the next read of the time.
    #[cfg(feature = "std")]
    pub(super) fn park(&self) {
        self.forget();
        self.idle.0.parked.store(true, Ordering::SeqCst);
        if !self.idle.0.used.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.idle.0.parked.store(false, Ordering::SeqCst);
    }

    #[cold]
    fn read_through(&self) -> UnixMillis {
        self.note_use();
        self.clock.unix_ms()
    }
}

impl<C> AsRef<Self> for CachedClock<C> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<C: Clock> Clock for CachedClock<C> {
    #[inline]
    fn unix_ms(&self) -> UnixMillis {
        // Relaxed: no other data depends on this word. A time older than another thread saw is
        // within the bound.
        let stored_ms = self.stored_ms.0.load(Ordering::Relaxed);
        if stored_ms == EMPTY { self.read_through() } else { UnixMillis::new(stored_ms) }
    }

    fn read(&self) -> Reading {
        self.note_use();
        let reading = self.clock.read();
        // Keeps a warm cache fresh. A failed exchange means that it was emptied or refreshed since.
        let stored_ms = self.stored_ms.0.load(Ordering::Relaxed);
        if stored_ms != EMPTY && stored_ms != reading.wall().get() {
            let _ = self.stored_ms.0.compare_exchange(
                stored_ms,
                reading.wall().get(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        reading
    }

    /// Returns the cached time, or [`UnixMillis::ZERO`] while the cache is empty.
    #[inline]
    fn cached_unix_ms(&self) -> UnixMillis {
        UnixMillis::new(self.stored_ms.0.load(Ordering::Relaxed))
    }
}

impl<C: Pause> Pause for CachedClock<C> {
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        self.clock.pause_until(wall, at_most_ms);
    }
}
