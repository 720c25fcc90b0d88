//! A store with a span for each call.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::trace::{FutureExt as _, Status, TraceContextExt as _};
use snowmint_coord::{BoxFuture, Result, Store, StoreCall, StoreReply};

use super::Traces;

impl Traces {
    /// Returns the same store, with a span for each call.
    #[must_use]
    pub fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(TracedStore::new(store, self.clone()))
    }
}

/// A store, and the exporter of its spans.
#[derive(Debug)]
struct TracedStore {
    store: Arc<dyn Store>,
    traces: Traces,
}

impl TracedStore {
    fn new(store: Arc<dyn Store>, traces: Traces) -> Self {
        Self { store, traces }
    }
}

/// Returns what a span says of a call: the source or the pool that the call names.
fn attributes(call: StoreCall<'_>) -> Vec<KeyValue> {
    use StoreCall as C;
    const SOURCE: &str = "snowmint.source";
    const POOL: &str = "snowmint.pool";
    let (key, name) = match call {
        C::Claim { request, .. } => (POOL, request.pool.name.as_str()),
        C::Extend { items: [item, ..], .. } => (POOL, item.pool.as_str()),
        C::Release { release, .. } => (POOL, release.pool.as_str()),
        C::Acquire { acquire, .. } => (POOL, acquire.pool.name.as_str()),
        C::Relinquish { relinquish, .. } => (POOL, relinquish.pool.as_str()),
        C::Exclude { exclude, .. } => (POOL, exclude.pool.name.as_str()),
        C::Reclaim { reclaim, .. } => (POOL, reclaim.pool.as_str()),
        C::Reserve { reserve } => (SOURCE, reserve.source.as_str()),
        C::GiveBack { back } => (SOURCE, back.source.as_str()),
        C::Define { new } | C::Alter { new, .. } => (SOURCE, new.name.as_str()),
        C::Restripe { restripe } => (SOURCE, restripe.new.name.as_str()),
        C::SetState { name, .. } | C::Get { name } => (SOURCE, name),
        _ => return vec![],
    };
    vec![KeyValue::new(key, name.to_owned())]
}

impl Store for TracedStore {
    snowmint_coord::as_inner!(store);

    /// Makes the call in a span of its own.
    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            let span = self.traces.part(call.verb().span_name(), attributes(call));
            let result = self.store.call(call).with_context(span.clone()).await;
            if let Err(error) = &result {
                // The code alone: the back end's message may name hosts and users.
                span.span().set_status(Status::error(error.kind().code()));
            }
            span.span().end();
            result
        })
    }
}
