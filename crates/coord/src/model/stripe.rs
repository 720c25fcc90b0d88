//! Stripes: the numbers that a segment source has, and the ID of each of the store's numbers.
//!
//! The store counts 1, 2, 3, …, and its mark never falls. A stripe maps each number to an ID:
//! deployment 2 of 3 has 2, 5, 8, …. A restripe keeps the store's numbers. The new stripe records
//! the number from which it holds (`first_at`) and the ID of that number (`first`). So the mark and
//! all evidence of it are independent of stripes.

use serde::Deserialize;

use crate::ids::Mark;
use crate::model::segment::NUMBER_MAX;

/// A stripe in which everything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    offset: u64,
    increment: u64,
    /// Lowest ID, and the store's number for it.
    first: u64,
    first_at: u64,
    /// ID below which the source stays while stripes are changed.
    until: Option<u64>,
}

/// Keys of a stripe, whatever other keys a specification has.
#[derive(Deserialize)]
pub(crate) struct StripeKeys {
    pub(crate) offset: Option<u64>,
    pub(crate) increment: Option<u64>,
    pub(crate) first: Option<u64>,
    pub(crate) first_at: Option<u64>,
    pub(crate) until: Option<u64>,
}

/// An impossible key of a stripe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value:?} is not possible: {reason}")]
pub struct StripeError {
    /// The key.
    pub key: &'static str,
    /// The given value.
    pub value: String,
    /// Reason, and the possible values.
    pub reason: String,
}

fn impossible(key: &'static str, value: u64, reason: impl Into<String>) -> StripeError {
    StripeError { key, value: value.to_string(), reason: reason.into() }
}

impl Stripe {
    /// All numbers.
    pub const ALL: Self = Self { offset: 1, increment: 1, first: 1, first_at: 1, until: None };

    /// Creates the stripe `offset` of `increment`. Its lowest ID is `lowest` or just above, and
    /// stands for the store's number `first_at`.
    ///
    /// # Errors
    /// [`StripeError`] for the impossible key.
    pub fn new(
        offset: u64,
        increment: u64,
        lowest: u64,
        first_at: u64,
    ) -> Result<Self, StripeError> {
        let number = |key, number| {
            if (1..=NUMBER_MAX).contains(&number) {
                return Ok(number);
            }
            Err(impossible(key, number, format!("take 1 to {NUMBER_MAX}")))
        };
        let increment = number("increment", increment)?;
        if !(1..=increment).contains(&offset) {
            let reason = format!(
                "it selects one of {increment} stripes (increment): take 1 to {increment}; to begin \
                 above a number, set first"
            );
            return Err(impossible("offset", offset, reason));
        }
        let lowest = number("first", lowest)?;
        let first_at = number("first_at", first_at)?;
        let stripes = lowest.saturating_sub(offset).div_ceil(increment);
        let first = stripes.checked_mul(increment).and_then(|more| more.checked_add(offset));
        let Some(first) = first.filter(|first| *first <= NUMBER_MAX) else {
            let reason = format!("the stripe has no number from this one to {NUMBER_MAX}");
            return Err(impossible("first", lowest, reason));
        };
        Ok(Self { offset, increment, first, first_at, until: None })
    }

    /// Decides a stripe from its keys; a key that is left out is 1.
    ///
    /// # Errors
    /// [`StripeError`] for the impossible key.
    pub(crate) fn check(keys: &StripeKeys) -> Result<Self, StripeError> {
        let or_one = |given: Option<u64>| given.unwrap_or(1);
        let stripe = Self::new(
            or_one(keys.offset),
            or_one(keys.increment),
            or_one(keys.first),
            or_one(keys.first_at),
        )?;
        match keys.until {
            Some(0) => Err(impossible("until", 0, "take 1 or more")),
            until => Ok(Self { until, ..stripe }),
        }
    }

    /// Returns the stripe of a specification as a store keeps it, even with keys that only newer
    /// versions know. `None` for a text without a valid stripe, by which no process mints.
    pub(crate) fn of_text(spec: &str) -> Option<Self> {
        Self::check(&serde_json::from_str(spec).ok()?).ok()
    }

    /// Returns the distance from an ID to the next.
    #[must_use]
    pub const fn increment(self) -> u64 {
        self.increment
    }

    /// Returns the position of the stripe, from 1 to [`increment`](Self::increment).
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Returns the lowest ID.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Returns whether it replaced another stripe, which had the IDs below.
    #[must_use]
    pub const fn was_another(self) -> bool {
        self.first_at != 1
    }

