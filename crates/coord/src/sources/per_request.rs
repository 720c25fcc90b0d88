//! Per-request sources: each request takes the numbers that it needs from the store; none are kept.
//!
//! A number goes only to the request that reserved it. So each number is greater than every number
//! returned by any server before that request was sent. A response that is lost leaves a gap.

use std::sync::Arc;

use super::node_context::NodeContext;
use super::retry_policy::RetryPolicy;
use crate::error::{Error, Result};
use crate::model::segment::Segment;

/// A source that reserves numbers in the store and makes IDs of them.
pub(super) trait PerRequest: Sync {
    fn ctx(&self) -> &Arc<NodeContext>;
    /// Reserves up to `count` numbers in the store.
    fn reserve_numbers(&self, count: u64) -> impl Future<Output = Result<Segment>> + Send;
    /// Returns the ID of a number; `None` when the number has no ID.
    fn id_of(&self, number: u64) -> Option<u64>;
    /// Returns the error for a caller whose time is up: it names what did not respond.
    fn late(&self, within_ms: u64) -> Error;
}

/// Returns that error for the store of a source.
#[cold]
pub(super) fn store_late(name: &str, within_ms: u64) -> Error {
    Error::unavailable(format!(
        "store gave source {name:?} no numbers within {within_ms} ms; retry or allow more time"
    ))
}

/// Reserves once in the store; returns how many IDs that made.
pub(super) async fn once(
    source: &impl PerRequest,
    out: &mut [u64],
    within_ms: u64,
) -> Result<usize> {
    let count = u64::try_from(out.len()).unwrap_or(u64::MAX);
    let (ctx, late) = (source.ctx(), || source.late(within_ms));
    let segment = ctx.with_timeout(within_ms, late, source.reserve_numbers(count)).await?;
    let ids = (segment.first..=segment.last).filter_map(|number| source.id_of(number));
    let mut made: usize = 0;
    for (place, id) in out.iter_mut().zip(ids) {
        *place = id;
        made = made.saturating_add(1);
    }
    Ok(made)
}

/// Fills the buffer; calls the store until it is full or `within_ms` have passed.
pub(super) async fn fill(
    source: &impl PerRequest,
    retry_policy: &mut RetryPolicy,
    out: &mut [u64],
    within_ms: u64,
) -> Result<()> {
    let deadline = source.ctx().deadline(within_ms);
    let mut made: usize = 0;
    while let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) {
        match once(source, rest, deadline.left_ms()).await {
            Ok(more) => {
                retry_policy.failures = 0;
                made = made.saturating_add(more);
            }
            Err(error) => retry_policy.wait_after(error, &deadline).await?,
        }
    }
    Ok(())
}

/// Rejects a segment that was handed out before: everything below `seen_end` was.
pub(super) fn check_forward(name: &str, segment: &Segment, seen_end: u64) -> Result<()> {
    if segment.first >= seen_end && segment.last >= segment.first {
        return Ok(());
    }
    let evidence = format!("next number of source {name:?}");
    Err(Error::contradiction(evidence, seen_end, segment.first))
}
