//! The rows of a namespace under keys.

use async_trait::async_trait;
use snowmint_coord::member::MemberRow;
use snowmint_coord::verbs::{Access, Failure, NamespaceRow, Rows, RowsResult};
use snowmint_coord::{Definition, Error, Incarnation, Pool, SlotRow, StoreIdentity};
use snowmint_core::UnixMillis;

use super::{Step, check_server};
use crate::keyed::batch::Outcome;
use crate::keyed::keys::Keys;
use crate::keyed::name;
use crate::keyed::record::{FORM, Note, RowRecord as _, StoreRecord};

#[async_trait]
impl<K: Keys> Rows for Step<K> {
    type Error = K::Error;
    const WRITES_MAX: usize = K::BATCH_MAX - SPARE;

    fn identity(&self) -> &StoreIdentity {
        &self.identity
    }

    fn clock(&self) -> Option<UnixMillis> {
        self.head.clock
    }

    fn check_server(&self) -> Result<(), Error> {
        check_server(self.keys.info().label, &self.store, &self.head)
    }

    async fn members(&mut self) -> RowsResult<Self, Vec<MemberRow>> {
        let mut rows: Vec<MemberRow> = self.list(name::MEMBERS).await?;
        if let Some(sessions) = self.keys.sessions().await? {
            let ended =
                |row: &&mut MemberRow| !sessions.contains(&row.member.incarnation.to_string());
            for row in rows.iter_mut().filter(ended) {
                // An ended session counts as a whole TTL without renewal.
                let renewed_ms = row.renewed_at.get().saturating_sub(row.presence.ttl_ms);
                row.renewed_at = UnixMillis::new(renewed_ms);
            }
        }
        Ok(rows)
    }

    async fn member(&mut self, member: Incarnation) -> RowsResult<Self, Option<MemberRow>> {
        self.get(&name::member(member)).await
    }

    async fn put_member(&mut self, row: &MemberRow) -> RowsResult<Self, ()> {
        self.put(name::member(row.member.incarnation), row).await
    }

    async fn remove_member(&mut self, member: Incarnation) -> RowsResult<Self, bool> {
        self.remove(name::member(member)).await
    }

    async fn hold_member(&mut self, member: Incarnation) -> RowsResult<Self, ()> {
        self.touch(name::member(member)).await
    }

    async fn pool(&mut self, pool: &str) -> RowsResult<Self, Option<(Pool, u64)>> {
        self.get(&name::pool(pool)).await
    }

    async fn put_pool(&mut self, pool: &Pool, next: u64) -> RowsResult<Self, ()> {
        self.put(name::pool(&pool.name), &(pool.clone(), next)).await
    }

    async fn slot(&mut self, pool: &str, slot: u64) -> RowsResult<Self, Option<SlotRow>> {
        self.get(&name::slot(pool, slot)).await
    }

    async fn slots(&mut self, pool: &str) -> RowsResult<Self, Vec<SlotRow>> {
        let mut rows: Vec<SlotRow> = self.list(&name::slots(pool)).await?;
        rows.sort_by_key(|row| row.slot);
        Ok(rows)
    }

    async fn all_slots(&mut self) -> RowsResult<Self, Vec<(String, SlotRow)>> {
        let pools: Vec<(Pool, u64)> = self.list(name::POOLS).await?;
        let mut all = Vec::new();
        for (pool, _) in pools {
            let rows = self.slots(&pool.name).await?;
            all.extend(rows.into_iter().map(|row| (pool.name.clone(), row)));
        }
        Ok(all)
    }

    async fn held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> RowsResult<Self, Vec<(String, SlotRow)>> {
        let mut all = self.all_slots().await?;
        all.retain(|(_, row)| row.holder == Some(member));
        all.truncate(max);
        Ok(all)
    }

    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> RowsResult<Self, ()> {
        for row in rows {
            self.put(name::slot(pool, row.slot), row).await?;
        }
        Ok(())
    }

    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> RowsResult<Self, ()> {
        for slot in slots {
            self.remove(name::slot(pool, *slot)).await?;
        }
        Ok(())
    }

    async fn namespace(&mut self) -> RowsResult<Self, NamespaceRow> {
        Ok(self.namespace)
    }

    async fn put_namespace(&mut self, row: NamespaceRow) -> RowsResult<Self, ()> {
        self.namespace = row;
        self.batch.changes.insert(name::NAMESPACE.into(), Some(row.write()?));
        Ok(())
    }

    async fn definition(&mut self, name: &str) -> RowsResult<Self, Option<Definition>> {
        self.get(&name::source(name)).await
    }

