//! The two kinds of time, and the window between two wall times.
//!
//! Wall time goes into IDs; elapsed time decides pacing and leases. There is no conversion between
//! the two, so that a lease cannot be extended by a clock step.

use core::fmt;

/// Wall time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted. May step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// 1970-01-01T00:00:00Z.
    pub const ZERO: Self = Self(0);
    /// Later than any layout reaches.
    pub const MAX: Self = Self(u64::MAX);

    /// Milliseconds since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// The number of milliseconds since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Later by `ms`, and [`UnixMillis::MAX`] past the end.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Earlier by `ms`, and zero before the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to `self`; zero when `earlier` is later.
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

/// Elapsed time: milliseconds since an arbitrary start, never going back. Where the clock can, it
/// counts the time that the machine was suspended. Never goes into an ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElapsedMillis(u64);

impl ElapsedMillis {
    /// Milliseconds since the clock's own start.
    #[inline]
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// The number of milliseconds since the clock's own start.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Later by `ms`.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`; zero when `earlier` is later.
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

    /// The tick with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// How many units have passed since the epoch.
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

/// What a lease may mint from: wall times from `floor` (inclusive) to `mark` (exclusive). A tick
/// may be minted only if it lies wholly inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Everything before it has been promised to somebody else.
    pub floor: UnixMillis,
    /// Everything from here on has been promised to nobody yet.
    pub mark: UnixMillis,
}

impl Window {
    /// No bound at all: for a worker number that its user vouches for.
    pub const UNBOUNDED: Self = Self { floor: UnixMillis::ZERO, mark: UnixMillis::MAX };

    /// From `floor` to `mark`; empty when `mark` is not above `floor`.
    #[must_use]
    pub const fn new(floor: UnixMillis, mark: UnixMillis) -> Self {
        Self { floor, mark }
    }
}
