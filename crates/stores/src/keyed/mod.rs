//! Rows as keys with versions, for stores that have no transaction in which a program could think.
//!
//! A step reads keys and decides, and then sends all that it wants written as one batch. The store
//! carries the batch out in one atomic step of its own, and only if every key that the decision
//! rests on still has the version that was read. A batch that came too late changes nothing: the verb
//! runs again on fresh rows. So the rules need no second form in a server's script language.
//!
//! | key | value, as JSON |
//! |---|---|
//! | `store` | which store this is, and the newest form of its rows |
//! | `namespace` | version of the catalog; mark and term of the slots that have no key yet; up to where claims may lead the clock |
//! | `member/INCARNATION` | who joined, and when it last renewed |
//! | `pool/NAME` | a pool's shape; without reuse, also the `next` number that nobody had |
//! | `slot/POOL/NUMBER` | a slot that was claimed: everything below `mark` is promised |
//! | `source/NAME` | a definition; everything below its `mark` is handed out |
//! | `writes` | nothing: written with every batch where the server counts the changes of others, too |
//! | `starts` | the starts of the store, not as JSON: [`Starts`](snowmint_coord::Starts) |
//! | `doubt`, `journals`, `known` | why the store is in doubt, the journals that have joined, and what they have reported |

mod counting;
mod known;
pub mod name;
mod record;
mod rows;
mod step;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Backend, Extends, Failure, NamespaceRow, Seen, Verb as _};
use snowmint_coord::{
    BootTimer, Capabilities, Error, ErrorKind, Extend, Reserve, Result, Segment, Timer, random,
};
use snowmint_core::UnixMillis;

use counting::KnownStore;
pub use counting::{Counted, Looked, Question, Taken};
use known::Known;
use record::{Record as _, StoreRecord};
pub use step::Step;

/// A key as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name below the namespace's own prefix.
    pub key: String,
    /// The row.
    pub value: String,
    /// Changes with every write of the key; never 0.
    pub version: u64,
    /// The server's count of changes when it was written last.
    pub written: u64,
}

/// What every step begins with, read at one moment.
#[derive(Clone, Debug)]
pub struct Head {
    /// How many changes the server has counted; rises with every batch.
    pub writes: u64,
    /// The version of the key [`name::WRITES`], 0 if there is none; none where the count of changes is this namespace's
    /// own.
    pub last_write: Option<u64>,
    /// The server's own clock, if it has one.
    pub clock: Option<UnixMillis>,
    /// Which server this is, or which run of it, where another may lack what this one acknowledged.
    pub server: Option<String>,
    /// The session that it was read in, where a session stays with its server, and a batch cannot say which value a
    /// key must have.
    pub session: Option<i64>,
    /// The key [`name::STORE`].
    pub store: Option<Entry>,
    /// The key [`name::NAMESPACE`].
    pub namespace: Option<Entry>,
}

/// What a step wants done.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Keys with the version that each must still have, 0 where there must be none.
    pub expected: BTreeMap<String, u64>,
    /// Keys with their new value, none to delete. All are among the expected.
    pub changes: BTreeMap<String, Option<String>>,
    /// The server's clock shows at least this, where it has one.
    pub not_before: UnixMillis,
    /// Which server it must be, where another may lack what that one acknowledged.
    pub server: Option<String>,
    /// What the key [`name::STORE`] must have as its value: another store may count its versions alike.
    pub store: Option<String>,
    /// Which connection it must go on; see [`Head::session`].
    pub session: Option<i64>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, durably as far as the store can; the server's count of changes after it.
    Done(u64),
    /// An expected key had another version, or it was too early; nothing was done.
    Lost,
}

