//! The rows of a namespace in SQL.

use async_trait::async_trait;
use snowmint_coord::member::MemberRow;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::verbs::{Failure, NamespaceRow, Rows};
use snowmint_coord::{Definition, Error, Incarnation, Pool, SlotRow, StoreIdentity};
use snowmint_core::UnixMillis;

use super::result::{SqlResult, damaged};
use super::session::Session;
use super::value::Value;
use super::{Table, Tx, counted_changes};

const NAMESPACES: Table = Table {
    name: "snowmint_namespace",
    keys: &[],
    columns: &["catalog_version", "mark", "term", "lead_until"],
    counted: true,
};

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

    async fn members(&mut self) -> SqlResult<Vec<MemberRow>> {
        self.read_members().await
    }

    async fn member(&mut self, member: Incarnation) -> SqlResult<Option<MemberRow>> {
        self.read_member(member).await
    }

    async fn put_member(&mut self, row: &MemberRow) -> SqlResult<()> {
        self.write_member(row).await
    }

    async fn remove_member(&mut self, member: Incarnation) -> SqlResult<bool> {
        self.delete_member(member).await
    }

    async fn pool(&mut self, name: &str) -> SqlResult<Option<(Pool, u64)>> {
        self.read_pool(name).await
    }

    async fn put_pool(&mut self, pool: &Pool, next: u64) -> SqlResult<()> {
        self.write_pool(pool, next).await
    }

    async fn slot(&mut self, pool: &str, slot: u64) -> SqlResult<Option<SlotRow>> {
        self.read_slot(pool, slot).await
    }

    async fn named_slots(
        &mut self,
        pool: &str,
        slots: &[u64],
    ) -> SqlResult<Vec<(u64, Option<SlotRow>)>> {
        self.read_named_slots(pool, slots).await
    }

    async fn slots(&mut self, pool: &str) -> SqlResult<Vec<SlotRow>> {
        self.read_slots(pool).await
    }

    async fn all_slots(&mut self) -> SqlResult<Vec<(String, SlotRow)>> {
        self.read_all_slots().await
    }

    async fn held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> SqlResult<Vec<(String, SlotRow)>> {
        self.read_held_by(member, max).await
    }

    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> SqlResult<()> {
        self.write_slots(pool, rows).await
    }

    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> SqlResult<()> {
        self.delete_slots(pool, slots).await
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
        self.read_definition(name).await
    }

    async fn definitions(&mut self) -> SqlResult<Vec<Definition>> {
        self.read_definitions().await
    }

    async fn put_definition(&mut self, definition: &Definition) -> SqlResult<()> {
        self.write_definition(definition).await
    }

    async fn note(&mut self, name: &str) -> SqlResult<Option<(String, u64)>> {
        self.read_note(name).await
    }

    async fn put_note(&mut self, name: &str, text: String) -> SqlResult<()> {
        self.write_note(name, text).await
    }

    async fn remove_note(&mut self, name: &str) -> SqlResult<()> {
        self.delete_note(name).await
    }

    async fn put_note_everywhere(&mut self, name: &str, text: String) -> SqlResult<()> {
        self.write_note_everywhere(name, text).await
    }

    async fn other_namespaces_with(&mut self, name: &str, max: usize) -> SqlResult<Vec<String>> {
        self.other_namespaces_with_note(name, max).await
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
        let counted = self.fetch_one(counted_changes(S::INTEGER), Vec::new()).await?;
        let counted = counted.ok_or_else(|| damaged("write count is missing"))?.changes()?;
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
