//! One atomic step on rows in memory: its writes take effect at once, and are undone unless the
//! step commits.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem::{replace, take};
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::world::{Shared, Space, World};
use crate::error::{Error, Result};
use crate::ids::Incarnation;
use crate::model::catalog::Definition;
use crate::model::history::StoreIdentity;
use crate::model::lease::SlotRow;
use crate::model::member::MemberRow;
use crate::model::pool::Pool;
use crate::store::verbs::{NamespaceRow, Rows, RowsResult, STARTS};

/// A function that undoes a write.
type Undo = Box<dyn FnOnce(&mut MemoryRows) + Send>;

/// A step, which owns the whole world while it lasts.
pub struct MemoryRows {
    shared: Arc<Shared>,
    /// All namespaces except this one.
    world: World,
    namespace: String,
    space: Space,
    clock: Option<UnixMillis>,
    /// Undo functions of the writes so far, in their order.
    undo: Vec<Undo>,
}

impl MemoryRows {
    pub(super) fn begin(shared: &Arc<Shared>, namespace: &str, clock: Option<UnixMillis>) -> Self {
        let mut world = shared.take();
        let (namespace, space) = match world.spaces.remove_entry(namespace) {
            Some(found) => found,
            None => (namespace.to_owned(), Space::default()),
        };
        Self { shared: Arc::clone(shared), world, namespace, space, clock, undo: Vec::new() }
    }

    fn undo(&mut self, undo: impl FnOnce(&mut Self) + Send + 'static) {
        self.undo.push(Box::new(undo));
    }

    fn write_member(&mut self, member: Incarnation, row: Option<MemberRow>) -> bool {
        let before = set(&mut self.space.members, member, row);
        let was_there = before.is_some();
        self.undo(move |rows| drop(set(&mut rows.space.members, member, before)));
        was_there
    }

    fn write_slots(&mut self, pool: &str, changes: Vec<(u64, Option<SlotRow>)>) {
        let pool = pool.to_owned();
        let rows = self.space.slots.entry(pool.clone()).or_default();
        let before: Vec<_> =
            changes.into_iter().map(|(slot, row)| (slot, set(rows, slot, row))).collect();
        self.undo(move |rows| {
            let slots = &mut rows.space.slots;
            let rows = slots.entry(pool.clone()).or_default();
            for (slot, row) in before.into_iter().rev() {
                set(rows, slot, row);
            }
            if rows.is_empty() {
                slots.remove(&pool);
            }
        });
    }

    /// Returns the key of a note. All namespaces share one history.
    fn key(&self, note: &str) -> (String, String) {
        let namespace = if note == STARTS { "" } else { &self.namespace };
        (namespace.to_owned(), note.to_owned())
    }

    fn write_note(&mut self, key: (String, String), text: Option<String>) {
        let before = set(&mut self.world.notes, key.clone(), text);
        self.undo(move |rows| drop(set(&mut rows.world.notes, key, before)));
    }

    fn write_identity(&mut self, identity: StoreIdentity) {
        let before = replace(&mut self.world.identity, identity);
        self.undo(move |rows| rows.world.identity = before);
    }

    fn slots_where(&self, is_one: impl Fn(&SlotRow) -> bool) -> Vec<(String, SlotRow)> {
        let rows = self
            .space
            .slots
            .iter()
            .flat_map(|(pool, rows)| rows.values().map(move |row| (pool, row)));
        rows.filter(|(_, row)| is_one(row)).map(|(pool, row)| (pool.clone(), row.clone())).collect()
    }
}

/// Writes a row, or removes it. Returns the previous row.
fn set<K: Ord, V>(rows: &mut BTreeMap<K, V>, key: K, row: Option<V>) -> Option<V> {
    match row {
        Some(row) => rows.insert(key, row),
        None => rows.remove(&key),
    }
}

impl Drop for MemoryRows {
    fn drop(&mut self) {
        for undo in take(&mut self.undo).into_iter().rev() {
            undo(self);
        }
        let nothing = World::new(StoreIdentity { id: String::new(), writes: 0 });
        let mut world = replace(&mut self.world, nothing);
        world.spaces.insert(take(&mut self.namespace), take(&mut self.space));
        self.shared.put(world);
    }
}

crate::opaque_debug!(MemoryRows: namespace);

#[async_trait]
impl Rows for MemoryRows {
    type Error = Infallible;

    fn identity(&self) -> &StoreIdentity {
        &self.world.identity
    }

    fn clock(&self) -> Option<UnixMillis> {
        self.clock
    }

    fn check_server(&self) -> Result<()> {
        if !self.world.is_replica {
            return Ok(());
        }
        Err(Error::store_mismatch(
            "store is a replica, but the memory store belongs to the first server; accept it (snowmint \
             worker recover --other-server), or move it forward (snowmint worker fast-forward)",
        ))
    }

