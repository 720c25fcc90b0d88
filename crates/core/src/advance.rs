//! The whole minting algorithm, as one pure function.
//!
//! Every generator, the property tests, the model checker and the simulator call [`advance`]; an
//! atomic only retries it. It reads no clock, and returns the same result for the same arguments.
//!
//! Tick and sequence are one number here, an [`Ordinal`]: `tick << sequence_bits | sequence`. It
//! only ever grows, and each ordinal is taken once. This proves uniqueness; the layout decides
//! where an ordinal's bits go in an ID.

use crate::time::Tick;

/// A position in a generator's order: tick and sequence as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(u64);

impl Ordinal {
    /// Returns the ordinal with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the first ordinal of a tick. Ticks past every layout give the highest ordinal.
    #[must_use]
    pub const fn first_of(tick: u64, rules: &Rules) -> Self {
        let bits = rules.sequence_bits as u32;
        if tick > u64::MAX >> bits { Self(u64::MAX) } else { Self(tick << bits) }
    }

    /// Returns the tick.
    #[must_use]
    pub const fn tick(self, rules: &Rules) -> u64 {
        self.0 >> rules.sequence_bits
    }

    /// Returns the sequence within the tick.
    #[must_use]
    pub const fn sequence(self, rules: &Rules) -> u64 {
        self.0 & rules.sequence_max()
    }
}

/// The sequence number with which a tick begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceStart {
    /// Number 0.
    #[default]
    Zero,
    /// A number below the given one, different from tick to tick (Leaf takes 100), so that `id % n`
    /// spreads at low rates. `seed` distinguishes processes.
    RandomBelow {
        /// Exclusive bound; 0 and 1 mean zero.
        bound: u64,
        /// Any number.
        seed: u64,
    },
    /// The number after the previous tick's last one, or 0 once half of the sequence is used up
    /// (CosId's reset threshold). At one ID a tick, `id % n` then takes turns. Exception: `n`
    /// shares a factor with the difference between IDs of consecutive ticks (5, in layouts with 22
    /// bits below the time).
    Carried,
    /// The number that makes `id % count` the one after that of the last ID, in whatever tick it
    /// was: IDs take turns over the shards at any rate. It is below `count`, so each tick may lose
    /// `count - 1` numbers. The first ID of a generator begins at a shard that depends on its tick
    /// and `seed`. See [`check_shards`](crate::generator::check_shards).
    Shards {
        /// Number of shards; 0 and 1 mean zero.
        count: u64,
        /// Any number: distinguishes processes that start in one tick.
        seed: u64,
    },
}

/// The parameters that stay the same from call to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Bits of the sequence; 1 to 62.
    pub sequence_bits: u8,
    /// Bits of the sequence and of the fields between it and the time: IDs of consecutive ticks are
    /// 2 to the power of this many IDs of one tick apart.
    pub tick_bits: u8,
    /// The layout's last tick.
    pub tick_max: u64,
    /// Ticks that an ID may lag the clock, so that unused ticks serve a burst.
    pub lag_ticks: u64,
    /// Ticks that an ID may lead the clock.
    pub lead_ticks: u64,
    /// The sequence number with which a tick begins.
    pub start: SequenceStart,
}

impl Rules {
    /// Returns the highest sequence number.
    #[must_use]
    pub const fn sequence_max(&self) -> u64 {
        !(u64::MAX << self.sequence_bits)
    }
}

/// The position of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// First ordinal that is not taken.
    pub next: Ordinal,
    /// Upper bound of the issued ordinals (exclusive). Lower than `next` only when counters
    /// overshot: those ordinals are spent, but no ID was issued from them.
    pub issued: Ordinal,
}

impl State {
    /// Returns the state in which everything below `next` is taken, and may have been issued.
    #[must_use]
    pub const fn at(next: Ordinal) -> Self {
        Self { next, issued: next }
    }
}

/// The ticks that lie wholly in a window: from `floor` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickWindow {
    /// The first tick that may be minted.
    pub floor: u64,
    /// The first tick that may not be minted.
    pub end: u64,
}

/// The result of [`advance`]. A lost race is not an outcome: the caller of `advance` retries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Ordinals that may be taken. All lie in one tick; `count` may be less than was wanted.
    Issued {
        /// The first ordinal.
        first: Ordinal,
        /// Number of ordinals; never 0.
        count: u64,
    },
    /// All ticks that the clock allows are used up.
    TickFull {
        /// The tick that the clock must reach.
        next_tick: Tick,
    },
    /// The last ID's tick is ahead of the clock by more than the allowed lead.
    ClockBehind {
        /// Ticks beyond the allowed lead.
        by_ticks: u64,
    },
    /// The next tick is not in the window.
    WindowSpent,
    /// The layout's years have run out.
    EpochSpent,
}