/// The keys of one namespace on a server.
#[async_trait]
pub trait Keys: fmt::Debug + Send + Sync + 'static {
    /// The server's, or its driver's.
    type Error: Send;
    /// Whether all reads of a step see the moment of its head.
    const SNAPSHOT: bool;
    /// How many keys one batch may name.
    const BATCH_MAX: usize;
    /// Whether it can count numbers in one step of its own.
    const COUNTS: bool = false;

    /// The version of a key that had version `before` (0: none) when a batch changed it, after which the
    /// server had counted `writes` changes.
    fn version_after(_before: u64, writes: u64) -> u64 {
        writes
    }
    /// Whether a batch may rest on what a handle knows from an earlier one: no, where the server must be
    /// seen in each step.
    fn knows(&self) -> bool {
        true
    }

    /// Capabilities of the store.
    fn capabilities(&self) -> Capabilities;
    /// The namespace.
    fn namespace(&self) -> &str;
    /// The store, for messages; no secrets.
    fn label(&self) -> String;
    /// [`Backend::timer`].
    fn timer(&self) -> &dyn Timer {
        &BootTimer
    }
    /// [`Backend::random`].
    fn random(&self) -> Result<u64> {
        random::number()
    }

    /// [`Backend::catch_up`].
    async fn catch_up(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// [`Backend::check_settings`].
    async fn check_settings(&self) -> Result<(), Failure<Self::Error>> {
        Ok(())
    }
    /// Reads the head of a step.
    async fn head(&self) -> Result<Head, Failure<Self::Error>>;
    /// One key, at the moment of the head whose `writes` these are where reads are snapshots.
    async fn get(&self, key: &str, at: u64) -> Result<Option<Entry>, Failure<Self::Error>>;
    /// All keys right in a folder, in any order.
    async fn list(&self, folder: &str, at: u64) -> Result<Vec<Entry>, Failure<Self::Error>>;
    /// The members whose sessions the store still sees, where it sees sessions.
    async fn sessions(&self) -> Result<Option<HashSet<String>>, Failure<Self::Error>> {
        Ok(None)
    }
    /// Carries a batch out, if all stands that it expects.
    async fn send(&self, batch: &Batch) -> Result<Outcome, Failure<Self::Error>>;
    /// Takes numbers of a source, where it can.
    async fn count(&self, _question: &Question<'_>) -> Result<Looked, Failure<Self::Error>> {
        Ok(Looked::Differs)
    }
    /// Answers [`Looked::StandBack`] for a moment.
    async fn make_way(&self) {}

    /// [`Backend::explain`].
    fn explain(&self, op: &'static str, error: Self::Error) -> Error;

    /// What [`close`](Self::close) sets.
    fn closed(&self) -> &AtomicBool;
    /// Refuses what is asked of a handle that was closed.
    fn check_open(&self) -> Result<(), Failure<Self::Error>> {
        if self.closed().load(Ordering::SeqCst) {
            return Err(Failure::Refused(ErrorKind::Closed { what: self.label() }));
        }
        Ok(())
    }
    /// Ends what would not end with the handle.
    async fn hang_up(&self) {}
    /// Ends the handle.
    async fn close(&self) {
        self.closed().store(true, Ordering::SeqCst);
        self.hang_up().await;
    }
}

/// The back end that keys make.
#[derive(Debug)]
pub struct Keyed<K> {
    keys: Arc<K>,
    store: Mutex<Option<Arc<KnownStore>>>,
    known: Arc<Known>,
}

impl<K: Keys> Keyed<K> {
    /// Opens the namespace, and gives it its identity if it has none, and may be made.
    ///
    /// # Errors
    /// `NotFound` when it has none and must not be made; `Unsupported` for rows of a newer Snowmint; what the
    /// server says.
    pub async fn open(keys: K, make: bool) -> Result<Self> {
        let known = Arc::new(Known::default());
        let opened = Self { keys: Arc::new(keys), store: Mutex::new(None), known };
        match opened.identify(make).await {
            Ok(()) => Ok(opened),
            Err(failure) => Err(opened.said(crate::OPEN, failure)),
        }
    }

    /// The keys.
    pub fn keys(&self) -> &K {
        &self.keys
    }

    async fn identify(&self, make: bool) -> Result<(), Failure<K::Error>> {
        let head = self.keys.head().await?;
        if let Some(entry) = &head.store {
            let found = StoreRecord::read(name::STORE, &entry.value)?;
            return found.check_form(&self.keys.label()).map_err(Failure::Refused);
        }
        if !make {
            return Err(Failure::Refused(crate::not_made(&self.keys.label())));
        }
        let id = random::incarnation().map_err(|error| error.kind().clone())?.to_string();
        let record = StoreRecord::new(id, head.server).write()?;
        let namespace = NamespaceRow::default().write()?;
        let new = [(name::STORE, record), (name::NAMESPACE, namespace)];
        let batch = Batch {
            expected: new.iter().map(|(key, _)| ((*key).to_owned(), 0)).collect(),
            changes: new.map(|(key, value)| (key.to_owned(), Some(value))).into(),
            ..Batch::default()
        };
        // Lost: another opener was faster, whose identity is as good.
        self.keys.send(&batch).await.map(|_| ())
    }

    fn said(&self, op: &'static str, failure: Failure<K::Error>) -> Error {
        failure.said(op, &self.keys.label(), |error| self.keys.explain(op, error))
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
        Step::begin(Arc::clone(&self.keys), Arc::clone(&self.known), access).await
    }

    async fn extend(
        &self,
        item: &Extend,
        now: UnixMillis,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<K::Error>> {
        let known = self.known.with(&name::slot(&item.pool, item.slot));
        let (Some(known), true) = (known, self.keys.knows()) else { return Ok(None) };
        let (keys, keeper) = (Arc::clone(&self.keys), Arc::clone(&self.known));
        let step = Step::on_known(keys, keeper, known, item.allowed_from(), seen);
        let extended = match step {
            Ok(step) => extend_alone(step, item, now).await,
            Err(failure) => Err(failure),
        };
        // What was known does not stand.
        let extended = match extended {
            Err(Failure::Lost) => Ok(None),
            extended => extended,
        };
        if !matches!(extended, Ok(Some(_))) {
            self.known.forget();
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

    async fn make_way(&self) {
        self.keys.make_way().await;
    }

    fn explain(&self, op: &'static str, error: K::Error) -> Error {
        self.keys.explain(op, error)
    }

    async fn close(&self) -> Result<()> {
        self.keys.close().await;
        Ok(())
    }
}

/// The count of writes after an extend; none where what was known does not stand, or does not allow it.
async fn extend_alone<K: Keys>(
    mut step: Step<K>,
    item: &Extend,
    now: UnixMillis,
) -> Result<Option<u64>, Failure<K::Error>> {
    let extends = Extends { items: std::slice::from_ref(item), now };
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
