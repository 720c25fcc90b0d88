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

mod batch;
mod cached_rows;
mod counting;
mod keys;
mod known_store;
pub mod name;
mod record;
mod script;
mod step;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_coord::verbs::{
    Access, Backend, ExtendVerb, Failure, FirstRow, NamespaceRow, Rows as _, RunVerb as _, Seen,
    StoreInfo,
};
use snowmint_coord::{Error, Extend, Reserve, Result, Segment, Timer, random};
use snowmint_core::UnixMillis;

pub use batch::{Batch, Entry, Head, Outcome, REPLICA, check_rows};
use cached_rows::RowCache;
pub use keys::Keys;
use known_store::KnownStore;
use record::{RowRecord as _, StoreRecord};
pub use script::{Counted, CountedRange, ScriptOutcome, ScriptRequest};
pub use step::Step;

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
        let (keys, row_cache) = (Arc::new(keys), Arc::new(RowCache::default()));
        let opened = Self { keys, store: Mutex::default(), row_cache };
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
            return found.check_form(self.keys.info().label).map_err(Failure::from);
        }
        if !create_if_missing {
            return Err(Failure::from(crate::opening::not_made(self.keys.info().label)));
        }
        step::refuse_replica(self.keys.info().label, &head)?;
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
        failure.into_error(self.keys.info().label, |error| self.keys.map_error(error))
    }
}

#[async_trait]
impl<K: Keys> Backend for Keyed<K> {
    type Rows = Step<K>;

    fn info(&self) -> StoreInfo<'_> {
        self.keys.info()
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
        self.begin_reading(access, None).await
    }

    async fn begin_reading(
        &self,
        access: Access,
        first: Option<FirstRow<'_>>,
    ) -> Result<Step<K>, Failure<K::Error>> {
        let row = first.map(|row| match row {
            FirstRow::Member(member) => name::member(member),
            FirstRow::Slot(pool, slot) => name::slot(pool, slot),
            FirstRow::Definition(source) => name::source(source),
        });
        let (keys, row_cache) = (Arc::clone(&self.keys), Arc::clone(&self.row_cache));
        Step::begin(keys, row_cache, access, row.as_slice()).await
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
