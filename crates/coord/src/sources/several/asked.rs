//! Multi-store sources without prefetched numbers: each request calls the stores that mint, or that
//! give numbers one request at a time.
//!
//! A store that does not respond costs the first request a fraction of a second; then the next
//! store is called. The failed store is called again once it has served a call that takes no
//! numbers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Several, Share};
use crate::error::{Error, ErrorKind, Result, Retry, Verb};
use crate::machine::backoff_ms;
use crate::sources::{Back, Patience, Row, Source};

/// Milliseconds that a request waits for one store while another store is left. Numbers in a later
/// result are a gap.
const ATTEMPT_MS: u64 = 250;

impl Several {
    /// Returns whether each request calls the stores, and nothing is prefetched.
    pub(in crate::sources) fn is_asked(&self) -> bool {
        self.shares.load().iter().any(|share| share.ask(Source::is_asked) == Some(true))
    }

    /// Returns the stores that serve, beginning with the next in turn. Failed ones are left out,
    /// unless all have failed.
    fn in_turn(&self) -> Vec<(Arc<Share>, Arc<Source>)> {
        let shares = self.shares.load();
        let serving = shares.iter().filter_map(|share| Some((Arc::clone(share), share.source()?)));
        let (well, ill): (Vec<_>, Vec<_>) =
            serving.partition(|(share, _)| share.trouble().is_none());
        let mut asked = if well.is_empty() { ill } else { well };
        // The turn is counted over the remaining stores: so the next store does not take a failed
        // store's turns as well.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn.checked_rem(asked.len()).unwrap_or_default();
        asked.rotate_left(first);
        asked
    }

    /// Fills the buffer from the stores that respond; waits at most `within_ms` for one.
    pub(super) async fn fill_asked(
        &self,
        patience: &mut Patience,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        let timer = &self.around.timer;
        let deadline = timer.elapsed().saturating_add(within_ms);
        let (mut made, mut failures): (usize, u32) = (0, 0);
        loop {
            let (before, mut why) = (made, None);
            let mut in_turn = self.in_turn().into_iter();
            while let Some((share, source)) = in_turn.next() {
                let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) else { break };
                let left_ms = deadline.since(timer.elapsed());
                let within_ms = if in_turn.len() > 0 { left_ms.min(ATTEMPT_MS) } else { left_ms };
                match self.ask_one(&share, &source, rest, within_ms).await {
                    Ok(more) => made = made.saturating_add(more),
                    // A passing error takes precedence over a lasting one.
                    Err(refused) if refused.retry() == Retry::Never && why.is_some() => {}
                    Err(refused) => why = Some(refused),
                }
            }
            if made >= out.len() {
                return Ok(());
            }
            if made > before {
                // A tick was full, or a period over: the other IDs are available now.
                failures = 0;
                continue;
            }
            let why = why.unwrap_or_else(|| self.none());
            let left_ms = deadline.since(timer.elapsed());
            let Some(wait_ms) = patience.rest_ms(&why, left_ms) else { return Err(why) };
            let wait_ms = match why.kind() {
                ErrorKind::Unavailable => {
                    failures = failures.saturating_add(1);
                    backoff_ms(failures).min(left_ms)
                }
                _ => wait_ms,
            };
            timer.sleep_ms(wait_ms.max(1)).await;
        }
    }

    /// Calls one store once; returns how many IDs came.
    async fn ask_one(
        &self,
        share: &Share,
        source: &Source,
        rest: &mut [u64],
        within_ms: u64,
    ) -> Result<usize> {
        self.tell_period(source);
        let answer = source.inner.ask_once(rest, within_ms).await;
        let why = answer.as_ref().err();
        // A request that had less time than a store may need has found out nothing.
        let in_haste = within_ms < ATTEMPT_MS
            && why.is_some_and(|why| matches!(why.kind(), ErrorKind::Unavailable));
        if !in_haste {
            share.answered(why);
        }
        if let Ok(made) = &answer {
            self.saw(rest.get(..*made).unwrap_or_default());
        }
        answer.map_err(|error| share.named(error))
    }

    /// Reserves a range from one store, preferably one without an error. A store that does not
    /// respond gets its part of the time, then another is called.
    pub(in crate::sources) async fn row(&self, length: u64, within_ms: u64) -> Result<Row> {
        let deadline = self.around.timer.elapsed().saturating_add(within_ms);
        let shares = self.shares.load_full();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..shares.len()).filter_map(|index| {
            let share = shares.get(turn.wrapping_add(index) % shares.len().max(1))?;
            Some((share.trouble().is_some(), Arc::clone(share), share.source()?))
        });
        let mut serving: Vec<_> = in_turn.collect();
        serving.sort_by_key(|(trouble, ..)| *trouble);
        let (mut left, mut last) = (u64::try_from(serving.len()).unwrap_or(1), None);
        for (_, share, source) in serving {
            let left_ms = deadline.since(self.around.timer.elapsed());
            let within_ms = left_ms / left.max(1);
            let Back::Segment(segment) = &source.inner.back else { continue };
            match segment.row(length, within_ms).await {
                Ok(row) => return Ok(row),
                Err(error) if matches!(error.kind(), ErrorKind::Invalid) => {
                    return Err(error);
                }
                Err(error) => last = Some(share.named(error)),
            }
            left = left.saturating_sub(1);
        }
        Err(last.unwrap_or_else(|| self.none()))
    }

    /// Has failed stores called again: without requests for numbers, no other code would notice
    /// that they are back.
    pub(crate) fn retry(&self) {
        for share in self.shares.load().iter().filter(|share| share.trouble().is_some()) {
            let Some(source) = share.source() else { continue };
            match &source.inner.back {
                Back::Segment(segment) if !segment.now().keeps_none() => {
                    segment.now().look_ahead(0);
                }
                _ => {
                    let share = Arc::clone(share);
                    self.around.runtime.spawn(async move { share.answered_to(&source).await });
                }
            }
        }
    }
}

impl Share {
    /// Reads the definition, a call that takes no numbers.
    async fn answered_to(&self, source: &Source) {
        let around = &source.inner.around;
        let answer = around.store_call(Verb::Get, around.store.get(source.name())).await;
        self.answered(answer.err().as_ref());
    }
}

/// Summary error for a request that every store has rejected.
#[derive(Debug, Default)]
pub(super) struct Refused {
    lasting: Option<Error>,
    passes: bool,
}

impl Refused {
    /// Adds the error of one store; `None` if it does not serve.
    pub(super) fn by_one(&mut self, why: Option<Error>) {
        match why {
            Some(why) if why.retry() == Retry::Never => {
                self.lasting.get_or_insert(why);
            }
            _ => self.passes = true,
        }
    }

    /// Returns the lasting error, if no wait helps.
    pub(super) fn for_good(self) -> Option<Error> {
        self.lasting.filter(|_| !self.passes)
    }
}
