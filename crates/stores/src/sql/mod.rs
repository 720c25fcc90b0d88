//! The tables of all SQL stores: what a row of each means, and how rows become values.
//!
//! | table | one row is |
//! |---|---|
//! | `snowmint_schema` | the version of these tables |
//! | `snowmint_store` | this store: `id`, and how many durable changes it has seen (`writes`); on servers also which `server` has it |
//! | `snowmint_namespace` | a namespace: version of its catalog; mark and term of the slots that have no row (zero until an operator moves it forward); `lead_until`, up to which claims may lead the clock |
//! | `snowmint_member` | a member that has joined: who it is, and its last renewal |
//! | `snowmint_pool` | a pool's shape; without reuse, also the `next` number that nobody had |
//! | `snowmint_slot` | a slot that was claimed: everything below `mark` is promised; only `term` may move it; `holder` is the member that has it, NULL once released |
//! | `snowmint_source` | a source's definition; everything below its `mark` is handed out; deleted ones stay |
//! | `snowmint_note` | a text: the `starts` of the store, under no namespace; of a namespace, why it is in `doubt`, the `journals` that have joined, and what is `known` by their reports |
//!
//! Names are kept per namespace; times are Unix milliseconds by the clock that the store goes by.
//! The rows that hold marks count their `changes`, and the store's row counts them all
//! (`row_changes`): rows of different age do not add up.

pub(crate) mod extending;
pub(crate) mod making;
mod members;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod network;
mod notes;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod own;
pub(crate) mod parameters;
mod rows;
pub(crate) mod server;
mod slots;
mod sources;
mod value;

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Failure, emptied};
use snowmint_coord::{ErrorKind, StoreIdentity};
use snowmint_core::UnixMillis;

use server::{Failover, Server};
pub(crate) use value::{Value, Values, bound, read};

/// How a dialect says that an insert of a row that is there changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// `ON CONFLICT … DO UPDATE SET column = excluded.column` (SQLite, PostgreSQL).
    OnConflict,
    /// `ON DUPLICATE KEY UPDATE column = VALUES(column)` (MySQL, MariaDB).
    OnDuplicateKey,
}

/// A transaction of a database, as far as these tables need one. Dropped before its end, it rolls
/// back.
#[async_trait]
pub(crate) trait Session: Send + Sized {
    /// How it inserts or updates.
    const UPSERT: Upsert;
    /// What a cast to 64 bits with a sign is called.
    const INTEGER: &str;

    /// Runs a statement with `?` for each value, and says how many rows it touched.
    async fn run(&mut self, statement: String, values: Vec<Value>) -> Result<u64, sqlx::Error>;
    /// The rows of a query with `?` for each value.
    async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error>;
    /// Makes it durable.
    async fn commit(self) -> Result<(), sqlx::Error>;
    /// Forgets it.
    async fn roll_back(self) -> Result<(), sqlx::Error>;
}

/// One atomic step on the rows of one namespace.
pub(crate) struct Tx<S> {
    pub(crate) session: S,
    namespace: String,
    /// As it was when the step began.
    identity: StoreIdentity,
    clock: Option<UnixMillis>,
    /// How many more changes the rows that hold marks have seen.
    row_changes: i64,
    /// The server that is to be kept as the one with the newest marks.
    server: Option<String>,
    /// Why another server's marks could not be written, in a step that only reads.
    misplaced: Option<ErrorKind>,
}

/// What the query that begins a step reads of the store's row: always its identity and its writes,
/// then in this order what is said here.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) query: &'a str,
    pub(crate) access: Access,
    /// The store's time in Unix milliseconds.
    pub(crate) clock: bool,
    /// The server that is kept, and the one at hand; and how the two are compared.
    pub(crate) server: Option<(Failover, &'a str)>,
}

type Done<T> = Result<T, Failure<sqlx::Error>>;

/// A table, as far as its rows are written whole.
struct Table {
    name: &'static str,
    keys: &'static [&'static str],
    columns: &'static [&'static str],
    /// Whether its rows hold marks, and so count their changes.
    counted: bool,
}

/// Rows of one statement: far below what any database allows, with a dozen values each.
const ROWS_AT_ONCE: usize = 500;

impl<S: Session> Tx<S> {
    /// The step in `session`, which has just begun.
    pub(crate) async fn begin(mut session: S, namespace: &str, opening: Opening<'_>) -> Done<Self> {
        let rows = session.fetch(opening.query.to_owned(), Vec::new()).await;
        let mut rows = rows.map_err(Failure::Backend)?;
        // As while a dump is loaded, which fills one table after the other.
        let empty = || Failure::Refused(emptied("the database", "the store's row is missing"));
        let row = rows.pop().ok_or_else(empty)?;
        let mut row = Values::of(row);
        let identity = StoreIdentity { id: row.text()?, writes: row.number()? };
        let clock = if opening.clock { Some(UnixMillis::new(row.number()?)) } else { None };
        let (mut server, mut misplaced) = (None, None);
        if let Some((failover, label)) = opening.server {
            let found = Server { kept: row.maybe_text()?, found: row.maybe_text()? };
            if opening.access == Access::Read {
                misplaced = found.check(Access::Write, failover, label).err();
            } else {
                server = found.check(opening.access, failover, label)?;
            }
        }
        let namespace = namespace.into();
        Ok(Self { session, namespace, identity, clock, row_changes: 0, server, misplaced })
    }

    async fn run(&mut self, statement: impl Into<String> + Send, values: Vec<Value>) -> Done<u64> {
        self.session.run(statement.into(), values).await.map_err(Failure::Backend)
    }

    async fn fetch(
        &mut self,
        query: impl Into<String> + Send,
        values: Vec<Value>,
    ) -> Done<Vec<Values>> {
        let rows = self.session.fetch(query.into(), values).await.map_err(Failure::Backend)?;
        Ok(rows.into_iter().map(Values::of).collect())
    }

    async fn fetch_one(
        &mut self,
        query: impl Into<String> + Send,
        values: Vec<Value>,
    ) -> Done<Option<Values>> {
        Ok(self.fetch(query, values).await?.pop())
    }

    /// Writes rows whole: the namespace, then keys and columns in the table's order.
    async fn upsert(&mut self, table: &Table, rows: Vec<Vec<Value>>) -> Done<()> {
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

/// What the rows that hold marks have counted by themselves, as the type `integer`.
pub(crate) fn counted_changes(integer: &str) -> String {
    let sum = |table: &str| format!("(SELECT COALESCE(SUM(changes), 0) FROM snowmint_{table})");
    let sums = ["namespace", "pool", "slot", "source"].map(sum).join(" + ");
    format!("SELECT CAST({sums} AS {integer})")
}

fn damaged(what: impl Into<String>) -> Failure<sqlx::Error> {
    Failure::Damaged(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_for_each_dialect() {
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
