//! Context that every running source needs of its node.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_core::UnixMillis;
use tokio::sync::{Notify, SetOnce};

use super::client_stripes::ClientStripes;
use super::doubts::Doubts;
use super::journal_budget::{JournalBudget, ReservedFor, node_closed};
use super::lease_stamp::LeaseStamp;
use super::peer_probes::PeerProbes;
use super::queue_room::QueueRoom;
use super::section_windows::SectionWindows;
use crate::error::{Error, ErrorKind, Result, Retry, Verb};
use crate::machine::{ClockGuard, ClockQuorum, Now, compare_clocks};
use crate::model::lease::{Extend, Extended};
use crate::model::segment::{Reserve, Segment};
use crate::model::stripe::Stripe;
use crate::platform::clock::{NodeClock, NodeObserver};
use crate::platform::fork_guard::ForkGuard;
use crate::platform::random;
use crate::platform::timer::Timer;
use crate::stats::{CountingObserver, NodeMetrics};
use crate::store::Store;
use crate::store::upstream::Upstreams;

/// Milliseconds before a retry after the definition changed; meanwhile the node reads it.
pub(super) const STALE_MS: u64 = 20;

/// Context that all sources of a node share.
pub(crate) struct NodeContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) clock: NodeClock,
    pub(crate) observer: NodeObserver,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) store_call_ms: u64,
    /// Wakes the driver.
    pub(crate) wake: Arc<Notify>,
    /// Sections and order slots that this node owns.
    pub(crate) sections: SectionWindows,
    pub(crate) peer_probes: PeerProbes,
    /// Limit on the IDs in the queues of prefilled sources.
    pub(crate) queue_room: Arc<QueueRoom>,
    /// Upstreams that sources allocate from.
    pub(crate) upstreams: Upstreams,
    /// Guard for the process that opened the node.
    pub(crate) fork_guard: ForkGuard,
    /// Most milliseconds that our clock may be off the store's.
    clock_skew_max_ms: u64,
    /// Checks our clock against elapsed time.
    guard: Mutex<ClockGuard>,
    /// Reports of other members on the clock.
    clock_quorum: Mutex<ClockQuorum>,
    /// Set once our clock was compared with others, or there were none.
    clock_compared: SetOnce<()>,
    /// Error that the node found in our clock.
    clock_error: Mutex<Option<Error>>,
    /// Evidence that the store is not the one that was joined.
    pub(crate) doubts: Doubts,
    /// Whether the node was closed.
    ended: AtomicBool,
    stale: AtomicBool,
    /// Whether a mint found a window spent since the driver last checked.
    spent: AtomicBool,
    catalog_version: AtomicU64,
    writes: AtomicU64,
    /// Whether a caller has something that the store handed out, by a write that the journal may
    /// not count yet.
    unjournalled: Arc<AtomicBool>,
    /// Stripes by which embedded clients mint.
    pub(super) stripes: ClientStripes,
    /// Reports for the journal.
    pub(crate) journal_budget: JournalBudget,
}

impl NodeContext {
    /// # Errors
    /// Those of [`ForkGuard::here`].
    pub(crate) fn new(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        clock: NodeClock,
        observer: NodeObserver,
        runtime: tokio::runtime::Handle,
        store_call_ms: u64,
        journalled: bool,
    ) -> Result<Self> {
        let fork_guard = ForkGuard::here()?;
        let wake = Arc::new(Notify::new());
        let metrics = Arc::<NodeMetrics>::default();
        let observer = CountingObserver { metrics: Arc::clone(&metrics), inner: observer };
        Ok(Self {
            store,
            timer,
            clock,
            observer: Arc::new(observer),
            metrics,
            runtime,
            store_call_ms,
            sections: SectionWindows::new(Arc::clone(&wake)),
            peer_probes: PeerProbes::default(),
            wake,
            queue_room: Arc::new(QueueRoom::new(u64::MAX)),
            upstreams: Upstreams::new(),
            fork_guard,
            clock_skew_max_ms: u64::MAX,
            guard: Mutex::new(ClockGuard::new(u64::MAX)),
            clock_quorum: Mutex::default(),
            clock_compared: SetOnce::new(),
            clock_error: Mutex::default(),
            doubts: Doubts::default(),
            ended: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            spent: AtomicBool::new(false),
            catalog_version: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            unjournalled: Arc::default(),
            stripes: ClientStripes::default(),
            journal_budget: JournalBudget::new(journalled),
        })
    }

