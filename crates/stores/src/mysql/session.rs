//! Transactions of MySQL.

use async_trait::async_trait;
use snowmint_coord::verbs::Access;
use sqlx::mysql::{MySqlPool, MySqlRow};
use sqlx::{MySql, Transaction};

use super::failure::is_lost;
use crate::sql::network::{self, Boxed};
use crate::sql::{NumberLookup, Session, Upsert, Value, bound, read};

/// One transaction; dropped, it rolls back.
pub(crate) struct MySqlSession(Transaction<'static, MySql>);

impl MySqlSession {
    pub(crate) async fn begin(pool: &MySqlPool, access: Access) -> Result<Self, sqlx::Error> {
        let begin = match access {
            Access::Read => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            // The first read after the lock on the store's row takes the snapshot.
            Access::Write | Access::Forward => "START TRANSACTION",
        };
        Ok(Self(network::begin(pool, begin, is_lost).await?))
    }
}

#[async_trait]
impl Session for MySqlSession {
    const UPSERT: Upsert = Upsert::OnDuplicateKey;
    const NUMBER_LOOKUP: NumberLookup = NumberLookup::List;
    const INTEGER: &str = "SIGNED";

    async fn run(&mut self, statement: String, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        let query = bound::<MySql>(statement, values);
        let done: Boxed<'_, _> = Box::pin(async { query.execute(&mut *self.0).await });
        Ok(done.await?.rows_affected())
    }

    async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error> {
        let query = bound::<MySql>(query, values);
        let rows: Boxed<'_, Vec<MySqlRow>> =
            Box::pin(async { query.fetch_all(&mut *self.0).await });
        rows.await?.iter().map(read).collect()
    }

    async fn commit(self) -> Result<(), sqlx::Error> {
        self.0.commit().await
    }

    async fn roll_back(self) -> Result<(), sqlx::Error> {
        self.0.rollback().await
    }
}
