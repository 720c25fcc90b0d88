//! Multi-store sources: each store hands out its own stripe, or mints under its own worker number.
//!
//! Each store has its own chain of segments, as if it were the only one. Each call chooses a store
//! in turn among those with numbers. An unreachable store is skipped as soon as its prefetched
//! numbers run out, and no call waits for it. Numbers of one store rise; those of the source do
//! not.

mod asked;
mod share;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::{Back, Block, NumberStats, Patience, Source, SourceStats, Surroundings};
use crate::error::{Error, Result, Retry};
use crate::spec::{Plan, SegmentPlan};
use asked::Refused;
pub(crate) use share::Share;
pub use share::StoreStatus;

/// Milliseconds that a caller without numbers waits before all stores are checked again.
const LOOK_AGAIN_MS: u64 = 5;

/// A source with all its stores.
pub(crate) struct Several {
    name: String,
    around: Arc<Surroundings>,
    shares: ArcSwap<Vec<Arc<Share>>>,
    turn: AtomicUsize,
    /// Whether its IDs are numbers of segments.
    counts: bool,
    /// Newest serial made here, in a source of serials: no store goes back behind its period.
    newest: Option<AtomicU64>,
    closed: AtomicBool,
    /// Counter of changes to the definition.
    generation: AtomicU64,
    /// Whether every store was tried once.
    asked: AtomicBool,
    /// Notified then, and whenever a store begins to serve.
    pub(crate) news: Notify,
}

impl Several {
    pub(crate) fn new(name: &str, plan: &Plan, around: Arc<Surroundings>) -> Self {
        let makes_serials = matches!(plan, Plan::Segment(SegmentPlan { serial: Some(_), .. }));
        let shares = plan.stores().into_iter().map(|store| Arc::new(Share::new(store)));
        Self {
            name: name.into(),
            around,
            shares: ArcSwap::from_pointee(shares.collect()),
            turn: AtomicUsize::new(0),
            counts: matches!(plan, Plan::Segment(_)),
            newest: makes_serials.then(AtomicU64::default),
            closed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shares(&self) -> Arc<Vec<Arc<Share>>> {
        self.shares.load_full()
    }

    /// Applies a definition with other stores; those that it already had continue.
    pub(crate) fn alter(&self, plan: &Plan) {
        let before = self.shares.load();
        let share = |store: &str| {
            let known = before.iter().find(|share| share.store == store);
            known.map_or_else(|| Arc::new(Share::new(store)), Arc::clone)
        };
        self.shares.store(Arc::new(plan.stores().into_iter().map(share).collect()));
        self.asked.store(false, Ordering::Release);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often the definition has changed in this process.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for share in self.shares.load().iter() {
            share.suspend(self.gone());
        }
        self.news.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn gone(&self) -> Error {
        Error::closed(format!("source {:?} is closed; open it again", self.name))
    }

    /// Records that every store was asked whether it can serve.
    pub(crate) fn asked(&self) {
        self.asked.store(true, Ordering::Release);
        self.news.notify_waiters();
    }

    /// Waits until a store serves, or every store has reported that it does not.
    ///
    /// # Errors
    /// The reason why none serves.
    pub(crate) async fn first(&self, within_ms: u64) -> Result<()> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.shares.load().iter().any(|share| share.serves()) {
                return Ok(());
            }
            let left_ms = deadline.since(self.around.timer.elapsed());
            if self.asked.load(Ordering::Acquire) || left_ms == 0 {
                return Err(self.none());
            }
            tokio::select! {
                biased;
                () = &mut news => {}
                () = self.around.timer.sleep_ms(left_ms) => {}
            }
        }
    }

    /// Returns the error for no serving store. An error that an operator must fix takes precedence
    /// over a passing one.
    #[cold]
    fn none(&self) -> Error {
        if self.is_closed() {
            return self.gone();
        }
        let shares = self.shares.load();
        let serving = shares.iter().filter(|share| share.serves());
        let lasts = |error: &Error| error.retry() == Retry::Never;
        let troubles = match serving.count() {
            0 => shares.iter().filter_map(|share| share.trouble()).collect::<Vec<_>>(),
            // Numbers of the serving stores may be on their way.
            _ => Vec::new(),
        };
        if let Some(lasting) = troubles.into_iter().find(lasts) {
            return lasting;
        }
        let (mut said, mut details) = (Vec::new(), Vec::new());
        for share in shares.iter() {
            let (store, error) = (&share.store, share.trouble());
            let why = error.as_ref().map_or("no numbers yet".into(), Error::message);
            said.push(format!("{store}: {why}"));
            let detail = error.as_ref().and_then(Error::detail);
            details.extend(detail.map(|detail| format!("{store} {detail}")));
        }
        let said = said.join("; ");
        let message = format!("no store of source {:?} has numbers ({said}); retry", self.name);
        let error = Error::unavailable(message).with_retry(Retry::AfterMs(LOOK_AGAIN_MS));
        if details.is_empty() { error } else { error.with_detail(details.join("; ")) }
    }

    /// Calls the serving stores, beginning with the next in turn, until one gives a result.
    fn ask<T>(&self, mut ask: impl FnMut(&Source) -> Result<T>) -> Result<T> {
        let shares = self.shares.load();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut refused = Refused::default();
        for index in 0..shares.len() {
            let Some(share) = shares.get(turn.wrapping_add(index) % shares.len().max(1)) else {
                break;
            };
            match share.ask(&mut ask) {
                Some(Ok(given)) => return Ok(given),
                Some(Err(why)) => refused.by_one(Some(why)),
                None => refused.by_one(None),
            }
        }
        Err(refused.for_good().unwrap_or_else(|| self.none()))
    }

    pub(super) fn try_mint(&self) -> Result<u64> {
        self.ask(|source| source.inner.take())
    }

    /// Takes consecutive numbers of one store.
    pub(super) fn block(&self, length: u64) -> Result<Block> {
        self.ask(|source| source.inner.block(length))
    }

    /// Fills the buffer from prefetched numbers: of one store if it has enough, else of several.
    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        let mut made: usize = 0;
        let filled = self.ask(|source| {
            self.tell_period(source);
            let rest = out.get_mut(made..).unwrap_or_default();
            let (more, outcome) = match source.inner.try_fill(rest) {
                Ok(()) => (rest.len(), Ok(())),
                Err((more, why)) => (more, Err(why)),
            };
            self.saw(rest.get(..more).unwrap_or_default());
            made = made.saturating_add(more);
            outcome
        });
        filled.map_err(|why| (made, why))
    }

