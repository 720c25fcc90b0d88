//! Trait of a server that keeps the keys of a namespace.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use snowmint_coord::verbs::{Failure, StoreInfo};
use snowmint_coord::{BootTimer, Error, Result, Timer, random};

use super::batch::{Batch, Entry, Head, Outcome};
use super::script::{ScriptOutcome, ScriptRequest};
use crate::failure::Class;

/// The keys of one namespace on a server.
#[async_trait]
pub trait Keys: fmt::Debug + Send + Sync + 'static {
    /// Error of the server or its driver.
    type Error: Send;
    /// Whether all reads of a step see the moment of its head.
    const SNAPSHOT: bool;
    /// Most keys that one batch may name.
    const BATCH_MAX: usize;
    /// Whether the store can count numbers in one step on the server.
    const COUNTS: bool = false;

    /// Returns the version of a key after a batch changed it, for stores that remember rows (see
    /// [`may_cache_rows`](Self::may_cache_rows)). `before` is its version before that (0: none),
    /// `writes` the server's write count afterwards.
    fn version_after(_before: u64, writes: u64) -> u64 {
        writes
    }
    /// Returns whether a batch may depend on rows remembered from an earlier one; false if each
    /// step must see the server.
    fn may_cache_rows(&self) -> bool {
        true
    }

    /// Returns what the store is.
    fn info(&self) -> StoreInfo<'_>;
    /// Returns the timer; see [`Backend::timer`](snowmint_coord::verbs::Backend::timer).
    fn timer(&self) -> &dyn Timer {
        &BootTimer
    }
    /// Returns a random number; see [`Backend::random`](snowmint_coord::verbs::Backend::random).
    fn random(&self) -> Result<u64> {
        random::number()
    }

    /// Lets the next step see everything that was acknowledged; see
    /// [`Backend::catch_up`](snowmint_coord::verbs::Backend::catch_up).
    async fn catch_up(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// Rejects a server that is set to lose acknowledged writes; see
    /// [`Backend::check_settings`](snowmint_coord::verbs::Backend::check_settings).
    async fn check_settings(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// Reads the head of a step and these keys at the same moment; returns those keys that exist.
    async fn head_with(&self, keys: &[String]) -> Result<(Head, Vec<Entry>), Failure<Self::Error>>;
    /// Reads the head of a step.
    async fn head(&self) -> Result<Head, Failure<Self::Error>> {
        Ok(self.head_with(&[]).await?.0)
    }
    /// Reads one key; if reads are snapshots, at the moment of the head with this [`at`](Head::at).
    async fn get(&self, key: &str, at: u64) -> Result<Option<Entry>, Failure<Self::Error>>;
    /// Reads all keys directly in a folder, in any order.
    async fn list(&self, folder: &str, at: u64) -> Result<Vec<Entry>, Failure<Self::Error>>;
    /// Returns the members with a live session, if the store has sessions.
    async fn sessions(&self) -> Result<Option<HashSet<String>>, Failure<Self::Error>> {
        Ok(None)
    }
    /// Applies a batch, if all its expectations hold.
    async fn send(&self, batch: &Batch) -> Result<Outcome, Failure<Self::Error>>;
    /// Takes numbers of a source in one step, if the store can.
    async fn count(
        &self,
        _request: &ScriptRequest<'_>,
    ) -> Result<ScriptOutcome, Failure<Self::Error>> {
        Ok(ScriptOutcome::Differs)
    }

    /// Makes [`count`](Self::count) return [`ScriptOutcome::Backoff`] for a moment.
    async fn yield_to_writers(&self) {}

    /// Maps an error; see [`Backend::map_error`](snowmint_coord::verbs::Backend::map_error).
    fn map_error(&self, error: Self::Error) -> Error;

    /// Returns the flag that [`close`](Self::close) sets.
    fn closed(&self) -> &AtomicBool;
    /// Rejects a call on a closed handle.
    fn check_open(&self) -> Result<(), Failure<Self::Error>> {
        if self.closed().load(Ordering::SeqCst) {
            return Err(Failure::from(Class::Closed.of_store(self.info().label)));
        }
        Ok(())
    }
    /// Ends resources that would outlive the handle.
    async fn hang_up(&self) {}
    /// Closes the handle.
    async fn close(&self) {
        self.closed().store(true, Ordering::SeqCst);
        self.hang_up().await;
    }
}
