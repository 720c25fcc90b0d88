//! Segments: ranges of numbers that a store issues once.

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::Mark;
pub use crate::model::ticks::NumberInterval;
use crate::model::ticks::Ticks;

/// Highest number of a segment source: one below [`Mark::MAX`], so that the mark above it is still
/// a signed 64-bit number in every store. The lowest is 1.
pub const NUMBER_MAX: u64 = i64::MAX.unsigned_abs() - 1;

/// A request for numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The source, which must be defined and enabled.
    pub source: String,
    /// Number of numbers; at least one. The result has exactly this many, or is an error.
    pub length: u64,
    /// Version of the definition that the caller uses.
    pub definition_version: u64,
    /// Range of the result: numbers from its first on if the mark is below it, and fewer numbers
    /// when the range has fewer left.
    pub within: Option<Bounds>,
}

/// Bounds of the reserved numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// A range that the caller knows.
    Range(NumberInterval),
    /// The ticks that the store's clock allows at this moment.
    Now(Ticks),
}

/// Numbers reserved for one caller alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
    /// Version of the source's mark. Every reserve and every give-back raises it.
    pub version: u64,
    /// Version of the namespace's catalog. The caller reads the catalog again when it has risen.
    pub catalog_version: u64,
    /// [`StoreIdentity::writes`](crate::StoreIdentity::writes) after this call.
    pub writes: u64,
    /// Time that decided, for numbers with a time in them ([`Bounds::Now`]).
    pub at: Option<UnixMillis>,
}

/// Unused end of a segment, to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// The source.
    pub source: String,
    /// First unused number.
    pub first: u64,
    /// Last number of the segment.
    pub last: u64,
    /// Version of the segment.
    pub version: u64,
}

/// All data that a store keeps about the numbers of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// Next number to issue.
    pub mark: Mark,
    /// First number of the newest reserve, while it can still be given back; otherwise the mark.
    pub floor: Mark,
    /// Version, raised by every reserve and give-back.
    pub version: u64,
}

impl SegmentRow {
    /// Row before any reserve: the first number is 1.
    pub const NEW: Self = Self { mark: Mark::new(1), floor: Mark::new(1), version: 0 };

    /// Returns the segment of a reserve, from the row after it.
    #[must_use]
    pub fn taken(&self, catalog_version: u64, writes: u64) -> Segment {
        Segment {
            first: self.floor.get(),
            // A reserve takes at least one number, so the mark is above zero.
            last: self.mark.get().saturating_sub(1),
            version: self.version,
            catalog_version,
            writes,
            at: None,
        }
    }

    /// Returns the row after an operator moved the source forward.
    #[must_use]
    pub fn fast_forwarded(&self, mark: Mark) -> Self {
        let mark = self.mark.max(mark);
        Self { mark, floor: mark, version: self.version.saturating_add(1) }
    }
}

impl Reserve {
    /// Returns the time that decides, if one does: the store's, otherwise the caller's.
    #[must_use]
    pub fn at(&self, clock: Option<UnixMillis>) -> Option<UnixMillis> {
        match self.within {
            Some(Bounds::Now(ticks)) => Some(clock.unwrap_or(ticks.now)),
            _ => None,
        }
    }

    /// Decides the reserve with the store's clock, if it has one. Returns the row after it, and the
    /// segment; the store fills in the segment's `writes`.
    ///
    /// # Errors
    /// As [`decide_reserve`] and [`Ticks::within`].
    pub fn decide(
        &self,
        row: &SegmentRow,
        clock: Option<UnixMillis>,
        catalog_version: u64,
    ) -> Result<(SegmentRow, Segment)> {
        let at = self.at(clock);
        let within = match (self.within, at) {
            (Some(Bounds::Range(within)), _) => Some(within),
            (Some(Bounds::Now(ticks)), Some(at)) => {
                Some(ticks.within(&self.source, row.mark.get(), at)?)
            }
            _ => None,
        };
        let after = decide_reserve(&self.source, row, self.length, within)?;
        Ok((after, Segment { at, ..after.taken(catalog_version, 0) }))
    }
}

/// Decides a reserve; returns the row after it. The segment is `new.floor ..= new.mark - 1`.
///
/// # Errors
/// `Invalid` for a length of zero, `Exhausted` past [`NUMBER_MAX`], `MarkMoved` when the mark has
/// reached the end of `within`.
pub fn decide_reserve(
    source: &str,
    row: &SegmentRow,
    length: u64,
    within: Option<NumberInterval>,
) -> Result<SegmentRow> {
    if length == 0 {
        return Err(Error::invalid(
            "segment length 0 is below the minimum of 1; ask for at least one number",
        ));
    }
    let (first, end) = match within {
        None => (row.mark.get(), row.mark.get().checked_add(length)),
        Some(within) => {
            let first = row.mark.get().max(within.first);
            if first >= within.end {
                let (expected, found) = (Mark::new(within.end), row.mark);
                let message = format!(
                    "next number of source {source:?} is {found}, outside the range that ends at \
                     {expected}; read it again"
                );
                return Err(Error::mark_moved(expected, found, message));
            }
            (first, Some(first.saturating_add(length).min(within.end)))
        }
    };
    match end {
        Some(end) if end <= Mark::MAX.get() => Ok(SegmentRow {
            mark: Mark::new(end),
            floor: Mark::new(first),
            version: row.version.saturating_add(1),
        }),
        _ => Err(Error::exhausted(format!(
            "source {source:?} has fewer than {length} numbers left from {} on, maximum \
             {NUMBER_MAX}; define another source",
            row.mark
        ))),
    }
}