    /// Fills the buffer; waits at most `within_ms` for the first store that gives numbers.
    pub(super) async fn fill(
        &self,
        patience: &mut Patience,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        if self.is_asked() {
            return self.fill_asked(patience, out, within_ms).await;
        }
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        let mut made: usize = 0;
        loop {
            let Err((more, dry)) = self.try_fill(out.get_mut(made..).unwrap_or_default()) else {
                return Ok(());
            };
            made = made.saturating_add(more);
            let left_ms = deadline.since(self.around.timer.elapsed());
            if left_ms == 0 || dry.retry() == Retry::Never {
                return Err(dry);
            }
            self.around.timer.sleep_ms(left_ms.min(LOOK_AGAIN_MS)).await;
        }
    }

    /// Gives a store's part the newest serial made here: it must mint in no earlier period.
    fn tell_period(&self, source: &Source) {
        if let (Some(newest), Back::Segment(segment)) = (&self.newest, &source.inner.back) {
            segment.now().was_seen(newest.load(Ordering::Relaxed));
        }
    }

    /// Records serials made here.
    fn saw(&self, ids: &[u64]) {
        if let (Some(newest), Some(id)) = (&self.newest, ids.iter().max()) {
            newest.fetch_max(*id, Ordering::Relaxed);
        }
    }

    /// Returns the state of each store.
    pub(crate) fn stats(&self) -> Vec<StoreStatus> {
        self.shares.load().iter().map(|share| share.stats()).collect()
    }

    /// Returns the state of all stores together. The runway is the longest of theirs.
    pub(super) fn sum(&self, ready: bool) -> SourceStats {
        let numbers = self.counts.then(NumberStats::default);
        let mut sum =
            SourceStats { ready, numbers, stores: self.stats(), ..SourceStats::default() };
        for share in self.shares.load().iter() {
            let Some(one) = share.ask(Source::stats) else { continue };
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
}

impl fmt::Debug for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Several")
            .field("name", &self.name)
            .field("stores", &self.stats())
            .finish_non_exhaustive()
    }
}
