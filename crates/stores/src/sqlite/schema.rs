//! The tables, and the upgrade of older files.

use snowmint_coord::verbs::Failure;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::session::SqliteSession;
use crate::sql::making::{Steps, missing, newest, not_brought, row_lost};
use crate::sql::{Session as _, counted_changes as query};

/// Statements that each version of the tables adds to the one before. Never change a released
/// entry; append, and only changes that an older server still running can ignore.
pub(super) const STEPS: Steps = &[
    &[
        "CREATE TABLE snowmint_store (
        only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
        id TEXT NOT NULL,
        writes INTEGER NOT NULL CHECK (writes >= 0),
        row_changes INTEGER NOT NULL
    ) STRICT",
        "CREATE TABLE snowmint_namespace (
        namespace TEXT PRIMARY KEY,
        catalog_version INTEGER NOT NULL DEFAULT 0 CHECK (catalog_version >= 0),
        mark INTEGER NOT NULL DEFAULT 0 CHECK (mark >= 0),
        term INTEGER NOT NULL DEFAULT 0 CHECK (term >= 0),
        lead_until INTEGER NOT NULL DEFAULT 0 CHECK (lead_until >= 0),
        changes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID",
        "CREATE TABLE snowmint_member (
        namespace TEXT NOT NULL,
        incarnation TEXT NOT NULL,
        owner TEXT NOT NULL,
        host TEXT NOT NULL,
        process INTEGER NOT NULL,
        address TEXT NOT NULL,
        sample_ms INTEGER NOT NULL,
        renewals INTEGER NOT NULL,
        ttl_ms INTEGER NOT NULL,
        joined_at_ms INTEGER NOT NULL,
        renewed_at_ms INTEGER NOT NULL,
        PRIMARY KEY (namespace, incarnation)
    ) STRICT, WITHOUT ROWID",
        "CREATE TABLE snowmint_pool (
        namespace TEXT NOT NULL,
        pool TEXT NOT NULL,
        slots INTEGER NOT NULL,
        group_slots INTEGER NOT NULL,
        reuse TEXT NOT NULL CHECK (reuse IN ('recycle', 'never', 'ordered')),
        next INTEGER NOT NULL CHECK (next >= 0),
        changes INTEGER NOT NULL,
        PRIMARY KEY (namespace, pool)
    ) STRICT, WITHOUT ROWID",
        "CREATE TABLE snowmint_slot (
        namespace TEXT NOT NULL,
        pool TEXT NOT NULL,
        slot INTEGER NOT NULL CHECK (slot >= 0),
        term INTEGER NOT NULL CHECK (term >= 0),
        floor INTEGER NOT NULL CHECK (floor >= 0),
        mark INTEGER NOT NULL CHECK (mark >= floor),
        holder TEXT,
        owner TEXT NOT NULL,
        claim_request INTEGER NOT NULL,
        extend_request INTEGER NOT NULL,
        held_since_ms INTEGER NOT NULL,
        given_up_at_ms INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        PRIMARY KEY (namespace, pool, slot)
    ) STRICT, WITHOUT ROWID",
        "CREATE INDEX snowmint_slot_holder ON snowmint_slot (namespace, holder)",
        "CREATE TABLE snowmint_source (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        spec TEXT NOT NULL,
        identity TEXT NOT NULL,
        version INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('enabled', 'disabled', 'deleted')),
        floor INTEGER NOT NULL CHECK (floor >= 1),
        mark INTEGER NOT NULL CHECK (mark >= floor),
        segment_version INTEGER NOT NULL CHECK (segment_version >= 0),
        changes INTEGER NOT NULL,
        PRIMARY KEY (namespace, name)
    ) STRICT, WITHOUT ROWID",
    ],
    &["CREATE TABLE IF NOT EXISTS snowmint_note (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) STRICT, WITHOUT ROWID"],
    &["ALTER TABLE snowmint_member ADD COLUMN status TEXT NOT NULL DEFAULT ''"],
];

/// Brings the file to the newest version, in one transaction; `new_id` names the store if it is
/// new. Another process may do the same at the same time. `steps` are [`STEPS`], except in tests.
pub(super) async fn prepare(
    connection: &mut SqliteConnection,
    label: &str,
    new_id: String,
    steps: Steps,
) -> Result<(), Failure<sqlx::Error>> {
    let newest = newest(steps);
    if version(connection).await? == newest {
        return Ok(());
    }
    // A connection that is dropped in the middle rolls back.
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(Failure::Backend)?;
    let found = version(connection).await?;
    for step in missing(label, found, steps)? {
        for statement in *step {
            sqlx::query(*statement).execute(&mut *connection).await.map_err(Failure::Backend)?;
        }
    }
    if found == 0 {
        sqlx::query("CREATE TABLE snowmint_schema (version INTEGER NOT NULL) STRICT")
            .execute(&mut *connection)
            .await
            .map_err(Failure::Backend)?;
        sqlx::query("INSERT INTO snowmint_schema (version) VALUES (?)")
            .bind(newest.cast_signed())
            .execute(&mut *connection)
            .await
            .map_err(Failure::Backend)?;
        sqlx::query(
            "INSERT INTO snowmint_store (only_one, id, writes, row_changes) VALUES (1, ?, 0, 0)",
        )
        .bind(new_id)
        .execute(&mut *connection)
        .await
        .map_err(Failure::Backend)?;
    } else {
        sqlx::query("UPDATE snowmint_schema SET version = ?")
            .bind(newest.cast_signed())
            .execute(&mut *connection)
            .await
            .map_err(Failure::Backend)?;
    }
    sqlx::query("COMMIT").execute(&mut *connection).await.map_err(Failure::Backend)?;
    Ok(())
}

/// Rejects tables that are not of the newest version.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    label: &str,
) -> Result<(), Failure<sqlx::Error>> {
    let found = version(connection).await?;
    if found == newest(STEPS) {
        return Ok(());
    }
    Err(Failure::from(not_brought(label, found, STEPS)))
}

/// Returns the total of changes that the rows with marks have counted.
///
/// The store's row has the same total, and every change updates it. If the two differ, some pages
/// of the file are older than others: it was restored without its own `-wal` file, next to a newer
/// one.
pub(super) async fn counted_changes(
    connection: &mut SqliteConnection,
) -> Result<i64, Failure<sqlx::Error>> {
    let query = AssertSqlSafe(query(SqliteSession::INTEGER));
    let counted =
        sqlx::query_scalar(query).fetch_one(connection).await.map_err(Failure::Backend)?;
    Ok(counted)
}

/// Returns the version of the tables; 0 when there are none.
async fn version(connection: &mut SqliteConnection) -> Result<u64, Failure<sqlx::Error>> {
    let table =
        "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'snowmint_schema'";
    let tables: i64 =
        sqlx::query_scalar(table).fetch_one(&mut *connection).await.map_err(Failure::Backend)?;
    if tables == 0 {
        return Ok(0);
    }
    let version = sqlx::query_scalar("SELECT version FROM snowmint_schema")
        .fetch_optional(&mut *connection)
        .await
        .map_err(Failure::Backend)?;
    let version: i64 = version.ok_or_else(row_lost)?;
    // Only a manual change makes it negative.
    Ok(u64::try_from(version).unwrap_or(u64::MAX))
}
