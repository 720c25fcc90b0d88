//! Running sources: what applications mint from.

mod form;
mod minter;
mod named;
mod segment;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use snowmint_core::text::{Format, Text};
use snowmint_core::{Layout, Parts, Refusal, UnixMillis};
use tokio::sync::Notify;

pub use form::Keyrings;
pub(crate) use form::{Form, check_value, compare_check};
pub(crate) use minter::{Make, Minter, SlotWindow};
pub use minter::{NodeClock, NodeObserver};
use named::{UlidSource, UuidSource};
pub(crate) use segment::SegmentSource;

use crate::catalog::SourceState;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::segment::Segment;
use crate::spec::{Kind, Plan, SourceSpec};
use crate::store::Store;
use crate::timer::Timer;

/// The most IDs of one call.
pub const BATCH_MAX: u32 = 1_000_000;
/// How long a wait for a window may last before it is looked at again.
const WINDOW_WAIT_MS: u64 = 5;

/// What every source of a node shares.
pub(crate) struct Surroundings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) clock: NodeClock,
    pub(crate) observer: NodeObserver,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) store_call_ms: u64,
    /// Wakes the driver.
    pub(crate) wake: Notify,
    stale: AtomicBool,
    catalog_version: AtomicU64,
    writes: AtomicU64,
    /// Ends of what was reserved since the driver last looked.
    reserved: Mutex<Vec<(String, u64)>>,
}

impl Surroundings {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        clock: NodeClock,
        observer: NodeObserver,
        runtime: tokio::runtime::Handle,
        store_call_ms: u64,
    ) -> Self {
        Self {
            store,
            timer,
            clock,
            observer,
            runtime,
            store_call_ms,
            wake: Notify::new(),
            stale: AtomicBool::new(false),
            catalog_version: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            reserved: Mutex::new(Vec::new()),
        }
    }

    /// A call to the store that ends: with its answer, or with `Unavailable` when it takes too long.
    pub(crate) async fn call<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            answer = call => answer,
            () = self.timer.sleep_ms(self.store_call_ms) => {
                let what = format!("an answer of the store within {} ms", self.store_call_ms);
                Err(Error::new(op, ErrorKind::Unavailable { what }))
            }
        }
    }

    /// A call of ours that ends within a caller's bound.
    pub(crate) async fn within<T>(
        &self,
        within_ms: u64,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            answer = call => answer,
            () = self.timer.sleep_ms(within_ms) => {
                let what = format!("an answer within {within_ms} ms");
                Err(Error::new("wait", ErrorKind::Unavailable { what }))
            }
        }
    }

    /// The store has this version of the catalog and this count of writes.
    pub(crate) fn saw(&self, catalog_version: u64, writes: u64) {
        self.writes.fetch_max(writes, Ordering::AcqRel);
        if self.catalog_version.fetch_max(catalog_version, Ordering::AcqRel) < catalog_version {
            self.catalog_stale();
        }
    }

    pub(crate) fn catalog_stale(&self) {
        self.stale.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn writes_seen(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    fn reserved(&self, name: &str, segment: &Segment) {
        self.saw(segment.catalog_version, segment.writes);
        let end = segment.last.saturating_add(1);
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.push((name.into(), end));
        drop(reserved);
        self.wake.notify_one();
    }

    pub(crate) fn take_reserved(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut *self.reserved.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("store", &self.store).finish_non_exhaustive()
    }
}

/// IDs of one call, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// IDs of 64 bits, at most `i64::MAX`.
    Numbers(Vec<u64>),
    /// UUIDs or ULIDs.
    Texts(Vec<String>),
}

impl Values {
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A row of numbers for a caller to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// The distance from one to the next.
    pub increment: u64,
}

/// What an ID is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// Of a snowflake source.
    Snowflake {
        /// The ID without its disguise.
        id: u64,
        /// Its parts.
        parts: Parts,
        /// When its tick began.
        time: UnixMillis,
        /// The layout, for the worker's split and the unit.
        layout: Layout,
    },
    /// Of a segment source.
    Number {
        /// The ID without its disguise.
        id: u64,
    },
    /// A UUID.
    Uuid {
        /// The UUID.
        uuid: uuid::Uuid,
    },
    /// A ULID.
    Ulid {
        /// The ULID's 128 bits.
        bits: u128,
        /// Its time.
        time: UnixMillis,
    },
}