    /// Sets how far our clock may be off the store's, and its largest forward step that is believed.
    pub(crate) fn limit_clock(&mut self, skew_max_ms: u64, jump_max_ms: u64) {
        self.clock_skew_max_ms = skew_max_ms;
        self.guard = Mutex::new(ClockGuard::new(jump_max_ms));
    }

    /// Stops all minting, also for sources defined from here on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Records evidence that the store is another one, was rolled back, or is set to lose what it
    /// acknowledges. From then on no number from the store that was joined counts, whatever the
    /// verb. Other errors are ignored.
    pub(crate) fn doubt(&self, error: &Error) {
        if self.doubts.raise(error) {
            self.wake.notify_one();
        }
    }

    /// Records the evidence of a call that began after this many joins. A late result may be about
    /// the store as it was before its recovery.
    pub(crate) fn doubt_since(&self, recoveries: u64, error: &Error) {
        if self.doubts.recoveries() == recoveries {
            self.doubt(error);
        }
    }

    /// Calls `extend`; an error of an item counts like an error of the call.
    pub(crate) async fn extend(
        &self,
        items: &[Extend],
        wall: UnixMillis,
    ) -> Result<Vec<Result<Extended>>> {
        let recoveries = self.doubts.recoveries();
        let results = self.store_call(Verb::Extend, self.store.extend(items, wall)).await?;
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .for_each(|error| self.doubt_since(recoveries, error));
        self.handed_out();
        Ok(results)
    }

    /// Records the node's error about our clock, or that there is none any more.
    pub(crate) fn set_clock_error(&self, error: Option<Error>) {
        *self.clock_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Returns both kinds of time as decisions may use them, and the clock's error if it stepped
    /// ahead further than is believed.
    pub(crate) fn now(&self) -> (Now, Option<Error>) {
        // Read under the lock: a later reader sees no earlier time.
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        let (wall, ahead_ms) = guard.vet(seen);
        let limit_ms = guard.tolerance_ms();
        let jumped = (ahead_ms > 0).then(|| {
            let message = format!(
                "clock jumped ahead by {ahead_ms} ms more than time passed, limit {limit_ms} ms; \
                 check the clock"
            );
            Error::clock_ahead(ahead_ms, limit_ms, message)
        });
        (Now { wall, ..seen }, jumped)
    }

    /// Accepts our clock as it stands, because it agrees with a more trusted one.
    pub(crate) fn believe_clock(&self) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.believe(self.seen());
    }

    pub(crate) fn clock_quorum(&self) -> MutexGuard<'_, ClockQuorum> {
        self.clock_quorum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that our clock was compared with others, or that there were none.
    pub(crate) fn clock_compared(&self) {
        // Waiters wait for the first time only.
        let _ = self.clock_compared.set(());
    }

    fn seen(&self) -> Now {
        // Without it request numbers still differ in each machine, except in a copy of its memory.
        let chance = || random::number().unwrap_or_default();
        Now { wall: self.clock.unix_ms(), elapsed: self.timer.elapsed(), chance }
    }

    fn known_clock_error(&self) -> Option<Error> {
        self.clock_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time of our clock, unless it is known to be ahead: for marks that stay even when
    /// the clock is corrected.
    ///
    /// # Errors
    /// `ClockAhead`; `Unavailable` while the clock could not be compared yet.
    pub(crate) async fn time_not_ahead(&self) -> Result<UnixMillis> {
        let first = async {
            self.clock_compared.wait().await;
            Ok(())
        };
        let within_ms = self.store_call_ms;
        let late = || {
            Error::unavailable(format!(
                "clock was not compared with others within {within_ms} ms; retry"
            ))
        };
        self.with_timeout(within_ms, late, first).await?;
        let (now, jumped) = self.now();
        let is_ahead = |error: &Error| matches!(error.kind(), ErrorKind::ClockAhead { .. });
        match jumped.or_else(|| self.known_clock_error().filter(is_ahead)) {
            Some(error) => Err(error),
            None => Ok(now.wall),
        }
    }

    /// Returns the time of our clock, if it may decide what all servers must follow from then on.
    ///
    /// # Errors
    /// The node's error about the clock; `ClockAhead` and `ClockBehind` when it is too far off the
    /// store's; errors of the store.
    pub(crate) async fn checked_time(&self) -> Result<UnixMillis> {
        if let Some(error) = self.known_clock_error() {
            return Err(error);
        }
        let theirs = self.store_call(Verb::Now, self.store.now()).await?;
        let Some(theirs) = theirs else { return self.time_not_ahead().await };
        let ours = self.clock.unix_ms();
        compare_clocks(ours, theirs, self.clock_skew_max_ms, "the store's clock")?;
        Ok(ours)
    }

    /// Reserves numbers in the store. If the definition has changed meanwhile, the node reads the
    /// catalog, and a retry soon helps.
    pub(super) async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.doubts.check()?;
        let result = self.store_call(Verb::Reserve, self.store.reserve(reserve)).await;
        result.map_err(|error| match error.kind() {
            ErrorKind::Conflict => {
                self.catalog_stale();
                error.with_retry(Retry::AfterMs(STALE_MS))
            }
            ErrorKind::NotFound => {
                self.catalog_stale();
                error
            }
            _ => error,
        })
    }