    async fn definitions(&mut self) -> RowsResult<Self, Vec<Definition>> {
        self.list(name::SOURCES).await
    }

    async fn put_definition(&mut self, definition: &Definition) -> RowsResult<Self, ()> {
        self.put(name::source(&definition.name), definition).await
    }

    async fn note(&mut self, name: &str) -> RowsResult<Self, Option<(String, u64)>> {
        let Some(Note(text)) = self.get(name).await? else { return Ok(None) };
        let written = self.read.get(name).map_or(0, |entry| entry.written);
        Ok(Some((text, written.saturating_add(self.store.writes_more))))
    }

    async fn put_note(&mut self, name: &str, text: String) -> RowsResult<Self, ()> {
        self.put(name.to_owned(), &Note(text)).await
    }

    async fn remove_note(&mut self, name: &str) -> RowsResult<Self, ()> {
        self.remove(name.to_owned()).await.map(|_| ())
    }

    /// Lets the step commit only if no other step writes meanwhile, and returns the lowest write
    /// count that it can get. None if the count is this namespace's own, since the version of a
    /// written key then shows it.
    fn begins_alone(&mut self) -> Option<u64> {
        let last_write = self.head.last_write?;
        self.batch.expected.insert(name::WRITES.into(), last_write);
        Some(self.identity.writes.saturating_add(1))
    }

    fn name(&mut self, id: String) -> RowsResult<Self, ()> {
        self.store.id.clone_from(&id);
        self.store.form = FORM;
        self.batch.changes.insert(name::STORE.into(), Some(self.store.write()?));
        self.identity.id = id;
        Ok(())
    }

    async fn accept(&mut self, identity: StoreIdentity) -> RowsResult<Self, ()> {
        let more = identity.writes.saturating_sub(self.head.writes).max(self.store.writes_more);
        let server = self.head.server.clone();
        let new = StoreRecord::new(identity.id.clone(), server);
        self.store = StoreRecord { writes_more: more, ..new };
        self.batch.changes.insert(name::STORE.into(), Some(self.store.write()?));
        self.identity = identity;
        Ok(())
    }

    async fn commit(self) -> RowsResult<Self, StoreIdentity> {
        let more = self.store.writes_more;
        let counted = match self.keys.send(&self.batch).await? {
            Outcome::Done(counted) => counted,
            Outcome::Short(_) => {
                let evidence = format!("change count of {}", self.keys.info().label);
                // A compared row with an equal version is taken for the same write. Where versions
                // count per node, as on ZooKeeper, a write after the restore may have an equal one.
                // Rows that were read but not compared may be lost.
                let compared = self.batch.expected.keys().filter_map(|key| self.read.get(key));
                let compared = compared.chain(&self.head.store).chain(&self.head.namespace);
                let kept = compared.map(|entry| entry.written).max().unwrap_or(0);
                let (seen, found) = (self.identity.writes, kept.saturating_add(more));
                return Err(Failure::from(Error::store_rolled_back(evidence, seen, found)));
            }
            Outcome::RaceLost => return Err(Failure::RaceLost),
        };
        if self.keys.may_cache_rows() {
            self.row_cache.keep(&self.head, self.batch, counted, K::version_after);
        }
        Ok(StoreIdentity { id: self.store.id, writes: counted.saturating_add(more) })
    }

    /// Ends a step that only read; with write access, checks that its rows are unchanged.
    async fn unchanged(mut self) -> RowsResult<Self, ()> {
        if self.access == Access::Read {
            return self.roll_back().await;
        }
        let expected = std::mem::take(&mut self.batch.expected);
        self.stands(expected).await
    }

    /// Ends a step that changes nothing. Rows from several requests count only if all of them
    /// existed at one moment.
    async fn roll_back(mut self) -> RowsResult<Self, ()> {
        if self.access != Access::Read || self.reads <= 1 || K::SNAPSHOT {
            return Ok(());
        }
        let mut expected = std::mem::take(&mut self.batch.expected);
        if self.folders.is_empty() && self.reads == 2 {
            // One row: it was valid when read, if store and namespace are still the same.
            expected.retain(|key, _| [name::STORE, name::NAMESPACE].contains(&key.as_str()));
        }
        self.stands(expected).await
    }
}

/// Comparisons of a batch other than slots. A claim compares store, namespace, member, pool, starts
/// and [`name::WRITES`], a walk store, namespace and five notes; etcd adds one for the store's
/// identity and one for the last write.
const SPARE: usize = 9;
