//! What one thread has seen: how long answers took, what was refused, and the IDs themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use snowmint_coord::BootTimer;

use super::check::{Chunk, Keeper};
use super::shared::Shared;

/// How precise latencies are: three digits, whatever their size.
const DIGITS: u8 = 3;

/// A request that is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// How many IDs it asks for.
    pub(super) count: u32,
    /// When it was to be sent, as elapsed time.
    pub(super) due_ns: u64,
}

/// Refusals of one code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) times: u64,
    /// The words of the first.
    pub(super) example: String,
}

/// What one thread has seen.
pub(super) struct Seen {
    /// Of answers that brought IDs, in nanoseconds.
    pub(super) latencies: Histogram<u64>,
    pub(super) ids: u64,
    pub(super) refused: BTreeMap<String, Refused>,
    /// Requests that were due and were not sent before the end.
    pub(super) unsent: u64,
    /// Requests without an answer so far.
    on_their_way: usize,
    /// IDs of the answer that is being read.
    current: u32,
    keeper: Keeper,
    shared: Arc<Shared>,
}

impl Seen {
    pub(super) fn new(shared: Arc<Shared>, keeper: Keeper) -> Self {
        Self {
            latencies: latencies(),
            ids: 0,
            refused: BTreeMap::new(),
            unsent: 0,
            on_their_way: 0,
            current: 0,
            keeper,
            shared,
        }
    }

    /// So many requests are sent now.
    pub(super) fn sent(&mut self, requests: usize) {
        self.on_their_way = self.on_their_way.saturating_add(requests);
    }

    /// An ID arrived as a number.
    pub(super) fn number(&mut self, id: u64) {
        self.current = self.current.saturating_add(1);
        self.keeper.number(id);
    }

    /// An ID arrived as text.
    pub(super) fn text(&mut self, id: &str) {
        self.current = self.current.saturating_add(1);
        self.keeper.text(id);
    }

    /// The answer to `asked` is complete.
    pub(super) fn answered(&mut self, asked: Asked) {
        let now_ns = BootTimer.elapsed_ns();
        self.answered_at(asked, now_ns);
    }

    /// The same, at a time that the caller has at hand.
    pub(super) fn answered_at(&mut self, asked: Asked, now_ns: u64) {
        let count = std::mem::take(&mut self.current);
        if count != asked.count {
            let why = format!("{count} IDs were sent where {} were asked for", asked.count);
            return self.refused("wrong_count", &why);
        }
        // It grows as needed, so nothing is too long for it.
        let _ = self.latencies.record(now_ns.saturating_sub(asked.due_ns));
        self.ids += u64::from(count);
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.shared.answered(u64::from(count));
    }

    /// A request was refused, or got no answer.
    pub(super) fn refused(&mut self, code: &str, message: &str) {
        self.current = 0;
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.shared.answered(0);
        match self.refused.get_mut(code) {
            Some(refused) => refused.times += 1,
            None => {
                let refused = Refused { times: 1, example: message.to_owned() };
                self.refused.insert(code.to_owned(), refused);
            }
        }
    }

    /// The end: what has no answer by now gets none, and what is left goes to be compared.
    pub(super) fn end(&mut self) {
        for _ in 0..self.on_their_way {
            self.refused("no_answer", "there was no answer when the run ended");
        }
        self.keeper.hand_over();
    }

    /// The IDs seen so far, when they are the first ones of all.
    pub(super) fn into_first(self) -> Chunk {
        self.keeper.into_chunk()
    }
}

/// An empty histogram.
pub(super) fn latencies() -> Histogram<u64> {
    // Three is a number of digits that there is; one that is not would be found by any test.
    Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("{DIGITS} digits"))
}
