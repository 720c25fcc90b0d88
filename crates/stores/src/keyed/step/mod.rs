//! One atomic step: its reads and its writes.

mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use snowmint_coord::verbs::{Access, Failure, NamespaceRow, Seen};
use snowmint_coord::{Error, StoreIdentity};
use snowmint_core::UnixMillis;

use super::batch::{Batch, Entry, Head, Outcome, REPLICA};
use super::cached_rows::{self, RowCache};
use super::keys::Keys;
use super::name;
use super::record::{RowRecord, StoreRecord};

type StepResult<K, T> = Result<T, Failure<<K as Keys>::Error>>;

/// One atomic step on the keys of one namespace.
pub struct Step<K> {
    keys: Arc<K>,
    access: Access,
    head: Head,
    store: StoreRecord,
    namespace: NamespaceRow,
    identity: StoreIdentity,
    /// Keys that were read separately or found in a folder.
    read: HashMap<String, Entry>,
    /// Keys that were read and do not exist.
    missing: HashSet<String>,
    folders: HashSet<String>,
    /// Count of requests that have read something.
    reads: u32,
    batch: Batch,
    /// Keeper of the rows as the step leaves them.
    row_cache: Arc<RowCache>,
    /// Write count seen before, if the step depends on remembered rows and reads nothing.
    is_on_cached_rows: bool,
}

impl<K> fmt::Debug for Step<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("access", &self.access).finish_non_exhaustive()
    }
}

impl<K: Keys> Step<K> {
    /// Begins a step, and reads these rows at the moment of its head.
    pub(super) async fn begin(
        keys: Arc<K>,
        row_cache: Arc<RowCache>,
        access: Access,
        rows: &[String],
    ) -> StepResult<K, Self> {
        let (head, entries) = keys.head_with(rows).await?;
        let mut step = Self::with_head(keys, row_cache, head, access)?;
        step.read = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        let is_missing = |key: &&String| !step.read.contains_key(*key);
        step.missing = rows.iter().filter(is_missing).cloned().collect();
        Ok(step)
    }

    /// Begins a step on rows that this handle wrote last, with `seen` observed since. It is applied
    /// only if the rows are unchanged and the server's clock shows `not_before`.
    pub(super) fn on_cached_rows(
        keys: Arc<K>,
        row_cache: Arc<RowCache>,
        rows: cached_rows::Rows,
        not_before: UnixMillis,
        seen: &Seen,
    ) -> StepResult<K, Self> {
        // A server with its own clock checks that the clock shows at least `not_before`.
        let head = Head { clock: rows.head.clock.and(Some(not_before)), ..rows.head };
        let mut step = Self::with_head(keys, row_cache, head, Access::Write)?;
        let is_seen = step.identity.id == *seen.id;
        if !is_seen || step.namespace.catalog_version != seen.catalog_version {
            return Err(Failure::RaceLost);
        }
        step.read = rows.entries;
        step.is_on_cached_rows = true;
        step.batch.after = seen.writes.saturating_sub(step.store.writes_more);
        step.batch.not_before = not_before;
        Ok(step)
    }

    fn with_head(
        keys: Arc<K>,
        row_cache: Arc<RowCache>,
        head: Head,
        access: Access,
    ) -> StepResult<K, Self> {
        let Some(entry) = &head.store else {
            return Err(Failure::from(Error::store_mismatch(format!(
                "{} has lost key {:?}; restore it, or move the new store forward (snowmint worker \
                 fast-forward)",
                keys.info().label,
                name::STORE
            ))));
        };
        let mut store = StoreRecord::read(name::STORE, &entry.value)?;
        store.check_form(keys.info().label)?;
        let before = store.clone();
        store.count_own_writes(&head);
        let mut changes = BTreeMap::new();
        if access == Access::Forward {
            refuse_replica(keys.info().label, &head)?;
        }
        if access == Access::Write {
            check_server(keys.info().label, &store, &head)?;
            // An older record has less detail on the server.
            store.server.clone_from(&head.server);
            if store != before {
                changes.insert(name::STORE.into(), Some(store.write()?));
            }
        }
        let namespace = match &head.namespace {
            Some(entry) => NamespaceRow::read(name::NAMESPACE, &entry.value)?,
            None => NamespaceRow::default(),
        };
        let writes = head.writes.saturating_add(store.writes_more);
        let identity = StoreIdentity { id: store.id.clone(), writes };
        // The store may have been replaced since the read.
        let mut batch = Batch {
            server: head.server.clone(),
            store: Some(entry.value.clone()),
            session: head.session,
            after: head.last_write.unwrap_or(head.writes),
            changes,
            ..Batch::default()
        };
        let version = |entry: &Option<Entry>| entry.as_ref().map_or(0, |entry| entry.version);
        batch.expected.insert(name::STORE.into(), version(&head.store));
        batch.expected.insert(name::NAMESPACE.into(), version(&head.namespace));
        Ok(Self {
            keys,
            access,
            head,
            store,
            namespace,
            identity,
            read: HashMap::new(),
            missing: HashSet::new(),
            folders: HashSet::new(),
            reads: 1,
            batch,
            row_cache,
            is_on_cached_rows: false,
        })
    }

