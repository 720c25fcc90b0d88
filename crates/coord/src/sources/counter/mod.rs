//! Counters: for each key, numbers greater than every number returned before the request came
//! (`WeChat`'s seqsvr).
//!
//! Keys belong to sections, and a section to one process at a time
//! ([`exclusive`](crate::model::exclusive)). A section has one mark for all its keys, so the store is
//! written once for many numbers, whatever the number of keys. A key that is new, or has a new
//! owner, continues above everything that the mark allowed before. So the numbers of a key rise and
//! have gaps.
//!
//! [`SectionWindows`] has the sections that this process owns, [`key_table`] the last number of
//! each key. The driver maintains both; takers share no lock but one for a part of the keys.

mod bound;
mod key;
mod key_table;
mod many_keys;
mod room;
mod text_map;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use self::key::CounterKey;
pub(super) use self::key::Slots;
pub use self::key::{KEY_BYTES_MAX, hash_slot};
pub(super) use self::key_table::KeyTable;
use self::key_table::Shard;
pub(super) use self::room::KeyRoom;
use super::defined::Defined;
use super::lease_stamp::LeaseStamp;
use super::node_context::NodeContext;
use super::section_windows::{NotOwned, SectionWindows, WindowBounds};
use super::shared_errors::closed;
use super::source_kind::SourceKind;
use super::values::SourceStats;
use crate::error::{Error, Result, Retry, Verb};
use crate::machine::demand::Demand;
use crate::machine::section_assignment::Server;
use crate::model::catalog::SourceState;
use crate::model::exclusive::Acquire;
use crate::model::pool::sections_pool;
use crate::model::segment::NUMBER_MAX;
use crate::spec::{CounterPlan, Plan};

/// Milliseconds that a waiter waits for news before it checks again.
const RECHECK_MS: u64 = 20;
/// Most numbers of one call.
pub const RUN_MAX: u64 = 1_000_000;
/// Highest bound that a counter key is raised to: half of all numbers. Sooner or later the other
/// keys of its section continue above it too; a key raised to the end would leave them without
/// numbers.
pub const BOUND_MAX: u64 = 1 << 62;

/// A counter source.
pub(crate) struct CounterSource {
    name: String,
    ctx: Arc<NodeContext>,
    table: Arc<KeyTable>,
    slots: Slots,
    /// Offset added to a section's numbers: they begin at 1, and the source begins at its start.
    above: u64,
    step: AtomicU64,
    /// Whether the store confirms the section before each result.
    confirm: AtomicBool,
}

/// Consecutive numbers of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyNumbers {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Failure to give a number.
enum CountError {
    /// Temporary: news may change it.
    Wait(Error),
    /// Final: waiting does not help.
    Error(Error),
}

/// Reason why memory has no number.
#[derive(Clone, Copy, Debug)]
enum MissReason {
    /// This process does not own the section.
    NotHere,
    /// The section's window ends before this number.
    Spent(u64),
}

/// Numbers as the table has them, and the limit of the window that they come from.
struct TableNumbers {
    first: u64,
    last: u64,
    limit: u64,
}

impl From<Error> for CountError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl CounterSource {
    pub(crate) fn new(name: &str, plan: CounterPlan, ctx: Arc<NodeContext>) -> Self {
        let table = Arc::new(KeyTable::new(ctx.sections.key_room()));
        ctx.sections.register(&table);
        Self {
            name: name.into(),
            table,
            slots: Slots::new(name, plan.keys_alone),
            above: plan.start.saturating_sub(1),
            step: AtomicU64::new(plan.step),
            confirm: AtomicBool::new(plan.confirm),
            ctx,
        }
    }

    fn sections(&self) -> &SectionWindows {
        &self.ctx.sections
    }

    /// Returns the section of a key.
    pub(crate) fn section(&self, key: &[u8]) -> u16 {
        self.slots.of(key)
    }

    /// Checks that no other process is known to own the section of a key. Takes no number; a
    /// section without an owner is requested.
    pub(crate) fn check_owner(&self, key: &[u8]) -> Result<()> {
        let section = self.slots.of(key);
        if self.sections().cell(section).window().is_some() {
            return Ok(());
        }
        match self.not_here(section) {
            CountError::Error(error) => Err(error),
            CountError::Wait(_) => Ok(()),
        }
    }

