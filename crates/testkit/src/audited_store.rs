//! A store that reports its promises to a sink: for processes with IDs that are checked from
//! outside.

use std::fmt;
use std::sync::Arc;

use snowmint_coord::{BoxFuture, Extend, Result, Store, StoreCall, StoreReply, VerbKind};

use crate::history::Resource;

/// Sink for the promises of a store.
pub trait PromiseSink: Send + Sync + fmt::Debug + 'static {
    /// Records that the store is about to be called for `[from, to)`: a process that is killed
    /// meanwhile may have it, and a journal continues from there.
    fn asks(&self, resource: &Resource, from: u64, to: u64);

    /// Records that the store has acknowledged `[from, to)`; the caller does not know it yet.
    fn granted(&self, resource: &Resource, from: u64, to: u64);

    /// Records that nothing at or above `mark` will be minted any more; the store does not know it
    /// yet.
    fn gives_up(&self, resource: &Resource, mark: u64);
}

/// A store that reports its promises to a sink.
#[derive(Debug)]
pub struct AuditedStore<W> {
    store: Arc<dyn Store>,
    sink: W,
}

impl<W: PromiseSink> AuditedStore<W> {
    /// Wraps a store, and reports its promises to the sink.
    pub fn new(store: Arc<dyn Store>, sink: W) -> Self {
        Self { store, sink }
    }
}

fn slot(pool: &str, slot: u64) -> Resource {
    Resource::Slot(pool.to_owned(), slot)
}

fn numbers(source: &str) -> Resource {
    Resource::Numbers(source.to_owned())
}

impl<W: PromiseSink> Store for AuditedStore<W> {
    snowmint_coord::as_inner!(store);

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            match call {
                StoreCall::Extend { items, .. } => {
                    for Extend { pool, slot: number, from, to, .. } in items {
                        self.sink.asks(&slot(pool, *number), from.get(), to.get());
                    }
                }
                StoreCall::Release { release, .. } => {
                    self.sink.gives_up(&slot(&release.pool, release.slot), release.mark.get());
                }
                StoreCall::GiveBack { back } => {
                    self.sink.gives_up(&numbers(&back.source), back.first);
                }
                _ => {}
            }
            let reply = self.store.call(call).await?;
            match (call, &reply) {
                (StoreCall::Extend { items, .. }, StoreReply::Extend(results)) => {
                    for (item, result) in items.iter().zip(results) {
                        if let Ok(extended) = result {
                            let resource = slot(&item.pool, item.slot);
                            self.sink.granted(&resource, item.from.get(), extended.mark.get());
                        }
                    }
                }
                (StoreCall::Reserve { reserve }, StoreReply::Reserve(segment)) => {
                    let to = segment.last.saturating_add(1);
                    self.sink.granted(&numbers(&reserve.source), segment.first, to);
                }
                // A lease begins at its mark: only its extends promise more.
                (StoreCall::Claim { .. } | StoreCall::Acquire { .. }, _) => {}
                (other, _) => {
                    let verb = other.verb();
                    assert_ne!(
                        verb.kind(),
                        VerbKind::Grant,
                        "{verb} promises what nothing records"
                    );
                }
            }
            Ok(reply)
        })
    }
}