    async fn members(&mut self) -> RowsResult<Self, Vec<MemberRow>> {
        Ok(self.space.members.values().cloned().collect())
    }

    async fn member(&mut self, member: Incarnation) -> RowsResult<Self, Option<MemberRow>> {
        Ok(self.space.members.get(&member).cloned())
    }

    async fn put_member(&mut self, row: &MemberRow) -> RowsResult<Self, ()> {
        self.write_member(row.member.incarnation, Some(row.clone()));
        Ok(())
    }

    async fn remove_member(&mut self, member: Incarnation) -> RowsResult<Self, bool> {
        Ok(self.write_member(member, None))
    }

    async fn pool(&mut self, name: &str) -> RowsResult<Self, Option<(Pool, u64)>> {
        Ok(self.space.pools.get(name).cloned())
    }

    async fn put_pool(&mut self, pool: &Pool, next: u64) -> RowsResult<Self, ()> {
        let name = pool.name.clone();
        let before = self.space.pools.insert(name.clone(), (pool.clone(), next));
        self.undo(move |rows| drop(set(&mut rows.space.pools, name, before)));
        Ok(())
    }

    async fn slot(&mut self, pool: &str, slot: u64) -> RowsResult<Self, Option<SlotRow>> {
        Ok(self.space.slots.get(pool).and_then(|rows| rows.get(&slot)).cloned())
    }

    async fn slots(&mut self, pool: &str) -> RowsResult<Self, Vec<SlotRow>> {
        let rows = self.space.slots.get(pool).into_iter().flat_map(BTreeMap::values);
        Ok(rows.cloned().collect())
    }

    async fn all_slots(&mut self) -> RowsResult<Self, Vec<(String, SlotRow)>> {
        Ok(self.slots_where(|_| true))
    }

    async fn held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> RowsResult<Self, Vec<(String, SlotRow)>> {
        let mut held = self.slots_where(|row| row.holder == Some(member));
        held.truncate(max);
        Ok(held)
    }

    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> RowsResult<Self, ()> {
        self.write_slots(pool, rows.iter().map(|row| (row.slot, Some(row.clone()))).collect());
        Ok(())
    }

    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> RowsResult<Self, ()> {
        self.write_slots(pool, slots.iter().map(|slot| (*slot, None)).collect());
        Ok(())
    }

    async fn namespace(&mut self) -> RowsResult<Self, NamespaceRow> {
        Ok(self.space.namespace)
    }

    async fn put_namespace(&mut self, row: NamespaceRow) -> RowsResult<Self, ()> {
        let before = replace(&mut self.space.namespace, row);
        self.undo(move |rows| rows.space.namespace = before);
        Ok(())
    }

    async fn definition(&mut self, name: &str) -> RowsResult<Self, Option<Definition>> {
        Ok(self.space.definitions.get(name).cloned())
    }

    async fn definitions(&mut self) -> RowsResult<Self, Vec<Definition>> {
        Ok(self.space.definitions.values().cloned().collect())
    }

    async fn put_definition(&mut self, definition: &Definition) -> RowsResult<Self, ()> {
        let name = definition.name.clone();
        let before = self.space.definitions.insert(name.clone(), definition.clone());
        self.undo(move |rows| drop(set(&mut rows.space.definitions, name, before)));
        Ok(())
    }

    async fn note(&mut self, name: &str) -> RowsResult<Self, Option<(String, u64)>> {
        // Each start records its own count.
        Ok(self.world.notes.get(&self.key(name)).map(|text| (text.clone(), 0)))
    }

    async fn put_note(&mut self, name: &str, text: String) -> RowsResult<Self, ()> {
        self.write_note(self.key(name), Some(text));
        Ok(())
    }

    async fn remove_note(&mut self, name: &str) -> RowsResult<Self, ()> {
        self.write_note(self.key(name), None);
        Ok(())
    }

    async fn put_note_everywhere(&mut self, name: &str, text: String) -> RowsResult<Self, ()> {
        // The history is under the namespace without a name.
        let noted = self.world.notes.keys().map(|(namespace, _)| namespace);
        let others =
            self.world.spaces.keys().chain(noted.filter(|namespace| !namespace.is_empty()));
        let all: BTreeSet<String> = others.chain([&self.namespace]).cloned().collect();
        for namespace in all {
            self.write_note((namespace, name.to_owned()), Some(text.clone()));
        }
        Ok(())
    }

    async fn other_namespaces_with(
        &mut self,
        name: &str,
        max: usize,
    ) -> RowsResult<Self, Vec<String>> {
        let is_other = |key: &&(String, String)| key.1 == name && key.0 != self.namespace;
        let others = self.world.notes.keys().filter(is_other);
        Ok(others.take(max).map(|(namespace, _)| namespace.clone()).collect())
    }

