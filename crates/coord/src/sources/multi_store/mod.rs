//! Multi-store sources: each store hands out its own stripe, or mints under its own worker number.
//!
//! Each store has its own chain of segments, as if it were the only one. Each call chooses a store
//! in turn among those with numbers. An unreachable store is skipped as soon as its prefetched
//! numbers run out, and no call waits for it. Numbers of one store rise; those of the source do
//! not.

mod per_request;
mod store_part;

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::Source;
use super::defined::Defined;
use super::node_context::NodeContext;
use super::retry_policy::RetryPolicy;
use super::segment::Unused;
use super::shared_errors::closed;
use super::source_kind::SourceKind;
use super::values::{NumberBlock, NumberStats, SourceStats, StoreStatus};
use crate::error::{Error, Result, Retry};
use crate::spec::{Plan, SegmentPlan};
use store_part::StorePart;

/// Milliseconds that a caller without numbers waits before all stores are checked again.
const RECHECK_MS: u64 = 5;

/// A source with all its stores.
pub(crate) struct MultiStoreSource {
    name: String,
    ctx: Arc<NodeContext>,
    store_parts: ArcSwap<Vec<Arc<StorePart>>>,
    turn: AtomicUsize,
    /// Whether its IDs are numbers of segments.
    counts: bool,
    /// Newest serial made here, in a source of serials: no store goes back behind its period.
    newest: Option<AtomicU64>,
    closed: AtomicBool,
    /// Counter of changes to the definition.
    generation: AtomicU64,
    /// Whether every store was tried once.
    all_tried: AtomicBool,
    /// Notified then, and whenever a store begins to serve.
    pub(crate) news: Notify,
}

