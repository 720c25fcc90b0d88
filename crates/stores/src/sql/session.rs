//! Session of a database as the tables use it: a transaction, and its dialect.

use async_trait::async_trait;

use super::value::Value;

/// A dialect's form of an insert that updates an existing row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// `ON CONFLICT … DO UPDATE SET column = excluded.column` (SQLite, PostgreSQL).
    OnConflict,
    /// `ON DUPLICATE KEY UPDATE column = VALUES(column)` (MySQL, MariaDB).
    OnDuplicateKey,
}

/// A dialect's form of a query for the rows of many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberLookup {
    /// `number IN (?, ?, …)` (SQLite, MySQL, MariaDB).
    List,
    /// One search of the index for each number (PostgreSQL). For a list, a prepared statement reads
    /// the whole pool, as long as the table has no statistics, and compares each row with each
    /// number. That took 370 ms for 500 of 16,384 slots, and the store's row was locked meanwhile.
    /// `OFFSET 0` keeps the planner from choosing another way.
    Each,
}

/// A database transaction, to the extent that these tables need one. Dropped before its end, it
/// rolls back.
#[async_trait]
pub(crate) trait Session: Send + Sized {
    /// Form of insert-or-update.
    const UPSERT: Upsert;
    /// Form of a query for many numbers.
    const NUMBER_LOOKUP: NumberLookup;
    /// Name of the signed 64-bit type in a cast.
    const INTEGER: &str;

    /// Runs a statement with `?` for each value, and returns the count of rows touched.
    async fn run(&mut self, statement: String, values: Vec<Value>) -> Result<u64, sqlx::Error>;
    /// Returns the rows of a query with `?` for each value.
    async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>, sqlx::Error>;
    /// Commits the transaction.
    async fn commit(self) -> Result<(), sqlx::Error>;
    /// Rolls the transaction back.
    async fn roll_back(self) -> Result<(), sqlx::Error>;
}
