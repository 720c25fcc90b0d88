//! A source whose numbers several stores hand out, each its own residue.
//!
//! Each store has a chain of segments of its own, as if it were the only one; a choice is made for each
//! call, in turn, among those that have numbers. A store that is away is passed over as soon as its stock
//! is spent, and nobody waits for it. Numbers of one store rise; those of the source do not.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::Notify;

use super::{NumberStats, Row, Source, Surroundings};
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::sources::Back;

/// How long whoever waits for numbers waits before he looks at all stores again.
const LOOK_AGAIN_MS: u64 = 5;

/// One store's part of a source.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) store: String,
    /// None while the store does not serve.
    source: ArcSwapOption<Source>,
    /// Why it does not, or why it is not to be trusted to for long.
    why: Mutex<Option<Error>>,
}

/// How one of the stores of a source stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareStats {
    /// The store's name.
    pub store: String,
    /// Whether it hands out numbers: what is in stock counts.
    pub serves: bool,
    /// Which stripe of the numbers it has, and of how many, if that is known.
    pub stripe: Option<(u64, u64)>,
    /// What is wrong with it, as when it is away while its stock lasts.
    pub trouble: Option<String>,
}

impl Share {
    fn new(store: &str) -> Self {
        Self { store: store.into(), source: ArcSwapOption::empty(), why: Mutex::new(None) }
    }

    /// It serves from here on.
    pub(crate) fn serve(&self, source: Source) {
        self.source.store(Some(Arc::new(source)));
        self.say(None);
    }

    /// It does not serve.
    pub(crate) fn suspend(&self, why: Error) {
        self.source.store(None);
        self.say(Some(why));
    }

    pub(crate) fn say(&self, why: Option<Error>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Its part of the source, as it serves.
    pub(crate) fn source(&self) -> Option<Arc<Source>> {
        self.source.load_full()
    }

    /// What its own chain says, or what was said of it.
    fn trouble(&self) -> Option<Error> {
        let said = || self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failed = self.source.load().as_ref().and_then(|source| match &source.inner.back {
            Back::Segment(segment) => segment.now().trouble(),
            _ => None,
        });
        failed.or_else(said)
    }

    fn stats(&self) -> ShareStats {
        let source = self.source.load();
        let stock = source.as_ref().and_then(|source| source.stats().numbers).unwrap_or_default();
        let trouble = self.trouble();
        ShareStats {
            store: self.store.clone(),
            serves: source.is_some() && (trouble.is_none() || stock.stock > 0),
            stripe: source.as_ref().and_then(|source| {
                let spec = source.spec();
                spec.offset.zip(spec.increment)
            }),
            trouble: trouble.map(|error| error.to_string()),
        }
    }
}

/// The source: all its stores.
pub(crate) struct Several {
    name: String,
    around: Arc<Surroundings>,
    shares: ArcSwap<Vec<Arc<Share>>>,
    turn: AtomicUsize,
    closed: AtomicBool,
    /// Raised when the definition changes.
    generation: AtomicU64,
    /// Whether every store was asked once.
    asked: AtomicBool,
    /// Told when that is so, and whenever a store begins to serve.
    pub(crate) news: Notify,
}

impl Several {
    pub(crate) fn new(name: &str, stores: &[String], around: Arc<Surroundings>) -> Self {
        let shares = stores.iter().map(|store| Arc::new(Share::new(store))).collect::<Vec<_>>();
        Self {
            name: name.into(),
            around,
            shares: ArcSwap::from_pointee(shares),
            turn: AtomicUsize::new(0),
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

    /// The definition names these stores now: those that it named before go on.
    pub(crate) fn alter(&self, stores: &[String]) {
        let before = self.shares.load();
        let share = |store: &String| {
            let known = before.iter().find(|share| share.store == *store);
            known.map_or_else(|| Arc::new(Share::new(store)), Arc::clone)
        };
        self.shares.store(Arc::new(stores.iter().map(share).collect()));
        self.asked.store(false, Ordering::Release);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// How often the definition has changed since it runs.
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
        Error::new("mint", ErrorKind::Closed { what: format!("source {}", self.name) })
    }

    /// Every store was asked whether it can serve.
    pub(crate) fn asked(&self) {
        self.asked.store(true, Ordering::Release);
        self.news.notify_waiters();
    }

    /// Waits until some store serves, or all have said that they do not.
    ///
    /// # Errors
    /// Why none serves.
    pub(crate) async fn first(&self, within_ms: u64) -> Result<()> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.shares.load().iter().any(|share| share.source.load().is_some()) {
                return Ok(());
            }
            let left_ms = deadline.since(self.around.timer.elapsed());
            if self.asked.load(Ordering::Acquire) || left_ms == 0 {
                return Err(self.none("open source"));
            }
            tokio::select! {
                biased;
                () = &mut news => {}
                () = self.around.timer.sleep_ms(left_ms) => {}
            }
        }
    }