/// Decides a give-back; returns the row after it.
///
/// # Errors
/// `MarkMoved` when anything was reserved or given back since; `Invalid` when the range is not the
/// end of the newest reserve.
pub fn decide_give_back(row: &SegmentRow, back: &GiveBack) -> Result<SegmentRow> {
    let (expected, found) = (Mark::new(back.last.saturating_add(1)), row.mark);
    if back.version != row.version || expected != found {
        let message = format!(
            "next number of source {:?} is {found}, expected {expected}; another call reserved or \
             returned numbers first",
            back.source
        );
        return Err(Error::mark_moved(expected, found, message));
    }
    let GiveBack { first, last, .. } = *back;
    if first > last || first < row.floor.get() {
        return Err(Error::invalid(format!(
            "range {first}..={last} is not the end of the newest segment {}..={last}; return only \
             unused numbers at its end",
            row.floor
        )));
    }
    let mark = Mark::new(back.first);
    Ok(SegmentRow { mark, floor: mark, version: row.version.saturating_add(1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn back(first: u64, last: u64, version: u64) -> GiveBack {
        GiveBack { source: "orders".into(), first, last, version }
    }

    fn code(refused: Result<SegmentRow>) -> &'static str {
        refused.map_or_else(|error| error.kind().code(), |row| panic!("{row:?}"))
    }

    #[test]
    fn numbers_start_at_one_and_a_tail_goes_back_once() {
        let one = decide_reserve("orders", &SegmentRow::NEW, 10, None).unwrap();
        assert_eq!(one, SegmentRow { mark: Mark::new(11), floor: Mark::new(1), version: 1 });
        assert_eq!(code(decide_give_back(&one, &back(0, 10, 1))), "invalid");
        assert_eq!(code(decide_give_back(&one, &back(9, 10, 0))), "mark_moved");
        let two = decide_give_back(&one, &back(4, 10, 1)).unwrap();
        assert_eq!(two, SegmentRow { mark: Mark::new(4), floor: Mark::new(4), version: 2 });
        for version in [1, 2] {
            assert!(decide_give_back(&two, &back(2, 3, version)).is_err(), "below the floor");
            assert!(decide_give_back(&two, &back(4, 10, version)).is_err(), "twice");
        }
    }

    #[test]
    fn reserve_within_an_interval_stays_in_it() {
        let within = |first, end| Some(NumberInterval { first, end });
        let row = |mark| SegmentRow { mark: Mark::new(mark), ..SegmentRow::NEW };
        let reserve = |mark, length, within| {
            let after = decide_reserve("orders", &row(mark), length, within)?;
            let taken = after.taken(0, 0);
            Ok::<_, Error>((taken.first, taken.last))
        };
        assert_eq!(reserve(1, 5, within(101, 200)).unwrap(), (101, 105));
        assert_eq!(reserve(150, 5, within(101, 200)).unwrap(), (150, 154));
        assert_eq!(reserve(198, 5, within(101, 200)).unwrap(), (198, 199), "no more are left");
        assert_eq!(reserve(198, u64::MAX, within(101, 200)).unwrap(), (198, 199));
        for mark in [200, 201, 999] {
            let refused = reserve(mark, 1, within(101, 200)).unwrap_err();
            assert!(
                matches!(refused.kind(), ErrorKind::MarkMoved { expected, found }
                    if (expected.get(), found.get()) == (200, mark)),
                "{refused}"
            );
        }
        assert!(reserve(1, 1, within(7, 7)).is_err() && reserve(1, 0, within(1, 9)).is_err());
        assert!(
            reserve(1, 9, within(u64::MAX - 1, u64::MAX)).is_err(),
            "no mark can be kept there"
        );
        let after = decide_reserve("orders", &row(1), 5, within(101, 200)).unwrap();
        let back = GiveBack { source: "orders".into(), first: 101, last: 105, version: 1 };
        assert_eq!(decide_give_back(&after, &back).unwrap().mark, Mark::new(101));
    }

    #[test]
    fn the_end_of_the_numbers_is_an_error() {
        let row = SegmentRow { mark: Mark::new(NUMBER_MAX - 1), floor: Mark::ZERO, version: 3 };
        assert_eq!(code(decide_reserve("orders", &row, 0, None)), "invalid");
        assert_eq!(code(decide_reserve("orders", &row, 3, None)), "exhausted");
        assert!(decide_reserve("orders", &row, u64::MAX, None).is_err());
        let last = decide_reserve("orders", &row, 2, None).unwrap();
        assert_eq!(last.mark, Mark::MAX);
        assert_eq!(code(decide_reserve("orders", &last, 1, None)), "exhausted");
    }
}
