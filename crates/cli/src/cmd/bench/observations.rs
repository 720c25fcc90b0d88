//! Observations of one thread: latencies, errors, and the IDs themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use snowmint_coord::BootTimer;

use super::check::{Chunk, Keeper};
use super::shared::SharedState;
use crate::terminal::plural::counted;

/// Precision of latencies: three digits, at any size.
const DIGITS: u8 = 3;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadRequest {
    /// Number of requested IDs.
    pub(super) count: u32,
    /// Time when it was due, as elapsed time.
    pub(super) due_ns: u64,
}

/// Errors of one code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorCount {
    pub(super) times: u64,
    /// Message of the first error.
    pub(super) example: String,
}

/// Observations of one thread.
pub(super) struct Observations {
    /// Latencies of responses with IDs, in nanoseconds.
    pub(super) latencies: Histogram<u64>,
    pub(super) ids: u64,
    pub(super) refused: BTreeMap<String, ErrorCount>,
    /// Requests that were due but not sent before the end.
    pub(super) unsent: u64,
    /// Requests without a response so far.
    on_their_way: usize,
    /// IDs of the response that is being read.
    current: u32,
    keeper: Keeper,
    shared: Arc<SharedState>,
}

impl Observations {
    pub(super) fn new(shared: Arc<SharedState>, keeper: Keeper) -> Self {
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

    /// Counts requests that are sent now.
    pub(super) fn sent(&mut self, requests: usize) {
        self.on_their_way = self.on_their_way.saturating_add(requests);
    }

    /// Records an ID that arrived as a number.
    pub(super) fn number(&mut self, id: u64) {
        self.current = self.current.saturating_add(1);
        self.keeper.number(id);
    }

    /// Records an ID that arrived as text.
    pub(super) fn text(&mut self, id: &str) {
        self.current = self.current.saturating_add(1);
        self.keeper.text(id);
    }

    /// Records that the response to `load_request` is complete.
    pub(super) fn responded(&mut self, load_request: LoadRequest) {
        let now_ns = BootTimer.elapsed_ns();
        self.responded_at(load_request, now_ns);
    }

    /// Records the same at a time that the caller has read already.
    pub(super) fn responded_at(&mut self, load_request: LoadRequest, now_ns: u64) {
        let count = std::mem::take(&mut self.current);
        if count != load_request.count {
            let (sent, expected) = (counted(count, "ID"), load_request.count);
            let message = format!("server sent {sent}, expected {expected}");
            return self.refused("wrong_count", &message);
        }
        // The histogram grows as needed, so no value is too long for it.
        let _ = self.latencies.record(now_ns.saturating_sub(load_request.due_ns));
        self.ids += u64::from(count);
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.shared.responded(u64::from(count));
    }

    /// Records a request that was rejected or got no response.
    pub(super) fn refused(&mut self, code: &str, message: &str) {
        self.current = 0;
        self.on_their_way = self.on_their_way.saturating_sub(1);
        self.shared.responded(0);
        match self.refused.get_mut(code) {
            Some(refused) => refused.times += 1,
            None => {
                let refused = ErrorCount { times: 1, example: message.to_owned() };
                self.refused.insert(code.to_owned(), refused);
            }
        }
    }

    /// Ends the run: requests without a response by now count as errors, and the remaining IDs go
    /// to the comparison.
    pub(super) fn end(&mut self) {
        for _ in 0..self.on_their_way {
            self.refused("no_answer", "no response came before the run ended");
        }
        self.keeper.hand_over();
    }

    /// Returns the IDs seen so far, which are the first ones of the run.
    pub(super) fn into_first(self) -> Chunk {
        self.keeper.into_chunk()
    }
}

/// Returns an empty histogram.
pub(super) fn latencies() -> Histogram<u64> {
    // Three is a valid number of digits; any test would find an invalid one.
    Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("{DIGITS} digits"))
}
