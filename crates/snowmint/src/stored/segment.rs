//! A handle for a source of plain numbers.

use snowmint_coord::{NumberLane, Numbers, Row, Source, SourceStats, Values};

use super::Shared;
use crate::{Error, Result, Short};

/// Takes numbers from a segment source: unique, from 1 on, without time inside. A cheap clone.
///
/// Ranges are reserved from the store ahead of need, so most calls do not wait. Numbers of one process
/// increase; between processes they do not, and a process that ends leaves a gap unless it closes.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The short way, unless the source has a disguise.
    numbers: Option<Numbers>,
    source: Source,
    shared: Shared,
}

impl Segment {
    pub(crate) fn new(source: Source, shared: Shared) -> Self {
        Self { numbers: source.numbers().ok(), source, shared }
    }

    /// The next number, waiting for the store at most as long as
    /// [`Options::wait_max_ms`](crate::Options::wait_max_ms) says.
    ///
    /// # Errors
    /// `Unavailable` when the store is away and the stock is spent; `Exhausted` after the last number;
    /// `Disabled` and `Closed`.
    pub async fn next(&self) -> Result<u64> {
        match self.try_next() {
            Ok(number) => Ok(number),
            Err(_) => one(self.source.mint(1, None, self.shared.wait_max_ms).await?),
        }
    }

    /// The next number, if it is in stock. Never waits.
    ///
    /// # Errors
    /// As [`next`](Self::next); `Unavailable` when the stock is spent.
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        match &self.numbers {
            Some(numbers) => numbers.try_next(),
            None => self.source.try_mint(),
        }
    }

    /// Exactly `count` numbers, waiting as [`next`](Self::next) does.
    ///
    /// # Errors
    /// As [`next`](Self::next). Numbers taken until then are not used.
    pub async fn take(&self, count: u32) -> Result<Vec<u64>> {
        numbers(self.source.mint(count, None, self.shared.wait_max_ms).await?)
    }

    /// Fills the whole buffer from stock. Never waits.
    ///
    /// # Errors
    /// [`Short`], which says how many numbers were written and why there are no more.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.source.try_fill(out).map_err(|(made, why)| Short { made, why })
    }

    /// `length` numbers that follow one another, for the caller to spend.
    ///
    /// # Errors
    /// As [`next`](Self::next); `Invalid` for a length of 0, and for a source with a disguise.
    pub async fn row(&self, length: u64) -> Result<Row> {
        self.source.row(length, self.shared.wait_max_ms).await
    }

    /// A lane for one thread's hottest loop: it takes `block` numbers at a time and counts locally. Of a source
    /// with several stores each block is of one of them.
    ///
    /// # Errors
    /// `Invalid` for a source with a disguise.
    pub fn lane(&self, block: u64) -> Result<NumberLane> {
        self.source.lane(block)
    }

    /// How the source stands.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// The source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }
}

pub(super) fn numbers(values: Values) -> Result<Vec<u64>> {
    match values {
        Values::Numbers(numbers) => Ok(numbers),
        Values::Texts(_) => Err(not_numbers()),
    }
}

pub(super) fn one(values: Values) -> Result<u64> {
    numbers(values)?.first().copied().ok_or_else(not_numbers)
}

pub(super) fn not_numbers() -> Error {
    Error::internal("mint", "a source of numbers answered with something else")
}
