//! The rows of a namespace under keys.

use async_trait::async_trait;
use snowmint_coord::member::MemberRow;
use snowmint_coord::verbs::{NamespaceRow, Rows, RowsResult};
use snowmint_coord::{Definition, Error, Incarnation, Pool, SlotRow, StoreIdentity};
use snowmint_core::UnixMillis;

use super::keys::Keys;
use super::name;
use super::record::Note;
use super::step::Step;

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
        Self::check_server(self)
    }

    async fn members(&mut self) -> RowsResult<Self, Vec<MemberRow>> {
        let mut rows: Vec<MemberRow> = self.list(name::MEMBERS).await?;
        if let Some(sessions) = self.sessions().await? {
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
        Self::put_namespace(self, row).await
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
        self.get_note(name).await
    }

    async fn put_note(&mut self, name: &str, text: String) -> RowsResult<Self, ()> {
        self.put(name.to_owned(), &Note(text)).await
    }

    async fn remove_note(&mut self, name: &str) -> RowsResult<Self, ()> {
        self.remove(name.to_owned()).await.map(|_| ())
    }

    fn begins_alone(&mut self) -> Option<u64> {
        Self::begins_alone(self)
    }

    fn name(&mut self, id: String) -> RowsResult<Self, ()> {
        Self::name(self, id)
    }

    async fn accept(&mut self, identity: StoreIdentity) -> RowsResult<Self, ()> {
        Self::accept(self, identity)
    }

    async fn commit(self) -> RowsResult<Self, StoreIdentity> {
        Self::commit(self).await
    }

    async fn unchanged(self) -> RowsResult<Self, ()> {
        Self::unchanged(self).await
    }

    async fn roll_back(self) -> RowsResult<Self, ()> {
        Self::roll_back(self).await
    }
}

/// Comparisons of a batch other than slots. A claim compares store, namespace, member, pool, starts
/// and [`name::WRITES`], a walk store, namespace and five notes; etcd adds one for the store's
/// identity and one for the last write.
const SPARE: usize = 9;
