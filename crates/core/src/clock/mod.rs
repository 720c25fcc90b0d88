//! Sources of time.
//!
//! The interface is small: a wall time for the hot path, and a reading of wall and elapsed time
//! together for decisions. [`SystemClock`] is the default, a test controls [`ManualClock`], and
//! [`CachedClock`] caches the time of another clock.

mod cached;
mod manual;
#[cfg(feature = "std")]
mod refresher;
mod step;
#[cfg(feature = "std")]
mod system;

pub use cached::CachedClock;
pub use manual::ManualClock;
#[cfg(feature = "std")]
pub use refresher::{REFRESH_EVERY_US, Refresher};
pub use step::{ClockStep, Direction, Observer, Outcome};
pub(crate) use step::{PendingStep, StepWatch};
#[cfg(feature = "std")]
pub use system::SystemClock;

use crate::time::{ElapsedMillis, UnixMillis};

/// Wall and elapsed time, read as nearly at the same instant as the clock can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Wall time: microseconds since 1970-01-01T00:00:00Z.
    pub wall_us: u64,
    /// Elapsed time: microseconds since an arbitrary start. Never goes back.
    pub elapsed_us: u64,
}

impl Reading {
    /// Returns the wall time in milliseconds.
    #[must_use]
    pub const fn wall(self) -> UnixMillis {
        UnixMillis::new(self.wall_us / 1_000)
    }

    /// Returns the elapsed time in milliseconds.
    #[must_use]
    pub const fn elapsed(self) -> ElapsedMillis {
        ElapsedMillis::new(self.elapsed_us / 1_000)
    }
}

/// A source of time. Wall time may step at any moment; elapsed time never goes back.
pub trait Clock {
    /// Returns the wall time for the hot path. It may be cached: the clock documents its maximum
    /// age.
    fn unix_ms(&self) -> UnixMillis;

    /// Returns the current wall and elapsed time, never cached.
    fn read(&self) -> Reading;

    /// Returns the wall time if it is available at once, else [`UnixMillis::ZERO`]. The hot path
    /// only checks whether the tick is still the same, and takes a slower path when it is not.
    #[inline]
    fn cached_unix_ms(&self) -> UnixMillis {
        self.unix_ms()
    }
}

/// A clock that can also wait.
pub trait Pause: Clock {
    /// Waits until the wall time may have reached `wall`, and no longer than `at_most_ms` of
    /// elapsed time. May return early.
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64);
}

/// Implements the traits of clocks for a pointer to a type that has them.
macro_rules! of_pointer {
    ($pointer:ty) => {
        impl<T: Clock + ?Sized> Clock for $pointer {
            #[inline]
            fn unix_ms(&self) -> UnixMillis {
                (**self).unix_ms()
            }

            #[inline]
            fn read(&self) -> Reading {
                (**self).read()
            }

            #[inline]
            fn cached_unix_ms(&self) -> UnixMillis {
                (**self).cached_unix_ms()
            }
        }

        impl<T: Pause + ?Sized> Pause for $pointer {
            fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
                (**self).pause_until(wall, at_most_ms);
            }
        }
    };
}

of_pointer!(&T);
#[cfg(feature = "std")]
of_pointer!(std::sync::Arc<T>);
