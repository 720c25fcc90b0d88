//! Store that a call is for: the server's own, or a secondary store.

use std::sync::Arc;

use snowmint_coord::recovery::days_too_far_ahead;
use snowmint_coord::{Error as StoreError, FastForward, Mark, Store};
use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use snowmint_store_rpc::{Codec, StoreResponse};
use tonic::{Response, Status};

use super::failure_reason::FailureReason;
use super::respond::{rejected, respond};
use crate::error::shown;
use crate::service::Service;

/// A store, and its name if it is a secondary store.
pub(super) struct TargetStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) secondary_store: String,
    /// Whether the caller may read details of errors.
    pub(super) in_full: bool,
}

/// Splits the header: the instance, and the name of a secondary store after it.
pub(super) fn named_by(header: &str) -> Option<(&str, &str)> {
    match header.split_once('/') {
        Some((_, "")) => None,
        Some(named) => Some(named),
        None => Some((header, "")),
    }
}

impl TargetStore {
    /// Writes any result of the store for the caller.
    pub(super) fn respond<T: Codec<A>, A: StoreResponse>(
        &self,
        result: snowmint_coord::Result<T>,
    ) -> Result<Response<A>, Status> {
        respond(result, self.in_full)
    }

    /// Writes an error of the store for the caller.
    pub(super) fn rejected<A: StoreResponse>(
        &self,
        error: StoreError,
    ) -> Result<Response<A>, Status> {
        rejected(error, self.in_full)
    }

    /// Returns the header value for calls to this store.
    pub(super) fn instance(&self, instance: &str) -> String {
        if self.secondary_store.is_empty() {
            instance.to_owned()
        } else {
            format!("{instance}/{}", self.secondary_store)
        }
    }

    /// Makes a change, and records it with its caller. Definitions of the server's own store appear
    /// before and after.
    pub(super) async fn change<T>(
        &self,
        (service, how, name): (&Service, &'static str, &str),
        change: impl Future<Output = snowmint_coord::Result<T>>,
    ) -> snowmint_coord::Result<T> {
        if !self.secondary_store.is_empty() {
            return self.changed(service, &format!("source {name} {how}"), change.await);
        }
        let before = service.before_change(name).await;
        let changed = change.await;
        if let Err(error) = &changed {
            let what = format_args!("source {} not {how}", shown(name));
            service.audit_rejection(what, FailureReason(error));
        }
        service.changed_secondary(how, name, before).await;
        changed
    }

    /// Rejects parts of a recovery, and a move too far ahead: nothing lowers marks again.
    pub(super) async fn check_move(&self, forward: &FastForward) -> snowmint_coord::Result<()> {
        check_values_only(forward)?;
        self.check_near(forward.marks_at_least).await
    }

    /// Rejects a mark more than a day ahead of the later of this server's clock and the store's.
    async fn check_near(&self, mark: Mark) -> snowmint_coord::Result<()> {
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

    /// Records an action on the store as a whole.
    pub(super) fn moved(&self, service: &Service, how: &str) {
        match self.secondary_store.as_str() {
            "" => service.audit_store_move(how),
            name => service.audit_store_move(&format!("{name}: {how}")),
        }
    }
}

/// Rejects everything in a program's move but marks and numbers. The rest belongs to a recovery,
/// which waits for the reports of all journals: a program could excuse a loss that no process has
/// found yet.
fn check_values_only(forward: &FastForward) -> snowmint_coord::Result<()> {
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
