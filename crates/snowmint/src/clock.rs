//! The clock that a handle mints by.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmint_coord::{BootTimer, Home, Timer};
use snowmint_core::clock::Reading;
use snowmint_core::{CachedClock, Clock, ElapsedMillis, Pause, Refresher, SystemClock, UnixMillis};

use crate::{Error, ErrorKind, Result};

/// How a handle reads the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockChoice {
    /// The system's clock, read for each ID (about 20 ns).
    #[default]
    Precise,
    /// A stored time that a thread of the handle refreshes every
    /// [`REFRESH_EVERY_US`](snowmint_core::clock::REFRESH_EVERY_US): an ID's tick may be older by that
    /// much, plus what the scheduler takes to wake the thread. The thread parks while nobody mints and
    /// ends with the handle.
    Cached,
}

/// A clock given by the embedder.
pub(crate) type GivenClock = Arc<dyn Pause + Send + Sync>;

enum Kind {
    Precise(SystemClock),
    Cached { clock: Arc<CachedClock<SystemClock>>, _refresher: Refresher },
    Given(GivenClock),
}

/// The clock of one handle, which also notices what the handle must attend to. It is read once a tick
/// at least, so nothing has to be asked for each ID but one word that hardly ever changes.
pub(crate) struct HandleClock {
    kind: Kind,
    /// The process that opened the handle.
    home: Home,
    /// The wall time from which the window should be extended.
    attend_from_ms: AtomicU64,
    /// The handle must look after itself before the next ID leaves it.
    attend: AtomicBool,
}

impl HandleClock {
    pub(crate) fn new(choice: ClockChoice, given: Option<GivenClock>) -> Result<Self> {
        let kind = match (given, choice) {
            (Some(clock), _) => Kind::Given(clock),
            (None, ClockChoice::Precise) => Kind::Precise(SystemClock),
            (None, ClockChoice::Cached) => {
                let clock = Arc::new(CachedClock::new(SystemClock));
                let refresher = Refresher::spawn(Arc::clone(&clock)).map_err(|error| {
                    let what = "a thread to refresh the clock".into();
                    Error::new("open worker", ErrorKind::Unavailable { what }).with_source(error)
                })?;
                Kind::Cached { clock, _refresher: refresher }
            }
        };
        Ok(Self {
            kind,
            home: Home::here()?,
            attend_from_ms: AtomicU64::new(u64::MAX),
            attend: AtomicBool::new(false),
        })
    }

    /// Whether the handle has nothing to look after, in the process that opened it.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        // Relaxed: the flag alone says something, and it may be seen one ID late.
        !self.attend.load(Ordering::Relaxed) && self.home.is_here()
    }

    /// From `wall` on the handle has something to look after.
    pub(crate) fn attend_from(&self, wall: UnixMillis) {
        self.attend_from_ms.store(wall.get(), Ordering::Relaxed);
        self.attend.store(false, Ordering::Relaxed);
    }

    /// Whether this is another process than the one that opened the handle.
    pub(crate) fn is_forked(&self) -> bool {
        !self.home.is_here()
    }

    /// Elapsed time that counts suspend, to compare the wall clock with.
    pub(crate) fn elapsed_with_suspend(&self) -> ElapsedMillis {
        match &self.kind {
            Kind::Precise(_) | Kind::Cached { .. } => BootTimer.elapsed(),
            Kind::Given(clock) => clock.read().elapsed(),
        }
    }
}

impl Clock for HandleClock {
    #[inline]
    fn unix_ms(&self) -> UnixMillis {
        match &self.kind {
            Kind::Precise(clock) => clock.unix_ms(),
            Kind::Cached { clock, .. } => clock.unix_ms(),
            Kind::Given(clock) => clock.unix_ms(),
        }
    }

    #[inline]
    fn glance(&self) -> UnixMillis {
        match &self.kind {
            Kind::Precise(clock) => clock.glance(),
            Kind::Cached { clock, .. } => clock.glance(),
            Kind::Given(clock) => clock.glance(),
        }
    }

    fn read(&self) -> Reading {
        let reading = match &self.kind {
            Kind::Precise(clock) => clock.read(),
            Kind::Cached { clock, .. } => clock.read(),
            Kind::Given(clock) => clock.read(),
        };
        if reading.wall().get() >= self.attend_from_ms.load(Ordering::Relaxed) {
            self.attend.store(true, Ordering::Relaxed);
        }
        reading
    }
}

impl Pause for HandleClock {
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        match &self.kind {
            Kind::Precise(clock) => clock.pause_until(wall, at_most_ms),
            Kind::Cached { clock, .. } => clock.pause_until(wall, at_most_ms),
            Kind::Given(clock) => clock.pause_until(wall, at_most_ms),
        }
    }
}

impl fmt::Debug for HandleClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Precise(_) => "HandleClock(precise)",
            Kind::Cached { .. } => "HandleClock(cached)",
            Kind::Given(_) => "HandleClock(given)",
        })
    }
}
