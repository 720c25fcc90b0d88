//! State of fetching: what came, what failed, and when the store may be called.

use std::collections::VecDeque;
use std::sync::Arc;

use snowmint_core::ElapsedMillis;

use super::account::Account;
use super::consumption_rate::ConsumptionRate;
use super::prefetched::{InitialState, Piece};
use super::step::{FetchTotals, StepState};
use crate::error::{Error, ErrorKind, Retry};
use crate::ids::Mark;
use crate::model::stripe::Stripe;

/// Number of parts of a segment. The rate is measured when a part is opened, so that the hot path
/// need not do it.
const PARTS: u64 = 4;

/// State of fetching. Its lock is held for changes only, never during a call to the store.
#[derive(Debug)]
pub(crate) struct Refill {
    pub(super) fetching: bool,
    /// Error of the last fetch.
    pub(super) error: Option<Error>,
    /// Number of consecutive failures, and the time from which the store may be called again.
    pub(super) failures: u32,
    pub(super) again_at: Option<ElapsedMillis>,
    pub(super) consumption_rate: ConsumptionRate,
    pub(super) steps: StepState,
    /// Parts that the cursor has no room for yet, in order.
    pub(super) parts: VecDeque<(u64, u64)>,
    /// Numbers fetched by this source.
    pub(super) fetched: u64,
    /// Fetched numbers that are never issued.
    dropped: u64,
    /// Totals of all the source's numbers, including those of its predecessors.
    account: Arc<Account>,
    /// Prefetched numbers as they came; the first ones may be used already.
    pub(super) chain: VecDeque<Piece>,
    /// End of all numbers seen reserved: a store that returns a lower number was rolled back.
    pub(super) seen_end: u64,
    pub(super) closed: bool,
    /// Whether fetching has stopped for good.
    pub(super) ending: bool,
    /// ID of the newest period that the store was seen in, in a source of serials.
    pub(super) newest_id: u64,
}

impl Refill {
    fn new(seen_end: u64) -> Self {
        Self {
            fetching: false,
            error: None,
            failures: 0,
            again_at: None,
            consumption_rate: ConsumptionRate::default(),
            steps: StepState::default(),
            parts: VecDeque::new(),
            fetched: 0,
            dropped: 0,
            account: Arc::default(),
            chain: VecDeque::new(),
            seen_end,
            closed: false,
            ending: false,
            newest_id: 0,
        }
    }

    /// Returns the initial state of a source with this stripe.
    pub(crate) fn starting_from(initial: &InitialState, stripe: Stripe) -> Self {
        let mut refill = Self::new(initial.seen_end);
        refill.newest_id = stripe.last(initial.seen_end).unwrap_or(0);
        for (first, last) in &initial.kept {
            refill.chain.push_back(Piece::kept(*first, *last));
            refill.cut(*first, *last, stripe);
        }
        refill.account.burn(initial.burned);
        refill
    }

    /// Returns the initial state of a source that replaces this one's.
    pub(super) fn successor(&self) -> Self {
        Self {
            consumption_rate: self.consumption_rate,
            account: Arc::clone(&self.account),
            newest_id: self.newest_id,
            ..Self::new(self.seen_end)
        }
    }

    /// Returns the prefetched numbers from `next` on, in the order of their reserves.
    pub(super) fn unused_from(&mut self, next: u64) -> Vec<Piece> {
        let pieces = std::mem::take(&mut self.chain).into_iter();
        let left = pieces.map(|piece| Piece { first: piece.first.max(next), ..piece });
        left.filter(|piece| piece.first <= piece.last).collect()
    }

    /// Returns how many numbers are not in the cursor yet.
    pub(super) fn parked(&self) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum, (first, end)| sum.saturating_add(end.saturating_sub(*first)))
    }

    /// Returns the totals by which a step is sized, while `left` numbers are prefetched. Use of
    /// this source's numbers must outweigh the numbers lost before it began.
    pub(super) fn tally(&self, left: u64) -> FetchTotals {
        let (_, lost) = self.account.totals();
        let never_came = lost.saturating_sub(self.dropped);
        FetchTotals { fetched: self.fetched.saturating_add(never_came), lost, left }
    }

    /// Returns how many numbers were ever fetched for the source, and how many of them are lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        self.account.totals()
    }

    /// Returns how long `left` prefetched numbers last, in milliseconds, if any are taken.
    pub(super) fn lasts_ms(&self, left: u64, now: ElapsedMillis) -> Option<u64> {
        self.consumption_rate.lasts_now_ms(left, self.fetched.saturating_sub(left), now)
    }

    /// Counts numbers that will never be used.
    pub(super) fn drop_numbers(&mut self, count: u64) {
        self.dropped = self.dropped.saturating_add(count);
        self.account.lose(count);
    }

    /// Counts numbers that the store reserved, but that never arrived.
    pub(super) fn burn(&self, count: u64) {
        self.account.burn(count);
    }

    /// Counts numbers that were lost as given back to the store.
    pub(super) fn gave_back(&mut self, count: u64) {
        self.account.gave_back(count);
        self.dropped = self.dropped.saturating_sub(count);
        self.fetched = self.fetched.saturating_sub(count);
    }

    pub(super) const fn is_fetching(&self) -> bool {
        self.fetching
    }

    pub(super) fn fetch_error(&self) -> Option<Error> {
        self.error.clone()
    }

    /// Returns the error for no numbers: the last fetch failed, or one is in flight.
    pub(super) fn dry(&self) -> Error {
        match &self.error {
            // A final error is being tried again: a new period may have begun.
            Some(error) if !self.fetching || error.retry() != Retry::Never => error.clone(),
            _ => {
                // The mark is a number here, and a time in the kind's own sentence.
                let kind = ErrorKind::WindowSpent { mark: Mark::new(self.seen_end) };
                let message = "prefetched numbers are used up; retry while the store reserves more";
                Error::of(kind, message).with_retry(Retry::AfterMs(5))
            }
        }
    }

    /// Returns whether the store may be called.
    pub(super) fn may_ask(&self, at: ElapsedMillis) -> bool {
        let again = self.again_at.is_none_or(|again| at >= again);
        !self.fetching && !self.closed && !self.ending && again
    }

    /// Cuts numbers into the parts in which they are opened; returns how many numbers these have.
    /// Some numbers may have no ID.
    pub(super) fn cut(&mut self, first: u64, last: u64, stripe: Stripe) -> u64 {
        let end = last.min(stripe.number_max()).saturating_add(1);
        let mut first = first.max(stripe.number_min());
        let length = end.saturating_sub(first);
        let part = length.div_ceil(PARTS).max(1);
        while first < end {
            let next = first.saturating_add(part).min(end);
            self.parts.push_back((first, next));
            first = next;
        }
        self.fetched = self.fetched.saturating_add(length);
        self.account.fetch(length);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence of the kind shows a time.
    #[test]
    fn error_without_numbers_names_no_time() {
        let error = Refill::new(7).dry();
        assert_eq!(error.kind(), &ErrorKind::WindowSpent { mark: Mark::new(7) });
        let sentence = "prefetched numbers are used up; retry while the store reserves more";
        assert_eq!((error.message(), error.retry()), (sentence.into(), Retry::AfterMs(5)));
    }
}