impl MultiStoreSource {
    pub(crate) fn new(name: &str, plan: &Plan, ctx: Arc<NodeContext>) -> Self {
        let makes_serials = matches!(plan, Plan::Segment(SegmentPlan { serial: Some(_), .. }));
        let store_parts = plan.stores().into_iter().map(|store| Arc::new(StorePart::new(store)));
        Self {
            name: name.into(),
            ctx,
            store_parts: ArcSwap::from_pointee(store_parts.collect()),
            turn: AtomicUsize::new(0),
            counts: matches!(plan, Plan::Segment(_)),
            newest: makes_serials.then(AtomicU64::default),
            closed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            all_tried: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn store_parts(&self) -> Arc<Vec<Arc<StorePart>>> {
        self.store_parts.load_full()
    }

    /// Returns how often the definition has changed in this process.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Records that every store was asked whether it can serve.
    pub(crate) fn set_all_tried(&self) {
        self.all_tried.store(true, Ordering::Release);
        self.news.notify_waiters();
    }

    /// Waits until a store serves, or every store has reported that it does not.
    ///
    /// # Errors
    /// The reason why none serves.
    pub(crate) async fn first(&self, within_ms: u64) -> Result<()> {
        let deadline = self.ctx.deadline(within_ms);
        loop {
            let mut news = pin!(self.news.notified());
            news.as_mut().enable();
            if self.store_parts.load().iter().any(|part| part.serves()) {
                return Ok(());
            }
            if self.all_tried.load(Ordering::Acquire) || !deadline.wait(news, u64::MAX).await {
                return Err(self.none());
            }
        }
    }

    /// Returns the error for no serving store. An error that an operator must fix takes precedence
    /// over a passing one.
    #[cold]
    fn none(&self) -> Error {
        if self.is_closed() {
            return closed(&self.name);
        }
        let store_parts = self.store_parts.load();
        let serving = store_parts.iter().filter(|part| part.serves());
        let lasts = |error: &Error| error.retry() == Retry::Never;
        let errors = match serving.count() {
            0 => store_parts.iter().filter_map(|part| part.current_error()).collect::<Vec<_>>(),
            // Numbers of the serving stores may be on their way.
            _ => Vec::new(),
        };
        if let Some(lasting) = errors.into_iter().find(lasts) {
            return lasting;
        }
        let (mut reasons, mut details) = (Vec::new(), Vec::new());
        for part in store_parts.iter() {
            let (store, error) = (&part.store, part.current_error());
            let message = error.as_ref().map_or("no numbers yet".into(), Error::message);
            reasons.push(format!("{store}: {message}"));
            let detail = error.as_ref().and_then(Error::detail);
            details.extend(detail.map(|detail| format!("{store} {detail}")));
        }
        let reasons = reasons.join("; ");
        let message = format!("no store of source {:?} has numbers ({reasons}); retry", self.name);
        let error = Error::unavailable(message).with_retry(Retry::AfterMs(RECHECK_MS));
        if details.is_empty() { error } else { error.with_detail(details.join("; ")) }
    }

    /// Calls the serving stores, beginning with the next in turn, until one gives a result.
    fn try_in_turn<T>(&self, mut call: impl FnMut(&Source) -> Result<T>) -> Result<T> {
        let store_parts = self.store_parts.load();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut refused = AttemptErrors::default();
        for index in 0..store_parts.len() {
            let Some(part) = store_parts.get(turn.wrapping_add(index) % store_parts.len().max(1))
            else {
                break;
            };
            match part.on_source(&mut call) {
                Some(Ok(given)) => return Ok(given),
                Some(Err(error)) => refused.by_one(Some(error)),
                None => refused.by_one(None),
            }
        }
        Err(refused.for_good().unwrap_or_else(|| self.none()))
    }

    pub(super) fn try_mint(&self) -> Result<u64> {
        self.try_in_turn(|source| source.inner.take())
    }

    /// Takes consecutive numbers of one store.
    pub(super) fn block(&self, length: u64) -> Result<NumberBlock> {
        self.try_in_turn(|source| source.inner.block(length))
    }

    /// Fills the buffer from prefetched numbers: of one store if it has enough, else of several.
    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        let mut made: usize = 0;
        let filled = self.try_in_turn(|source| {
            self.publish_period(source);
            let rest = out.get_mut(made..).unwrap_or_default();
            let (more, outcome) = match source.inner.try_fill(rest) {
                Ok(()) => (rest.len(), Ok(())),
                Err((more, error)) => (more, Err(error)),
            };
            self.saw(rest.get(..more).unwrap_or_default());
            made = made.saturating_add(more);
            outcome
        });
        filled.map_err(|error| (made, error))
    }

    /// Fills the buffer; waits at most `within_ms` for the first store that gives numbers.
    pub(super) async fn fill(
        &self,
        retry_policy: &mut RetryPolicy,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        if self.is_per_request() {
            return self.fill_per_request(retry_policy, out, within_ms).await;
        }
        let deadline = self.ctx.deadline(within_ms);
        let mut made: usize = 0;
        while let Err((more, dry)) = self.try_fill(out.get_mut(made..).unwrap_or_default()) {
            made = made.saturating_add(more);
            // Numbers come to the stores' parts of the source, each with news of its own.
            if dry.retry() == Retry::Never || !deadline.wait(pending(), RECHECK_MS).await {
                return Err(dry);
            }
        }
        Ok(())
    }

    /// Gives a store's part the newest serial made here: it must mint in no earlier period.
    fn publish_period(&self, source: &Source) {
        if let Some(newest) = &self.newest
            && let Some(segment) = source.inner.backing.as_segment()
        {
            segment.now().record_other_serial(newest.load(Ordering::Relaxed));
        }
    }

    /// Records serials made here.
    fn saw(&self, ids: &[u64]) {
        if let (Some(newest), Some(id)) = (&self.newest, ids.iter().max()) {
            newest.fetch_max(*id, Ordering::Relaxed);
        }
    }

    /// Returns the state of each store.
    pub(crate) fn store_status(&self) -> Vec<StoreStatus> {
        self.store_parts.load().iter().map(|part| part.stats()).collect()
    }
}

impl SourceKind for MultiStoreSource {
    /// Applies a definition with other stores; those that it already had continue.
    fn alter(&self, defined: &Defined) {
        let before = self.store_parts.load();
        let part = |store: &str| {
            let known = before.iter().find(|part| part.store == store);
            known.map_or_else(|| Arc::new(StorePart::new(store)), Arc::clone)
        };
        self.store_parts.store(Arc::new(defined.plan.stores().into_iter().map(part).collect()));
        self.all_tried.store(false, Ordering::Release);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the state of all stores together. The runway is the longest of theirs.
    fn stats(&self, ready: bool) -> SourceStats {
        let numbers = self.counts.then(NumberStats::default);
        let stores = self.store_status();
        let mut sum = SourceStats { ready, numbers, stores, ..SourceStats::default() };
        for part in self.store_parts.load().iter() {
            let Some(one) = part.on_source(Source::stats) else { continue };
            sum.taken_until = sum.taken_until.max(one.taken_until);
            sum.clock_steps.0 = sum.clock_steps.0.saturating_add(one.clock_steps.0);
            sum.clock_steps.1 = sum.clock_steps.1.saturating_add(one.clock_steps.1);
            if let (Some(sum), Some(one)) = (&mut sum.numbers, one.numbers) {
                sum.prefetched = sum.prefetched.saturating_add(one.prefetched);
                sum.fetched = sum.fetched.saturating_add(one.fetched);
                sum.lost = sum.lost.saturating_add(one.lost);
                sum.lasts_ms = sum.lasts_ms.max(one.lasts_ms);
            }
        }
        sum
    }

    fn is_per_request(&self) -> bool {
        self.store_parts
            .load()
            .iter()
            .any(|part| part.on_source(Source::is_per_request) == Some(true))
    }

    fn close_prefetched(&self) -> Option<Unused> {
        self.closed.store(true, Ordering::Release);
        for part in self.store_parts.load().iter() {
            part.suspend(closed(&self.name));
        }
        self.news.notify_waiters();
        None
    }
}

/// Summary error for a request that every store has rejected.
#[derive(Debug, Default)]
struct AttemptErrors {
    lasting: Option<Error>,
    passes: bool,
}

impl AttemptErrors {
    /// Adds the error of one store; `None` if it does not serve.
    fn by_one(&mut self, error: Option<Error>) {
        match error {
            Some(error) if error.retry() == Retry::Never => {
                self.lasting.get_or_insert(error);
            }
            _ => self.passes = true,
        }
    }

    /// Returns the lasting error, if no wait helps.
    fn for_good(self) -> Option<Error> {
        self.lasting.filter(|_| !self.passes)
    }
}

impl fmt::Debug for MultiStoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiStoreSource")
            .field("name", &self.name)
            .field("stores", &self.store_status())
            .finish_non_exhaustive()
    }
}
