//! The verbs of a store, written once over rows.
//!
//! A back end implements how the rows of a namespace are read and written in one atomic step
//! ([`Rows`]), and how such a step begins ([`Backend`]). The reads, decisions and writes of a verb
//! are the same for all back ends: [`BackendStore`] makes a [`Store`](crate::store::Store) of any
//! of them.

mod doubt;
mod exclude;
mod exclusive;
mod fast;
mod forward;
mod history;
mod lineage;
mod members;
mod put;
mod reclaim;
mod rows;
mod run_verb;
mod seen_by_handle;
mod slots;
mod sources;
mod store;

use std::sync::atomic::AtomicU64;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

pub use history::STARTS;
use lineage::Lineage;
pub use rows::{
    Access, Backend, Failure, FirstRow, NamespaceRow, Rows, RowsResult, Seen, StoreInfo,
    VerbResult, set_to_lose,
};
pub use run_verb::RunVerb;
use seen_by_handle::SeenByHandle;
pub use slots::ExtendVerb;

use crate::error::{Error, ErrorKind, Result, Verb};
use crate::model::history::{History, StoreIdentity};
use crate::store::{StoreCall, StoreReply, dispatch};

/// Maximum number of doublings of a step's duration before another attempt. The wait is random, so
/// that of several writers that collided few collide again, even on a slow machine.
const TRY_DOUBLINGS_MAX: u32 = 6;
/// Maximum wait before another attempt, in milliseconds.
const TRY_WAIT_MS_MAX: u64 = 1_000;

/// A store: the verbs over a back end, and the state that this handle remembers.
#[derive(Debug)]
pub struct BackendStore<B> {
    backend: B,
    /// State of the store's history that this handle has seen.
    lineage: Lineage,
    /// Version of the catalog that the last extend found.
    catalog_seen: AtomicU64,
    /// Serializes the claims of this handle.
    claims: Mutex<()>,
    /// Maximum attempts of a step when other steps win; at least one.
    attempts_max: u32,
}

impl<B: Backend> BackendStore<B> {
    /// Creates a handle on the store of this back end.
    pub const fn over(backend: B) -> Self {
        Self {
            backend,
            lineage: Lineage::new(),
            catalog_seen: AtomicU64::new(0),
            claims: Mutex::const_new(()),
            attempts_max: 1,
        }
    }

    /// Sets the maximum attempts of a step.
    #[must_use]
    pub fn trying(self, attempts_max: u32) -> Self {
        Self { attempts_max: attempts_max.max(1), ..self }
    }

    /// Returns the back end.
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    /// Forgets the state that this handle has seen: for a caller that has replaced the store's
    /// content.
    pub fn forget(&self) {
        self.lineage.forget();
    }

    // The trait `Store` is not in scope: a verb without a function here does not compile.
    dispatch! {}

    /// Runs one atomic step; returns its result.
    async fn output_of<V: RunVerb>(&self, verb: V) -> Result<V::Output> {
        Ok(self.run(verb).await?.0)
    }

    /// Runs one atomic step; returns its result and the store's `writes` after it.
    async fn run<V: RunVerb>(&self, verb: V) -> Result<(V::Output, u64)> {
        self.tried(&verb).await.map_err(|failure| self.error(V::VERB, failure))
    }

    /// Converts the failure of a step of `verb`.
    fn error(&self, verb: Verb, failure: Failure<<B::Rows as Rows>::Error>) -> Error {
        let info = self.backend.info();
        let map_error = |error| self.backend.map_error(error);
        let is_rejected = matches!(failure, Failure::Rejected(_));
        let error = failure.into_error(info.label, map_error).with_verb(verb);
        let is_of_store = !is_rejected || error.kind().is_of_store();
        match info.address.filter(|_| is_of_store) {
            Some(address) => error.with_detail(address),
            None => error,
        }
    }

