//! Counters: for each key, numbers greater than every number returned before the request came
//! (`WeChat`'s seqsvr).
//!
//! Keys belong to sections, and a section to one process at a time ([`ordered`](crate::ordered)). A
//! section has one mark for all its keys, so the store is written once for many numbers, whatever
//! the number of keys. A key that is new, or has a new owner, continues above everything that the
//! mark allowed before. So the numbers of a key rise and have gaps.
//!
//! [`Sections`] has the sections that this process owns, [`table`] the last number of each key. The
//! driver maintains both; takers share no lock but one for a part of the keys.

mod bound;
mod key;
mod room;
mod table;
mod texts;
mod together;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use self::key::Key;
pub(super) use self::key::Slots;
pub use self::key::{KEY_BYTES_MAX, hash_slot};
pub(super) use self::room::KeyRoom;
use self::table::Shard;
pub(super) use self::table::Table;
use super::Surroundings;
use super::sections::{Absent, Lease, Sections, Want, Window};
use super::shares::Server;
use crate::catalog::SourceState;
use crate::error::{Error, Result, Retry, Verb};
use crate::ordered::Acquire;
use crate::pool::sections_pool;
use crate::segment::NUMBER_MAX;
use crate::spec::CounterPlan;

/// Milliseconds that a waiter waits for news before it checks again.
const LOOK_AGAIN_MS: u64 = 20;
/// Most numbers of one call.
pub const RUN_MAX: u64 = 1_000_000;
/// Highest bound that a counter key is raised to: half of all numbers. Sooner or later the other
/// keys of its section continue above it too; a key raised to the end would leave them without
/// numbers.
pub const BOUND_MAX: u64 = 1 << 62;

/// A counter source.
pub(crate) struct CounterSource {
    name: String,
    around: Arc<Surroundings>,
    table: Arc<Table>,
    slots: Slots,
    /// Offset added to a section's numbers: they begin at 1, and the source begins at its start.
    above: u64,
    step: AtomicU64,
    /// Whether the store confirms the section before each result.
    confirm: AtomicBool,
}

/// Consecutive numbers of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Failure to give a number.
enum Refused {
    /// Temporary: news may change it.
    Wait(Error),
    /// Final: waiting does not help.
    Error(Error),
}

/// Reason why memory has no number.
#[derive(Clone, Copy, Debug)]
enum Missed {
    /// This process does not own the section.
    NotHere,
    /// The section's window ends before this number.
    Spent(u64),
}

/// Numbers as the table has them, and the limit of the window that they come from.
struct Taken {
    first: u64,
    last: u64,
    limit: u64,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl CounterSource {
    pub(crate) fn new(name: &str, plan: CounterPlan, around: Arc<Surroundings>) -> Self {
        let table = Arc::new(Table::new(around.sections.key_room()));
        around.sections.register(&table);
        Self {
            name: name.into(),
            table,
            slots: Slots::new(name, plan.keys_alone),
            above: plan.start.saturating_sub(1),
            step: AtomicU64::new(plan.step),
            confirm: AtomicBool::new(plan.confirm),
            around,
        }
    }

    /// Applies a changed definition. A deleted source forgets its keys: it may never be defined
    /// again.
    pub(crate) fn alter(&self, plan: CounterPlan, state: SourceState) {
        self.step.store(plan.step, Ordering::Relaxed);
        self.confirm.store(plan.confirm, Ordering::Release);
        if state == SourceState::Deleted {
            self.sections().forget_all(&self.table);
        }
    }

    /// Returns whether the store confirms each result.
    pub(crate) fn confirms(&self) -> bool {
        self.confirm.load(Ordering::Acquire)
    }

    fn sections(&self) -> &Sections {
        &self.around.sections
    }

    /// Returns the section of a key.
    pub(crate) fn section(&self, key: &[u8]) -> u16 {
        self.slots.of(key)
    }

    /// Takes `count` numbers of a key; waits at most `within_ms` for the store.
    pub(crate) async fn take(&self, key: &[u8], count: u64, within_ms: u64) -> Result<Counted> {
        let parsed = self.check(key, count)?;
        let section = self.slots.of(key);
        if !self.confirm.load(Ordering::Acquire)
            && let Ok(counted) = self.try_take(parsed, section, count)
        {
            return Ok(counted);
        }
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        loop {
            let news = self.sections().news.notified();
            tokio::pin!(news);
            // Registers first, so that no news is missed; this takes a lock that all waiters share.
            news.as_mut().enable();
            let hold = self.sections().held_by(section);
            let why = match self.try_take(parsed, section, count) {
                Ok(counted) if !self.confirm.load(Ordering::Acquire) => return Ok(counted),
                Ok(counted) => match self.confirmed(section, hold).await {
                    Ok(true) => return Ok(counted),
                    Ok(false) => self.lapsed(),
                    Err(error) => error,
                },
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Wait(why)) => why,
            };
            let left_ms = deadline.since(self.around.timer.elapsed());
            if left_ms == 0 {
                return Err(why);
            }
            tokio::select! {
                biased;
                () = &mut news => {}
                () = self.around.timer.sleep_ms(left_ms.min(LOOK_AGAIN_MS)) => {}
            }
        }
    }

