//! Multi-store sources without prefetched numbers: each request calls the stores that mint, or that
//! give numbers one request at a time.
//!
//! A store that does not respond costs the first request a fraction of a second; then the next
//! store is called. The failed store is called again once it has served a call that takes no
//! numbers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::MultiStoreSource;
use super::store_part::StorePart;
use crate::error::{ErrorKind, Result, Retry, Verb};
use crate::sources::Source;
use crate::sources::id_batch::NumberRange;
use crate::sources::retry_policy::RetryPolicy;
use crate::sources::segment::SegmentBacking;

/// Milliseconds that a request waits for one store while another store is left. Numbers in a later
/// result are a gap.
const ATTEMPT_MS: u64 = 250;

impl MultiStoreSource {
    /// Returns the stores that serve, beginning with the next in turn. Failed ones are left out,
    /// unless all have failed.
    fn in_turn(&self) -> Vec<(Arc<StorePart>, Arc<Source>)> {
        let store_parts = self.store_parts.load();
        let serving =
            store_parts.iter().filter_map(|part| Some((Arc::clone(part), part.source()?)));
        let (well, ill): (Vec<_>, Vec<_>) =
            serving.partition(|(part, _)| part.current_error().is_none());
        let mut candidates = if well.is_empty() { ill } else { well };
        // The turn is counted over the remaining stores: so the next store does not take a failed
        // store's turns as well.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn.checked_rem(candidates.len()).unwrap_or_default();
        candidates.rotate_left(first);
        candidates
    }

    /// Fills the buffer from the stores that respond; waits at most `within_ms` for one.
    pub(super) async fn fill_per_request(
        &self,
        retry_policy: &mut RetryPolicy,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        let deadline = self.ctx.deadline(within_ms);
        let mut made: usize = 0;
        loop {
            let (before, mut error) = (made, None);
            let mut in_turn = self.in_turn().into_iter();
            while let Some((part, source)) = in_turn.next() {
                let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) else { break };
                let left_ms = deadline.left_ms();
                let within_ms = if in_turn.len() > 0 { left_ms.min(ATTEMPT_MS) } else { left_ms };
                match self.fill_from_one(&part, &source, rest, within_ms).await {
                    Ok(more) => made = made.saturating_add(more),
                    // A passing error takes precedence over a lasting one.
                    Err(refused) if refused.retry() == Retry::Never && error.is_some() => {}
                    Err(refused) => error = Some(refused),
                }
            }
            if made >= out.len() {
                return Ok(());
            }
            if made > before {
                // A tick was full, or a period over: the other IDs are available now.
                retry_policy.failures = 0;
            } else {
                let error = error.unwrap_or_else(|| self.none());
                retry_policy.wait_after(error, &deadline).await?;
            }
        }
    }

    /// Calls one store once; returns how many IDs came.
    async fn fill_from_one(
        &self,
        part: &StorePart,
        source: &Source,
        rest: &mut [u64],
        within_ms: u64,
    ) -> Result<usize> {
        self.publish_period(source);
        let result = source.inner.fill_once(rest, within_ms).await;
        let error = result.as_ref().err();
        // A request that had less time than a store may need has found out nothing.
        let in_haste = within_ms < ATTEMPT_MS
            && error.is_some_and(|error| matches!(error.kind(), ErrorKind::Unavailable));
        if !in_haste {
            part.record_outcome(error);
        }
        if let Ok(made) = &result {
            self.saw(rest.get(..*made).unwrap_or_default());
        }
        result.map_err(|error| part.named(error))
    }

    /// Reserves a range from one store, preferably one without an error. A store that does not
    /// respond gets its part of the time, then another is called.
    pub(in crate::sources) async fn reserve_range(
        &self,
        length: u64,
        within_ms: u64,
    ) -> Result<NumberRange> {
        let deadline = self.ctx.deadline(within_ms);
        let store_parts = self.store_parts.load_full();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..store_parts.len()).filter_map(|index| {
            let part = store_parts.get(turn.wrapping_add(index) % store_parts.len().max(1))?;
            Some((part.current_error().is_some(), Arc::clone(part), part.source()?))
        });
        let mut serving: Vec<_> = in_turn.collect();
        serving.sort_by_key(|(has_failed, ..)| *has_failed);
        let (mut left, mut last) = (u64::try_from(serving.len()).unwrap_or(1), None);
        for (_, part, source) in serving {
            let within_ms = deadline.left_ms() / left.max(1);
            let Some(segment) = source.inner.backing.as_segment() else { continue };
            match segment.reserve_range(length, within_ms).await {
                Ok(row) => return Ok(row),
                Err(error) if matches!(error.kind(), ErrorKind::Invalid) => {
                    return Err(error);
                }
                Err(error) => last = Some(part.named(error)),
            }
            left = left.saturating_sub(1);
        }
        Err(last.unwrap_or_else(|| self.none()))
    }

    /// Has failed stores called again: without requests for numbers, no other code would notice
    /// that they are back.
    pub(crate) fn retry(&self) {
        for part in self.store_parts.load().iter().filter(|part| part.current_error().is_some()) {
            let Some(source) = part.source() else { continue };
            match source.inner.backing.as_segment().map(SegmentBacking::now) {
                Some(now) if !now.is_per_request() => now.prefetch(0),
                _ => {
                    let part = Arc::clone(part);
                    self.ctx.runtime.spawn(async move { part.probe(&source).await });
                }
            }
        }
    }
}

impl StorePart {
    /// Reads the definition, a call that takes no numbers.
    async fn probe(&self, source: &Source) {
        let ctx = &source.inner.ctx;
        let result = ctx.store_call(Verb::Get, ctx.store.get(source.name())).await;
        self.record_outcome(result.err().as_ref());
    }
}
