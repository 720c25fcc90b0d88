//! Transactions on the handle's one connection.

use std::pin::Pin;

use async_trait::async_trait;
use snowmint_coord::Error;
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use tokio::sync::OwnedMutexGuard;

use super::place::LABEL;
use super::state::FileState;
use crate::sql::{NumberLookup, Session, Upsert, Value, bound, read};

/// A boxed future: the compiler cannot prove that sqlx's own futures are `Send` once they are part
/// of longer ones.
pub(super) type QueryFuture<'q, T> = Pin<Box<dyn Future<Output = T> + Send + 'q>>;

/// One transaction, holding the handle's connection. Dropped before its end, for example when the
/// caller is cancelled, it closes the connection, which rolls back.
pub(crate) struct SqliteSession {
    state: OwnedMutexGuard<FileState>,
    ended: bool,
}

impl SqliteSession {
    /// Returns a transaction that begins with its first statement.
    pub(super) const fn new(state: OwnedMutexGuard<FileState>) -> Self {
        Self { state, ended: false }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        match &mut *self.state {
            FileState::Open(live) => Ok(&mut live.connection),
            FileState::Broken | FileState::Closed => Err(sqlx::Error::PoolClosed),
        }
    }

    fn execute<'t>(
        &'t mut self,
        query: Query<'t, Sqlite, SqliteArguments>,
    ) -> QueryFuture<'t, Result<u64, sqlx::Error>> {
        Box::pin(async move { Ok(query.execute(self.connection()?).await?.rows_affected()) })
    }

    /// Runs statements that are a whole transaction, in one message to the connection's thread, and
    /// returns all their rows.
    pub(super) async fn in_one_message(
        mut self,
        statements: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error> {
        let rows = self.fetch(statements.to_owned(), values).await?;
        self.ended = true;
        Ok(rows)
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        self.execute(sqlx::query(statement)).await?;
        self.ended = true;
        Ok(())
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        if !self.ended {
            *self.state = FileState::Broken;
        }
    }
}

#[async_trait]
impl Session for SqliteSession {
    const UPSERT: Upsert = Upsert::OnConflict;
    const NUMBER_LOOKUP: NumberLookup = NumberLookup::List;
    const INTEGER: &str = "INTEGER";

    async fn run(&mut self, statement: String, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        self.execute(bound(statement, values)).await
    }

    async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error> {
        let query = bound(query, values);
        let rows: QueryFuture<'_, Result<Vec<SqliteRow>, sqlx::Error>> =
            Box::pin(async move { query.fetch_all(self.connection()?).await });
        rows.await?.iter().map(read).collect()
    }

    async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    async fn roll_back(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }
}

/// Returns the error for a file with rows older than its store's row.
pub(super) fn mixed_rows((seen, found): (u64, u64)) -> Error {
    Error::store_rolled_back(format!("change count of the rows of {LABEL}"), seen, found)
}
