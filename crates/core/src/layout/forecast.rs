//! The capacity and lifetime of a layout, and proposals of layouts for a need.

use core::fmt;

use super::readable::MS_NS;
use super::{EPOCH_DEFAULT, Field, Layout, ReadableLayout};
use crate::civil::Rfc3339;
use crate::time::UnixMillis;

/// A mean Gregorian year of 365.2425 days, in milliseconds.
pub const YEAR_MS: u64 = 31_556_952_000;

/// Shortest usable lifetime in milliseconds; a shorter one needs an operator's override.
pub const LIFETIME_MS_MIN: u64 = YEAR_MS;

/// Lifetime in milliseconds below which a layout deserves a warning.
pub const LIFETIME_WARN_MS: u64 = 5 * YEAR_MS;

impl ReadableLayout {
    /// Returns the number of workers that the layout has room for.
    #[must_use]
    pub const fn workers(&self) -> u64 {
        // The time has at least one bit, so this cannot overflow.
        self.worker_max().saturating_add(1)
    }

    /// Returns how many IDs one worker can make in one tick.
    #[must_use]
    pub const fn ids_per_tick(&self) -> u64 {
        self.sequence_max().saturating_add(1)
    }

    /// Returns how many IDs one worker can make per second, rounded down.
    #[must_use]
    pub const fn ids_per_second_per_worker(&self) -> u128 {
        per_second(self.ids_per_tick() as u128, self.unit_ns())
    }

    /// Returns how many IDs all workers together can make per second, rounded down.
    #[must_use]
    pub const fn ids_per_second(&self) -> u128 {
        // At most 2^63 in all, as time has at least one bit.
        per_second(
            (self.ids_per_tick() as u128).saturating_mul(self.workers() as u128),
            self.unit_ns(),
        )
    }

    /// Returns the layout's remaining time at `now`.
    #[must_use]
    pub const fn lifetime_at(&self, now: UnixMillis) -> Lifetime {
        let end = self.end();
        if now.get() < self.epoch().get() {
            return Lifetime::NotBegun { epoch: self.epoch() };
        }
        let left_ms = end.since(now);
        if left_ms == 0 {
            Lifetime::Spent { end }
        } else if left_ms < LIFETIME_MS_MIN {
            Lifetime::EndsWithinYear { end, left_ms }
        } else if left_ms < LIFETIME_WARN_MS {
            Lifetime::EndsSoon { end, left_ms }
        } else {
            Lifetime::Long { end, left_ms }
        }
    }
}

/// The same of a layout that mints.
impl Layout {
    /// Returns [`ReadableLayout::workers`].
    #[must_use]
    pub const fn workers(&self) -> u64 {
        self.readable().workers()
    }

    /// Returns [`ReadableLayout::ids_per_tick`].
    #[must_use]
    pub const fn ids_per_tick(&self) -> u64 {
        self.readable().ids_per_tick()
    }

    /// Returns [`ReadableLayout::ids_per_second_per_worker`].
    #[must_use]
    pub const fn ids_per_second_per_worker(&self) -> u128 {
        self.readable().ids_per_second_per_worker()
    }

    /// Returns [`ReadableLayout::ids_per_second`].
    #[must_use]
    pub const fn ids_per_second(&self) -> u128 {
        self.readable().ids_per_second()
    }

    /// Returns the start of the last tick.
    #[must_use]
    pub const fn last_tick_at(&self) -> UnixMillis {
        self.start_of(self.tick_max())
    }

    /// Returns [`ReadableLayout::lifetime_at`].
    #[must_use]
    pub const fn lifetime_at(&self, now: UnixMillis) -> Lifetime {
        self.readable().lifetime_at(now)
    }
}

/// Returns the rate of this number for each tick.
const fn per_second(per_tick: u128, unit_ns: u64) -> u128 {
    const SECOND_NS: u128 = MS_NS as u128 * 1_000;
    match per_tick.saturating_mul(SECOND_NS).checked_div(unit_ns as u128) {
        Some(rate) => rate,
        // The unit is never 0.
        None => 0,
    }
}

/// The remaining time of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifetime {
    /// The epoch lies ahead: no tick exists yet.
    NotBegun {
        /// Start of the first tick.
        epoch: UnixMillis,
    },
    /// Every tick has ended.
    Spent {
        /// End of the last tick.
        end: UnixMillis,
    },
    /// Less than [`LIFETIME_MS_MIN`] is left: reject the layout unless an operator overrides it.
    EndsWithinYear {
        /// End of the last tick.
        end: UnixMillis,
        /// Milliseconds until then.
        left_ms: u64,
    },
    /// Less than [`LIFETIME_WARN_MS`] is left: time to plan the next layout.
    EndsSoon {
        /// End of the last tick.
        end: UnixMillis,
        /// Milliseconds until then.
        left_ms: u64,
    },
    /// [`LIFETIME_WARN_MS`] or more is left.
    Long {
        /// End of the last tick.
        end: UnixMillis,
        /// Milliseconds until then.
        left_ms: u64,
    },
}