    /// Why no store serves. What a person must mend comes before what passes by itself.
    #[cold]
    fn none(&self, op: &'static str) -> Error {
        if self.is_closed() {
            return self.gone();
        }
        let shares = self.shares.load();
        let serving = shares.iter().filter(|share| share.source.load().is_some());
        let lasts = |error: &Error| error.retry() == Retry::Never;
        let troubles = match serving.count() {
            0 => shares.iter().filter_map(|share| share.trouble()).collect::<Vec<_>>(),
            // The numbers of those that serve may be on their way.
            _ => Vec::new(),
        };
        if let Some(lasting) = troubles.into_iter().find(lasts) {
            return lasting;
        }
        let said: Vec<_> = shares
            .iter()
            .map(|share| {
                let why = share.trouble().map(|error| error.kind().to_string());
                format!("{}: {}", share.store, why.unwrap_or_else(|| "no numbers yet".into()))
            })
            .collect();
        let what = format!("a store of source {} ({})", self.name, said.join("; "));
        Error::new(op, ErrorKind::Unavailable { what }).with_retry(Retry::AfterMs(LOOK_AGAIN_MS))
    }

    /// Asks the stores that serve, beginning with the next in turn, until one gives.
    fn ask<T>(&self, mut ask: impl FnMut(&Source) -> Option<T>) -> Option<T> {
        let shares = self.shares.load();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for index in 0..shares.len() {
            let share = shares.get(turn.wrapping_add(index) % shares.len().max(1))?;
            if let Some(source) = share.source.load().as_ref()
                && let Some(given) = ask(source)
            {
                return Some(given);
            }
        }
        None
    }

    pub(super) fn try_mint(&self) -> Result<u64> {
        self.ask(|source| source.try_mint().ok()).ok_or_else(|| self.none("mint"))
    }

    /// Fills the buffer from what is in stock, of one store if it has enough, else of several.
    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        let mut made: usize = 0;
        let filled = self.ask(|source| match source.try_fill(out.get_mut(made..)?) {
            Ok(()) => Some(()),
            Err((more, _)) => {
                made = made.saturating_add(more);
                None
            }
        });
        filled.ok_or_else(|| (made, self.none("mint")))
    }

    /// Fills the buffer, waiting for whichever store gives numbers first, at most `within_ms`.
    pub(super) async fn fill(&self, out: &mut [u64], within_ms: u64) -> Result<()> {
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

    /// A row of one store: of one without trouble, if there is any. A store that does not answer has its
    /// part of the time, and then another is asked.
    pub(super) async fn row(&self, length: u64, within_ms: u64) -> Result<Row> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        let shares = self.shares.load_full();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..shares.len()).filter_map(|index| {
            let share = shares.get(turn.wrapping_add(index) % shares.len().max(1))?;
            Some((share.trouble().is_some(), share.source()?))
        });
        let mut serving: Vec<_> = in_turn.collect();
        serving.sort_by_key(|(trouble, _)| *trouble);
        let (mut left, mut last) = (u64::try_from(serving.len()).unwrap_or(1), None);
        for (_, source) in serving {
            let left_ms = deadline.since(self.around.timer.elapsed());
            let within_ms = left_ms / left.max(1);
            let Back::Segment(segment) = &source.inner.back else { continue };
            match segment.row(length, within_ms).await {
                Ok(row) => return Ok(row),
                Err(error) if matches!(error.kind(), ErrorKind::Invalid { .. }) => {
                    return Err(error);
                }
                Err(error) => last = Some(error),
            }
            left = left.saturating_sub(1);
        }
        Err(last.unwrap_or_else(|| self.none("reserve")))
    }

    /// Has stores asked again that did not answer: while nobody draws, nobody else would find that they are
    /// back.
    pub(crate) fn retry(&self) {
        for share in self.shares.load().iter().filter(|share| share.trouble().is_some()) {
            if let Some(source) = share.source()
                && let Back::Segment(segment) = &source.inner.back
            {
                segment.now().look_ahead(0);
            }
        }
    }

    /// How each store stands.
    pub(crate) fn stats(&self) -> Vec<ShareStats> {
        self.shares.load().iter().map(|share| share.stats()).collect()
    }

    /// What became of the numbers of all stores. The stock lasts as long as all of it together.
    pub(super) fn numbers(&self) -> NumberStats {
        let mut sum = NumberStats::default();
        for share in self.shares.load().iter() {
            let Some(source) = share.source() else { continue };
            let Some(one) = source.stats().numbers else { continue };
            sum.stock = sum.stock.saturating_add(one.stock);
            sum.fetched = sum.fetched.saturating_add(one.fetched);
            sum.lost = sum.lost.saturating_add(one.lost);
            sum.lasts_ms = sum.lasts_ms.max(one.lasts_ms);
        }
        sum
    }
}

impl fmt::Debug for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Several")
            .field("name", &self.name)
            .field("shares", &self.stats())
            .finish_non_exhaustive()
    }
}