    /// Returns whether both make the same ID of every number that both have.
    #[must_use]
    pub fn maps_as(self, other: Self) -> bool {
        Self { until: None, ..self } == Self { until: None, ..other }
    }

    /// Returns whether each number is its own ID, wherever they begin.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.increment == 1 && self.first == self.first_at && self.until.is_none()
    }

    /// Returns whether a number's ID may differ from it, so that the end of the numbers does not
    /// show the end of the IDs.
    #[must_use]
    pub const fn renumbers(self) -> bool {
        self.increment != 1 || self.first != self.first_at
    }

    /// Returns the ID of a number from `first_at` to [`number_max`](Self::number_max).
    #[inline]
    #[must_use]
    pub const fn id_of(self, number: u64) -> u64 {
        let after = number.wrapping_sub(self.first_at);
        // A multiplication takes as long as everything else after the locked instruction.
        let distance = if self.increment == 1 { after } else { after.wrapping_mul(self.increment) };
        self.first.wrapping_add(distance)
    }

    /// Returns the ID of a number that the store gave, if it has one.
    #[must_use]
    pub fn id_of_any(self, number: u64) -> Option<u64> {
        (self.first_at..=self.number_max()).contains(&number).then(|| self.id_of(number))
    }

    /// Returns the lowest number with this ID or a higher one, ignoring `until`.
    #[must_use]
    pub const fn number_from(self, id: u64) -> u64 {
        match id.checked_sub(self.first) {
            Some(distance) => self.first_at.saturating_add(distance.div_ceil(self.increment)),
            None => self.first_at,
        }
    }

    /// Returns the next number of a source with numbers up to `end` and IDs up to `ids`. The
    /// definition by which the numbers became IDs may have turned the same number into a higher ID.
    #[must_use]
    pub fn next_after(self, end: u64, ids: u64) -> u64 {
        self.number_from(ids.max(end)).min(Mark::MAX.get()).max(end)
    }

    /// Returns the lowest number that has an ID.
    #[must_use]
    pub const fn number_min(self) -> u64 {
        self.first_at
    }

    /// Returns the highest number that has an ID; below the lowest when none has.
    #[must_use]
    pub fn number_max(self) -> u64 {
        let last = self.until.map_or(NUMBER_MAX, |until| until.saturating_sub(1).min(NUMBER_MAX));
        match last.checked_sub(self.first) {
            Some(room) => self.first_at.saturating_add(room / self.increment).min(NUMBER_MAX),
            None => self.first_at.saturating_sub(1),
        }
    }

    /// Returns the end of the source while stripes are changed: every ID is lower.
    #[must_use]
    pub const fn until(self) -> Option<u64> {
        self.until
    }

    /// Returns the lowest ID not handed out when the store's mark is `mark`, ignoring `until`;
    /// `None` when the numbers are spent.
    #[must_use]
    pub fn next(self, mark: u64) -> Option<u64> {
        let number = mark.max(self.first_at);
        Self { until: None, ..self }.id_of_any(number)
    }

    /// Returns the highest ID handed out when the store's mark is `mark`, ignoring `until`; `None`
    /// when the stripe has handed out none.
    #[must_use]
    pub fn last(self, mark: u64) -> Option<u64> {
        let endless = Self { until: None, ..self };
        // The store's mark can rise past the numbers of the stripe.
        endless.id_of_any(mark.checked_sub(1)?.min(endless.number_max()))
    }

    /// Returns the ID from which none was handed out when the store's mark is `mark`, by this
    /// stripe or one that it replaced, ignoring `until`.
    #[must_use]
    pub fn free_from(self, mark: u64) -> u64 {
        self.last(mark).map_or(self.first, |last| last.saturating_add(1))
    }

    /// Returns how many IDs it has in all.
    pub(crate) fn count(self) -> u64 {
        (NUMBER_MAX.saturating_sub(self.first) / self.increment).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_share_all_numbers_among_them() {
        for increment in [1, 2, 3, 16, 1000] {
            let mut ids: Vec<u64> = (1..=increment)
                .flat_map(|offset| {
                    let stripe = Stripe::new(offset, increment, 1, 1).unwrap();
                    (1..=3).map(move |number| stripe.id_of_any(number).unwrap())
                })
                .collect();
            ids.sort_unstable();
            assert_eq!(ids, (1..=3 * increment).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_stripe_begins_at_its_first_number_that_is_high_enough() {
        for (lowest, first) in [(1, 2), (2, 2), (3, 5), (5, 5), (6, 8), (1_000, 1_001)] {
            let stripe = Stripe::new(2, 3, lowest, 40).unwrap();
            assert_eq!(stripe.id_of_any(39), None);
            assert_eq!(stripe.id_of_any(40), Some(first), "{lowest}");
            assert_eq!(stripe.id_of_any(41), Some(first + 3));
            assert_eq!((stripe.next(1), stripe.next(41)), (Some(first), Some(first + 3)));
        }
    }

    #[test]
    fn stripe_never_reaches_its_end() {
        let stripe = |until| Stripe { until, ..Stripe::new(2, 3, 1, 1).unwrap() };
        for (until, max) in [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (8, 2), (9, 3)] {
            assert_eq!(stripe(Some(until)).number_max(), max, "{until}");
            assert_eq!(stripe(Some(until)).next(7), Some(20), "where it would continue");
        }
        assert!(stripe(Some(7)).maps_as(stripe(None)));
        assert!(!stripe(None).maps_as(Stripe::ALL));
    }

    #[test]
    fn the_numbers_of_a_range_of_ids_are_a_range() {
        let stripe = |lowest, first_at| Stripe::new(2, 3, lowest, first_at).unwrap();
        for stripe in [Stripe::ALL, stripe(1, 1), stripe(1_000, 40)] {
            for id in 1..2_000 {
                let from = stripe.number_from(id);
                assert!(stripe.id_of(from) >= id, "{stripe:?} {id}");
                assert!(from == stripe.number_min() || stripe.id_of(from - 1) < id);
                assert_eq!(stripe.last(from + 1), Some(stripe.id_of(from)));
            }
            assert_eq!(stripe.last(stripe.number_min()), None);
        }
    }

    #[test]
    fn free_numbers_lie_above_all_issued_ones() {
        let stripe = |lowest, first_at| Stripe::new(2, 3, lowest, first_at).unwrap();
        for (stripe, mark, free) in [
            (Stripe::ALL, 1, 1),
            (Stripe::ALL, 8, 8),
            (stripe(1, 1), 1, 2),
            (stripe(1, 1), 5, 12),
            (stripe(1_000, 40), 40, 1_001),
            (stripe(1_000, 40), 41, 1_002),
        ] {
            assert_eq!(stripe.free_from(mark), free, "{stripe:?} {mark}");
            assert_eq!(Stripe { until: Some(3), ..stripe }.free_from(mark), free);
        }
    }

    #[test]
    fn stripe_is_read_from_any_definition_with_one() {
        let read = Stripe::of_text(
            r#"{"kind":"segment","offset":2,"increment":3,"first":50,"first_at":9,"until":99,"new":[]}"#,
        );
        let stripe = Stripe { until: Some(99), ..Stripe::new(2, 3, 50, 9).unwrap() };
        assert_eq!(read, Some(stripe));
        assert_eq!(Stripe::of_text(r#"{"kind":"uuid"}"#), Some(Stripe::ALL));
        for text in ["", "x", "[]", r#"{"until":0}"#, r#"{"offset":3,"increment":2}"#] {
            assert_eq!(Stripe::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_end_before_they_wrap() {
        let top = Stripe::new(1, 1, NUMBER_MAX - 1, 1).unwrap();
        assert_eq!(top.id_of_any(2), Some(NUMBER_MAX));
        assert_eq!((top.id_of_any(3), top.next(3), top.count()), (None, None, 2));
        let far = Stripe::new(1, 1, 1, NUMBER_MAX).unwrap();
        assert_eq!((far.number_max(), far.id_of_any(NUMBER_MAX)), (NUMBER_MAX, Some(1)));
        let wide = Stripe::new(NUMBER_MAX, NUMBER_MAX, 1, 1).unwrap();
        assert_eq!((wide.id_of_any(1), wide.id_of_any(2)), (Some(NUMBER_MAX), None));
        assert_eq!((wide.last(2), wide.last(900)), (Some(NUMBER_MAX), Some(NUMBER_MAX)));
        for (offset, increment, lowest, first_at) in [
            (0, 1, 1, 1),
            (2, 1, 1, 1),
            (1, 0, 1, 1),
            (1, NUMBER_MAX + 1, 1, 1),
            (1, 1, 0, 1),
            (1, 1, NUMBER_MAX + 1, 1),
            (1, 1, 1, 0),
            (1, 1, u64::MAX, 1),
            (1, 3, NUMBER_MAX, 1),
        ] {
            let refused = Stripe::new(offset, increment, lowest, first_at);
            assert!(refused.is_err(), "{offset} {increment} {lowest} {first_at}");
        }
    }
}
