//! The rows of a namespace in SQL.

use std::collections::BTreeMap;

use async_trait::async_trait;
use snowmint_coord::member::MemberRow;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::verbs::{Failure, NamespaceRow, Rows, STARTS};
use snowmint_coord::{Definition, Error, Incarnation, Pool, SlotRow, StoreIdentity};
use snowmint_core::UnixMillis;

use super::making::row_lost;
use super::result::{SqlResult, damaged};
use super::session::Session;
use super::value::Value;
use super::{Table, Tx, counted_changes, members, slots, sources};

const NAMESPACES: Table = Table {
    name: "snowmint_namespace",
    keys: &[],
    columns: &["catalog_version", "mark", "term", "lead_until"],
    counted: true,
};

const NOTES: Table =
    Table { name: "snowmint_note", keys: &["name"], columns: &["text"], counted: false };

impl<S: Session> Tx<S> {
    /// Returns the namespace of a note. The history belongs to all namespaces: they share the
    /// store's row.
    fn namespace_of(&self, note: &str) -> &str {
        if note == STARTS { "" } else { &self.namespace }
    }

    async fn counted_changes(&mut self) -> SqlResult<i64> {
        let counted = self.fetch_one(counted_changes(S::INTEGER), Vec::new()).await?;
        counted.ok_or_else(|| damaged("write count is missing"))?.changes()
    }

    /// Compares the total of changes with the rows. `error` is that of a write if they differ, made
    /// from both.
    pub(crate) async fn check_changes(mut self, error: fn((u64, u64)) -> Error) -> SqlResult<Self> {
        let query = "SELECT row_changes FROM snowmint_store";
        let stored = self.fetch_one(query, Vec::new()).await?;
        let stored = stored.ok_or_else(row_lost)?.changes()?;
        let counted = self.counted_changes().await?;
        self.mixed =
            (stored != counted).then(|| error((stored.unsigned_abs(), counted.unsigned_abs())));
        Ok(self)
    }

    async fn put_note_in(&mut self, namespace: &str, name: &str, text: String) -> SqlResult<()> {
        let statement = NOTES.upsert(S::UPSERT, 1);
        let values = vec![Value::text(namespace), Value::text(name), Value::text(text)];
        self.run(statement, values).await?;
        Ok(())
    }
}

#[async_trait]
impl<S: Session> Rows for Tx<S> {
    type Error = sqlx::Error;

    fn identity(&self) -> &StoreIdentity {
        &self.identity
    }

    fn clock(&self) -> Option<UnixMillis> {
        self.clock
    }

    fn check_server(&self) -> Result<(), Error> {
        self.misplaced.clone().map_or(Ok(()), Err)
    }

    fn check_rows(&self) -> Result<(), Error> {
        self.mixed.clone().map_or(Ok(()), Err)
    }

    async fn members(&mut self) -> SqlResult<Vec<MemberRow>> {
        let rows = self.fetch(members::SELECT, vec![self.named()]).await?;
        rows.into_iter().map(members::row).collect()
    }

    async fn member(&mut self, member: Incarnation) -> SqlResult<Option<MemberRow>> {
        let values = vec![self.named(), Value::text(member.to_string())];
        let row =
            self.fetch_one(format!("{} AND incarnation = ?", members::SELECT), values).await?;
        row.map(members::row).transpose()
    }

    async fn put_member(&mut self, row: &MemberRow) -> SqlResult<()> {
        self.upsert(&members::TABLE, vec![members::values(row)]).await
    }

    async fn remove_member(&mut self, member: Incarnation) -> SqlResult<bool> {
        let statement = "DELETE FROM snowmint_member WHERE namespace = ? AND incarnation = ?";
        let values = vec![self.named(), Value::text(member.to_string())];
        Ok(self.run(statement, values).await? > 0)
    }

    async fn pool(&mut self, name: &str) -> SqlResult<Option<(Pool, u64)>> {
        let query = "SELECT slots, group_slots, reuse, next FROM snowmint_pool
             WHERE namespace = ? AND pool = ?";
        let row = self.fetch_one(query, vec![self.named(), Value::text(name)]).await?;
        row.map(|row| slots::pool(name, row)).transpose()
    }