/// How a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether it can mint now.
    pub ready: bool,
    /// The end of everything taken, of a snowflake source.
    pub taken_until: Option<UnixMillis>,
    /// Clock steps back and ahead that its generator met.
    pub clock_steps: (u64, u64),
    /// Numbers in stock, of a segment source.
    pub stock: Option<u64>,
}

/// What a source's definition says now.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) plan: Plan,
    pub(crate) form: Form,
    pub(crate) state: SourceState,
    pub(crate) version: u64,
}

#[derive(Debug)]
pub(crate) enum Back {
    Snowflake(SnowflakeBack),
    Segment(Arc<SegmentSource>),
    Uuid(Box<UuidSource>),
    Ulid(UlidSource),
}

#[derive(Debug, Default)]
pub(crate) struct SnowflakeBack {
    /// None while no window is held.
    minter: ArcSwapOption<Minter>,
    /// Why there is none.
    why: Mutex<Option<Error>>,
}

impl SnowflakeBack {
    pub(crate) fn serve(&self, minter: Arc<Minter>) {
        self.minter.store(Some(minter));
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn suspend(&self, why: Error) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.minter.store(None);
    }
}

/// A source in a node. The node has one of each name.
#[derive(Debug)]
pub(crate) struct SourceInner {
    pub(crate) name: String,
    kind: Kind,
    pub(crate) defined: ArcSwap<Defined>,
    enabled: AtomicBool,
    pub(crate) around: Arc<Surroundings>,
    pub(crate) back: Back,
}

impl SourceInner {
    pub(crate) fn new(
        name: &str,
        defined: Defined,
        seen_end: u64,
        around: Arc<Surroundings>,
    ) -> Result<Self> {
        let back = match &defined.plan {
            Plan::Snowflake(_) => Back::Snowflake(SnowflakeBack::default()),
            Plan::Segment(plan) => {
                let (version, around) = (defined.version, Arc::clone(&around));
                Back::Segment(SegmentSource::new(name, plan.clone(), version, seen_end, around))
            }
            Plan::Uuid(plan) => {
                Back::Uuid(Box::new(UuidSource::new(*plan, Arc::clone(&around.clock))?))
            }
            Plan::Ulid => Back::Ulid(UlidSource::new(Arc::clone(&around.clock))),
        };
        Ok(Self {
            name: name.into(),
            kind: defined.spec.kind(),
            enabled: AtomicBool::new(defined.state == SourceState::Enabled),
            defined: ArcSwap::from_pointee(defined),
            around,
            back,
        })
    }

    /// The definition was changed.
    pub(crate) fn redefine(&self, defined: Defined) {
        if let (Back::Segment(segment), Plan::Segment(plan)) = (&self.back, &defined.plan) {
            segment.alter(plan.clone(), defined.version);
        }
        self.enabled.store(defined.state == SourceState::Enabled, Ordering::Release);
        self.defined.store(Arc::new(defined));
    }

    fn check_enabled(&self) -> Result<()> {
        if self.enabled.load(Ordering::Acquire) {
            return Ok(());
        }
        let name = self.name.clone();
        let kind = match self.defined.load().state {
            SourceState::Deleted => {
                ErrorKind::NotFound { what: format!("source {name:?} any more: it was deleted") }
            }
            _ => ErrorKind::Disabled { name },
        };
        Err(Error::new("mint", kind))
    }

    fn not_number(&self, op: &'static str) -> Error {
        let kind = self.kind;
        Error::invalid(op, format!("source {} makes {kind}s, which are no numbers", self.name))
    }

    fn try_mint(&self) -> Result<u64> {
        self.check_enabled()?;
        let id = match &self.back {
            Back::Snowflake(back) => {
                let minter = back.minter.load();
                let minter = minter.as_ref().ok_or_else(|| self.suspended(back))?;
                minter.try_mint().map_err(|why| self.refused(why))?
            }
            Back::Segment(segment) => segment.try_mint()?,
            Back::Uuid(_) | Back::Ulid(_) => return Err(self.not_number("mint")),
        };
        self.show(id)
    }

    #[inline]
    fn show(&self, id: u64) -> Result<u64> {
        let defined = self.defined.load();
        if defined.form.is_plain() { Ok(id) } else { defined.form.show(&self.name, id) }
    }

    #[cold]
    fn suspended(&self, back: &SnowflakeBack) -> Error {
        self.around.wake.notify_one();
        let why = back.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        why.unwrap_or_else(|| {
            let what = format!("a worker number for source {}", self.name);
            Error::new("mint", ErrorKind::Unavailable { what })
        })
    }