    /// Runs a step, and repeats it a bounded number of times when other writers win.
    async fn tried<V: RunVerb>(&self, verb: &V) -> RowsResult<B::Rows, (V::Output, u64)> {
        for tried in 1..=self.attempts_max {
            // Nothing follows the last attempt.
            let begun = (tried < self.attempts_max).then(|| self.backend.timer().elapsed());
            match (self.step(verb).await, begun) {
                (Err(Failure::RaceLost), Some(begun)) => {
                    if V::HAS_PRIORITY {
                        self.backend.yield_to_writers().await;
                    }
                    let took_ms = self.backend.timer().elapsed().since(begun);
                    self.wait_for_others(tried, took_ms).await?;
                }
                (Err(Failure::RaceLost), None) => break,
                (ended, _) => return ended,
            }
        }
        Err(Failure::from(Error::unavailable(format!(
            "other writers won all {} attempts on {} (store.attempts_max); retry or raise it",
            self.attempts_max,
            self.backend.info().label
        ))))
    }

    /// Waits for a random time before attempt `tried` + 1, when the last one took `took_ms`.
    async fn wait_for_others(&self, tried: u32, took_ms: u64) -> Result<()> {
        let doubled_ms = took_ms.clamp(1, TRY_WAIT_MS_MAX) << tried.min(TRY_DOUBLINGS_MAX);
        let number = self.backend.random()?;
        self.backend.timer().sleep_ms(number % doubled_ms.min(TRY_WAIT_MS_MAX)).await;
        Ok(())
    }

    async fn step<V: RunVerb>(&self, verb: &V) -> RowsResult<B::Rows, (V::Output, u64)> {
        // This is read before the step begins: steps of this handle may overlap.
        let seen = self.lineage.by_handle();
        let began = self.backend.timer().elapsed();
        let mut rows = self.backend.begin_reading(V::ACCESS, verb.first_row()).await?;
        let time = self.lineage.time_in_touch(self.backend.timer().elapsed());
        let result = self.in_step(verb, &mut rows, seen.as_ref()).await;
        // A replica that took over may have counted unacknowledged writes, and its count is gone
        // once the first server is back.
        let is_kept = V::ACCESS != Access::Read || rows.check_server().is_ok();
        let (result, identity, begins) = match result {
            Ok((result, true, begins)) => (result, self.committed(rows).await?, begins),
            Ok((result, false, begins)) => {
                let identity = rows.identity().clone();
                rows.unchanged().await?;
                (result, identity, begins)
            }
            Err(Failure::Rejected(error)) => {
                rows.roll_back().await?;
                return Err(Failure::Rejected(error));
            }
            // The rows are dropped with their connection.
            Err(failure) => return Err(failure),
        };
        let writes = identity.writes;
        if begins {
            self.lineage.has_begun(time);
        }
        if !V::IN_DOUBT && is_kept {
            self.lineage.saw(identity, V::ACCESS);
            self.lineage.reached(began);
        }
        Ok((result, writes))
    }

    /// Commits a step. A store that cannot compare beforehand may find only now that it lacks an
    /// earlier write.
    async fn committed(&self, rows: B::Rows) -> RowsResult<B::Rows, StoreIdentity> {
        let committed = rows.commit().await;
        if let Err(Failure::Rejected(error)) = &committed
            && let ErrorKind::StoreRolledBack { found, .. } = error.kind()
        {
            self.lineage.is_short(*found);
        }
        committed
    }

    /// Compares the store with the seen state, and runs the verb; the first step that writes after
    /// being out of touch leaves a start. Also returns whether anything was changed, and whether a start was left.
    async fn in_step<V: RunVerb>(
        &self,
        verb: &V,
        rows: &mut B::Rows,
        seen: Option<&SeenByHandle>,
    ) -> RowsResult<B::Rows, (V::Output, bool, bool)> {
        if V::ACCESS != Access::Forward && !V::IN_DOUBT {
            self.lineage.check(rows, V::ACCESS, seen, self.backend.info().label).await?;
        }
        // A doubt has a start of its own, so the reports to it leave none.
        let was_in_doubt = History::says_doubt(&rows.identity().id);
        let (result, is_changed) = verb.run(rows).await?;
        // This check comes after the verb, so that the error of `recall`, which names its caller,
        // has priority.
        if V::IN_DOUBT {
            Lineage::check_store(rows, seen)?;
        }
        let may_begin = !V::IN_DOUBT || !was_in_doubt;
        let begins = is_changed && V::ACCESS == Access::Write && may_begin;
        let begins = begins && (V::LEAVES_START || self.lineage.begin(rows).await?);
        Ok((result, is_changed, begins))
    }
}
