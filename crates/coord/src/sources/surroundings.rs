//! What every running source needs of its node.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_core::UnixMillis;
use tokio::sync::{Notify, SetOnce};

use super::doubts::Doubts;
use super::for_programs::ProgramStripes;
use super::peer_probes::PeerProbes;
use super::queue_room::QueueRoom;
use super::reports::{For, Reports, ended};
use super::sections::Lease;
use super::{NodeClock, NodeObserver, Sections};
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::home::Home;
use crate::lease::{Extend, Extended};
use crate::machine::{ClockGuard, Now, Voices, compare_clocks};
use crate::origin::Origins;
use crate::random;
use crate::segment::{Reserve, Segment};
use crate::spec::Stripe;
use crate::stats::{CountingObserver, Watch};
use crate::store::Store;
use crate::timer::Timer;

/// How soon the store is asked again after the definition had changed: the node reads it meanwhile.
pub(super) const STALE_MS: u64 = 20;

/// What every source of a node shares.
pub(crate) struct Surroundings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) clock: NodeClock,
    pub(crate) observer: NodeObserver,
    pub(crate) watch: Arc<Watch>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) store_call_ms: u64,
    /// Wakes the driver.
    pub(crate) wake: Arc<Notify>,
    /// What this node answers for, of what one at a time answers for.
    pub(crate) sections: Sections,
    pub(crate) peer_probes: PeerProbes,
    /// What the queues of prefilled sources may hold.
    pub(crate) queue_room: Arc<QueueRoom>,
    /// What sources draw from that do not count here.
    pub(crate) origins: Origins,
    /// The process that opened the node.
    pub(crate) home: Home,
    /// How far our clock may be from the store's.
    clock_skew_max_ms: u64,
    /// Holds our clock against elapsed time.
    guard: Mutex<ClockGuard>,
    /// What other members' clocks say.
    voices: Mutex<Voices>,
    /// Our clock was held against others', or there were none.
    clock_compared: SetOnce<()>,
    /// What the node has against our clock.
    clock_error: Mutex<Option<Error>>,
    /// What says that the store is not the one that was joined.
    pub(crate) doubts: Doubts,
    /// The node was closed.
    ended: AtomicBool,
    stale: AtomicBool,
    /// Somebody found a window spent since the driver last looked.
    spent: AtomicBool,
    catalog_version: AtomicU64,
    writes: AtomicU64,
    /// By which stripes programs mint.
    pub(super) stripes: ProgramStripes,
    /// What the journal is to remember.
    pub(crate) reports: Reports,
}

impl Surroundings {
    /// # Errors
    /// As [`Home::here`].
    pub(crate) fn new(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        clock: NodeClock,
        observer: NodeObserver,
        runtime: tokio::runtime::Handle,
        store_call_ms: u64,
        journalled: bool,
    ) -> Result<Self> {
        let home = Home::here()?;
        let wake = Arc::new(Notify::new());
        let watch = Arc::<Watch>::default();
        let observer = CountingObserver { watch: Arc::clone(&watch), told: observer };
        Ok(Self {
            store,
            timer,
            clock,
            observer: Arc::new(observer),
            watch,
            runtime,
            store_call_ms,
            sections: Sections::new(Arc::clone(&wake)),
            peer_probes: PeerProbes::default(),
            wake,
            queue_room: Arc::new(QueueRoom::new(u64::MAX)),
            origins: Origins::new(),
            home,
            clock_skew_max_ms: u64::MAX,
            guard: Mutex::new(ClockGuard::new(u64::MAX)),
            voices: Mutex::default(),
            clock_compared: SetOnce::new(),
            clock_error: Mutex::default(),
            doubts: Doubts::default(),
            ended: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            spent: AtomicBool::new(false),
            catalog_version: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            stripes: ProgramStripes::default(),
            reports: Reports::new(journalled),
        })
    }

    /// The same, where the keys of all counter sources take so many bytes at most.
    pub(crate) fn counting_in(self, counter_bytes_max: usize) -> Self {
        self.sections.limit_keys(counter_bytes_max);
        self
    }

    /// The same, where all queues hold so many IDs at most.
    pub(crate) fn queueing(self, ids_max: u64) -> Self {
        self.queue_room.set_max(ids_max);
        self
    }

    /// The same, whose clock may be so far from the store's.
    pub(crate) fn within_skew(self, clock_skew_max_ms: u64) -> Self {
        Self { clock_skew_max_ms, ..self }
    }

