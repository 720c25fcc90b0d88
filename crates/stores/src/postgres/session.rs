//! Transactions of PostgreSQL.

use std::fmt::Write as _;

use async_trait::async_trait;
use snowmint_coord::verbs::Access;
use sqlx::postgres::PgRow;
use sqlx::{Postgres, Transaction};

use super::connections::Connections;
use crate::sql::network::{self, Boxed};
use crate::sql::{NumberLookup, Session, Upsert, Value, bound, read};

/// One transaction; dropped, it rolls back.
pub(crate) struct PostgresSession {
    transaction: Transaction<'static, Postgres>,
    /// Whether prepared statements may outlive the transaction.
    prepares: bool,
}

impl PostgresSession {
    pub(crate) async fn begin(
        connections: &Connections,
        access: Access,
    ) -> Result<Self, sqlx::Error> {
        let begin = connections.begin(access);
        let transaction = network::begin(&connections.pool, begin, network::is_lost).await?;
        Ok(Self { transaction, prepares: !connections.by_transaction })
    }
}

#[async_trait]
impl Session for PostgresSession {
    const UPSERT: Upsert = Upsert::OnConflict;
    const NUMBER_LOOKUP: NumberLookup = NumberLookup::Each;
    const INTEGER: &str = "BIGINT";

    async fn run(&mut self, statement: String, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        let query = bound::<Postgres>(numbered(&statement), values).persistent(self.prepares);
        let done: Boxed<'_, _> = Box::pin(async { query.execute(&mut *self.transaction).await });
        Ok(done.await?.rows_affected())
    }

    async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error> {
        let query = bound::<Postgres>(numbered(&query), values).persistent(self.prepares);
        let rows: Boxed<'_, Vec<PgRow>> =
            Box::pin(async { query.fetch_all(&mut *self.transaction).await });
        rows.await?.iter().map(read).collect()
    }

    async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    async fn roll_back(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

/// Returns the statement with `$1`, `$2`, … for its question marks; none may be inside a text.
fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        // Writing into a string does not fail.
        let _ = write!(numbered, "${}{part}", index + 1);
    }
    numbered
}

#[test]
fn question_marks_are_numbered() {
    assert_eq!(numbered("a = ? AND b = ?"), "a = $1 AND b = $2");
    assert_eq!(numbered("SELECT 1"), "SELECT 1");
}
