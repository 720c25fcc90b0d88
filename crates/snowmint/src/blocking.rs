//! Sources of a store for programs without an async runtime.
//!
//! The handles match those of the async API, but their calls block the thread. [`Snowflake`] needs
//! no second form: its calls already block.

use std::sync::Arc;

use snowmint_coord::{NumberLane, NumberRange, Readiness, SourceSpec};

use crate::options::Options;
use crate::runtime::OwnedRuntime;
use crate::snowflake::Snowflake;
use snowmint_coord::Result;

/// Opens the store at `url` like [`open`](crate::open), for a program without a runtime.
///
/// # Errors
/// Same as [`Options::open_blocking`].
pub fn open_blocking(url: &str) -> Result<Mint> {
    Options::new().open_blocking(url)
}

impl Options {
    /// Opens the store at `url`, for a program without a runtime. A thread of the handle does the
    /// background work and ends with the last handle.
    ///
    /// # Errors
    /// Same as [`open`](Self::open); `Unavailable` when the system starts no thread; `Unsupported`
    /// inside a runtime, because the call would block a thread of that runtime.
    pub fn open_blocking(self, url: &str) -> Result<Mint> {
        let runtime = Arc::new(OwnedRuntime::start()?);
        let mint = runtime.block_on(self.open(url))?;
        Ok(Mint::new(mint.runtime(Arc::clone(&runtime)), runtime))
    }
}

/// An open store: the blocking form of [`crate::Mint`].
#[derive(Clone, Debug)]
pub struct Mint {
    // Declared before the runtime it runs on, so that it is dropped first.
    mint: crate::Mint,
    runtime: Arc<OwnedRuntime>,
}

impl Mint {
    pub(crate) fn new(mint: crate::Mint, runtime: Arc<OwnedRuntime>) -> Self {
        Self { mint, runtime }
    }

    /// Calls [`crate::Mint::snowflake`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn snowflake(&self, name: &str) -> Result<Snowflake> {
        self.runtime.block_on(self.mint.snowflake(name))
    }

    /// Calls [`crate::Mint::segment`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let segment = self.runtime.block_on(self.mint.segment(name))?;
        Ok(Segment { segment, runtime: Arc::clone(&self.runtime) })
    }

    /// Calls [`crate::Mint::counter`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn counter(&self, name: &str) -> Result<Counter> {
        let counter = self.runtime.block_on(self.mint.counter(name))?;
        Ok(Counter { counter, runtime: Arc::clone(&self.runtime) })
    }

    /// Calls [`crate::Mint::uuid`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn uuid(&self, name: &str) -> Result<TextSource> {
        let texts = self.runtime.block_on(self.mint.uuid(name))?;
        Ok(TextSource { texts, runtime: Arc::clone(&self.runtime) })
    }

    /// Calls [`crate::Mint::ulid`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn ulid(&self, name: &str) -> Result<TextSource> {
        let texts = self.runtime.block_on(self.mint.ulid(name))?;
        Ok(TextSource { texts, runtime: Arc::clone(&self.runtime) })
    }

    /// Calls [`crate::Mint::define`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn define(&self, name: &str, spec: &SourceSpec) -> Result<()> {
        self.runtime.block_on(self.mint.define(name, spec))
    }

    /// Calls [`crate::Mint::readiness`], which never waits.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.mint.readiness()
    }

    /// Calls [`crate::Mint::close`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn close(&self) -> Result<()> {
        self.runtime.block_on(self.mint.close())
    }
}

/// A segment source: the blocking form of [`crate::Segment`].
#[derive(Clone, Debug)]
pub struct Segment {
    segment: crate::Segment,
    runtime: Arc<OwnedRuntime>,
}

impl Segment {
    /// Calls [`crate::Segment::next`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next(&self) -> Result<u64> {
        self.segment.try_next().or_else(|_| self.runtime.block_on(self.segment.next()))
    }

    /// Calls [`crate::Segment::try_next`], which never waits.
    ///
    /// # Errors
    /// The errors of that call.
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        self.segment.try_next()
    }

    /// Calls [`crate::Segment::lane`], which never waits.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn lane(&self, block: u64) -> Result<NumberLane> {
        self.segment.lane(block)
    }

    /// Calls [`crate::Segment::take`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn take(&self, count: u32) -> Result<Vec<u64>> {
        self.runtime.block_on(self.segment.take(count))
    }

    /// Calls [`crate::Segment::reserve_range`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn reserve_range(&self, length: u64) -> Result<NumberRange> {
        self.runtime.block_on(self.segment.reserve_range(length))
    }
}

/// A counter source: the blocking form of [`crate::Counter`].
#[derive(Clone, Debug)]
pub struct Counter {
    counter: crate::Counter,
    runtime: Arc<OwnedRuntime>,
}

impl Counter {
    /// Calls [`crate::Counter::next`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        let key = key.as_ref();
        self.counter.try_next(key).or_else(|_| self.runtime.block_on(self.counter.next(key)))
    }

    /// Calls [`crate::Counter::next_many`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next_many(&self, key: impl AsRef<[u8]>, count: u64) -> Result<(u64, u64)> {
        self.runtime.block_on(self.counter.next_many(key, count))
    }

    /// Calls [`crate::Counter::next_each`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next_each<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<u64>> {
        let prefetched = self.counter.try_next_each(keys);
        prefetched.or_else(|_| self.runtime.block_on(self.counter.next_each(keys)))
    }

    /// Calls [`crate::Counter::bound`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn bound(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.runtime.block_on(self.counter.bound(key))
    }
}

/// A source of UUIDs or ULIDs: the blocking form of [`crate::TextSource`].
#[derive(Clone, Debug)]
pub struct TextSource {
    texts: crate::TextSource,
    runtime: Arc<OwnedRuntime>,
}

impl TextSource {
    /// Calls [`crate::TextSource::next`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next(&self) -> Result<String> {
        self.runtime.block_on(self.texts.next())
    }

    /// Calls [`crate::TextSource::next_for`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn next_for(&self, name: &str) -> Result<String> {
        self.runtime.block_on(self.texts.next_for(name))
    }

    /// Calls [`crate::TextSource::take`] and blocks until it ends.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn take(&self, count: u32) -> Result<Vec<String>> {
        self.runtime.block_on(self.texts.take(count))
    }
}