    async fn put_pool(&mut self, pool: &Pool, next: u64) -> SqlResult<()> {
        self.upsert(&slots::POOLS, vec![slots::pool_values(pool, next)?]).await
    }

    async fn slot(&mut self, pool: &str, slot: u64) -> SqlResult<Option<SlotRow>> {
        let values = vec![self.named(), Value::text(pool), Value::exact("slot", slot)?];
        let row =
            self.fetch_one(format!("{} AND pool = ? AND slot = ?", slots::SELECT), values).await?;
        Ok(row.map(slots::row).transpose()?.map(|(_, row)| row))
    }

    async fn named_slots(
        &mut self,
        pool: &str,
        slots: &[u64],
    ) -> SqlResult<Vec<(u64, Option<SlotRow>)>> {
        let mut found: BTreeMap<u64, SlotRow> = BTreeMap::new();
        for slots in slots.chunks(slots::NAMED_MAX) {
            let (query, values) = self.lookup(pool, slots)?;
            for row in self.fetch(query, values).await? {
                let (_, row) = slots::row(row)?;
                found.insert(row.slot, row);
            }
        }
        Ok(slots.iter().map(|slot| (*slot, found.remove(slot))).collect())
    }

    async fn slots(&mut self, pool: &str) -> SqlResult<Vec<SlotRow>> {
        let query = format!("{} AND pool = ? ORDER BY slot", slots::SELECT);
        let rows = self.fetch(query, vec![self.named(), Value::text(pool)]).await?;
        rows.into_iter().map(|row| slots::row(row).map(|(_, row)| row)).collect()
    }

    async fn all_slots(&mut self) -> SqlResult<Vec<(String, SlotRow)>> {
        let rows = self.fetch(slots::SELECT, vec![self.named()]).await?;
        rows.into_iter().map(slots::row).collect()
    }

    async fn held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> SqlResult<Vec<(String, SlotRow)>> {
        let values = vec![self.named(), Value::text(member.to_string())];
        let rows =
            self.fetch(format!("{} AND holder = ? LIMIT {max}", slots::SELECT), values).await?;
        rows.into_iter().map(slots::row).collect()
    }

    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> SqlResult<()> {
        let rows = rows.iter().map(|row| slots::values(pool, row)).collect::<SqlResult<_>>()?;
        self.upsert(&slots::SLOTS, rows).await
    }

    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> SqlResult<()> {
        const WHERE: &str = "FROM snowmint_slot WHERE namespace = ? AND pool = ? AND slot = ?";
        for slot in slots {
            let values = vec![self.named(), Value::text(pool), Value::exact("slot", *slot)?];
            let counted = self.fetch_one(format!("SELECT changes {WHERE}"), values.clone()).await?;
            if let Some(mut counted) = counted {
                // The store's total must not include the changes of a deleted row.
                self.row_changes = self.row_changes.saturating_sub(counted.changes()?);
                self.run(format!("DELETE {WHERE}"), values).await?;
            }
        }
        Ok(())
    }

    async fn namespace(&mut self) -> SqlResult<NamespaceRow> {
        let query = "SELECT catalog_version, mark, term, lead_until FROM snowmint_namespace
             WHERE namespace = ?";
        let Some(mut row) = self.fetch_one(query, vec![self.named()]).await? else {
            return Ok(NamespaceRow::default());
        };
        let catalog_version = row.number()?;
        Ok(NamespaceRow {
            catalog_version,
            ground: SlotDefaults {
                mark: row.mark()?,
                term: row.term()?,
                accepted_lead: row.mark()?,
            },
        })
    }

    async fn put_namespace(&mut self, row: NamespaceRow) -> SqlResult<()> {
        let values = vec![
            Value::exact("version", row.catalog_version)?,
            Value::exact("mark", row.ground.mark.get())?,
            Value::exact("term", row.ground.term.get())?,
            Value::exact("mark", row.ground.accepted_lead.get())?,
        ];
        self.upsert(&NAMESPACES, vec![values]).await
    }

    async fn definition(&mut self, name: &str) -> SqlResult<Option<Definition>> {
        let query = format!("{} AND name = ?", sources::SELECT);
        let row = self.fetch_one(query, vec![self.named(), Value::text(name)]).await?;
        row.map(sources::row).transpose()
    }

