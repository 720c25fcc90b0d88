//! The tables, and the required settings of a server.

use snowmint_coord::Error;
use snowmint_coord::verbs::{Access, Failure};

use super::connections::Connections;
use super::session::PostgresSession;
use crate::sql::Session as _;
use crate::sql::making::{Steps, TABLE_NAMES, bring_to_newest, newest, not_brought, text, version};

/// Statements that each version of the tables adds to the one before. Never change a released
/// entry; append.
const STEPS: Steps = &[
    &[
        "CREATE TABLE snowmint_schema (
        only_one BIGINT PRIMARY KEY CHECK (only_one = 1),
        version BIGINT NOT NULL
    )",
        "CREATE TABLE snowmint_store (
        only_one BIGINT PRIMARY KEY CHECK (only_one = 1),
        id TEXT NOT NULL,
        writes BIGINT NOT NULL CHECK (writes >= 0),
        row_changes BIGINT NOT NULL,
        server TEXT
    )",
        "CREATE TABLE snowmint_namespace (
        namespace TEXT PRIMARY KEY,
        catalog_version BIGINT NOT NULL DEFAULT 0 CHECK (catalog_version >= 0),
        mark BIGINT NOT NULL DEFAULT 0 CHECK (mark >= 0),
        term BIGINT NOT NULL DEFAULT 0 CHECK (term >= 0),
        lead_until BIGINT NOT NULL DEFAULT 0 CHECK (lead_until >= 0),
        changes BIGINT NOT NULL
    )",
        "CREATE TABLE snowmint_member (
        namespace TEXT NOT NULL,
        incarnation TEXT NOT NULL,
        owner TEXT NOT NULL,
        host TEXT NOT NULL,
        process BIGINT NOT NULL,
        address TEXT NOT NULL,
        sample_ms BIGINT NOT NULL,
        renewals BIGINT NOT NULL,
        ttl_ms BIGINT NOT NULL,
        joined_at_ms BIGINT NOT NULL,
        renewed_at_ms BIGINT NOT NULL,
        PRIMARY KEY (namespace, incarnation)
    )",
        "CREATE TABLE snowmint_pool (
        namespace TEXT NOT NULL,
        pool TEXT NOT NULL,
        slots BIGINT NOT NULL,
        group_slots BIGINT NOT NULL,
        reuse TEXT NOT NULL CHECK (reuse IN ('recycle', 'never', 'ordered')),
        next BIGINT NOT NULL CHECK (next >= 0),
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, pool)
    )",
        "CREATE TABLE snowmint_slot (
        namespace TEXT NOT NULL,
        pool TEXT NOT NULL,
        slot BIGINT NOT NULL CHECK (slot >= 0),
        term BIGINT NOT NULL CHECK (term >= 0),
        floor BIGINT NOT NULL CHECK (floor >= 0),
        mark BIGINT NOT NULL CHECK (mark >= floor),
        holder TEXT,
        owner TEXT NOT NULL,
        claim_request BIGINT NOT NULL,
        extend_request BIGINT NOT NULL,
        held_since_ms BIGINT NOT NULL,
        given_up_at_ms BIGINT NOT NULL,
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, pool, slot)
    )",
        "CREATE INDEX snowmint_slot_holder ON snowmint_slot (namespace, holder)",
        "CREATE TABLE snowmint_source (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        spec TEXT NOT NULL,
        identity TEXT NOT NULL,
        version BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('enabled', 'disabled', 'deleted')),
        floor BIGINT NOT NULL CHECK (floor >= 1),
        mark BIGINT NOT NULL CHECK (mark >= floor),
        segment_version BIGINT NOT NULL CHECK (segment_version >= 0),
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, name)
    )",
    ],
    &["CREATE TABLE IF NOT EXISTS snowmint_note (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    )"],
    &["ALTER TABLE snowmint_member ADD COLUMN status TEXT NOT NULL DEFAULT ''"],
];

/// Takes the lock for making tables, under a number of Snowmint's own, until the transaction ends.
const LOCK: &str = "SELECT pg_advisory_xact_lock(8317986272711994996)";

/// Query that reads rows, because a function that looks up a name may return a result from before
/// the wait for the lock.
const TABLES: &str = "SELECT COUNT(*) FROM pg_tables
    WHERE tablename = 'snowmint_schema' AND schemaname = ANY (current_schemas(false))";

/// Checks the server's settings, and brings the tables to the newest version in one transaction.
/// Another process may do the same at the same time. Without `create_if_missing` the tables are
/// only checked.
pub(super) async fn prepare(
    connections: &Connections,
    label: &str,
    create_if_missing: bool,
) -> Result<(), Failure<sqlx::Error>> {
    let mut session =
        PostgresSession::begin(connections, Access::Write).await.map_err(Failure::Backend)?;
    check_settings(&mut session, label).await?;
    let found = version(&mut session, TABLES).await?;
    if found == newest(STEPS) {
        return session.roll_back().await.map_err(Failure::Backend);
    }
    if !create_if_missing {
        session.roll_back().await.map_err(Failure::Backend)?;
        return Err(Failure::from(not_brought(label, found, STEPS)));
    }
    session.run(LOCK.into(), Vec::new()).await.map_err(Failure::Backend)?;
    let found = version(&mut session, TABLES).await?;
    bring_to_newest(&mut session, label, STEPS, found).await?;
    session.commit().await.map_err(Failure::Backend)
}

/// Returns whether a commit is acknowledged before any replica has it.
pub(super) async fn waits_for_no_replica(
    session: &mut PostgresSession,
) -> Result<bool, Failure<sqlx::Error>> {
    Ok(text(session, "SELECT current_setting('synchronous_standby_names')").await?.is_empty())
}

/// Rejects a server that is set to lose acknowledged writes, and tables that an operator has made
/// unlogged: the server empties them after a crash, and replicas lack them.
pub(super) async fn check_settings(
    session: &mut PostgresSession,
    label: &str,
) -> Result<(), Failure<sqlx::Error>> {
    // With `data_sync_retry`, a server continues after a failed sync, and the system may have
    // dropped what was to be written.
    let query = "SELECT current_setting('fsync') || '/' || current_setting('full_page_writes')
        || '/' || COALESCE(current_setting('data_sync_retry', true), 'off')";
    let found = text(session, query).await?;
    if found != "on/on/off" {
        return Err(Failure::from(Error::unsafe_store(format!(
            "{label} has fsync/full_page_writes/data_sync_retry = {found}, which can lose \
             acknowledged writes; set them to on/on/off"
        ))));
    }
    let query = format!(
        "SELECT COALESCE(MIN(CAST(relname AS TEXT)), '') FROM pg_catalog.pg_class
         WHERE relname IN ({TABLE_NAMES}) AND relkind = 'r' AND relpersistence = 'u'
             AND pg_catalog.pg_table_is_visible(oid)"
    );
    let table = text(session, &query).await?;
    if table.is_empty() {
        return Ok(());
    }
    Err(Failure::from(Error::unsafe_store(format!(
        "{label} has the unlogged table {table}, which can lose acknowledged writes; run ALTER \
         TABLE {table} SET LOGGED"
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_checked() {
        crate::sql::making::tests::lists_all_tables(STEPS);
    }
}