    /// Reads one row, on which the step then depends.
    async fn get<R: RowRecord>(&mut self, key: &str) -> StepResult<K, Option<R>> {
        if let Some(change) = self.batch.changes.get(key) {
            return match change {
                Some(value) => Ok(Some(R::read(key, value)?)),
                None => Ok(None),
            };
        }
        let version = self.look_up(key).await?;
        self.batch.expected.insert(key.to_owned(), version);
        match self.read.get(key) {
            Some(entry) => Ok(Some(R::read(key, &entry.value)?)),
            None => Ok(None),
        }
    }

    /// Returns the version of a key, read now or before.
    async fn look_up(&mut self, key: &str) -> StepResult<K, u64> {
        if let Some(entry) = self.read.get(key) {
            return Ok(entry.version);
        }
        if self.missing.contains(key) || self.folders.contains(name::split(key).0) {
            return Ok(0);
        }
        self.read_more()?;
        let Some(entry) = self.keys.get(key, self.head.at).await? else {
            self.missing.insert(key.to_owned());
            return Ok(0);
        };
        let version = entry.version;
        self.read.insert(key.to_owned(), entry);
        Ok(version)
    }

    fn read_more(&mut self) -> StepResult<K, ()> {
        self.reads += 1;
        if self.is_on_cached_rows { Err(Failure::RaceLost) } else { Ok(()) }
    }

    /// Reads all rows in a folder, as they were before this step. The step depends only on those
    /// that it writes.
    async fn list<R: RowRecord>(&mut self, folder: &str) -> StepResult<K, Vec<R>> {
        self.read_more()?;
        let entries = self.keys.list(folder, self.head.at).await?;
        self.folders.insert(folder.to_owned());
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            rows.push(R::read(&entry.key, &entry.value)?);
            self.read.insert(entry.key.clone(), entry);
        }
        Ok(rows)
    }

    /// Writes a row, unless it has this value already.
    async fn put<R: RowRecord + Sync>(&mut self, key: String, row: &R) -> StepResult<K, ()> {
        let value = row.write()?;
        let version = self.look_up(&key).await?;
        self.batch.expected.insert(key.clone(), version);
        let stands = self.read.get(&key).is_some_and(|entry| entry.value == value);
        if stands {
            self.batch.changes.remove(&key);
        } else {
            self.batch.changes.insert(key, Some(value));
        }
        Ok(())
    }

    /// Rewrites a key unchanged, so that no other step that depends on it can succeed too.
    async fn touch(&mut self, key: String) -> StepResult<K, ()> {
        let version = self.look_up(&key).await?;
        self.batch.expected.insert(key.clone(), version);
        if let Some(entry) = self.read.get(&key) {
            self.batch.changes.insert(key, Some(entry.value.clone()));
        }
        Ok(())
    }

    /// Removes a row, and returns whether it existed.
    async fn remove(&mut self, key: String) -> StepResult<K, bool> {
        let version = self.look_up(&key).await?;
        if version == 0 {
            // This step may have put it.
            return Ok(self.batch.changes.remove(&key).flatten().is_some());
        }
        self.batch.expected.insert(key.clone(), version);
        self.batch.changes.insert(key, None);
        Ok(true)
    }

    /// Checks that all these keys are unchanged, in the same store on the same server.
    async fn stands(self, expected: BTreeMap<String, u64>) -> StepResult<K, ()> {
        let Batch { server, store, session, .. } = self.batch;
        let batch = Batch { expected, server, store, session, ..Batch::default() };
        match self.keys.send(&batch).await? {
            Outcome::Done(_) | Outcome::Short(_) => Ok(()),
            Outcome::RaceLost => Err(Failure::RaceLost),
        }
    }
}

/// Rejects a server that follows another: it never has the newest marks.
pub(super) fn refuse_replica(label: &str, head: &Head) -> Result<(), Error> {
    if head.server.as_deref() != Some(REPLICA) {
        return Ok(());
    }
    Err(Error::store_mismatch(format!(
        "{label} is a replica, which may lack acknowledged writes; name the primary in the URL"
    )))
}

/// Rejects a replica, and marks left by another server, which may have had newer ones.
pub(super) fn check_server(label: &str, store: &StoreRecord, head: &Head) -> Result<(), Error> {
    refuse_replica(label, head)?;
    let is_same = match (&store.server, &head.server) {
        // Older records name only the run of a Redis server.
        (Some(kept), Some(found)) => {
            kept == found || found.split_once('/').is_some_and(|(run, _)| kept == run)
        }
        (kept, found) => kept == found,
    };
    if is_same {
        return Ok(());
    }
    let shown = |server: &Option<String>| match server {
        Some(server) => format!("server {server}"),
        None => "a server that keeps acknowledged writes".into(),
    };
    let (found, expected) = (shown(&head.server), shown(&store.server));
    Err(Error::store_mismatch(format!(
        "{label} is {found}, but its data belongs to {expected}; accept it (snowmint worker recover \
         --other-server), or move it forward while no server runs (snowmint worker fast-forward)"
    )))
}