    /// Takes `count` numbers of a key; waits at most `within_ms` for the store.
    pub(crate) async fn take(&self, key: &[u8], count: u64, within_ms: u64) -> Result<KeyNumbers> {
        let parsed = self.check(key, count)?;
        let section = self.slots.of(key);
        if !self.confirm.load(Ordering::Acquire)
            && let Ok(counted) = self.try_take(parsed, section, count)
        {
            return Ok(counted);
        }
        let deadline = self.ctx.deadline(within_ms);
        loop {
            let mut news = pin!(self.sections().news.notified());
            // Registers first, so that no news is missed; this takes a lock that all waiters share.
            news.as_mut().enable();
            let hold = self.sections().held_by(section);
            let error = match self.try_take(parsed, section, count) {
                Ok(counted) if !self.confirm.load(Ordering::Acquire) => return Ok(counted),
                Ok(counted) => match self.is_confirmed(section, hold).await {
                    Ok(true) => return Ok(counted),
                    Ok(false) => self.lease_expired(),
                    Err(error) => error,
                },
                Err(CountError::Error(error)) => return Err(error),
                Err(CountError::Wait(error)) => error,
            };
            if !deadline.wait(news, RECHECK_MS).await {
                return Err(error);
            }
        }
    }

    /// Takes `count` numbers of a key without waiting.
    pub(crate) fn take_now(&self, key: &[u8], count: u64) -> Result<KeyNumbers> {
        if self.confirm.load(Ordering::Acquire) {
            return Err(Error::unavailable(format!(
                "source {:?} confirms each count in the store; use a call that waits",
                self.name
            )));
        }
        let parsed = self.check(key, count)?;
        self.try_take(parsed, self.slots.of(key), count).map_err(|refused| match refused {
            CountError::Wait(error) | CountError::Error(error) => error,
        })
    }