    /// The same, whose sources can draw from these.
    pub(crate) fn drawing_from(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// The same, which believes that its clock jumps ahead by so much at most.
    pub(crate) fn within_jumps(self, clock_jump_max_ms: u64) -> Self {
        Self { guard: Mutex::new(ClockGuard::new(clock_jump_max_ms)), ..self }
    }

    /// No source mints any more, whatever is defined from here on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// A call to the store that ends: with its answer, or with `Unavailable` when it takes too long.
    pub(crate) async fn call<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun_us = self.timer.elapsed_us();
        let answer = self.heard(self.in_time(op, "the store", call)).await;
        let took_us = self.timer.elapsed_us().saturating_sub(begun_us);
        self.watch.called(verb(op), took_us, answer.as_ref().err());
        answer
    }

    /// An answer of the store, which may say that it is not the one that was joined.
    pub(super) async fn heard<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let recoveries = self.doubts.recoveries();
        call.await.inspect_err(|error| {
            // A late answer may be about the store as it was before it was recovered.
            if self.doubts.recoveries() == recoveries {
                self.doubt(error);
            }
        })
    }

    /// The same, for somebody else than the store.
    pub(crate) async fn in_time<T>(
        &self,
        op: &'static str,
        whose: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.timer.sleep_ms(self.store_call_ms) => {
                let what = format!("an answer of {whose} within {} ms", self.store_call_ms);
                Err(Error::new(op, ErrorKind::Unavailable { what }))
            }
        }
    }

    /// Somebody was told, or has found, that the store is another one, an older state of it, or set to lose what it
    /// acknowledges: nothing that was taken from the one that was joined counts any more, whatever verb it was. Other
    /// errors are passed over.
    pub(crate) fn doubt(&self, error: &Error) {
        if self.doubts.raise(error) {
            self.wake.notify_one();
        }
    }

    /// The verb `extend`, whose refusals of an item count as those of the call.
    pub(crate) async fn extend(
        &self,
        items: &[Extend],
        wall: UnixMillis,
    ) -> Result<Vec<Result<Extended>>> {
        let answers = self.call("extend", self.store.extend(items, wall)).await?;
        answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(|why| self.doubt(why));
        Ok(answers)
    }

    /// The node has this against our clock, or nothing any more.
    pub(crate) fn tell_clock_error(&self, error: Option<Error>) {
        *self.clock_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Both kinds of time, as decisions may see them, and what is wrong with our clock if it jumped ahead
    /// further than is believed.
    pub(crate) fn now(&self) -> (Now, Option<Error>) {
        // Read behind the lock: who looks later has seen no earlier time.
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        let (wall, ahead_ms) = guard.vet(seen);
        let limit_ms = guard.tolerance_ms();
        let jumped = (ahead_ms > 0).then(|| {
            let compared_with = "the time that has passed".into();
            Error::new("read clock", ErrorKind::ClockAhead { ahead_ms, limit_ms, compared_with })
        });
        (Now { wall, ..seen }, jumped)
    }

    /// Our clock agrees with one that is worth more: it is believed as it is.
    pub(crate) fn believe_clock(&self) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.believe(self.seen());
    }

    pub(crate) fn voices(&self) -> MutexGuard<'_, Voices> {
        self.voices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Our clock was held against others', or there were none.
    pub(crate) fn clock_compared(&self) {
        // Only the first time is waited for.
        let _ = self.clock_compared.set(());
    }

    fn seen(&self) -> Now {
        // Without it request numbers still differ in each machine, but for a copy of its memory.
        let chance = || random::number().unwrap_or_default();
        Now { wall: self.clock.unix_ms(), elapsed: self.timer.elapsed(), chance }
    }

    fn told_clock_error(&self) -> Option<Error> {
        self.clock_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time by our clock, if nothing is known that it would be ahead of: for marks that nobody sets back
    /// once it is set right.
    ///
    /// # Errors
    /// `ClockAhead`; `Unavailable` while it could not be compared yet.
    pub(crate) async fn time_not_ahead(&self) -> Result<UnixMillis> {
        let first = async {
            self.clock_compared.wait().await;
            Ok(())
        };
        self.in_time("compare clocks", "the store", first).await?;
        let (now, jumped) = self.now();
        let is_ahead = |error: &Error| matches!(error.kind(), ErrorKind::ClockAhead { .. });
        match jumped.or_else(|| self.told_clock_error().filter(is_ahead)) {
            Some(error) => Err(error),
            None => Ok(now.wall),
        }
    }

    /// The time by our clock, if that may decide what everybody else must follow from then on.
    ///
    /// # Errors
    /// What the node has against it; `ClockAhead` and `ClockBehind` when it is too far from the store's;
    /// what the store says.
    pub(crate) async fn checked_time(&self) -> Result<UnixMillis> {
        if let Some(error) = self.told_clock_error() {
            return Err(error);
        }
        let theirs = self.call("now", self.store.now()).await?;
        let Some(theirs) = theirs else { return self.time_not_ahead().await };
        let ours = self.clock.unix_ms();
        compare_clocks(ours, theirs, self.clock_skew_max_ms, "the store's clock".into())
            .map(|()| ours)
            .map_err(|kind| Error::new("compare clocks", kind))
    }

    /// A call of ours that ends within a caller's bound.
    pub(crate) async fn within<T>(
        &self,
        within_ms: u64,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.timer.sleep_ms(within_ms) => {
                let what = format!("an answer within {within_ms} ms");
                Err(Error::new("wait", ErrorKind::Unavailable { what }))
            }
        }
    }

    /// Takes numbers from the store. Where somebody has changed the definition meanwhile, the node reads
    /// the catalog, and a retry helps soon.
    pub(super) async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.doubts.check()?;
        let answer = self.call("reserve", self.store.reserve(reserve)).await;
        answer.map_err(|error| match error.kind() {
            ErrorKind::Conflict { .. } => {
                self.catalog_stale();
                error.with_retry(Retry::AfterMs(STALE_MS))
            }
            ErrorKind::NotFound { .. } => {
                self.catalog_stale();
                error
            }
            _ => error,
        })
    }

    /// The store has this version of the catalog and this count of writes.
    pub(crate) fn saw(&self, catalog_version: u64, writes: u64) {
        self.writes.fetch_max(writes, Ordering::AcqRel);
        if self.catalog_version.fetch_max(catalog_version, Ordering::AcqRel) < catalog_version {
            self.catalog_stale();
        }
    }

    /// The store was recovered, and has this version of the catalog and this count of writes: what was seen before is of
    /// the history that was lost.
    pub(crate) fn begins_anew(&self, catalog_version: u64, writes: u64) {
        self.writes.store(writes, Ordering::Release);
        self.catalog_version.store(catalog_version, Ordering::Release);
        self.stripes.forget();
    }

    /// Whether a newer version of the catalog was seen: then this one is old, or is a store's that went back.
    pub(crate) fn is_outdated(&self, catalog_version: u64) -> bool {
        catalog_version < self.catalog_seen()
    }

    /// Whether what was taken under this lease on sections may be answered now.
    pub(super) fn is_leased(&self, lease: Lease) -> bool {
        // In this order: a lease that was renewed since covers the time at which we look.
        let now = self.timer.elapsed();
        lease.covers(self.sections.lease(), now)
    }

    pub(crate) fn catalog_stale(&self) {
        self.stale.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    pub(crate) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// Waits for a tick that begins in `wait_ms` of the wall clock, the millisecond that is now among them. May
    /// return early.
    pub(super) async fn until_tick(&self, wait_ms: u64) {
        let past_us = self.clock.read().wall_us % 1_000;
        self.timer.sleep_us(wait_ms.saturating_mul(1_000).saturating_sub(past_us)).await;
    }

    /// Somebody wants to mint, and found the window spent: the driver looks at once.
    pub(crate) fn window_spent(&self) {
        self.spent.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn take_spent(&self) -> bool {
        self.spent.swap(false, Ordering::AcqRel)
    }

    /// The newest version of the catalog that was seen.
    pub(crate) fn catalog_seen(&self) -> u64 {
        self.catalog_version.load(Ordering::Acquire)
    }

    pub(crate) fn writes_seen(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Has the journal remember what was reserved, and waits until it does: a number that was minted
    /// before could come again after the store alone was restored.
    pub(super) async fn remember(&self, name: &str, segment: &Segment, by: Stripe) -> Result<()> {
        self.saw(segment.catalog_version, segment.writes);
        self.journal((name, For::Node), segment, by).await
    }

    /// Waits until the journal knows of these numbers, and which IDs they have become.
    pub(super) async fn journal(
        &self,
        whose: (&str, For),
        segment: &Segment,
        by: Stripe,
    ) -> Result<()> {
        let end = segment.last.saturating_add(1);
        let free = by.renumbers().then(|| by.free_from(end));
        let Some(written) = self.reports.report(whose, (end, free), self.timer.elapsed())? else {
            return Ok(());
        };
        self.wake.notify_one();
        written.await.map_err(|_| ended())
    }
}

/// The verb of the store behind a step of ours.
fn verb(op: &'static str) -> &'static str {
    match op {
        "confirm" => "take",
        "delete" | "set state" => "set_state",
        "get source" | "open source" => "get",
        "give back" => "give_back",
        "let go" => "let_go",
        "list sources" | "read catalog" => "list",
        "list workers" => "workers",
        "look at ground" => "ground",
        "look at journals" => "standing",
        verb => verb,
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("store", &self.store).finish_non_exhaustive()
    }
}
