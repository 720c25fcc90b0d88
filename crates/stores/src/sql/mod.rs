//! The tables of all SQL stores: the meaning of their rows, and conversion of rows to values.
//!
//! | table | one row is |
//! |---|---|
//! | `snowmint_schema` | the version of these tables |
//! | `snowmint_store` | this store: its `id`, its write count `writes`, on servers also its `server` |
//! | `snowmint_namespace` | a namespace: `catalog_version`, `mark`, `term` and `lead_until` |
//! | `snowmint_member` | a member that has joined, and its last renewal |
//! | `snowmint_pool` | a pool's shape; without reuse, also the `next` number that was never assigned |
//! | `snowmint_slot` | a claimed slot: everything below `mark` is promised |
//! | `snowmint_source` | a source's definition; everything below its `mark` is handed out; deleted ones stay |
//! | `snowmint_note` | a text: `starts`, or of a namespace `doubt`, `journals` or `known` |
//!
//! The `mark` and `term` of a namespace are those of slots without a row: zero until an operator
//! moves the namespace forward. Claims may lead the clock up to its `lead_until`. Only the `term`
//! of a slot may move its mark; its `holder` is a member, or NULL once released. The note `starts`
//! belongs to the store and has no namespace. The notes of a namespace are the reason for its
//! `doubt`, the `journals` that have joined, and what their reports made `known`.
//!
//! Names are unique in a namespace; times are Unix milliseconds by the store's reference clock. The
//! rows with marks count their `changes`, and the store's row has the total (`row_changes`): the
//! sums differ if rows of different age are mixed.

pub(crate) mod extending;
pub(crate) mod making;
mod members;
#[cfg(feature = "sql-server")]
pub(crate) mod network;
#[cfg(feature = "sql-server")]
pub(crate) mod own;
pub(crate) mod parameters;
mod result;
mod rows;
pub(crate) mod server;
mod session;
mod slots;
mod sources;
mod value;

use snowmint_coord::verbs::{Access, Failure};
use snowmint_coord::{Error, StoreIdentity};
use snowmint_core::UnixMillis;

use result::SqlResult;
use server::{Failover, ServerIdentity};
pub(crate) use session::{NumberLookup, Session, Upsert};
pub(crate) use value::{Value, Values, bound, read};

/// One atomic step on the rows of one namespace.
pub(crate) struct Tx<S> {
    pub(crate) session: S,
    namespace: String,
    /// Identity of the store when the step began.
    identity: StoreIdentity,
    clock: Option<UnixMillis>,
    /// Changes to rows with marks in this step.
    row_changes: i64,
    /// Server to store as the one with the newest marks.
    server: Option<String>,
    /// Error that a write would get because another server has the marks; only in a step that
    /// reads, or that an operator takes.
    misplaced: Option<Error>,
    /// Error that a write gets because some rows are older than others.
    mixed: Option<Error>,
}

/// Columns that the first query of a step reads from the store's row: always its identity and its
/// write count, then in this order the following.
#[derive(Debug)]
pub(crate) struct OpeningQuery<'a> {
    pub(crate) query: &'a str,
    pub(crate) access: Access,
    /// Whether the store's time is read, in Unix milliseconds.
    pub(crate) clock: bool,
    /// Rule and label for comparing the stored server with the present one; none if they are not
    /// read.
    pub(crate) server: Option<(Failover, &'a str)>,
}

/// A table, for writing whole rows.
struct Table {
    name: &'static str,
    keys: &'static [&'static str],
    columns: &'static [&'static str],
    /// Whether its rows have marks, and so count their changes.
    counted: bool,
}

/// Rows in one statement: far below the limit of any database, with a dozen values each.
const ROWS_AT_ONCE: usize = 500;

impl<S: Session> Tx<S> {
    /// Returns the step in `session`, which has just begun.
    pub(crate) async fn begin(
        mut session: S,
        namespace: &str,
        opening: OpeningQuery<'_>,
    ) -> SqlResult<Self> {
        let rows = session.fetch(opening.query.to_owned(), Vec::new()).await;
        let mut rows = rows.map_err(Failure::Backend)?;
        let row = rows.pop().ok_or_else(making::row_lost)?;
        let mut row = Values::of(row);
        let identity = StoreIdentity { id: row.text()?, writes: row.number()? };
        let clock = if opening.clock { Some(UnixMillis::new(row.number()?)) } else { None };
        let (mut server, mut misplaced) = (None, None);
        if let Some((failover, label)) = opening.server {
            let found = ServerIdentity { kept: row.maybe_text()?, found: row.maybe_text()? };
            if opening.access != Access::Write {
                misplaced = found.clone().check(Access::Write, failover, label).err();
            }
            if opening.access != Access::Read {
                server = found.check(opening.access, failover, label)?;
            }
        }
        let namespace = namespace.into();
        Ok(Self {
            session,
            namespace,
            identity,
            clock,
            row_changes: 0,
            server,
            misplaced,
            mixed: None,
        })
    }