    /// Records the store's catalog version and count of writes.
    pub(crate) fn saw(&self, catalog_version: u64, writes: u64) {
        self.writes.fetch_max(writes, Ordering::AcqRel);
        if self.catalog_version.fetch_max(catalog_version, Ordering::AcqRel) < catalog_version {
            self.catalog_stale();
        }
    }

    /// Records that the store handed something out. The journal counts the write soon.
    pub(super) fn handed_out(&self) {
        self.unjournalled.store(true, Ordering::Release);
    }

    pub(crate) fn take_unjournalled(&self) -> bool {
        self.unjournalled.swap(false, Ordering::AcqRel)
    }

    /// Returns the flag of [`Self::handed_out`].
    pub(crate) fn unjournalled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unjournalled)
    }

    /// Starts from the catalog version and count of writes of a recovered store: earlier records
    /// are of the lost history.
    pub(crate) fn reset_counts(&self, catalog_version: u64, writes: u64) {
        self.writes.store(writes, Ordering::Release);
        self.catalog_version.store(catalog_version, Ordering::Release);
        self.stripes.forget();
    }

    /// Returns whether a newer catalog version was seen: this one is old, or of a store rollback.
    pub(crate) fn is_outdated(&self, catalog_version: u64) -> bool {
        catalog_version < self.catalog_seen()
    }

    /// Returns whether numbers taken under this lease on sections may be returned now.
    pub(super) fn is_leased(&self, lease: LeaseStamp) -> bool {
        // In this order: a lease that was renewed in between covers the time read here.
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

    /// Waits for a tick that begins in `wait_ms` of the wall clock, counting the current
    /// millisecond. May return early.
    pub(super) async fn until_tick(&self, wait_ms: u64) {
        let past_us = self.clock.read().wall_us % 1_000;
        self.timer.sleep_us(wait_ms.saturating_mul(1_000).saturating_sub(past_us)).await;
    }

    /// Has the driver check at once: a mint found the window spent.
    pub(crate) fn window_spent(&self) {
        self.spent.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn take_spent(&self) -> bool {
        self.spent.swap(false, Ordering::AcqRel)
    }

    /// Returns the newest catalog version seen.
    pub(crate) fn catalog_seen(&self) -> u64 {
        self.catalog_version.load(Ordering::Acquire)
    }

    pub(crate) fn writes_seen(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Records reserved numbers in the journal and waits until it has them. Otherwise, restoring
    /// only the store could bring back a number that was already minted.
    pub(super) async fn remember(&self, name: &str, segment: &Segment, by: Stripe) -> Result<()> {
        self.saw(segment.catalog_version, segment.writes);
        self.journal((name, ReservedFor::Node), segment, by).await
    }

    /// Waits until the journal has these numbers, and the IDs that they become.
    pub(super) async fn journal(
        &self,
        reserved_for: (&str, ReservedFor),
        segment: &Segment,
        by: Stripe,
    ) -> Result<()> {
        let end = segment.last.saturating_add(1);
        let free = by.renumbers().then(|| by.free_from(end));
        let Some(written) =
            self.journal_budget.report(reserved_for, (end, free), self.timer.elapsed())?
        else {
            return Ok(());
        };
        self.wake.notify_one();
        written.await.map_err(|_| node_closed())
    }
}

crate::opaque_debug!(NodeContext: store);