    fn begins_alone(&mut self) -> Option<u64> {
        Some(self.world.identity.writes.saturating_add(1))
    }

    fn name(&mut self, id: String) -> RowsResult<Self, ()> {
        let writes = self.world.identity.writes;
        self.write_identity(StoreIdentity { id, writes });
        Ok(())
    }

    async fn accept(&mut self, identity: StoreIdentity) -> RowsResult<Self, ()> {
        let before = replace(&mut self.world.is_replica, false);
        self.undo(move |rows| rows.world.is_replica = before);
        self.write_identity(identity);
        Ok(())
    }

    async fn commit(mut self) -> RowsResult<Self, StoreIdentity> {
        self.undo.clear();
        let identity = &mut self.world.identity;
        identity.writes = identity.writes.saturating_add(1);
        Ok(identity.clone())
    }

    async fn roll_back(self) -> RowsResult<Self, ()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Mark, Term};
    use crate::model::catalog::SourceState;
    use crate::model::member::{Member, Presence};
    use crate::model::pool::{Reuse, SlotDefaults};
    use crate::model::segment::SegmentRow;
    use crate::store::memory::MemoryStore;
    use crate::store::verbs::{Access, Backend as _};

    const NOW: UnixMillis = UnixMillis::new(1_000);

    fn member(number: u128) -> MemberRow {
        let member = Member {
            incarnation: Incarnation::new(number),
            owner: "one".into(),
            host: "here".into(),
            process: 1,
            address: String::new(),
        };
        MemberRow::new(member, Presence { sample: NOW, renewals: 0, ttl_ms: 1_000 }, NOW)
    }

    fn slot(slot: u64, mark: u64) -> SlotRow {
        SlotRow {
            slot,
            term: Term::ZERO,
            floor: Mark::ZERO,
            mark: Mark::new(mark),
            holder: None,
            owner: String::new(),
            claim_request: 0,
            extend_request: 0,
            held_since: NOW,
            given_up_at: NOW,
        }
    }

    fn definition(version: u64) -> Definition {
        let (name, text, state) = ("bills".to_owned(), "{}".to_owned(), SourceState::Enabled);
        let (spec, identity) = (text.clone(), text);
        Definition { name, spec, identity, version, state, segment: SegmentRow::NEW }
    }

    /// Makes one write of each kind.
    async fn write(rows: &mut MemoryRows, number: u64) {
        let pool = Pool { name: "p".into(), slots: 9, group: 1, reuse: Reuse::Recycle };
        rows.put_member(&member(number.into())).await.unwrap();
        rows.put_pool(&pool, number).await.unwrap();
        rows.put_slots("p", &[slot(1, number), slot(number, 5), slot(1, number + 1)])
            .await
            .unwrap();
        let namespace = NamespaceRow { catalog_version: number, ground: SlotDefaults::default() };
        rows.put_namespace(namespace).await.unwrap();
        rows.put_definition(&definition(number)).await.unwrap();
        rows.put_note("starts", number.to_string()).await.unwrap();
        rows.put_note_everywhere("doubt", number.to_string()).await.unwrap();
        rows.name(number.to_string()).unwrap();
    }

    #[tokio::test]
    async fn uncommitted_step_changes_nothing() {
        let store = MemoryStore::new("default").unwrap();
        let other = store.handle("other").unwrap();
        drop(other.backend().begin(Access::Read).await.unwrap());
        drop(store.backend().begin(Access::Read).await.unwrap());
        for number in [2, 3] {
            let before = store.backup();
            let mut rows = store.backend().begin(Access::Write).await.unwrap();
            write(&mut rows, number).await;
            rows.remove_member(Incarnation::new(2)).await.unwrap();
            rows.remove_slots("p", &[1, 2, 7]).await.unwrap();
            rows.remove_note("doubt").await.unwrap();
            rows.accept(StoreIdentity { id: "else".into(), writes: 77 }).await.unwrap();
            drop(rows);
            assert!(store.backup() == before, "{number}: dropped");
            let mut rows = store.backend().begin(Access::Write).await.unwrap();
            write(&mut rows, number).await;
            rows.roll_back().await.unwrap();
            assert!(store.backup() == before, "{number}: rolled back");
            let mut rows = store.backend().begin(Access::Write).await.unwrap();
            write(&mut rows, number).await;
            let identity = rows.commit().await.unwrap();
            assert_eq!(identity, StoreIdentity { id: number.to_string(), writes: number - 1 });
            assert_eq!(store.row("p", 1).unwrap().mark.get(), number + 1);
            assert!(store.backup() != before, "{number}: ended well");
        }
    }
}
