//! Store that a call is for: the server's own, or a secondary store.

use std::sync::Arc;

use snowmint_coord::Store;
use tonic::{Response, Status};

use super::trail::Why;
use super::write::{Fallible, told};
use crate::service::{Service, shown};

/// A store, and its name if it is a secondary store.
pub(super) struct At {
    pub(super) store: Arc<dyn Store>,
    pub(super) beside: String,
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

impl At {
    /// Writes any result of the store for the caller.
    pub(super) fn told<T, A: Fallible>(
        &self,
        answer: snowmint_coord::Result<T>,
        write: impl FnOnce(T) -> A,
    ) -> Result<Response<A>, Status> {
        told(answer, self.in_full, write)
    }

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