    #[cold]
    fn refused(&self, why: Refusal) -> Error {
        match why {
            Refusal::WindowSpent { .. } | Refusal::NoClockValue { .. } => {
                self.around.wake.notify_one();
            }
            // Closed, because the right to mint was lost, or because another generator follows.
            Refusal::Closed => {
                if let Back::Snowflake(back) = &self.back {
                    return self.suspended(back);
                }
            }
            _ => {}
        }
        Error::refused("mint", &self.name, why)
    }

    fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        self.check_enabled().map_err(|error| (0, error))?;
        match &self.back {
            Back::Snowflake(back) => {
                let minter = back.minter.load();
                let minter = minter.as_ref().ok_or_else(|| (0, self.suspended(back)))?;
                minter.try_fill(out).map_err(|short| (short.made, self.refused(short.why)))
            }
            Back::Segment(segment) => segment.try_fill(out).map_err(|error| (0, error)),
            Back::Uuid(_) | Back::Ulid(_) => Err((0, self.not_number("mint"))),
        }
    }

    /// Fills the buffer with IDs that are not disguised yet.
    async fn fill(&self, out: &mut [u64], within_ms: u64) -> Result<()> {
        if let Back::Segment(segment) = &self.back {
            self.check_enabled()?;
            return segment.fill(out, within_ms).await;
        }
        let timer = &self.around.timer;
        let deadline = timer.elapsed().saturating_add(within_ms);
        let mut made = 0;
        loop {
            let rest = out.get_mut(made..).unwrap_or_default();
            let Err((more, error)) = self.try_fill(rest) else { return Ok(()) };
            made = made.saturating_add(more);
            let left_ms = deadline.since(timer.elapsed());
            let wait_ms = match (error.kind(), error.retry()) {
                // The driver was woken: the window may be there any moment.
                (ErrorKind::WindowSpent { .. } | ErrorKind::Unavailable { .. }, _) => {
                    WINDOW_WAIT_MS
                }
                (_, Retry::Never) => return Err(error),
                (_, Retry::Now) => 0,
                (_, Retry::AfterMs(ms)) => ms,
            };
            if left_ms == 0 || wait_ms > left_ms {
                return Err(error);
            }
            timer.sleep_ms(wait_ms).await;
        }
    }
}

/// A source of IDs. Clones share it, and keep its node going.
#[derive(Clone)]
pub struct Source {
    inner: Arc<SourceInner>,
    /// The driver ends when the last of these is dropped.
    _alive: Arc<dyn Send + Sync>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Source {
    pub(crate) fn new(inner: Arc<SourceInner>, alive: Arc<dyn Send + Sync>) -> Self {
        Self { inner, _alive: alive }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    /// Its keys as the catalog has them, every default written out.
    #[must_use]
    pub fn spec(&self) -> SourceSpec {
        self.inner.defined.load().spec.clone()
    }

    /// What its keys mean.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.inner.defined.load().plan.clone()
    }

    /// The form of its IDs as text.
    #[must_use]
    pub fn format(&self) -> Format {
        self.inner.defined.load().form.format()
    }

    /// One ID of a source of numbers. Never waits.
    ///
    /// # Errors
    /// What happened, whether a retry helps, and when: [`ErrorKind::TickFull`],
    /// [`ErrorKind::WindowSpent`], [`ErrorKind::ClockBehind`], [`ErrorKind::Disabled`] and others.
    #[inline]
    pub fn try_mint(&self) -> Result<u64> {
        self.inner.try_mint()
    }

    /// Fills the buffer with IDs of a source of numbers. Never waits.
    ///
    /// # Errors
    /// How many IDs stand at the start of the buffer, and why there are no more. They count as taken.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        let outcome = self.inner.try_fill(out);
        let made = outcome.as_ref().map_or_else(|(made, _)| *made, |()| out.len());
        for id in out.get_mut(..made).unwrap_or_default() {
            *id = self.inner.show(*id).map_err(|error| (0, error))?;
        }
        outcome
    }