    async fn definitions(&mut self) -> SqlResult<Vec<Definition>> {
        let rows = self.fetch(sources::SELECT, vec![self.named()]).await?;
        rows.into_iter().map(sources::row).collect()
    }

    async fn put_definition(&mut self, definition: &Definition) -> SqlResult<()> {
        self.upsert(&sources::TABLE, vec![sources::values(definition)?]).await
    }

    async fn note(&mut self, name: &str) -> SqlResult<Option<(String, u64)>> {
        let query = "SELECT text FROM snowmint_note WHERE namespace = ? AND name = ?";
        let values = vec![Value::text(self.namespace_of(name)), Value::text(name)];
        let Some(mut row) = self.fetch_one(query, values).await? else { return Ok(None) };
        // 0, because each start records its own write count.
        Ok(Some((row.text()?, 0)))
    }

    async fn put_note(&mut self, name: &str, text: String) -> SqlResult<()> {
        let namespace = self.namespace_of(name).to_owned();
        self.put_note_in(&namespace, name, text).await
    }

    async fn remove_note(&mut self, name: &str) -> SqlResult<()> {
        let values = vec![Value::text(self.namespace_of(name)), Value::text(name)];
        let statement = "DELETE FROM snowmint_note WHERE namespace = ? AND name = ?";
        self.run(statement, values).await?;
        Ok(())
    }

    async fn put_note_everywhere(&mut self, name: &str, text: String) -> SqlResult<()> {
        // Any of its rows makes a namespace. The empty one has the history of all.
        let query = "SELECT namespace FROM snowmint_namespace
            UNION SELECT namespace FROM snowmint_source
            UNION SELECT namespace FROM snowmint_member
            UNION SELECT namespace FROM snowmint_pool
            UNION SELECT namespace FROM snowmint_slot
            UNION SELECT namespace FROM snowmint_note WHERE namespace <> ''";
        let mut namespaces = vec![self.namespace.clone()];
        for mut row in self.fetch(query, Vec::new()).await? {
            namespaces.push(row.text()?);
        }
        for namespace in namespaces {
            self.put_note_in(&namespace, name, text.clone()).await?;
        }
        Ok(())
    }

    async fn other_namespaces_with(&mut self, name: &str, max: usize) -> SqlResult<Vec<String>> {
        let query = format!(
            "SELECT namespace FROM snowmint_note WHERE name = ? AND namespace <> ?
             ORDER BY namespace LIMIT {max}"
        );
        let values = vec![Value::text(name), self.named()];
        let rows = self.fetch(query, values).await?;
        rows.into_iter().map(|mut row| row.text()).collect()
    }

    /// Returns the count after this step: a writing step has locked the store's row.
    fn begins_alone(&mut self) -> Option<u64> {
        Some(self.identity.writes.saturating_add(1))
    }

    fn name(&mut self, id: String) -> SqlResult<()> {
        self.identity.id = id;
        Ok(())
    }

    async fn accept(&mut self, identity: StoreIdentity) -> SqlResult<()> {
        let counted = self.counted_changes().await?;
        self.run("UPDATE snowmint_store SET row_changes = ?", vec![Value::Integer(counted)])
            .await?;
        self.row_changes = 0;
        self.identity = identity;
        Ok(())
    }

    async fn commit(mut self) -> SqlResult<StoreIdentity> {
        let writes = self.identity.writes.saturating_add(1);
        let identity = StoreIdentity { writes, ..self.identity.clone() };
        let mut values = vec![
            Value::text(&identity.id),
            Value::exact("writes", writes)?,
            Value::Integer(self.row_changes),
        ];
        let mut update =
            "UPDATE snowmint_store SET id = ?, writes = ?, row_changes = row_changes + ?"
                .to_owned();
        if let Some(server) = self.server.take() {
            update.push_str(", server = ?");
            values.push(Value::text(server));
        }
        self.run(update, values).await?;
        self.session.commit().await.map_err(Failure::Backend)?;
        Ok(identity)
    }

    async fn roll_back(self) -> SqlResult<()> {
        self.session.roll_back().await.map_err(Failure::Backend)
    }
}
