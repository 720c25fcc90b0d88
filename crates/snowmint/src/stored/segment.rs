//! A handle for a source of plain numbers.

use snowmint_coord::{IdBatch, NumberLane, NumberRange, SegmentHandle, Source, SourceStats};

use super::context::StoreContext;
use crate::values::Short;
use snowmint_coord::{Error, Result};

/// Takes numbers from a segment source: unique, from 1 on, without time inside. Cheap to clone.
///
/// The node reserves ranges in the store ahead of need, so most calls do not wait. Numbers of one
/// process increase; between processes they do not. A process that ends without closing leaves a
/// gap.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The fast path; none if the source has a disguise.
    numbers: Option<SegmentHandle>,
    source: Source,
    ctx: StoreContext,
}

impl Segment {
    pub(crate) fn new(source: Source, ctx: StoreContext) -> Self {
        Self { numbers: source.numbers().ok(), source, ctx }
    }

    /// Returns the next number, waiting for the store up to
    /// [`Options::wait_max_ms`](crate::options::Options::wait_max_ms).
    ///
    /// # Errors
    /// `Unavailable` when the store is unreachable and the prefetched numbers are spent;
    /// `Exhausted` after the last number; `Disabled` and `Closed`.
    pub async fn next(&self) -> Result<u64> {
        match self.try_next() {
            Ok(number) => Ok(number),
            Err(_) => one(self.source.mint(1, None, self.ctx.wait_max_ms).await?),
        }
    }

    /// Returns the next number, if it is prefetched. Never waits.
    ///
    /// # Errors
    /// Same as [`next`](Self::next); `Unavailable` when the prefetched numbers are spent.
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        match &self.numbers {
            Some(numbers) => numbers.try_next(),
            None => self.source.try_mint(),
        }
    }

    /// Returns exactly `count` numbers, waiting as [`next`](Self::next) does.
    ///
    /// # Errors
    /// Same as [`next`](Self::next). Numbers taken before the error stay unused.
    pub async fn take(&self, count: u32) -> Result<Vec<u64>> {
        numbers(self.source.mint(count, None, self.ctx.wait_max_ms).await?)
    }

    /// Fills the whole buffer from prefetched numbers. Never waits.
    ///
    /// # Errors
    /// [`Short`], with the number of numbers written and the reason for the end.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.source.try_fill(out).map_err(|(made, error)| Short { made, error })
    }

    /// Reserves `length` consecutive numbers for the caller.
    ///
    /// # Errors
    /// Same as [`next`](Self::next); `Invalid` for a length of 0, and for a source with a disguise.
    pub async fn reserve_range(&self, length: u64) -> Result<NumberRange> {
        self.source.reserve_range(length, self.ctx.wait_max_ms).await
    }

    /// Returns a lane for one thread's hottest loop: it takes `block` numbers at a time and counts
    /// locally. For a source with several stores, each block comes from one of them.
    ///
    /// # Errors
    /// `Invalid` for a source with a disguise.
    pub fn lane(&self, block: u64) -> Result<NumberLane> {
        self.source.lane(block)
    }

    /// Returns the state of the source.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// Returns the source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }
}

pub(super) fn numbers(values: IdBatch) -> Result<Vec<u64>> {
    match values {
        IdBatch::Numbers(numbers) => Ok(numbers),
        IdBatch::Texts(_) => Err(not_numbers()),
    }
}

pub(super) fn one(values: IdBatch) -> Result<u64> {
    numbers(values)?.first().copied().ok_or_else(not_numbers)
}

pub(super) fn not_numbers() -> Error {
    Error::internal("internal error: source of numbers returned texts; please report it")
}
