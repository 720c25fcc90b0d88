//! Rows as keys with versions, for stores without interactive transactions.
//!
//! A step reads keys, decides, and then sends all its writes as one batch. The store applies the
//! batch in one atomic step, and only if every key that the decision depends on still has the
//! version that was read. A late batch changes nothing: the verb runs again on fresh rows. So the
//! rules need no second form in a server's script language.
//!
//! | key | value, as JSON |
//! |---|---|
//! | `store` | identity of the store, and the newest form of its rows |
//! | `namespace` | catalog version; mark and term of slots without a key; accepted lead of claims |
//! | `member/INCARNATION` | a member, and its last renewal |
//! | `pool/NAME` | a pool's shape; without reuse, also the `next` number that was never assigned |
//! | `slot/POOL/NUMBER` | a slot that was claimed: everything below `mark` is promised |
//! | `source/NAME` | a definition; everything below its `mark` is handed out |
//! | `writes` | nothing: written with every batch if the server's write count includes other namespaces |
//! | `starts` | the starts of the store, not as JSON: [`Starts`](snowmint_coord::Starts) |
//! | `doubt`, `journals`, `known` | reason for doubt; joined journals; their reports |

mod cached_rows;
mod counting;
pub mod name;
mod record;
mod rows;
mod step;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_coord::verbs::{
    Access, Backend, ExtendVerb, Failure, NamespaceRow, RunVerb as _, Seen,
};
use snowmint_coord::{
    BootTimer, Capabilities, Error, Extend, Reserve, Result, Segment, Timer, random,
};
use snowmint_core::UnixMillis;

use crate::failure::Class;
use cached_rows::RowCache;
use counting::KnownStore;
pub use counting::{Counted, CountedRange, ScriptOutcome, ScriptRequest};
use record::{RowRecord as _, StoreRecord};
pub use step::Step;

/// [`Head::server`] of a server that follows another and has no other name.
pub const REPLICA: &str = "replica";

/// A key's present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name below the namespace's own prefix.
    pub key: String,
    /// The row.
    pub value: String,
    /// Changes with every write of the key; never 0.
    pub version: u64,
    /// Write count of the server at the last write of the key.
    pub written: u64,
}

/// First rows of every step, read at one moment.
#[derive(Clone, Debug)]
pub struct Head {
    /// Count of the namespace's last write; rises with every batch. Between two batches, a server
    /// that also counts the writes of others may skip numbers.
    pub writes: u64,
    /// Moment of this head, for reads as of the same moment, if reads are snapshots.
    pub at: u64,
    /// Version of the key [`name::WRITES`], 0 if there is none; none if the write count belongs to
    /// this namespace alone.
    pub last_write: Option<u64>,
    /// The server's own clock, if it has one.
    pub clock: Option<UnixMillis>,
    /// Name of the server, or of its present run, if another server may lack writes that this one
    /// acknowledged; [`REPLICA`] if it follows another that has no such name.
    pub server: Option<String>,
    /// Session of the read, if a session stays with its server and a batch cannot require a key's
    /// value.
    pub session: Option<i64>,
    /// The key [`name::STORE`].
    pub store: Option<Entry>,
    /// The key [`name::NAMESPACE`].
    pub namespace: Option<Entry>,
}