    /// Takes `count` numbers of a key without waiting.
    pub(crate) fn take_now(&self, key: &[u8], count: u64) -> Result<Counted> {
        if self.confirm.load(Ordering::Acquire) {
            return Err(Error::unavailable(format!(
                "source {:?} confirms each count in the store; use a call that waits",
                self.name
            )));
        }
        let parsed = self.check(key, count)?;
        self.try_take(parsed, self.slots.of(key), count).map_err(|refused| match refused {
            Refused::Wait(error) | Refused::Error(error) => error,
        })
    }

    fn check<'a>(&self, key: &'a [u8], count: u64) -> Result<Key<'a>> {
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
        Key::new(key)
    }

    /// Takes numbers, and only then checks that the lease still lasts: any delay of this thread up
    /// to then is covered by the check.
    fn try_take(&self, key: Key<'_>, section: u16, count: u64) -> Result<Counted, Refused> {
        let lease = self.sections().lease();
        let (mut shard, hash) = self.table.lock(key);
        let taken = self.take_locked(&mut shard, key, hash, section, count);
        drop(shard);
        self.sections().make_room();
        let taken = taken.map_err(|missed| self.missed(section, missed))?;
        self.ask_ahead(section, &taken);
        self.answered(lease)?;
        Ok(Counted { first: self.shown(taken.first), last: self.shown(taken.last) })
    }

    /// Takes numbers from the part of the table that holds the key.
    #[inline]
    fn take_locked(
        &self,
        shard: &mut Shard,
        key: Key<'_>,
        hash: u64,
        section: u16,
        count: u64,
    ) -> Result<Taken, Missed> {
        let (window, place) = self.place(shard, key, hash, section).ok_or(Missed::NotHere)?;
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
        if fits { Ok(Taken { first, last, limit }) } else { Err(Missed::Spent(last)) }
    }

    /// Returns the window of the key's section, and the place of the key's number, made if absent.
    /// `None` while this process does not own the section.
    #[inline]
    fn place<'a>(
        &self,
        shard: &'a mut Shard,
        key: Key<'_>,
        hash: u64,
        section: u16,
    ) -> Option<(Window, &'a mut u64)> {
        let window = self.window(section)?;
        Some((window, self.table.place(shard, key, hash)))
    }

    /// Returns the section's window for this source; `None` while this process does not own the
    /// section. To be called while holding the lock of the key's part of the table: whoever forgot
    /// the key held it too, and raised the base before.
    #[inline]
    fn window(&self, section: u16) -> Option<Window> {
        let mut window = self.sections().cell(section).window()?;
        if self.table.has_forgotten() {
            window.base = window.base.max(self.sections().forgotten_below(section));
        }
        Some(window)
    }

    /// Requests more numbers before the window ends.
    #[inline]
    fn ask_ahead(&self, section: u16, taken: &Taken) {
        let left = taken.limit - taken.last;
        if left <= self.step.load(Ordering::Relaxed) / 2
            && self.sections().cell(section).is_first_to_ask(taken.limit)
        {
            self.sections().want(section, self.want(taken.last));
        }
    }

    const fn shown(&self, number: u64) -> u64 {
        number.saturating_add(self.above)
    }

    #[cold]
    fn missed(&self, section: u16, missed: Missed) -> Refused {
        match missed {
            Missed::NotHere => self.not_here(section),
            Missed::Spent(last) => self.spent(section, last),
        }
    }

    /// Returns the first section number that is too high for this source.
    const fn end(&self) -> u64 {
        NUMBER_MAX.saturating_sub(self.above).saturating_add(1)
    }

    fn want(&self, last: u64) -> Want {
        Want::Numbers { until: last.saturating_add(1), step: self.step.load(Ordering::Relaxed) }
    }

    /// Returns whether numbers taken under `lease` may be returned now.
    fn answered(&self, lease: Lease) -> Result<(), Refused> {
        if self.around.is_leased(lease) { Ok(()) } else { Err(Refused::Wait(self.lapsed())) }
    }

    fn lapsed(&self) -> Error {
        Error::unavailable(format!(
            "lease on the sections of source {:?} expired; retry while it is renewed",
            self.name
        ))
    }

    #[cold]
    fn spent(&self, section: u16, last: u64) -> Refused {
        if last >= self.end() {
            return Refused::Error(Error::exhausted(format!(
                "source {:?} has no numbers left, maximum {NUMBER_MAX}; define another source",
                self.name
            )));
        }
        self.sections().want(section, self.want(last));
        Refused::Wait(self.not_yet(section))
    }

    fn not_yet(&self, section: u16) -> Error {
        Error::unavailable(format!(
            "section {section} of source {:?} is being acquired; retry",
            self.name
        ))
    }

    /// Reports that this process does not own the section: its owner, or that it is being acquired.
    #[cold]
    fn not_here(&self, section: u16) -> Refused {
        match self.sections().absent(section, self.want(0), self.around.timer.elapsed()) {
            Absent::OnItsWay => Refused::Wait(self.not_yet(section)),
            Absent::StillWith(server) => {
                let later = Retry::AfterMs(LOOK_AGAIN_MS);
                Refused::Wait(not_owner(section, server).with_retry(later))
            }
            Absent::With(server) => Refused::Error(not_owner(section, server)),
            Absent::Closed => Refused::Error(Error::closed(format!(
                "source {:?} is closed; open it again",
                self.name
            ))),
        }
    }

    /// Repeats `attempt` at news of sections, for at most `within_ms`.
    async fn patiently<T>(
        &self,
        within_ms: u64,
        attempt: impl Fn() -> Result<T, Refused>,
    ) -> Result<T> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        loop {
            let news = self.sections().news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let why = match attempt() {
                Ok(answer) => return Ok(answer),
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Wait(why)) => why,
            };
            let left_ms = deadline.since(self.around.timer.elapsed());
            if left_ms == 0 {
                return Err(why);
            }
            tokio::select! {
                biased;
                () = &mut news => {}
                () = self.around.timer.sleep_ms(left_ms.min(LOOK_AGAIN_MS)) => {}
            }
        }
    }

    /// Asks the store whether this process still owns the section by the hold that it had before a
    /// number was taken or read. A later hold proves nothing about that number.
    async fn confirmed(&self, section: u16, hold: (u64, u64)) -> Result<bool> {
        let around = &self.around;
        let Some(member) = self.sections().shares.load().own() else { return Ok(false) };
        let (request, term) = hold;
        let acquire = Acquire {
            pool: sections_pool(),
            member,
            owner: String::new(),
            slots: vec![section.into()],
            silent: Vec::new(),
            supersedes: None,
            length: 0,
            request,
        };
        let taken = around.store.acquire(&acquire, around.clock.unix_ms());
        let taken = around.store_call(Verb::Acquire, taken).await?;
        let is_ours = taken.leases.iter().any(|lease| lease.term.get() == term);
        if !is_ours && self.sections().held_by(section) == hold {
            self.sections().shut(section);
            self.sections().want(section, self.want(0));
        }
        Ok(is_ours)
    }

    /// Confirms the same, where the source's definition asks for it.
    async fn surely_ours(&self, section: u16, hold: (u64, u64)) -> Result<()> {
        if self.confirm.load(Ordering::Acquire) && !self.confirmed(section, hold).await? {
            return Err(self.lapsed());
        }
        Ok(())
    }

    /// Returns how many keys are known here, and how many bytes they take.
    pub(crate) fn size(&self) -> (u64, u64) {
        self.table.size()
    }
}

fn not_owner(section: u16, server: Server) -> Error {
    Error::not_owner(section, server.address)
}

impl fmt::Debug for CounterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterSource").field("name", &self.name).finish_non_exhaustive()
    }
}
