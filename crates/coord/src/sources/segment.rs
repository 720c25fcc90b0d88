//! Numbers from a chain of segments that the store reserved, fetched ahead of need.
//!
//! The lock is held to move a counter, never over a call to the store. One fetch is on its way at a
//! time; its length follows consumption, so that a segment lasts about as long as the source wishes.
//! Numbers of a fetch whose answer is lost are never used: a gap, not a duplicate.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use snowmint_core::ElapsedMillis;
use tokio::sync::Notify;

use super::Surroundings;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::segment::{GiveBack, Reserve, Segment};
use crate::spec::SegmentPlan;

/// A source of numbers.
pub(crate) struct SegmentSource {
    name: String,
    around: Arc<Surroundings>,
    plan: ArcSwap<SegmentPlan>,
    definition_version: AtomicU64,
    chain: Mutex<Chain>,
    /// Told when a fetch has ended, well or not.
    fetched: Notify,
}

/// Numbers in stock, and how fast they go.
struct Chain {
    /// In the order of the store.
    stock: VecDeque<Range>,
    fetching: bool,
    /// How many to fetch next.
    step: u64,
    fetched_at: Option<ElapsedMillis>,
    /// Raised by every fetch that ended, so that a waiter knows which error is news to it.
    fetches: u64,
    /// Why the last fetch failed.
    error: Option<Error>,
    /// Everything below was seen reserved: a store that hands it out again went back.
    seen_end: u64,
    closed: bool,
}

/// The rest of one segment.
#[derive(Clone, Copy, Debug)]
struct Range {
    next: u64,
    last: u64,
    version: u64,
}

impl Range {
    const fn left(&self) -> u64 {
        (self.last - self.next).saturating_add(1)
    }
}

impl Chain {
    fn left(&self) -> u64 {
        self.stock.iter().fold(0, |sum, range| sum.saturating_add(range.left()))
    }

    /// Takes the next number.
    fn pop(&mut self) -> Option<u64> {
        let range = self.stock.front_mut()?;
        let number = range.next;
        if number == range.last {
            self.stock.pop_front();
        } else {
            range.next = number.saturating_add(1);
        }
        Some(number)
    }
}

impl SegmentSource {
    pub(crate) fn new(
        name: &str,
        plan: SegmentPlan,
        definition_version: u64,
        seen_end: u64,
        around: Arc<Surroundings>,
    ) -> Arc<Self> {
        let step = plan.step_min;
        Arc::new(Self {
            name: name.into(),
            around,
            plan: ArcSwap::from_pointee(plan),
            definition_version: AtomicU64::new(definition_version),
            chain: Mutex::new(Chain {
                stock: VecDeque::new(),
                fetching: false,
                step,
                fetched_at: None,
                fetches: 0,
                error: None,
                seen_end,
                closed: false,
            }),
            fetched: Notify::new(),
        })
    }

