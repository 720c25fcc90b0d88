//! Limits on a program's move of a whole store.

use snowmint_coord::recovery::days_too_far_ahead;
use snowmint_coord::{Error as StoreError, FastForward, Mark, Result as StoreResult};
use snowmint_core::{Clock as _, Rfc3339, SystemClock};

use super::target_store::TargetStore;

impl TargetStore {
    /// Rejects parts of a recovery, and a move too far ahead: nothing lowers marks again.
    pub(crate) async fn check_move(&self, forward: &FastForward) -> StoreResult<()> {
        check_values_only(forward)?;
        self.check_near(forward.marks_at_least).await
    }

    /// Rejects a mark more than a day ahead of the later of this server's clock and the store's.
    async fn check_near(&self, mark: Mark) -> StoreResult<()> {
        let ours = SystemClock.unix_ms();
        let now = self.store.now().await?.map_or(ours, |theirs| ours.max(theirs));
        let Some(days) = days_too_far_ahead(mark.unix_millis(), now) else { return Ok(()) };
        let mark = Rfc3339(mark.unix_millis());
        Err(StoreError::invalid(format!(
            "mark {mark} is {days} days ahead of the clock, maximum 1; correct the time, or move \
             the store by its own URL (snowmint worker fast-forward --far-ahead): nothing lowers a \
             mark"
        )))
    }
}

/// Rejects everything in a program's move but marks and numbers. The rest belongs to a recovery,
/// which waits for the reports of all journals: a program could excuse a loss that no process has
/// found yet.
fn check_values_only(forward: &FastForward) -> StoreResult<()> {
    let parts = [
        ("writes_at_least", forward.writes_at_least > 0),
        ("recoveries_at_least", forward.recoveries_at_least > 0),
        ("catalog_at_least", forward.catalog_at_least > 0),
        ("new_identity", forward.new_identity),
        ("forget_journals", !forward.forget_journals.is_empty()),
    ];
    match parts.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((part, _)) => Err(StoreError::invalid(format!(
            "{part} belongs to a recovery, and this call raises marks and numbers alone; leave it \
             out, or recover the store (POST /v1/recovery, snowmint worker recover --server URL)"
        ))),
    }
}
