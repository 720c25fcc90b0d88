//! The clock that a handle mints by.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmint_coord::{BootTimer, ForkGuard, Timer};
use snowmint_core::clock::Reading;
use snowmint_core::{CachedClock, Clock, ElapsedMillis, Pause, Refresher, SystemClock, UnixMillis};

use snowmint_coord::{Error, Result};

/// Ways in which a handle reads the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockChoice {
    /// The system's clock, read for each ID (about 20 ns).
    #[default]
    Precise,
    /// A stored time that a thread of the handle refreshes every
    /// [`REFRESH_EVERY_US`](snowmint_core::clock::REFRESH_EVERY_US). An ID's tick may be older by
    /// that period plus the scheduler's delay in waking the thread. The thread parks while nothing
    /// is minted and ends with the handle.
    Cached,
}

/// A clock given by the embedder.
pub(crate) type GivenClock = Arc<dyn Pause + Send + Sync>;

enum ClockKind {
    Precise(SystemClock),
    Cached { clock: Arc<CachedClock<SystemClock>>, _refresher: Refresher },
    Given(GivenClock),
}

/// Clock of one handle; each full reading also checks whether the window is due for an extension.
/// The generator takes one at least once a tick, so each ID checks only a flag that rarely changes.
pub(crate) struct HandleClock {
    kind: ClockKind,
    /// The process that opened the handle.
    fork_guard: ForkGuard,
    /// The wall time from which the window should be extended.
    check_from_ms: AtomicU64,
    /// Set while the handle must check its window before the next ID leaves it.
    check_due: AtomicBool,
}

impl HandleClock {
    pub(crate) fn new(choice: ClockChoice, given: Option<GivenClock>) -> Result<Self> {
        let kind = match (given, choice) {
            (Some(clock), _) => ClockKind::Given(clock),
            (None, ClockChoice::Precise) => ClockKind::Precise(SystemClock),
            (None, ClockChoice::Cached) => {
                let clock = Arc::new(CachedClock::new(SystemClock));
                let refresher = Refresher::spawn(Arc::clone(&clock)).map_err(|error| {
                    let message = "thread that refreshes the clock cannot start; raise the \
                                   process's thread limit";
                    Error::unavailable(message).with_source(error)
                })?;
                ClockKind::Cached { clock, _refresher: refresher }
            }
        };
        Ok(Self {
            kind,
            fork_guard: ForkGuard::here()?,
            check_from_ms: AtomicU64::new(u64::MAX),
            check_due: AtomicBool::new(false),
        })
    }

    /// Returns whether the window needs no check and this is the process that opened the handle.
    #[inline]
    pub(crate) fn needs_no_check(&self) -> bool {
        // Relaxed: the flag guards no other data, and an ID may see it one ID late.
        !self.check_due.load(Ordering::Relaxed) && self.fork_guard.is_here()
    }

    /// Sets the wall time from which the handle must check its window, and clears the flag.
    pub(crate) fn check_from(&self, wall: UnixMillis) {
        self.check_from_ms.store(wall.get(), Ordering::Relaxed);
        self.check_due.store(false, Ordering::Relaxed);
    }

    /// Returns whether this process is not the one that opened the handle.
    pub(crate) fn is_forked(&self) -> bool {
        !self.fork_guard.is_here()
    }

    /// Returns elapsed time that includes suspend, for comparison with the wall clock.
    pub(crate) fn elapsed_with_suspend(&self) -> ElapsedMillis {
        match &self.kind {
            ClockKind::Precise(_) | ClockKind::Cached { .. } => BootTimer.elapsed(),
            ClockKind::Given(clock) => clock.read().elapsed(),
        }
    }
}

impl Clock for HandleClock {
    #[inline]
    fn unix_ms(&self) -> UnixMillis {
        match &self.kind {
            ClockKind::Precise(clock) => clock.unix_ms(),
            ClockKind::Cached { clock, .. } => clock.unix_ms(),
            ClockKind::Given(clock) => clock.unix_ms(),
        }
    }

    #[inline]
    fn cached_unix_ms(&self) -> UnixMillis {
        match &self.kind {
            ClockKind::Precise(clock) => clock.cached_unix_ms(),
            ClockKind::Cached { clock, .. } => clock.cached_unix_ms(),
            ClockKind::Given(clock) => clock.cached_unix_ms(),
        }
    }

    fn read(&self) -> Reading {
        let reading = match &self.kind {
            ClockKind::Precise(clock) => clock.read(),
            ClockKind::Cached { clock, .. } => clock.read(),
            ClockKind::Given(clock) => clock.read(),
        };
        if reading.wall().get() >= self.check_from_ms.load(Ordering::Relaxed) {
            self.check_due.store(true, Ordering::Relaxed);
        }
        reading
    }
}

impl Pause for HandleClock {
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        match &self.kind {
            ClockKind::Precise(clock) => clock.pause_until(wall, at_most_ms),
            ClockKind::Cached { clock, .. } => clock.pause_until(wall, at_most_ms),
            ClockKind::Given(clock) => clock.pause_until(wall, at_most_ms),
        }
    }
}

impl fmt::Debug for HandleClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            ClockKind::Precise(_) => "HandleClock(precise)",
            ClockKind::Cached { .. } => "HandleClock(cached)",
            ClockKind::Given(_) => "HandleClock(given)",
        })
    }
}
