//! Sources of a store for programs without an async runtime.
//!
//! The handles are those of the async side, with calls that block the thread. Snowflake IDs need no
//! twin: [`Snowflake`] blocks as it is.

use std::sync::Arc;

use snowmint_coord::{NumberLane, Readiness, Row, SourceSpec};

use crate::runtime::Keep;
use crate::{Options, Result, Snowflake};

/// Opens the store at `url`, as [`open`](crate::open) does, for a program without a runtime.
///
/// # Errors
/// As [`Options::open_blocking`].
pub fn open_blocking(url: &str) -> Result<Mint> {
    Options::new().open_blocking(url)
}

/// An open store, as [`crate::Mint`].
#[derive(Clone, Debug)]
pub struct Mint {
    // Before the runtime that it runs on, so that it is dropped first.
    mint: crate::Mint,
    keep: Arc<Keep>,
}

impl Mint {
    pub(crate) fn new(mint: crate::Mint, keep: Arc<Keep>) -> Self {
        Self { mint, keep }
    }

    /// As [`crate::Mint::snowflake`].
    ///
    /// # Errors
    /// As there.
    pub fn snowflake(&self, name: &str) -> Result<Snowflake> {
        self.keep.block_on(self.mint.snowflake(name))
    }

    /// As [`crate::Mint::segment`].
    ///
    /// # Errors
    /// As there.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let segment = self.keep.block_on(self.mint.segment(name))?;
        Ok(Segment { segment, keep: Arc::clone(&self.keep) })
    }

    /// As [`crate::Mint::counter`].
    ///
    /// # Errors
    /// As there.
    pub fn counter(&self, name: &str) -> Result<Counter> {
        let counter = self.keep.block_on(self.mint.counter(name))?;
        Ok(Counter { counter, keep: Arc::clone(&self.keep) })
    }

    /// As [`crate::Mint::uuid`].
    ///
    /// # Errors
    /// As there.
    pub fn uuid(&self, name: &str) -> Result<Texts> {
        let texts = self.keep.block_on(self.mint.uuid(name))?;
        Ok(Texts { texts, keep: Arc::clone(&self.keep) })
    }

    /// As [`crate::Mint::ulid`].
    ///
    /// # Errors
    /// As there.
    pub fn ulid(&self, name: &str) -> Result<Texts> {
        let texts = self.keep.block_on(self.mint.ulid(name))?;
        Ok(Texts { texts, keep: Arc::clone(&self.keep) })
    }

    /// As [`crate::Mint::define`].
    ///
    /// # Errors
    /// As there.
    pub fn define(&self, name: &str, spec: &SourceSpec) -> Result<()> {
        self.keep.block_on(self.mint.define(name, spec))
    }

    /// As [`crate::Mint::readiness`].
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.mint.readiness()
    }

    /// As [`crate::Mint::close`].
    ///
    /// # Errors
    /// As there.
    pub fn close(&self) -> Result<()> {
        self.keep.block_on(self.mint.close())
    }
}

/// A segment source, as [`crate::Segment`].
#[derive(Clone, Debug)]
pub struct Segment {
    segment: crate::Segment,
    keep: Arc<Keep>,
}

impl Segment {
    /// As [`crate::Segment::next`].
    ///
    /// # Errors
    /// As there.
    pub fn next(&self) -> Result<u64> {
        self.segment.try_next().or_else(|_| self.keep.block_on(self.segment.next()))
    }

    /// As [`crate::Segment::try_next`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        self.segment.try_next()
    }

    /// As [`crate::Segment::lane`].
    ///
    /// # Errors
    /// As there.
    pub fn lane(&self, block: u64) -> Result<NumberLane> {
        self.segment.lane(block)
    }

    /// As [`crate::Segment::take`].
    ///
    /// # Errors
    /// As there.
    pub fn take(&self, count: u32) -> Result<Vec<u64>> {
        self.keep.block_on(self.segment.take(count))
    }

    /// As [`crate::Segment::row`].
    ///
    /// # Errors
    /// As there.
    pub fn row(&self, length: u64) -> Result<Row> {
        self.keep.block_on(self.segment.row(length))
    }
}

/// A counter source, as [`crate::Counter`].
#[derive(Clone, Debug)]
pub struct Counter {
    counter: crate::Counter,
    keep: Arc<Keep>,
}

impl Counter {
    /// As [`crate::Counter::next`].
    ///
    /// # Errors
    /// As there.
    pub fn next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        let key = key.as_ref();
        self.counter.try_next(key).or_else(|_| self.keep.block_on(self.counter.next(key)))
    }

    /// As [`crate::Counter::next_many`].
    ///
    /// # Errors
    /// As there.
    pub fn next_many(&self, key: impl AsRef<[u8]>, count: u64) -> Result<(u64, u64)> {
        self.keep.block_on(self.counter.next_many(key, count))
    }

    /// As [`crate::Counter::next_each`].
    ///
    /// # Errors
    /// As there.
    pub fn next_each<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<u64>> {
        let at_hand = self.counter.try_next_each(keys);
        at_hand.or_else(|_| self.keep.block_on(self.counter.next_each(keys)))
    }

    /// As [`crate::Counter::bound`].
    ///
    /// # Errors
    /// As there.
    pub fn bound(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.keep.block_on(self.counter.bound(key))
    }
}

/// A source of UUIDs or ULIDs, as [`crate::Texts`].
#[derive(Clone, Debug)]
pub struct Texts {
    texts: crate::Texts,
    keep: Arc<Keep>,
}

impl Texts {
    /// As [`crate::Texts::next`].
    ///
    /// # Errors
    /// As there.
    pub fn next(&self) -> Result<String> {
        self.keep.block_on(self.texts.next())
    }

    /// As [`crate::Texts::next_for`].
    ///
    /// # Errors
    /// As there.
    pub fn next_for(&self, name: &str) -> Result<String> {
        self.keep.block_on(self.texts.next_for(name))
    }

    /// As [`crate::Texts::take`].
    ///
    /// # Errors
    /// As there.
    pub fn take(&self, count: u32) -> Result<Vec<String>> {
        self.keep.block_on(self.texts.take(count))
    }
}
