//! Numbers from segments that the store reserved, fetched ahead of need.
//!
//! Takers share core's cursor and no lock. Size and time of a fetch follow the consumption rate and
//! the store's latency ([`consumption_rate`]). A segment lasts about as long as the definition
//! asks, and the next is requested while prefetched numbers remain. Numbers of a fetch whose result
//! is lost are never used: a gap, not a duplicate.

mod account;
mod backing;
mod consumption_rate;
mod lane;
mod period;
mod prefetched;
mod range;
mod refill;
mod refill_state;
mod step;
mod upstream;

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use snowmint_core::SegmentCursor;
use tokio::sync::Notify;

use super::node_context::NodeContext;
use super::per_request::{self, PerRequest, store_late};
use super::retry_policy::RetryPolicy;
use super::shared_errors::{closed, requires_wait};
use super::values::NumberStats;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::segment::{NUMBER_MAX, Segment};
use crate::model::stripe::Stripe;
use crate::platform::fork_guard::ForkGuard;
use crate::spec::SegmentPlan;
pub(crate) use backing::SegmentBacking;
pub use lane::{NumberLane, SegmentHandle};
pub(crate) use prefetched::{InitialState, Unused};
pub(crate) use refill_state::Refill;

/// A segment source of one store.
pub(crate) struct SegmentSource {
    name: String,
    ctx: Arc<NodeContext>,
    cursor: SegmentCursor,
    /// Map from numbers to IDs. Another stripe needs another source.
    stripe: Stripe,
    /// Whether the definition allows minting.
    enabled: AtomicBool,
    fork_guard: ForkGuard,
    /// Whether each request calls the store.
    is_per_request: bool,
    /// Newest serial seen that another store's part of the source made; its period counts here too.
    newest_in_other_store: AtomicU64,
    plan: ArcSwap<SegmentPlan>,
    definition_version: AtomicU64,
    refill: Mutex<Refill>,
    /// Calls of the upstream in flight.
    allocating: AtomicUsize,
    /// Notified when a fetch has ended, successful or not.
    news: Notify,
}

/// Milliseconds that a waiter waits for news before it checks again: after a failure, such a check
/// makes the store be called again.
const RECHECK_MS: u64 = 20;

impl SegmentSource {
    pub(crate) fn new(
        name: &str,
        plan: SegmentPlan,
        definition_version: u64,
        refill: Refill,
        enabled: bool,
        ctx: Arc<NodeContext>,
    ) -> Arc<Self> {
        let source = Arc::new(Self {
            name: name.into(),
            fork_guard: ctx.fork_guard.clone(),
            ctx,
            cursor: SegmentCursor::new(),
            stripe: plan.stripe,
            is_per_request: plan.step.is_per_request(),
            newest_in_other_store: AtomicU64::new(0),
            enabled: AtomicBool::new(enabled),
            plan: ArcSwap::from_pointee(plan),
            definition_version: AtomicU64::new(definition_version),
            refill: Mutex::new(refill),
            allocating: AtomicUsize::new(0),
            news: Notify::new(),
        });
        // Numbers kept by earlier processes are used first.
        source.hand_on(&mut source.refill());
        source
    }

    /// Applies a changed definition.
    pub(crate) fn alter(&self, plan: SegmentPlan, definition_version: u64, enabled: bool) {
        self.enabled.store(enabled, Ordering::Release);
        self.plan.store(Arc::new(plan));
        self.definition_version.store(definition_version, Ordering::Release);
    }

    /// Returns whether this source can continue with this plan: same IDs, and prefetching or not
    /// alike.
    pub(crate) fn serves(&self, plan: &SegmentPlan) -> bool {
        self.stripe.maps_as(plan.stripe) && self.is_per_request == plan.step.is_per_request()
    }

    /// Returns whether nothing is ever prefetched: each request calls the store.
    pub(crate) fn is_per_request(&self) -> bool {
        self.is_per_request
    }

