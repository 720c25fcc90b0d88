//! Store that a call is for: the server's own, or a secondary store.

use std::sync::Arc;

use snowmint_coord::Store;

use super::trail::Why;
use crate::service::{Service, shown};

/// A store, and its name if it is a secondary store.
pub(super) struct At {
    pub(super) store: Arc<dyn Store>,
    pub(super) beside: String,
}

/// Splits the header: the instance, and the name of a secondary store after it.
pub(super) fn named_by(header: &str) -> Option<(&str, &str)> {
    match header.split_once('/') {
        Some((_, "")) => None,
        Some(named) => Some(named),
        None => Some((header, "")),
    }
}

impl At {
    /// Returns the header value for calls to this store.
    pub(super) fn instance(&self, instance: &str) -> String {
        if self.beside.is_empty() {
            instance.to_owned()
        } else {
            format!("{instance}/{}", self.beside)
        }
    }

    /// Makes a change, and records it with its caller. Definitions of the server's own store appear
    /// before and after.
    pub(super) async fn change<T>(
        &self,
        (service, how, name): (&Service, &'static str, &str),
        change: impl Future<Output = snowmint_coord::Result<T>>,
    ) -> snowmint_coord::Result<T> {
        if !self.beside.is_empty() {
            return self.changed(service, &format!("source {name} {how}"), change.await);
        }
        let before = service.before_change(name).await;
        let changed = change.await;
        if let Err(error) = &changed {
            let what = format_args!("source {} not {how}", shown(name));
            service.not_changed(what, Why(error));
        }
        service.changed_beside(how, name, before).await;
        changed
    }

    /// Records an action on the store as a whole.
    pub(super) fn moved(&self, service: &Service, how: &str) {
        match self.beside.as_str() {
            "" => service.moved(how),
            name => service.moved(&format!("{name} beside: {how}")),
        }
    }
}
