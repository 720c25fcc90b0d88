//! Time limits of calls: of stores, of upstreams, and of other work that a caller waits for.

use super::node_context::NodeContext;
use crate::error::{Error, Result, Verb};
use crate::platform::timer::within;

impl NodeContext {
    /// Calls the store with a time limit: returns its result, or `Unavailable` if it takes too
    /// long. Errors of the call may put the store in doubt.
    pub(crate) async fn store_call<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.record_doubts(self.timed_call(verb, call)).await
    }

    /// Calls any store with the same time limit. The store may be a secondary one, so its errors do
    /// not put the joined store in doubt.
    pub(crate) async fn timed_call<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let within_ms = self.store_call_ms;
        let late =
            || Error::unavailable(format!("store did not respond within {within_ms} ms; retry"));
        self.metered(verb, self.with_timeout(within_ms, late, call)).await
    }

    /// Counts a call of the store, and names its verb in errors.
    pub(crate) async fn metered<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun_us = self.timer.elapsed_us();
        let result = call.await.map_err(|error| error.with_verb(verb));
        let took_us = self.timer.elapsed_us().saturating_sub(begun_us);
        self.metrics.called(verb, took_us, result.as_ref().err());
        result
    }

    /// Calls an upstream with a time limit. The call is not counted as a store call, and its errors
    /// do not put the store in doubt.
    pub(crate) async fn upstream_call<T>(
        &self,
        upstream: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let within_ms = self.store_call_ms;
        let late = || {
            Error::unavailable(format!(
                "upstream {upstream:?} did not respond within {within_ms} ms; check its database"
            ))
        };
        self.with_timeout(within_ms, late, call).await
    }

    /// Awaits a store's result, and records evidence that it is not the store that was joined.
    pub(crate) async fn record_doubts<T>(
        &self,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let recoveries = self.doubts.recoveries();
        call.await.inspect_err(|error| self.doubt_since(recoveries, error))
    }

    /// Limits the time of a call; `late` returns the error of one that takes longer than
    /// `within_ms`.
    pub(crate) async fn with_timeout<T>(
        &self,
        within_ms: u64,
        late: impl FnOnce() -> Error,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        // Pinned here, so that the call is still in flight when `late` finds out what it waits for.
        let mut call = std::pin::pin!(call);
        within(&*self.timer, within_ms, &mut call).await.unwrap_or_else(|| Err(late()))
    }

    /// Limits a call to the time that its caller allows.
    pub(crate) async fn with_deadline<T>(
        &self,
        within_ms: u64,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let late = || {
            Error::unavailable(format!("no result within {within_ms} ms; retry or allow more time"))
        };
        self.with_timeout(within_ms, late, call).await
    }
}