    /// Exactly `count` IDs, waiting at most `within_ms` for clock and store. `key` is the name that
    /// UUIDs of version 3 and 5 hash, and the data of version 8.
    ///
    /// # Errors
    /// The last refusal when the time is up or no wait helps. IDs made until then are not used.
    pub async fn mint(&self, count: u32, key: Option<&str>, within_ms: u64) -> Result<Values> {
        if count == 0 {
            return Err(Error::invalid("mint", "0 IDs were asked for: ask for at least 1"));
        }
        if count > BATCH_MAX {
            let (wanted, limit) = (u64::from(count), u64::from(BATCH_MAX));
            return Err(Error::new(
                "mint",
                ErrorKind::TooMany { what: "IDs".into(), wanted, limit },
            ));
        }
        self.inner.check_enabled()?;
        match &self.inner.back {
            Back::Uuid(source) => {
                let each = (0..count).map(|_| source.mint(key).map(|id| id.to_string()));
                return each.collect::<Result<_>>().map(Values::Texts);
            }
            _ if key.is_some() => {
                let what = format!("source {} takes no key", self.inner.name);
                return Err(Error::invalid("mint", what));
            }
            Back::Ulid(source) => {
                return Ok(Values::Texts((0..count).map(|_| source.mint().to_string()).collect()));
            }
            Back::Snowflake(_) | Back::Segment(_) => {}
        }
        let mut ids = vec![0; usize::try_from(count).unwrap_or(0)];
        self.inner.fill(&mut ids, within_ms).await?;
        for id in &mut ids {
            *id = self.inner.show(*id)?;
        }
        Ok(Values::Numbers(ids))
    }

    /// `length` numbers of a segment source that follow one another, for the caller to spend.
    ///
    /// # Errors
    /// `Invalid` for other kinds, for disguised sources, and for a length of 0; otherwise as
    /// [`Source::mint`].
    pub async fn row(&self, length: u64, within_ms: u64) -> Result<Row> {
        self.inner.check_enabled()?;
        let defined = self.inner.defined.load_full();
        let (Back::Segment(segment), Plan::Segment(plan)) = (&self.inner.back, &defined.plan)
        else {
            let what = format!("source {} is no segment source: only they have rows", self.name());
            return Err(Error::invalid("reserve", what));
        };
        if length == 0 || !defined.form.is_plain() {
            let what = "a row has at least one number, and no disguise";
            return Err(Error::invalid("reserve", what));
        }
        let (first, last) = segment.row(length, within_ms).await?;
        Ok(Row { first, last, increment: plan.increment })
    }

    /// The text of an ID: in the source's own format, unless another is asked for.
    ///
    /// # Errors
    /// `Invalid` when the format cannot write the ID.
    pub fn encode(&self, id: u64, format: Option<Format>) -> Result<Text> {
        self.inner.defined.load().form.encode(id, format)
    }

    /// What an ID of this source is made of. Numbers are read in the given format, else in the
    /// source's own or in decimal; disguises are taken off.
    ///
    /// # Errors
    /// `Invalid`, which says what is wrong with the text.
    pub fn decode(&self, text: &str, format: Option<Format>) -> Result<Decoded> {
        let defined = self.inner.defined.load();
        let number = || {
            let shown = defined.form.decode(text, format)?;
            defined.form.reveal(&self.inner.name, shown)
        };
        match &defined.plan {
            Plan::Snowflake(plan) => {
                let id = number()?;
                let layout = plan.layout;
                let parts = layout
                    .unpack(id)
                    .map_err(|error| Error::invalid("decode", error.to_string()))?;
                Ok(Decoded::Snowflake { id, parts, time: layout.start_of(parts.tick), layout })
            }
            Plan::Segment(_) => Ok(Decoded::Number { id: number()? }),
            Plan::Uuid(_) => uuid::Uuid::try_parse(text)
                .map(|uuid| Decoded::Uuid { uuid })
                .map_err(|error| Error::invalid("decode", error.to_string())),
            Plan::Ulid => ulid::Ulid::from_string(text)
                .map(|ulid| {
                    let time = UnixMillis::new(ulid.timestamp_ms());
                    Decoded::Ulid { bits: ulid.0, time }
                })
                .map_err(|error| Error::invalid("decode", error.to_string())),
        }
    }

    /// How it stands.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        let enabled = self.inner.enabled.load(Ordering::Acquire);
        match &self.inner.back {
            Back::Snowflake(back) => {
                let minter = back.minter.load();
                let Some(minter) = minter.as_ref() else { return SourceStats::default() };
                SourceStats {
                    ready: enabled,
                    taken_until: minter.positions().iter().map(|slot| slot.taken_until).max(),
                    clock_steps: minter.steps(),
                    stock: None,
                }
            }
            Back::Segment(segment) => SourceStats {
                ready: enabled,
                stock: Some(segment.stock()),
                ..SourceStats::default()
            },
            Back::Uuid(_) | Back::Ulid(_) => {
                SourceStats { ready: enabled, ..SourceStats::default() }
            }
        }
    }
}