    /// The definition was changed.
    pub(crate) fn alter(&self, plan: SegmentPlan, definition_version: u64) {
        self.plan.store(Arc::new(plan));
        self.definition_version.store(definition_version, Ordering::Release);
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One ID from stock.
    pub(crate) fn try_mint(self: &Arc<Self>) -> Result<u64> {
        let (number, left, low) = {
            let mut chain = self.chain();
            if chain.closed {
                return Err(self.closed("mint"));
            }
            (chain.pop(), chain.left(), chain.step / 2)
        };
        if left <= low {
            self.fetch_ahead(1);
        }
        match number {
            Some(number) => self.id_of(number),
            None => Err(self.dry()),
        }
    }

    /// Fills the buffer from stock: all of it or nothing.
    pub(crate) fn try_fill(self: &Arc<Self>, out: &mut [u64]) -> Result<()> {
        let wanted = u64::try_from(out.len()).unwrap_or(u64::MAX);
        let (whole, left, low) = {
            let mut chain = self.chain();
            if chain.closed {
                return Err(self.closed("mint"));
            }
            let whole = chain.left() >= wanted;
            if whole {
                for slot in out.iter_mut() {
                    *slot = chain.pop().unwrap_or(0);
                }
            }
            (whole, chain.left(), chain.step / 2)
        };
        if !whole || left <= low {
            self.fetch_ahead(wanted);
        }
        if !whole {
            return Err(self.dry());
        }
        for slot in out {
            *slot = self.id_of(*slot)?;
        }
        Ok(())
    }

    /// Fills the buffer, waiting for the store at most `within_ms`.
    pub(crate) async fn fill(self: &Arc<Self>, out: &mut [u64], within_ms: u64) -> Result<()> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        loop {
            let seen = self.chain().fetches;
            let fetched = self.fetched.notified();
            tokio::pin!(fetched);
            // Listens from here on, so that no answer is missed.
            fetched.as_mut().enable();
            let dry = match self.try_fill(out) {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.kind(), ErrorKind::WindowSpent { .. }) => error,
                Err(error) => return Err(error),
            };
            let left_ms = deadline.since(self.around.timer.elapsed());
            if left_ms == 0 {
                return Err(self.last_error(seen).unwrap_or(dry));
            }
            tokio::select! {
                biased;
                () = &mut fetched => {}
                () = self.around.timer.sleep_ms(left_ms) => {}
            }
            if let Some(error) = self.last_error(seen) {
                let left_ms = deadline.since(self.around.timer.elapsed());
                match error.retry() {
                    Retry::Never => return Err(error),
                    Retry::Now => {}
                    Retry::AfterMs(ms) if ms < left_ms => self.around.timer.sleep_ms(ms).await,
                    Retry::AfterMs(_) => return Err(error),
                }
            }
        }
    }

    /// A row of numbers that follow one another, for a caller to spend.
    pub(crate) async fn row(self: &Arc<Self>, length: u64, within_ms: u64) -> Result<(u64, u64)> {
        {
            let mut chain = self.chain();
            if chain.closed {
                return Err(self.closed("reserve"));
            }
            let front = chain.stock.front_mut().filter(|range| range.left() > length);
            if let Some(range) = front {
                let first = range.next;
                range.next = range.next.saturating_add(length);
                return Ok((self.id_of(first)?, self.id_of(range.next - 1)?));
            }
        }
        let segment = self.around.within(within_ms, self.reserve(length)).await?;
        Ok((self.id_of(segment.first)?, self.id_of(segment.last)?))
    }

    fn id_of(&self, number: u64) -> Result<u64> {
        self.plan.load().id_of(number).ok_or_else(|| {
            let what = format!("source {}", self.name);
            Error::new("mint", ErrorKind::Exhausted { what, limit: i64::MAX.unsigned_abs() })
        })
    }

    fn dry(&self) -> Error {
        let chain = self.chain();
        match &chain.error {
            Some(error) if !chain.fetching => error.clone(),
            _ => {
                let mark = crate::lease::Mark::new(chain.seen_end);
                Error::new("mint", ErrorKind::WindowSpent { mark }).with_retry(Retry::AfterMs(5))
            }
        }
    }

    fn closed(&self, op: &'static str) -> Error {
        Error::new(op, ErrorKind::Closed { what: format!("source {}", self.name) })
    }

    fn last_error(&self, seen: u64) -> Option<Error> {
        let chain = self.chain();
        (chain.fetches > seen).then(|| chain.error.clone()).flatten()
    }

    /// Starts a fetch of at least `wanted` numbers, unless one is on its way.
    fn fetch_ahead(self: &Arc<Self>, wanted: u64) {
        let length = {
            let mut chain = self.chain();
            if chain.fetching || chain.closed {
                return;
            }
            chain.fetching = true;
            chain.step = self.next_step(&chain);
            chain.step.max(wanted.saturating_sub(chain.left()))
        };
        let source = Arc::clone(self);
        self.around.runtime.spawn(async move {
            let answer = source.reserve(length).await;
            source.take_in(answer);
        });
    }

    /// Twice as many when the last lasted less than half as long as it should, half as many when it
    /// lasted more than twice as long.
    fn next_step(&self, chain: &Chain) -> u64 {
        let plan = self.plan.load();
        let Some(fetched_at) = chain.fetched_at else {
            return plan.step_min;
        };
        let lasted_ms = self.around.timer.elapsed().since(fetched_at);
        let step = if lasted_ms < plan.lasts_ms / 2 {
            chain.step.saturating_mul(2)
        } else if lasted_ms > plan.lasts_ms.saturating_mul(2) {
            chain.step / 2
        } else {
            chain.step
        };
        step.clamp(plan.step_min, plan.step_max)
    }

    /// Reserves numbers, and refuses a store that hands out what it handed out before.
    async fn reserve(&self, length: u64) -> Result<Segment> {
        let reserve = Reserve {
            source: self.name.clone(),
            length,
            definition_version: self.definition_version.load(Ordering::Acquire),
        };
        let answer = self.around.call("reserve", self.around.store.reserve(&reserve)).await;
        let segment = answer.inspect_err(|error| {
            // Somebody changed the definition: the node reads the catalog again.
            if matches!(error.kind(), ErrorKind::Conflict { .. } | ErrorKind::NotFound { .. }) {
                self.around.catalog_stale();
            }
        })?;
        self.check_forward(&segment)?;
        self.around.remember(&self.name, &segment).await?;
        Ok(segment)
    }

    fn check_forward(&self, segment: &Segment) -> Result<()> {
        let mut chain = self.chain();
        if segment.first < chain.seen_end {
            let kind = ErrorKind::StoreWentBack {
                witness: format!("the next number of source {}", self.name),
                seen: chain.seen_end,
                found: segment.first,
            };
            return Err(Error::new("reserve", kind));
        }
        chain.seen_end = segment.last.saturating_add(1);
        Ok(())
    }

    fn take_in(&self, answer: Result<Segment>) {
        let mut chain = self.chain();
        chain.fetching = false;
        chain.fetches = chain.fetches.saturating_add(1);
        match answer {
            Ok(Segment { first, last, version, .. }) => {
                chain.error = None;
                chain.fetched_at = Some(self.around.timer.elapsed());
                chain.stock.push_back(Range { next: first, last, version });
            }
            Err(error) => {
                tracing::warn!(source = %self.name, %error, "no numbers from the store");
                // A change of the definition was picked up meanwhile, or will be: ask again soon.
                let stale = matches!(error.kind(), ErrorKind::Conflict { .. });
                let error = if stale { error.with_retry(Retry::AfterMs(20)) } else { error };
                chain.error = Some(error);
            }
        }
        drop(chain);
        self.fetched.notify_waiters();
    }

    /// Ends the source. Answers the end of the newest segment, if it is unused: the store may have it
    /// back.
    pub(crate) fn close(&self) -> Option<GiveBack> {
        let mut chain = self.chain();
        chain.closed = true;
        let tail = chain.stock.pop_back();
        chain.stock.clear();
        drop(chain);
        self.fetched.notify_waiters();
        tail.map(|range| GiveBack {
            source: self.name.clone(),
            first: range.next,
            last: range.last,
            version: range.version,
        })
    }

    /// How many numbers are in stock.
    pub(crate) fn stock(&self) -> u64 {
        self.chain().left()
    }
}

impl fmt::Debug for SegmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentSource")
            .field("name", &self.name)
            .field("stock", &self.stock())
            .finish_non_exhaustive()
    }
}
