//! The two kinds of time, and the window between two wall times.
//!
//! Wall time goes into IDs; elapsed time decides pacing and leases. No conversion between the two
//! exists, so that a clock step cannot extend a lease.

use core::fmt;

/// Wall time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted. It may step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// 1970-01-01T00:00:00Z.
    pub const ZERO: Self = Self(0);
    /// A time later than any layout reaches.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time of this many milliseconds since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns the number of milliseconds since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the time later by `ms`, at most [`UnixMillis::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the time earlier by `ms`, at least the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Returns the milliseconds from `earlier` to `self`; zero when `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms since 1970", self.0)
    }
}

/// Elapsed time: milliseconds since an arbitrary start, never going back. If the clock can, it
/// counts the time of a suspended machine. Never goes into an ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElapsedMillis(u64);

impl ElapsedMillis {
    /// Returns the time of this many milliseconds since the clock's own start.
    #[inline]
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns the number of milliseconds since the clock's own start.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the time later by `ms`.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds from `earlier` to `self`; zero when `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Time since a layout's epoch, in the layout's own unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The first tick of an epoch.
    pub const ZERO: Self = Self(0);

    /// Returns the tick with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns how many units have passed since the epoch.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {}", self.0)
    }
}

/// The range that a lease mints from: wall times from `floor` (inclusive) to `mark` (exclusive). A
/// tick may be minted only if it lies wholly inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the range: every earlier time has been promised to another lease.
    pub floor: UnixMillis,
    /// End of the range: no time from here on has been promised yet.
    pub mark: UnixMillis,
}

impl Window {
    /// A window without bounds, for a worker number that its user keeps unique.
    pub const UNBOUNDED: Self = Self { floor: UnixMillis::ZERO, mark: UnixMillis::MAX };

    /// Returns the window from `floor` to `mark`; empty when `mark` is not above `floor`.
    #[must_use]
    pub const fn new(floor: UnixMillis, mark: UnixMillis) -> Self {
        Self { floor, mark }
    }
}
