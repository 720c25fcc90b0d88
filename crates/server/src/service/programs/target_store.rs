//! Store that a program's call is for: the server's own, or a secondary store.

use std::sync::Arc;

use snowmint_coord::Store;

use super::failure_reason::FailureReason;
use crate::error::shown;
use crate::service::Service;

/// A store, and its name if it is a secondary store.
pub(crate) struct TargetStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) secondary_store: String,
    /// Whether the caller may read details of errors.
    pub(crate) in_full: bool,
}

impl TargetStore {
    /// Makes a change, and records it with its caller. Definitions of the server's own store appear
    /// before and after.
    pub(crate) async fn change<T>(
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

    /// Records an action on the store as a whole.
    pub(crate) fn moved(&self, service: &Service, how: &str) {
        match self.secondary_store.as_str() {
            "" => service.audit_store_move(how),
            name => service.audit_store_move(&format!("{name}: {how}")),
        }
    }
}