/// Changes that a step requests.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Keys with the version that each must still have; 0 if the key must not exist.
    pub expected: BTreeMap<String, u64>,
    /// Keys with their new value, none to delete. All are among the expected.
    pub changes: BTreeMap<String, Option<String>>,
    /// Last write that the server must have: [`Head::last_write`], or [`Head::writes`] where there
    /// is none. A restored server may lack it, and the batch would hide that: it counts, too.
    pub after: u64,
    /// Earliest time that the server's clock must show, if it has one.
    pub not_before: UnixMillis,
    /// Required server, if another may lack writes that it acknowledged.
    pub server: Option<String>,
    /// Required value of the key [`name::STORE`]: another store may have equal versions.
    pub store: Option<String>,
    /// Required session; see [`Head::session`].
    pub session: Option<i64>,
}

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Applied, as durably as the store can; the count of this batch, or 0 if it changes nothing.
    Done(u64),
    /// The same, but the server lacks a write that came before the batch ([`Batch::after`]).
    Short(u64),
    /// An expected key had another version, it was too early, or a write is missing; nothing was
    /// done.
    RaceLost,
}

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

    /// Returns the capabilities of the store.
    fn capabilities(&self) -> Capabilities;
    /// Returns the namespace.
    fn namespace(&self) -> &str;
    /// Returns the name of the store for messages; see [`Backend::label`].
    fn label(&self) -> String;
    /// Returns the address of the store for operators; see [`Backend::address`].
    fn address(&self) -> Option<String> {
        None
    }
    /// Returns the timer; see [`Backend::timer`].
    fn timer(&self) -> &dyn Timer {
        &BootTimer
    }
    /// Returns a random number; see [`Backend::random`].
    fn random(&self) -> Result<u64> {
        random::number()
    }

    /// Lets the next step see everything that was acknowledged; see [`Backend::catch_up`].
    async fn catch_up(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// Rejects a server that is set to lose acknowledged writes; see [`Backend::check_settings`].
    async fn check_settings(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// Reads the head of a step.
    async fn head(&self) -> Result<Head, Failure<Self::Error>>;
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

    /// Maps an error; see [`Backend::map_error`].
    fn map_error(&self, error: Self::Error) -> Error;

    /// Returns the flag that [`close`](Self::close) sets.
    fn closed(&self) -> &AtomicBool;
    /// Rejects a call on a closed handle.
    fn check_open(&self) -> Result<(), Failure<Self::Error>> {
        if self.closed().load(Ordering::SeqCst) {
            return Err(Failure::from(Class::Closed.of_store(&self.label())));
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

/// The back end over keys.
#[derive(Debug)]
pub struct Keyed<K> {
    keys: Arc<K>,
    store: Mutex<Option<Arc<KnownStore>>>,
    row_cache: Arc<RowCache>,
}

impl<K: Keys> Keyed<K> {
    /// Opens the namespace, and gives it an identity if it has none and may be made.
    ///
    /// # Errors
    /// `NotFound` when it has none and must not be made; `Unsupported` for rows of a newer
    /// Snowmint; the server's error.
    pub async fn open(keys: K, create_if_missing: bool) -> Result<Self> {
        let row_cache = Arc::new(RowCache::default());
        let opened = Self { keys: Arc::new(keys), store: Mutex::new(None), row_cache };
        match opened.identify(create_if_missing).await {
            Ok(()) => Ok(opened),
            Err(failure) => Err(opened.error(failure)),
        }
    }

    /// Returns the keys.
    pub fn keys(&self) -> &K {
        &self.keys
    }

    async fn identify(&self, create_if_missing: bool) -> Result<(), Failure<K::Error>> {
        let head = self.keys.head().await?;
        if let Some(entry) = &head.store {
            let found = StoreRecord::read(name::STORE, &entry.value)?;
            return found.check_form(&self.keys.label()).map_err(Failure::from);
        }
        if !create_if_missing {
            return Err(Failure::from(crate::opening::not_made(&self.keys.label())));
        }
        step::refuse_replica(&self.keys.label(), &head)?;
        let id = random::incarnation()?.to_string();
        let record = StoreRecord::new(id, head.server).write()?;
        let namespace = NamespaceRow::default().write()?;
        let new = [(name::STORE, record), (name::NAMESPACE, namespace)];
        let batch = Batch {
            expected: new.iter().map(|(key, _)| ((*key).to_owned(), 0)).collect(),
            changes: new.map(|(key, value)| (key.to_owned(), Some(value))).into(),
            ..Batch::default()
        };
        // If the batch lost, another opener was faster, and its identity serves as well.
        self.keys.send(&batch).await.map(|_| ())
    }

    fn error(&self, failure: Failure<K::Error>) -> Error {
        failure.into_error(&self.keys.label(), |error| self.keys.map_error(error))
    }
}

#[async_trait]
impl<K: Keys> Backend for Keyed<K> {
    type Rows = Step<K>;

    fn capabilities(&self) -> Capabilities {
        self.keys.capabilities()
    }

    fn namespace(&self) -> &str {
        self.keys.namespace()
    }

    fn label(&self) -> String {
        self.keys.label()
    }

    fn address(&self) -> Option<String> {
        self.keys.address()
    }

    fn timer(&self) -> &dyn Timer {
        self.keys.timer()
    }

    fn random(&self) -> Result<u64> {
        self.keys.random()
    }

    async fn check_settings(&self) -> Result<(), Failure<K::Error>> {
        self.keys.check_settings().await
    }

    async fn catch_up(&self) -> Result<(), Failure<K::Error>> {
        self.keys.catch_up().await
    }

    async fn begin(&self, access: Access) -> Result<Step<K>, Failure<K::Error>> {
        Step::begin(Arc::clone(&self.keys), Arc::clone(&self.row_cache), access).await
    }

    async fn extend(
        &self,
        item: &Extend,
        now: UnixMillis,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<K::Error>> {
        let cached_rows = self.row_cache.with(&name::slot(&item.pool, item.slot));
        let (Some(cached_rows), true) = (cached_rows, self.keys.may_cache_rows()) else {
            return Ok(None);
        };
        let (keys, row_cache) = (Arc::clone(&self.keys), Arc::clone(&self.row_cache));
        let step = Step::on_cached_rows(keys, row_cache, cached_rows, item.allowed_from(), seen);
        let extended = match step {
            Ok(step) => extend_alone(step, item, now).await,
            Err(failure) => Err(failure),
        };
        // The remembered rows are out of date.
        let extended = match extended {
            Err(Failure::RaceLost) => Ok(None),
            extended => extended,
        };
        if !matches!(extended, Ok(Some(_))) {
            self.row_cache.forget();
        }
        extended
    }

    async fn reserve(
        &self,
        reserve: &Reserve,
        seen: &Seen,
    ) -> Result<Option<Segment>, Failure<K::Error>> {
        self.count(reserve, seen).await
    }

    async fn yield_to_writers(&self) {
        self.keys.yield_to_writers().await;
    }

    fn map_error(&self, error: K::Error) -> Error {
        self.keys.map_error(error)
    }

    async fn close(&self) -> Result<()> {
        self.keys.close().await;
        Ok(())
    }
}

/// Returns the write count after an extension; none if the remembered rows are out of date or do
/// not allow it.
async fn extend_alone<K: Keys>(
    mut step: Step<K>,
    item: &Extend,
    now: UnixMillis,
) -> Result<Option<u64>, Failure<K::Error>> {
    let extends = ExtendVerb { items: std::slice::from_ref(item), now };
    let Ok((_, true)) = extends.run(&mut step).await else { return Ok(None) };
    Ok(Some(step.commit().await?.writes))
}

impl<E> From<record::Unreadable> for Failure<E> {
    fn from(record::Unreadable(what): record::Unreadable) -> Self {
        Self::Damaged(what)
    }
}

#[cfg(test)]
mod tests;