/// Returns the ordinals that may be taken next, at clock tick `now`, if the caller wants `wanted`
/// (at least 1) of them.
///
/// The ordinals never lie below `state.next`, below the window's floor, at or past its end, or past
/// the layout's last tick. They never lead `now` by more than the allowed lead, nor lag it by more
/// than the allowed lag.
#[must_use]
pub fn advance(state: State, now: u64, wanted: u64, window: TickWindow, rules: &Rules) -> Advance {
    if now > rules.tick_max {
        return Advance::EpochSpent;
    }
    let latest = now.saturating_add(rules.lead_ticks);
    let earliest = now.saturating_sub(rules.lag_ticks).max(window.floor);
    let first = begin(state.next, earliest, window.floor, rules);
    let tick = first.tick(rules);
    if tick > rules.tick_max {
        return Advance::EpochSpent;
    }
    if tick > latest {
        // The last tick from which an ID may have been issued.
        let reached = match state.issued.get().checked_sub(1) {
            Some(last) => Ordinal(last).tick(rules).max(window.floor.saturating_sub(1)),
            None => window.floor.saturating_sub(1),
        };
        return match reached.checked_sub(latest) {
            None | Some(0) => {
                Advance::TickFull { next_tick: Tick::new(tick.saturating_sub(rules.lead_ticks)) }
            }
            Some(by_ticks) => Advance::ClockBehind { by_ticks },
        };
    }
    if tick >= window.end {
        return Advance::WindowSpent;
    }
    let room = rules.sequence_max().saturating_sub(first.sequence(rules)).saturating_add(1);
    Advance::Issued { first, count: room.min(wanted.max(1)) }
}

/// Returns the first ordinal to take: `next`, or a later one where a new tick begins.
fn begin(next: Ordinal, earliest: u64, floor: u64, rules: &Rules) -> Ordinal {
    let tick = next.tick(rules).max(earliest);
    if tick == next.tick(rules) && next.sequence(rules) != 0 {
        return next;
    }
    let start = match rules.start {
        SequenceStart::Zero => 0,
        SequenceStart::RandomBelow { bound, seed } => {
            let bits = mixed((tick ^ seed).wrapping_add(MIX_STEP));
            below(bound.min(rules.sequence_max()), bits)
        }
        SequenceStart::Carried => {
            let carried = next.sequence(rules);
            if carried > rules.sequence_max() / 2 { 0 } else { carried }
        }
        SequenceStart::Shards { count, seed } => {
            let count = count.min(rules.sequence_max().saturating_add(1)).max(1);
            match next.get().checked_sub(1).map(Ordinal) {
                Some(last) if next > Ordinal::first_of(floor, rules) => {
                    in_turn(last, tick, count, rules)
                }
                // Nothing was taken yet.
                _ => below(count, mixed((tick ^ seed).wrapping_add(MIX_STEP))),
            }
        }
    };
    Ordinal(Ordinal::first_of(tick, rules).get().saturating_add(start))
}

/// Returns the sequence number in `tick` whose ID is in the shard after that of `last`.
///
/// Divided by the distance between IDs of one tick, and without the fields that never change, an ID
/// is `tick << tick_bits | sequence`. No factor of `count` is in that distance (`check_shards`), so
/// this number modulo `count` names the shard.
fn in_turn(last: Ordinal, tick: u64, count: u64, rules: &Rules) -> u64 {
    let modulo = |number: u128| number.checked_rem(u128::from(count)).unwrap_or(0);
    // A remainder has at most 62 bits, and `tick_bits` is at most 63.
    let of_tick = |tick: u64| modulo(modulo(u128::from(tick)).wrapping_shl(rules.tick_bits.into()));
    let due = of_tick(last.tick(rules))
        .saturating_add(last.sequence(rules).into())
        .saturating_add(1)
        .saturating_add(u128::from(count))
        .saturating_sub(of_tick(tick));
    u64::try_from(modulo(due)).unwrap_or(0)
}

/// Maps 64 uniform bits to a number below `bound`.
pub(crate) fn below(bound: u64, bits: u64) -> u64 {
    let product = u128::from(bits).wrapping_mul(u128::from(bound));
    u64::try_from(product >> 64).unwrap_or(0)
}

/// Increment of SplitMix64, whose numbers are a state that grows by it, each [`mixed`].
pub const MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads adjacent numbers over 64 bits: the finaliser of SplitMix64 (Steele and others, 2014).
#[must_use]
pub const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