impl Lifetime {
    /// Returns the milliseconds until the last tick ends; 0 when nothing can be minted.
    #[must_use]
    pub const fn left_ms(self) -> u64 {
        match self {
            Self::NotBegun { .. } | Self::Spent { .. } => 0,
            Self::EndsWithinYear { left_ms, .. }
            | Self::EndsSoon { left_ms, .. }
            | Self::Long { left_ms, .. } => left_ms,
        }
    }

    /// Returns the years of 365.2425 days until the last tick ends, in tenths, rounded down.
    #[must_use]
    pub const fn left_tenths_of_year(self) -> u64 {
        self.left_ms() / (YEAR_MS / 10)
    }

    /// Returns whether a source may be started with the layout without an operator's override.
    #[must_use]
    pub const fn is_enough(self) -> bool {
        matches!(self, Self::EndsSoon { .. } | Self::Long { .. })
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.left_tenths_of_year();
        let (years, tenth) = (tenths / 10, tenths % 10);
        match *self {
            Self::NotBegun { epoch } => {
                write!(f, "begins at {}: nothing can be minted before", Rfc3339(epoch))
            }
            Self::Spent { end } => {
                write!(f, "ended at {}: take a newer epoch or more time bits", Rfc3339(end))
            }
            Self::EndsWithinYear { end, .. } => write!(
                f,
                "ends at {}, within a year: take a newer epoch or more time bits",
                Rfc3339(end)
            ),
            Self::EndsSoon { end, .. } => write!(
                f,
                "ends at {}, in {years}.{tenth} years: plan the next layout",
                Rfc3339(end)
            ),
            Self::Long { end, .. } => {
                write!(f, "ends at {}, in {years}.{tenth} years", Rfc3339(end))
            }
        }
    }
}

/// The requirements for a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Number of workers.
    pub workers: u64,
    /// IDs per second that each worker must be able to mint.
    pub ids_per_second_per_worker: u64,
    /// Years that the layout must last from now.
    pub years: u32,
}

/// The error when no layout meets the need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLayout {
    /// The bits that the need takes with the coarsest unit offered, 1 s; layouts offered have 63.
    pub bits: u16,
}

impl fmt::Display for NoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this takes {} bits and there are 63: take fewer workers, a lower rate or fewer years",
            self.bits
        )
    }
}

impl core::error::Error for NoLayout {}

/// Layouts that meet a need, the most usual first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposals {
    layouts: [Option<Layout>; PROPOSALS_MAX],
}

impl Proposals {
    /// Returns the layouts.
    pub fn iter(&self) -> impl Iterator<Item = Layout> + '_ {
        self.layouts.iter().copied().flatten()
    }
}

/// Total widths in bits, and units in milliseconds, that [`propose`] tries in this order.
const SHAPES: [(u8, u32); PROPOSALS_MAX] =
    [(63, 1), (63, 10), (63, 1_000), (53, 1), (53, 10), (53, 1_000)];
const PROPOSALS_MAX: usize = 6;

/// Proposes layouts with 63 bits, and with 53 for JavaScript readers, that meet the need from `now`
/// on.
///
/// Spare bits go to sequence, time and worker in turn. The epoch is
/// [`EPOCH_DEFAULT`](super::EPOCH_DEFAULT).
///
/// # Errors
/// [`NoLayout`] when the need does not fit 63 bits even with a unit of 1 s.
pub fn propose(need: Need, now: UnixMillis) -> Result<Proposals, NoLayout> {
    let mut layouts = [None; PROPOSALS_MAX];
    for (slot, (total_bits, unit_ms)) in layouts.iter_mut().zip(SHAPES) {
        *slot = fit(need, now, total_bits, unit_ms);
    }
    if layouts.iter().all(Option::is_none) {
        let bits = needed_bits(need, now, 1_000).iter().map(|(_, bits)| u16::from(*bits)).sum();
        return Err(NoLayout { bits });
    }
    Ok(Proposals { layouts })
}

fn needed_bits(need: Need, now: UnixMillis, unit_ms: u32) -> [(Field, u8); 3] {
    let years_ms = YEAR_MS.saturating_mul(u64::from(need.years));
    let ticks = now.since(EPOCH_DEFAULT).saturating_add(years_ms).div_ceil(u64::from(unit_ms));
    let per_tick = u128::from(need.ids_per_second_per_worker)
        .saturating_mul(u128::from(unit_ms))
        .div_ceil(1_000);
    [
        (Field::Time, bits_for(u128::from(ticks)).max(1)),
        (Field::Worker, bits_for(u128::from(need.workers))),
        (Field::Sequence, bits_for(per_tick).max(1)),
    ]
}