    /// Returns the source that continues by another stripe, or without prefetched numbers. This one
    /// must then be closed: its prefetched numbers are lost.
    pub(crate) fn successor(
        &self,
        plan: SegmentPlan,
        definition_version: u64,
        enabled: bool,
    ) -> Arc<Self> {
        let mut refill = self.refill().successor();
        refill.drop_numbers(self.cursor.lost());
        Self::new(&self.name, plan, definition_version, refill, enabled, Arc::clone(&self.ctx))
    }

    /// Returns the source that continues in the same way without the prefetched numbers. This one
    /// must then be closed.
    pub(crate) fn without_prefetched(&self) -> Arc<Self> {
        let enabled = self.enabled.load(Ordering::Acquire);
        self.successor(SegmentPlan::clone(&self.plan.load()), self.definition_version(), enabled)
    }

    fn definition_version(&self) -> u64 {
        self.definition_version.load(Ordering::Acquire)
    }

    fn refill(&self) -> MutexGuard<'_, Refill> {
        self.refill.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one prefetched ID, if the definition allows it. All in one function, because each
    /// further instruction is measurable.
    #[inline]
    fn quick(self: &Arc<Self>) -> Option<u64> {
        if !self.enabled.load(Ordering::Acquire) || !self.fork_guard.is_here() {
            return None;
        }
        // Read before the number is taken: a read after the locked instruction waits for it.
        let stripe = self.stripe;
        self.cursor.take(|| self.prefetch(1)).map(|number| stripe.id_of(number))
    }

    /// Takes one prefetched ID.
    pub(crate) fn try_mint(self: &Arc<Self>) -> Result<u64> {
        self.cursor
            .take(|| self.prefetch(1))
            .map(|number| self.stripe.id_of(number))
            .ok_or_else(|| self.dry(1))
    }

