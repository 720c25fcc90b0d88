//! Transactions on the handle's one connection.

use std::pin::Pin;

use async_trait::async_trait;
use snowmint_coord::ErrorKind;
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use tokio::sync::OwnedMutexGuard;

use super::file::State;
use crate::sql::{Session, Upsert, Value, bound, read};
use crate::verbs::Failure;

/// Boxed: the compiler cannot prove of sqlx's own futures, once they are part of longer ones, that
/// they are `Send`.
pub(super) type Answer<'q, T> = Pin<Box<dyn Future<Output = T> + Send + 'q>>;

/// One transaction, holding the handle's connection. Dropped before its end (when the caller goes
/// away in the middle) it takes the connection with it, which rolls back.
pub(crate) struct SqliteSession {
    state: OwnedMutexGuard<State>,
    ended: bool,
}

impl SqliteSession {
    /// Begins one with the statement `begin`.
    pub(super) async fn begin(
        state: OwnedMutexGuard<State>,
        begin: &'static str,
    ) -> Result<Self, sqlx::Error> {
        let mut session = Self { state, ended: false };
        session.execute(sqlx::query(begin)).await?;
        Ok(session)
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        match &mut *self.state {
            State::Open(live) => Ok(&mut live.connection),
            State::Broken | State::Closed => Err(sqlx::Error::PoolClosed),
        }
    }

    /// The counts of the store's row and of the rows themselves, if they differed when the file was
    /// opened.
    pub(super) fn stale_rows(&self) -> Option<(u64, u64)> {
        match &*self.state {
            State::Open(live) => live.stale_rows,
            State::Broken | State::Closed => None,
        }
    }

    fn execute<'t>(
        &'t mut self,
        query: Query<'t, Sqlite, SqliteArguments>,
    ) -> Answer<'t, Result<u64, sqlx::Error>> {
        Box::pin(async move { Ok(query.execute(self.connection()?).await?.rows_affected()) })
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
            *self.state = State::Broken;
        }
    }
}

#[async_trait]
impl Session for SqliteSession {
    const UPSERT: Upsert = Upsert::OnConflict;
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
        let rows: Answer<'_, Result<Vec<SqliteRow>, sqlx::Error>> =
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

/// A file whose rows are older than its store's row says.
pub(super) fn went_back(label: &str, (seen, found): (u64, u64)) -> Failure<sqlx::Error> {
    Failure::Refused(ErrorKind::StoreWentBack {
        witness: format!("the number of changes to rows of {label}"),
        seen,
        found,
    })
}
