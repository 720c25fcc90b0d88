//! The tables, and what a server must be set to.
//!
//! MySQL makes each table in a transaction of its own, so every statement here may be repeated, and
//! the version is written last.

use snowmint_coord::ErrorKind;
use sqlx::mysql::MySqlPool;

use super::extend::Message;
use super::session::MySqlSession;
use crate::sql::Session as _;
use crate::sql::making::{Steps, bring_to_newest, newest, not_brought, number, text, version};
use crate::verbs::{Access, Failure};

/// What each version of the tables adds to the one before. Never change an entry that was
/// released; append. Texts compare byte by byte: `Orders` is not `orders`.
const STEPS: Steps = &[&[
    "CREATE TABLE IF NOT EXISTS snowmint_store (
        only_one BIGINT PRIMARY KEY,
        id VARCHAR(63) NOT NULL,
        writes BIGINT NOT NULL CHECK (writes >= 0),
        row_changes BIGINT NOT NULL,
        server VARCHAR(255)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_namespace (
        namespace VARCHAR(63) PRIMARY KEY,
        catalog_version BIGINT NOT NULL DEFAULT 0 CHECK (catalog_version >= 0),
        mark BIGINT NOT NULL DEFAULT 0 CHECK (mark >= 0),
        term BIGINT NOT NULL DEFAULT 0 CHECK (term >= 0),
        lead_until BIGINT NOT NULL DEFAULT 0 CHECK (lead_until >= 0),
        changes BIGINT NOT NULL
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_member (
        namespace VARCHAR(63) NOT NULL,
        incarnation VARCHAR(32) NOT NULL,
        owner VARCHAR(255) NOT NULL,
        host VARCHAR(255) NOT NULL,
        process BIGINT NOT NULL,
        address VARCHAR(255) NOT NULL,
        sample_ms BIGINT NOT NULL,
        renewals BIGINT NOT NULL,
        ttl_ms BIGINT NOT NULL,
        joined_at_ms BIGINT NOT NULL,
        renewed_at_ms BIGINT NOT NULL,
        PRIMARY KEY (namespace, incarnation)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_pool (
        namespace VARCHAR(63) NOT NULL,
        pool VARCHAR(63) NOT NULL,
        slots BIGINT NOT NULL,
        group_slots BIGINT NOT NULL,
        reuse VARCHAR(16) NOT NULL,
        next BIGINT NOT NULL CHECK (next >= 0),
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, pool)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_slot (
        namespace VARCHAR(63) NOT NULL,
        pool VARCHAR(63) NOT NULL,
        slot BIGINT NOT NULL CHECK (slot >= 0),
        term BIGINT NOT NULL CHECK (term >= 0),
        floor BIGINT NOT NULL CHECK (floor >= 0),
        mark BIGINT NOT NULL,
        holder VARCHAR(32),
        owner VARCHAR(255) NOT NULL,
        claim_request BIGINT NOT NULL,
        extend_request BIGINT NOT NULL,
        held_since_ms BIGINT NOT NULL,
        given_up_at_ms BIGINT NOT NULL,
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, pool, slot),
        INDEX snowmint_slot_holder (namespace, holder),
        CHECK (mark >= floor)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_source (
        namespace VARCHAR(63) NOT NULL,
        name VARCHAR(63) NOT NULL,
        spec MEDIUMTEXT NOT NULL,
        identity MEDIUMTEXT NOT NULL,
        version BIGINT NOT NULL,
        state VARCHAR(16) NOT NULL,
        floor BIGINT NOT NULL CHECK (floor >= 1),
        mark BIGINT NOT NULL,
        segment_version BIGINT NOT NULL CHECK (segment_version >= 0),
        changes BIGINT NOT NULL,
        PRIMARY KEY (namespace, name),
        CHECK (mark >= floor)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS snowmint_schema (
        only_one BIGINT PRIMARY KEY,
        version BIGINT NOT NULL
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
]];

/// Waits up to half a minute for other processes that make the tables of this database. MySQL's locks have names of
/// 64 characters at most, as databases have; two with one beginning wait for each other, which does no harm.
const LOCK: &str = "SELECT CAST(GET_LOCK(LEFT(CONCAT('snowmint.', DATABASE()), 64), 30) AS SIGNED)";
const UNLOCK: &str = "DO RELEASE_LOCK(LEFT(CONCAT('snowmint.', DATABASE()), 64))";

const TABLES: &str = "SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = 'snowmint_schema'";

/// Checks the server's settings, and brings the tables to the newest version. Another process may do
/// the same at the same time. Without `make` they are only looked at. Answers how an extend is put to
/// this server.
pub(super) async fn prepare(
    pool: &MySqlPool,
    label: &str,
    make_them: bool,
) -> Result<Message, Failure<sqlx::Error>> {
    let mut session = MySqlSession::begin(pool, Access::Write).await?;
    check_settings(&mut session, label).await?;
    let message = Message::of(&text(&mut session, "SELECT VERSION()").await?);
    let found = version(&mut session, TABLES).await?;
    if found == newest(STEPS) {
        session.roll_back().await?;
        return Ok(message);
    }
    if !make_them {
        session.roll_back().await?;
        return Err(Failure::Refused(not_brought(label, found, STEPS)));
    }
    if number(&mut session, LOCK).await? != 1 {
        let what = format!("{label}, where another process has been making tables for long,");
        return Err(Failure::Refused(ErrorKind::Unavailable { what }));
    }
    let made = make(&mut session, label).await;
    session.run(UNLOCK.into(), Vec::new()).await?;
    session.commit().await?;
    made.map(|()| message)
}

async fn make(session: &mut MySqlSession, label: &str) -> Result<(), Failure<sqlx::Error>> {
    let found = version(session, TABLES).await?;
    bring_to_newest(session, label, STEPS, found).await?;
    // Others may look as soon as the lock is given back.
    session.run("COMMIT".into(), Vec::new()).await?;
    Ok(())
}

async fn check_settings(
    session: &mut MySqlSession,
    label: &str,
) -> Result<(), Failure<sqlx::Error>> {
    let query = "SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)";
    let value = number(session, query).await?;
    if value != 1 {
        return Err(Failure::Refused(ErrorKind::Unsupported {
            what: format!(
                "{label} has innodb_flush_log_at_trx_commit = {value}, with which it can lose what it \
                 acknowledged, and numbers would come again; set it to 1"
            ),
        }));
    }
    Ok(())
}