/// Returns how many bits hold `count` different values.
fn bits_for(count: u128) -> u8 {
    let bits = u128::BITS.saturating_sub(count.saturating_sub(1).leading_zeros());
    // At most 128.
    bits.to_le_bytes()[0]
}

fn fit(need: Need, now: UnixMillis, total_bits: u8, unit_ms: u32) -> Option<Layout> {
    let mut fields = needed_bits(need, now, unit_ms);
    let used = fields.iter().try_fold(0_u8, |sum, (_, bits)| sum.checked_add(*bits))?;
    let spare = total_bits.checked_sub(used)?;
    // Sequence, time, worker.
    let turns = [2_usize, 0, 1];
    for turn in turns.into_iter().cycle().take(usize::from(spare)) {
        if let Some((_, bits)) = fields.get_mut(turn) {
            *bits = bits.saturating_add(1);
        }
    }
    Layout::from_fields(&fields).and_then(|layout| layout.with_unit_ms(unit_ms)).ok()
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn twitter_layout_has_its_known_capacity() {
        let layout = Layout::TWITTER;
        assert_eq!(layout.workers(), 1_024);
        assert_eq!(layout.ids_per_tick(), 4_096);
        assert_eq!(layout.ids_per_second_per_worker(), 4_096_000);
        assert_eq!(layout.ids_per_second(), 4_194_304_000);
        assert_eq!(Rfc3339(layout.last_tick_at()).to_string(), "2080-07-10T17:30:30.208Z");
    }

    #[test]
    fn slow_layouts_round_down_and_wide_ones_do_not_wrap() {
        let day = Layout::new(20, 0, 1).and_then(|layout| layout.with_unit_ms(86_400_000));
        assert_eq!(day.unwrap().ids_per_second_per_worker(), 0);
        let wide = Layout::new(1, 0, 63).unwrap();
        assert_eq!(wide.ids_per_second_per_worker(), 1_000 << 63);
        assert_eq!(wide.ids_per_second(), 1_000 << 63);
    }

    #[test]
    fn lifetime_is_judged_at_and_next_to_each_limit() {
        let layout = Layout::BAIDU_2016;
        let end = layout.end();
        assert_eq!(Rfc3339(end).to_string(), "2024-11-20T13:24:16.000Z");
        let at = |left_ms| layout.lifetime_at(end.saturating_sub(left_ms));
        assert_eq!(layout.lifetime_at(end.saturating_add(1)), Lifetime::Spent { end });
        assert_eq!(at(0), Lifetime::Spent { end });
        assert_eq!(at(1), Lifetime::EndsWithinYear { end, left_ms: 1 });
        for (left_ms, enough) in [(YEAR_MS - 1, false), (YEAR_MS, true), (YEAR_MS + 1, true)] {
            assert_eq!(at(left_ms).is_enough(), enough, "{left_ms}");
        }
        assert!(matches!(at(LIFETIME_WARN_MS - 1), Lifetime::EndsSoon { .. }));
        assert!(matches!(at(LIFETIME_WARN_MS), Lifetime::Long { .. }));
        let epoch = layout.epoch();
        assert!(matches!(layout.lifetime_at(epoch), Lifetime::Long { .. }));
        let before = layout.lifetime_at(epoch.saturating_sub(1));
        assert_eq!(before, Lifetime::NotBegun { epoch });
        assert!(!before.is_enough());
        assert_eq!(at(YEAR_MS * 3 / 2).left_tenths_of_year(), 15);
        assert_eq!(
            at(YEAR_MS * 3 / 2).to_string(),
            "ends at 2024-11-20T13:24:16.000Z, in 1.5 years: plan the next layout"
        );
    }

    #[test]
    fn proposals_fulfil_the_need() {
        let now = EPOCH_DEFAULT.saturating_add(YEAR_MS);
        let needs = [(1, 1, 1), (1_000, 10_000, 30), (1 << 20, 1, 10), (4, 4_000_000, 100)];
        for (workers, rate, years) in needs {
            let need = Need { workers, ids_per_second_per_worker: rate, years };
            let layouts: Vec<_> = propose(need, now).unwrap().iter().collect();
            assert!(layouts.iter().any(|layout| layout.total_bits() == 63));
            for layout in layouts {
                assert!(layout.workers() >= workers, "{layout}");
                assert!(layout.ids_per_second_per_worker() >= u128::from(rate), "{layout}");
                let left_ms = layout.lifetime_at(now).left_ms();
                assert!(left_ms >= YEAR_MS * u64::from(years), "{layout}");
            }
        }
    }

    #[test]
    fn impossible_need_reports_the_missing_bits() {
        let need = Need { workers: 1 << 40, ids_per_second_per_worker: 1 << 30, years: 100 };
        assert_eq!(propose(need, EPOCH_DEFAULT), Err(NoLayout { bits: 102 }));
        let all = Need { workers: u64::MAX, ids_per_second_per_worker: u64::MAX, years: u32::MAX };
        assert!(propose(all, UnixMillis::MAX).is_err());
    }
}
