//! Texts of a namespace as a whole, and of the store.

use snowmint_coord::verbs::STARTS;

use super::result::SqlResult;
use super::session::Session;
use super::value::Value;
use super::{Table, Tx};

const NOTES: Table =
    Table { name: "snowmint_note", keys: &["name"], columns: &["text"], counted: false };

impl<S: Session> Tx<S> {
    /// Returns the namespace of a note. The history belongs to all namespaces: they share the
    /// store's row.
    fn namespace_of(&self, note: &str) -> &str {
        if note == STARTS { "" } else { &self.namespace }
    }

    pub(super) async fn read_note(&mut self, name: &str) -> SqlResult<Option<(String, u64)>> {
        let query = "SELECT text FROM snowmint_note WHERE namespace = ? AND name = ?";
        let values = vec![Value::text(self.namespace_of(name)), Value::text(name)];
        let Some(mut row) = self.fetch_one(query, values).await? else { return Ok(None) };
        // 0, because each start records its own write count.
        Ok(Some((row.text()?, 0)))
    }

    pub(super) async fn write_note(&mut self, name: &str, text: String) -> SqlResult<()> {
        let namespace = self.namespace_of(name).to_owned();
        self.put_note_in(&namespace, name, text).await
    }

    async fn put_note_in(&mut self, namespace: &str, name: &str, text: String) -> SqlResult<()> {
        let statement = NOTES.upsert(S::UPSERT, 1);
        let values = vec![Value::text(namespace), Value::text(name), Value::text(text)];
        self.run(statement, values).await?;
        Ok(())
    }

    pub(super) async fn delete_note(&mut self, name: &str) -> SqlResult<()> {
        let values = vec![Value::text(self.namespace_of(name)), Value::text(name)];
        let statement = "DELETE FROM snowmint_note WHERE namespace = ? AND name = ?";
        self.run(statement, values).await?;
        Ok(())
    }

    pub(super) async fn write_note_everywhere(
        &mut self,
        name: &str,
        text: String,
    ) -> SqlResult<()> {
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

    pub(super) async fn other_namespaces_with_note(
        &mut self,
        name: &str,
        max: usize,
    ) -> SqlResult<Vec<String>> {
        let query = format!(
            "SELECT namespace FROM snowmint_note WHERE name = ? AND namespace <> ?
             ORDER BY namespace LIMIT {max}"
        );
        let values = vec![Value::text(name), self.named()];
        let rows = self.fetch(query, values).await?;
        rows.into_iter().map(|mut row| row.text()).collect()
    }
}
