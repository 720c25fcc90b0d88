//! Identities: marks, terms and incarnations. They import nothing of this crate.

use std::fmt;

use snowmint_core::UnixMillis;

/// Exclusive bound of everything promised so far: Unix milliseconds for worker slots, a number for
/// segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// The mark before any promise.
    pub const ZERO: Self = Self(0);
    /// The highest mark that every store can keep: 63 bits.
    pub const MAX: Self = Self(i64::MAX.unsigned_abs());

    /// Creates a mark at `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the value.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns a mark beyond anything that counters can reach in `times` lost states: 2^40 for each.
    /// Never the end of all numbers.
    pub(crate) fn leapt(self, times: u64) -> Self {
        let last = Self(Self::MAX.0 - 1);
        let leap = times.saturating_mul(1 << 40);
        Self(self.0.saturating_add(leap)).min(last).max(self)
    }

    /// Returns how many leaps end at or below this number of a counter: one more exceeds it.
    pub(crate) const fn leaps_below(number: u64) -> u64 {
        number >> 40
    }

    /// Returns the mark of a worker slot as a time.
    #[must_use]
    pub const fn unix_millis(self) -> UnixMillis {
        UnixMillis::new(self.0)
    }
}

impl From<UnixMillis> for Mark {
    fn from(time: UnixMillis) -> Self {
        Self(time.get())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Fencing number of a slot. Every claim and every release raises it by one; only the newest term
/// may move the mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(u64);

impl Term {
    /// The term before the first claim.
    pub const ZERO: Self = Self(0);

    /// Creates the term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the following term. Each claim raises the term by one, so 64 bits do not run out.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the term after `recoveries` recoveries, lost ones included. It rises further than
    /// claims can have raised it in any lost state: by 2^32 for each recovery, and by one such step
    /// in any case.
    #[must_use]
    pub fn leap(self, recoveries: u64) -> Self {
        let more = recoveries.saturating_sub(self.leaps()).clamp(1, u64::from(u32::MAX));
        Self(self.0.saturating_add(more << 32))
    }

    /// Returns the number of such steps.
    pub(crate) const fn leaps(self) -> u64 {
        self.0 >> 32
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {}", self.0)
    }
}

/// Identity of one open handle on a store. Random, so that a restarted, forked or copied process is
/// another member, whatever its label. Text form: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// Creates an incarnation from its number. [`random::incarnation`](crate::platform::random::incarnation)
    /// makes new ones.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// Returns the incarnation by which servers register an embedded client with a token; `token`
    /// and `member` are hashes. So every process of the namespace recognises an embedded client and
    /// its token. Other incarnations never have this prefix.
    #[must_use]
    pub fn of_program(token: u32, member: u64) -> Self {
        let (kind, token) = (u128::from(PROGRAM) << 96, u128::from(token) << 64);
        Self(kind | token | u128::from(member))
    }

    /// Returns the hash of an embedded client's token; `None` for a process that uses the store
    /// directly.
    #[must_use]
    pub fn token(self) -> Option<u32> {
        let words = [96, 64].map(|shift| u32::try_from((self.0 >> shift) & u128::from(u32::MAX)));
        let [Ok(kind), Ok(token)] = words else { return None };
        (kind == PROGRAM).then_some(token)
    }
}

/// Prefix of the incarnations of embedded clients. The highest bit is set, which randomly drawn
/// incarnations never have.
pub(crate) const PROGRAM: u32 = 0xf706_9a11;

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}