    async fn run(
        &mut self,
        statement: impl Into<String> + Send,
        values: Vec<Value>,
    ) -> SqlResult<u64> {
        self.session.run(statement.into(), values).await.map_err(Failure::Backend)
    }

    async fn fetch(
        &mut self,
        query: impl Into<String> + Send,
        values: Vec<Value>,
    ) -> SqlResult<Vec<Values>> {
        let rows = self.session.fetch(query.into(), values).await.map_err(Failure::Backend)?;
        Ok(rows.into_iter().map(Values::of).collect())
    }

    async fn fetch_one(
        &mut self,
        query: impl Into<String> + Send,
        values: Vec<Value>,
    ) -> SqlResult<Option<Values>> {
        Ok(self.fetch(query, values).await?.pop())
    }

    /// Writes whole rows: the namespace, then keys and columns in the table's order.
    async fn upsert(&mut self, table: &Table, rows: Vec<Vec<Value>>) -> SqlResult<()> {
        if table.counted {
            self.row_changes =
                self.row_changes.saturating_add(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        }
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk: Vec<Vec<Value>> = rows.by_ref().take(ROWS_AT_ONCE).collect();
            let statement = table.upsert(S::UPSERT, chunk.len());
            let namespace = &self.namespace;
            let values = chunk
                .into_iter()
                .flat_map(|row| std::iter::once(Value::text(namespace)).chain(row))
                .collect();
            self.run(statement, values).await?;
        }
        Ok(())
    }

    fn named(&self) -> Value {
        Value::text(&self.namespace)
    }
}

impl Table {
    fn upsert(&self, upsert: Upsert, rows: usize) -> String {
        let Self { name, keys, columns, counted } = self;
        let changes = if *counted { ", changes" } else { "" };
        let one = if *counted { ", 1" } else { "" };
        let marks = vec!["?"; 1 + keys.len() + columns.len()].join(", ");
        let values = vec![format!("({marks}{one})"); rows].join(", ");
        let names = [*keys, *columns].concat().join(", ");
        let keys = keys.join(", ");
        let update = |column: &&str| match upsert {
            Upsert::OnConflict => format!("{column} = excluded.{column}"),
            Upsert::OnDuplicateKey => format!("{column} = VALUES({column})"),
        };
        let mut updates: Vec<String> = columns.iter().map(update).collect();
        if *counted {
            updates.push(format!("changes = {name}.changes + 1"));
        }
        let updates = updates.join(", ");
        let keys = if keys.is_empty() { String::new() } else { format!(", {keys}") };
        let conflict = match upsert {
            Upsert::OnConflict => format!("ON CONFLICT (namespace{keys}) DO UPDATE SET"),
            Upsert::OnDuplicateKey => "ON DUPLICATE KEY UPDATE".into(),
        };
        format!(
            "INSERT INTO {name} (namespace, {names}{changes}) VALUES {values} {conflict} {updates}"
        )
    }
}

/// Returns the query for the total of the changes counted by rows with marks, as the type
/// `integer`.
pub(crate) fn counted_changes(integer: &str) -> String {
    let sum = |table: &str| format!("(SELECT COALESCE(SUM(changes), 0) FROM snowmint_{table})");
    let sums = ["namespace", "pool", "slot", "source"].map(sum).join(" + ");
    format!("SELECT CAST({sums} AS {integer})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upsert_has_a_statement_for_each_dialect() {
        let table = Table { name: "t", keys: &["k"], columns: &["a", "b"], counted: true };
        assert_eq!(
            table.upsert(Upsert::OnConflict, 2),
            "INSERT INTO t (namespace, k, a, b, changes) VALUES (?, ?, ?, ?, 1), (?, ?, ?, ?, 1) \
             ON CONFLICT (namespace, k) DO UPDATE SET a = excluded.a, b = excluded.b, \
             changes = t.changes + 1"
        );
        let table = Table { name: "t", keys: &[], columns: &["a"], counted: false };
        assert_eq!(
            table.upsert(Upsert::OnDuplicateKey, 1),
            "INSERT INTO t (namespace, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a)"
        );
    }
}