    fn check<'a>(&self, key: &'a [u8], count: u64) -> Result<CounterKey<'a>> {
        if count == 0 {
            let message = "count 0 is below the minimum of 1; ask for at least one number";
            return Err(Error::invalid(message));
        }
        if count > RUN_MAX {
            return Err(Error::limit_exceeded(format!(
                "count {count} of a key of source {:?} exceeds {RUN_MAX}; ask for fewer",
                self.name
            )));
        }
        CounterKey::new(key)
    }

    /// Takes numbers, and only then checks that the lease still lasts: any delay of this thread up
    /// to then is covered by the check.
    fn try_take(
        &self,
        key: CounterKey<'_>,
        section: u16,
        count: u64,
    ) -> Result<KeyNumbers, CountError> {
        let lease = self.sections().lease();
        let (mut shard, hash) = self.table.lock(key);
        let taken = self.take_locked(&mut shard, key, hash, section, count);
        drop(shard);
        self.sections().make_room();
        let taken = taken.map_err(|missed| self.missed(section, missed))?;
        self.request_ahead(section, &taken);
        self.check_lease(lease)?;
        Ok(KeyNumbers { first: self.shown(taken.first), last: self.shown(taken.last) })
    }

    /// Takes numbers from the part of the table that holds the key.
    #[inline]
    fn take_locked(
        &self,
        shard: &mut Shard,
        key: CounterKey<'_>,
        hash: u64,
        section: u16,
        count: u64,
    ) -> Result<TableNumbers, MissReason> {
        let (window, place) = self.place(shard, key, hash, section).ok_or(MissReason::NotHere)?;
        // Another source may have moved the section further than this one can count.
        let limit = window.limit.min(self.end());
        let first = place.saturating_add(1).max(window.base).max(1);
        let last = first.saturating_add(count - 1);
        let fits = last < limit;
        if fits {
            *place = last;
            self.sections().cell(section).gave(last);
        }
        self.table.count(shard);
        if fits { Ok(TableNumbers { first, last, limit }) } else { Err(MissReason::Spent(last)) }
    }

    /// Returns the window of the key's section, and the place of the key's number, made if absent.
    /// `None` while this process does not own the section.
    #[inline]
    fn place<'a>(
        &self,
        shard: &'a mut Shard,
        key: CounterKey<'_>,
        hash: u64,
        section: u16,
    ) -> Option<(WindowBounds, &'a mut u64)> {
        let window = self.window(section)?;
        Some((window, self.table.place(shard, key, hash)))
    }

    /// Returns the section's window for this source; `None` while this process does not own the
    /// section. To be called while holding the lock of the key's part of the table: the call that
    /// forgot the key held it too, and raised the base before.
    #[inline]
    fn window(&self, section: u16) -> Option<WindowBounds> {
        let mut window = self.sections().cell(section).window()?;
        if self.table.has_forgotten() {
            window.base = window.base.max(self.sections().forgotten_below(section));
        }
        Some(window)
    }

    /// Requests more numbers before the window ends.
    #[inline]
    fn request_ahead(&self, section: u16, taken: &TableNumbers) {
        let left = taken.limit - taken.last;
        if left <= self.step.load(Ordering::Relaxed) / 2
            && self.sections().cell(section).is_first_request(taken.limit)
        {
            self.sections().want(section, self.want(taken.last));
        }
    }

    const fn shown(&self, number: u64) -> u64 {
        number.saturating_add(self.above)
    }

    #[cold]
    fn missed(&self, section: u16, missed: MissReason) -> CountError {
        match missed {
            MissReason::NotHere => self.not_here(section),
            MissReason::Spent(last) => self.spent(section, last),
        }
    }

    /// Returns the first section number that is too high for this source.
    const fn end(&self) -> u64 {
        NUMBER_MAX.saturating_sub(self.above).saturating_add(1)
    }

    fn want(&self, last: u64) -> Demand {
        Demand::Numbers { until: last.saturating_add(1), step: self.step.load(Ordering::Relaxed) }
    }

    /// Returns whether numbers taken under `lease` may be returned now.
    fn check_lease(&self, lease: LeaseStamp) -> Result<(), CountError> {
        if self.ctx.is_leased(lease) { Ok(()) } else { Err(CountError::Wait(self.lease_expired())) }
    }

    fn lease_expired(&self) -> Error {
        Error::unavailable(format!(
            "lease on the sections of source {:?} expired; retry while it is renewed",
            self.name
        ))
    }

    #[cold]
    fn spent(&self, section: u16, last: u64) -> CountError {
        if last >= self.end() {
            return CountError::Error(Error::exhausted(format!(
                "source {:?} has no numbers left, maximum {NUMBER_MAX}; define another source",
                self.name
            )));
        }
        self.sections().want(section, self.want(last));
        CountError::Wait(self.not_yet(section))
    }

    fn not_yet(&self, section: u16) -> Error {
        if let Err(error) = self.ctx.journal_budget.check_disk(self.ctx.timer.elapsed()) {
            return error;
        }
        Error::unavailable(format!(
            "section {section} of source {:?} is being acquired; retry",
            self.name
        ))
    }

    /// Reports that this process does not own the section: its owner, or that it is being acquired.
    #[cold]
    fn not_here(&self, section: u16) -> CountError {
        match self.sections().absent(section, self.want(0), self.ctx.timer.elapsed()) {
            NotOwned::Pending => CountError::Wait(self.not_yet(section)),
            NotOwned::HandingOver(server) => {
                let later = Retry::AfterMs(RECHECK_MS);
                CountError::Wait(not_owner(section, server).with_retry(later))
            }
            NotOwned::With(server) => CountError::Error(not_owner(section, server)),
            NotOwned::Closed => CountError::Error(closed(&self.name)),
        }
    }

    /// Repeats `attempt` at news of sections, for at most `within_ms`.
    async fn retry_on_news<T>(
        &self,
        within_ms: u64,
        attempt: impl Fn() -> Result<T, CountError>,
    ) -> Result<T> {
        let deadline = self.ctx.deadline(within_ms);
        loop {
            let mut news = pin!(self.sections().news.notified());
            news.as_mut().enable();
            let error = match attempt() {
                Ok(result) => return Ok(result),
                Err(CountError::Error(error)) => return Err(error),
                Err(CountError::Wait(error)) => error,
            };
            if !deadline.wait(news, RECHECK_MS).await {
                return Err(error);
            }
        }
    }

    /// Asks the store whether this process still owns the section by the hold that it had before a
    /// number was taken or read. A later hold proves nothing about that number.
    async fn is_confirmed(&self, section: u16, hold: (u64, u64)) -> Result<bool> {
        let ctx = &self.ctx;
        let Some(member) = self.sections().assignment.load().own() else { return Ok(false) };
        let (request, term) = hold;
        let acquire = Acquire {
            pool: sections_pool(),
            member,
            owner: String::new(),
            slots: vec![section.into()],
            stalled: Vec::new(),
            supersedes: None,
            length: 0,
            request,
        };
        let taken = ctx.store.acquire(&acquire, ctx.clock.unix_ms());
        let taken = ctx.store_call(Verb::Acquire, taken).await?;
        let is_ours = taken.leases.iter().any(|lease| lease.term.get() == term);
        if !is_ours && self.sections().held_by(section) == hold {
            self.sections().shut(section);
            self.sections().want(section, self.want(0));
        }
        Ok(is_ours)
    }

    /// Confirms the same, where the source's definition asks for it.
    async fn check_confirmed(&self, section: u16, hold: (u64, u64)) -> Result<()> {
        if self.confirm.load(Ordering::Acquire) && !self.is_confirmed(section, hold).await? {
            return Err(self.lease_expired());
        }
        Ok(())
    }
}

impl SourceKind for CounterSource {
    fn alter(&self, defined: &Defined) {
        let Plan::Counter(plan) = &defined.plan else { return };
        self.step.store(plan.step, Ordering::Relaxed);
        self.confirm.store(plan.confirm, Ordering::Release);
        // It may never be defined again.
        if defined.state == SourceState::Deleted {
            self.sections().forget_all(&self.table);
        }
    }

    fn stats(&self, ready: bool) -> SourceStats {
        SourceStats { ready, keys: Some(self.table.size()), ..SourceStats::default() }
    }

    fn calls_each_time(&self) -> bool {
        self.confirm.load(Ordering::Acquire)
    }
}

fn not_owner(section: u16, server: Server) -> Error {
    Error::not_owner(section, server.address)
}

crate::opaque_debug!(CounterSource: name);