    /// Fills the buffer from prefetched numbers: fully, or with none unless other callers take at
    /// the same time. In that case the error has the count at the buffer's start.
    pub(crate) fn try_fill(self: &Arc<Self>, out: &mut [u64]) -> Result<(), (usize, Error)> {
        let lowest = self.lowest().map_err(|error| (0, error))?;
        let wanted = u64::try_from(out.len()).unwrap_or(u64::MAX);
        let left = self.cursor.left();
        if left < wanted && self.prefetched_now().left < wanted {
            return Err((0, self.dry(wanted)));
        }
        let mut made: usize = 0;
        while let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) {
            let count = u64::try_from(rest.len()).unwrap_or(u64::MAX);
            let Some(run) = self.cursor.take_run(count, || self.prefetch(count)) else {
                return Err((made, self.dry(count)));
            };
            if run.end <= lowest {
                // Numbers of a period that is over.
                self.refill().drop_numbers(run.end - run.first);
                continue;
            }
            for (number, slot) in (run.first..run.end).zip(rest) {
                *slot = self.stripe.id_of(number);
                made = made.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Fills the buffer; waits for the store at most `within_ms`.
    pub(crate) async fn fill(
        self: &Arc<Self>,
        retry_policy: &mut RetryPolicy,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        if self.is_per_request {
            return per_request::fill(&**self, retry_policy, out, within_ms).await;
        }
        let deadline = self.ctx.deadline(within_ms);
        let mut batch = Batch { source: self, made: 0 };
        loop {
            let mut news = pin!(self.news.notified());
            // Registers before the attempt, so that no result is missed.
            news.as_mut().enable();
            let rest = out.get_mut(batch.made..).unwrap_or_default();
            let dry = match self.try_fill(rest) {
                Ok(()) => {
                    batch.made = 0;
                    return Ok(());
                }
                Err((more, error)) => {
                    batch.made = batch.made.saturating_add(more);
                    error
                }
            };
            if dry.retry() == Retry::Never || !deadline.wait(news, RECHECK_MS).await {
                return Err(match dry.kind() {
                    // The fetch in flight did not end within the caller's time.
                    ErrorKind::WindowSpent { .. } => self.late(within_ms),
                    _ => dry,
                });
            }
        }
    }

    fn spent(&self) -> Error {
        if let Some(until) = self.plan.load().stripe.until() {
            return Error::unavailable(format!(
                "source {:?} ends below {until} until its restripe is finished; \
                 run source restripe again if it was interrupted",
                self.name
            ));
        }
        Error::exhausted(format!(
            "source {:?} has no numbers left, maximum {NUMBER_MAX}; define another source",
            self.name
        ))
    }

    /// Requests more numbers; returns the error for fewer than `wanted`.
    #[cold]
    fn dry(self: &Arc<Self>, wanted: u64) -> Error {
        self.prefetch(wanted);
        let refill = self.refill();
        if refill.closed {
            closed(&self.name)
        } else if self.is_per_request {
            requires_wait(&self.name)
        } else {
            refill.dry()
        }
    }

    /// Stops calling the store: the source is about to be closed.
    pub(crate) fn end_fetching(&self) {
        self.refill().ending = true;
    }

    /// Returns the end of all numbers seen reserved.
    pub(crate) fn seen_end(&self) -> u64 {
        self.refill().seen_end
    }

    /// Returns the first ID never seen handed out, where IDs differ from numbers.
    pub(crate) fn free_id(&self) -> Option<u64> {
        let end = Some(self.seen_end()).filter(|end| *end > 0 && self.stripe.renumbers())?;
        Some(self.stripe.free_from(end))
    }

    pub(crate) fn is_fetching(&self) -> bool {
        self.refill().is_fetching()
    }

    /// Waits for the end of the fetch in flight, if there is one.
    pub(crate) async fn fetched(&self) {
        let mut news = pin!(self.news.notified());
        news.as_mut().enable();
        if self.is_fetching() {
            news.await;
        }
    }

    /// Ends the source; returns its unused numbers, if there are any.
    pub(crate) fn close(&self) -> Option<Unused> {
        let pieces = {
            let mut refill = self.refill();
            if refill.closed {
                return None;
            }
            refill.closed = true;
            // Numbers taken at this very moment count as lost too.
            let left = self.cursor.left().saturating_add(refill.parked());
            refill.drop_numbers(left);
            let unused = self.cursor.close();
            refill.unused_from(unused)
        };
        self.news.notify_waiters();
        let definition_version = self.definition_version();
        let unused = Unused { source: self.name.clone(), definition_version, pieces };
        (!unused.pieces.is_empty()).then_some(unused)
    }

    /// Records that unused numbers were returned to the store, or kept in the journal.
    pub(crate) fn gave_back(&self, count: u64) {
        self.refill().gave_back(count);
    }

    /// Returns the error of the last fetch, if it failed.
    pub(crate) fn fetch_error(&self) -> Option<Error> {
        self.refill().fetch_error()
    }

    /// Returns the totals of all numbers.
    pub(crate) fn stats(&self) -> NumberStats {
        let prefetched = self.prefetched_now();
        let left = if prefetched.closed { 0 } else { prefetched.left };
        let refill = self.refill();
        let (fetched, lost) = refill.totals();
        let lasts_ms = refill.lasts_ms(left, self.ctx.timer.elapsed());
        let lost = lost.saturating_add(self.cursor.lost());
        NumberStats { prefetched: left, fetched, lost, lasts_ms }
    }
}

impl PerRequest for SegmentSource {
    fn ctx(&self) -> &Arc<NodeContext> {
        &self.ctx
    }

    async fn reserve_numbers(&self, count: u64) -> Result<Segment> {
        if self.refill().closed {
            return Err(closed(&self.name));
        }
        self.reserve(count).await
    }

    fn id_of(&self, number: u64) -> Option<u64> {
        self.stripe.id_of_any(number)
    }

    fn late(&self, within_ms: u64) -> Error {
        self.upstream_late(within_ms).unwrap_or_else(|| store_late(&self.name, within_ms))
    }
}

/// Numbers of an unfinished batch: lost when it fails, or when its caller stops waiting.
struct Batch<'a> {
    source: &'a SegmentSource,
    made: usize,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.made > 0 {
            self.source.refill().drop_numbers(u64::try_from(self.made).unwrap_or(u64::MAX));
        }
    }
}

impl fmt::Debug for SegmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentSource")
            .field("name", &self.name)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
