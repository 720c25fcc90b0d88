//! The tables, and the required settings of a server.
//!
//! MySQL makes each table in a separate transaction, so every statement here may be repeated, and
//! the version is written last.

use std::collections::BTreeMap;

use snowmint_coord::Error;
use snowmint_coord::verbs::{Access, Failure, set_to_lose};
use sqlx::mysql::MySqlPool;

use super::message::Message;
use super::session::MySqlSession;
use crate::sql::making::{
    Steps, TABLE_NAMES, bring_to_newest, newest, not_brought, number, text, version,
};
use crate::sql::{Session as _, Values};

/// Statements that each version of the tables adds to the one before. Never change a released
/// entry; append. Texts compare byte by byte: `Orders` is not `orders`.
const STEPS: Steps = &[
    &[
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
    ],
    &["CREATE TABLE IF NOT EXISTS snowmint_note (
        namespace VARCHAR(63) NOT NULL,
        name VARCHAR(63) NOT NULL,
        text MEDIUMTEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"],
    &[
        "ALTER TABLE snowmint_member ADD COLUMN status VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''",
    ],
];

/// Longest wait for other processes that make the tables of this database, in seconds.
const LOCK_WAIT_S: u32 = 30;
const UNLOCK: &str = "DO RELEASE_LOCK(LEFT(CONCAT('snowmint.', DATABASE()), 64))";

const TABLES: &str = "SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = 'snowmint_schema'";

/// Returns the query that takes the lock for making tables. MySQL limits names of locks to 64
/// characters, like those of databases. Two databases with an equal prefix wait for each other,
/// which is harmless.
fn lock() -> String {
    format!(
        "SELECT CAST(GET_LOCK(LEFT(CONCAT('snowmint.', DATABASE()), 64), {LOCK_WAIT_S}) AS SIGNED)"
    )
}

/// Checks the server's settings, and brings the tables to the newest version. Another process may
/// do the same at the same time. Without `create_if_missing` the tables are only checked. Returns
/// the message form of extensions for this server.
pub(super) async fn prepare(
    pool: &MySqlPool,
    label: &str,
    create_if_missing: bool,
) -> Result<Message, Failure<sqlx::Error>> {
    let mut session = MySqlSession::begin(pool, Access::Write).await.map_err(Failure::Backend)?;
    check_settings(&mut session, label).await?;
    let message = Message::of(&text(&mut session, "SELECT VERSION()").await?);
    let found = version(&mut session, TABLES).await?;
    if found == newest(STEPS) {
        session.roll_back().await.map_err(Failure::Backend)?;
        return Ok(message);
    }
    if !create_if_missing {
        session.roll_back().await.map_err(Failure::Backend)?;
        return Err(Failure::from(not_brought(label, found, STEPS)));
    }
    if number(&mut session, &lock()).await? != 1 {
        return Err(Failure::from(Error::unavailable(format!(
            "another process has held the table lock of {label} for {LOCK_WAIT_S} s; retry"
        ))));
    }
    let made = create_tables(&mut session, label).await;
    session.run(UNLOCK.into(), Vec::new()).await.map_err(Failure::Backend)?;
    session.commit().await.map_err(Failure::Backend)?;
    made.map(|()| message)
}

async fn create_tables(
    session: &mut MySqlSession,
    label: &str,
) -> Result<(), Failure<sqlx::Error>> {
    // The reads before the lock are old. MariaDB also ends a transaction that writes rows changed
    // since its first read (`innodb_snapshot_isolation`).
    session.run("COMMIT".into(), Vec::new()).await.map_err(Failure::Backend)?;
    let found = version(session, TABLES).await?;
    if found == newest(STEPS) {
        return Ok(());
    }
    bring_to_newest(session, label, STEPS, found).await?;
    // Other processes may read as soon as the lock is released.
    session.run("COMMIT".into(), Vec::new()).await.map_err(Failure::Backend)?;
    Ok(())
}

/// Required settings of the server. With a binary log, a crash rolls back transactions that the log
/// lacks, so the log must be equally durable:
/// <https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog>.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN
    ('innodb_checksum_algorithm', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'log_bin',
     'sync_binlog', 'version')";
/// Only MySQL can disable the redo log, from 8.0.21 on:
/// <https://dev.mysql.com/doc/refman/8.4/en/innodb-redo-log.html>.
const REDO_LOG: &str = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'";

/// Rejects a server that is set to lose acknowledged writes, and tables that an operator has moved
/// to another engine, where a commit may not be durable, nor a rollback undo anything.
/// (`innodb_doublewrite` may be off: a checksum shows a page torn by a crash. So pages need one.)
pub(super) async fn check_settings(
    session: &mut MySqlSession,
    label: &str,
) -> Result<(), Failure<sqlx::Error>> {
    let mut found = BTreeMap::new();
    for query in [SETTINGS, REDO_LOG] {
        for row in session.fetch(query.into(), Vec::new()).await.map_err(Failure::Backend)? {
            let mut row = Values::of(row);
            found.insert(row.text()?.to_lowercase(), row.text()?);
        }
    }
    if let Some((name, value, right)) = wrong_setting(&found) {
        let value = if value.is_empty() { "not reported" } else { value };
        return Err(Failure::from(set_to_lose(label, &format!("{name} = {value}"), right)));
    }
    // NULL is no other engine: MariaDB reports it for a table that is just being made.
    let query = format!(
        "SELECT CAST(table_name AS CHAR), CAST(engine AS CHAR) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name IN ({TABLE_NAMES}) AND engine <> 'InnoDB'
         ORDER BY table_name LIMIT 1"
    );
    let rows = session.fetch(query, Vec::new()).await.map_err(Failure::Backend)?;
    let Some(row) = rows.into_iter().next() else { return Ok(()) };
    let mut row = Values::of(row);
    let (table, engine) = (row.text()?, row.text()?);
    Err(Failure::from(Error::unsafe_store(format!(
        "{label} has table {table} with engine {engine}, which can lose acknowledged writes; run \
         ALTER TABLE {table} ENGINE = InnoDB"
    ))))
}

/// Returns a wrong setting's name, its value, and the required value. A setting that the server
/// does not report is wrong, too.
fn wrong_setting(found: &BTreeMap<String, String>) -> Option<(&'static str, &str, &'static str)> {
    let value = |name| found.get(name).map_or("", String::as_str);
    let is = |name, values: [&str; 2]| values.contains(&value(name).to_uppercase().as_str());
    let has_no_binlog = is("log_bin", ["OFF", "0"]);
    let method = value("innodb_flush_method").to_lowercase();
    let is_mariadb = value("version").contains("MariaDB");
    let (redo_log, checksums) = ("innodb_redo_log_enabled", "innodb_checksum_algorithm");
    [
        ("innodb_flush_log_at_trx_commit", "1", value("innodb_flush_log_at_trx_commit") == "1"),
        ("sync_binlog", "1, or log_bin to OFF", has_no_binlog || value("sync_binlog") == "1"),
        ("innodb_flush_method", "fsync", !["", "nosync", "littlesync"].contains(&method.as_str())),
        // Servers without the setting have checksums.
        (checksums, "crc32", !is(checksums, ["NONE", "STRICT_NONE"])),
        (
            redo_log,
            "ON (ALTER INSTANCE ENABLE INNODB REDO_LOG)",
            is(redo_log, ["ON", "1"]) || (is_mariadb && value(redo_log).is_empty()),
        ),
    ]
    .into_iter()
    .find_map(|(name, right, is_right)| (!is_right).then(|| (name, value(name), right)))
}

#[cfg(test)]
mod tests {
    use snowmint_testkit::servers::Mysql as Server;

    use super::super::pool;
    use super::*;

    /// The waiting process read before it had the lock: its first read is old.
    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs MariaDB: --features real-servers")]
    async fn lock_waiters_see_tables_created_meanwhile() {
        let server = Server::start(&[]);
        let pool = pool(&server.url(), "it").unwrap();
        prepare(&pool, "it", true).await.unwrap();
        let update = async |version: &str| {
            let mut session = MySqlSession::begin(&pool, Access::Write).await.unwrap();
            let update = format!("UPDATE snowmint_schema SET version = {version}");
            session.run(update, Vec::new()).await.unwrap();
            session.commit().await.unwrap();
        };
        update("version - 1").await;
        let mut waiting = MySqlSession::begin(&pool, Access::Write).await.unwrap();
        assert_eq!(version(&mut waiting, TABLES).await.unwrap(), newest(STEPS) - 1);
        update("version + 1").await;
        create_tables(&mut waiting, "it").await.unwrap();
        assert_eq!(version(&mut waiting, TABLES).await.unwrap(), newest(STEPS));
    }

    #[test]
    fn every_table_is_checked() {
        crate::sql::making::tests::lists_all_tables(STEPS);
    }

    #[test]
    fn settings_that_lose_commits_are_named() {
        let durable = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "fsync"),
            // MariaDB's defaults.
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
        ];
        let mariadb = [("version", "10.11.19-MariaDB-0+deb12u1")];
        let mysql = [("version", "9.7.4"), ("innodb_redo_log_enabled", "ON")];
        // Without a value: not reported.
        for (changes, wrong) in [
            (&[("innodb_flush_log_at_trx_commit", "1")][..], None),
            (&[("innodb_flush_log_at_trx_commit", "")], Some("innodb_flush_log_at_trx_commit")),
            (&[("innodb_flush_log_at_trx_commit", "2")], Some("innodb_flush_log_at_trx_commit")),
            (&[("log_bin", "OFF"), ("sync_binlog", "0"), ("innodb_flush_method", "fsync")], None),
            (&[("log_bin", "ON"), ("sync_binlog", "0")], Some("sync_binlog")),
            (&[("log_bin", "ON"), ("sync_binlog", "100")], Some("sync_binlog")),
            (&[("log_bin", "ON"), ("sync_binlog", "1")], None),
            (&[("log_bin", "")], Some("sync_binlog")),
            (&[("log_bin", ""), ("sync_binlog", "")], Some("sync_binlog")),
            (&[("log_bin", ""), ("sync_binlog", "1")], None),
            (&[("innodb_flush_method", "O_DIRECT")], None),
            (&[("innodb_flush_method", "nosync")], Some("innodb_flush_method")),
            (&[("innodb_flush_method", "")], Some("innodb_flush_method")),
            (&[("innodb_checksum_algorithm", "full_crc32")], None),
            (&[("innodb_checksum_algorithm", "none")], Some("innodb_checksum_algorithm")),
            (&[("innodb_checksum_algorithm", "strict_none")], Some("innodb_checksum_algorithm")),
            (&[("innodb_redo_log_enabled", "ON")], None),
            (&[("innodb_redo_log_enabled", "OFF")], Some("innodb_redo_log_enabled")),
        ] {
            for product in [&mariadb[..], &mysql] {
                let found = settings(durable.iter().chain(product).chain(changes));
                let named = wrong_setting(&found).map(|(name, ..)| name);
                assert_eq!(named, wrong, "{changes:?} {product:?}");
            }
        }
        let unknown = settings(durable.iter().chain(&[("version", "9.7.4")]));
        let named = wrong_setting(&unknown).map(|(name, ..)| name);
        assert_eq!(named, Some("innodb_redo_log_enabled"), "MySQL can disable its log");
    }

    /// Returns the settings that a server reports; the last value of a name counts.
    fn settings<'a>(
        all: impl Iterator<Item = &'a (&'static str, &'static str)>,
    ) -> BTreeMap<String, String> {
        let mut found: BTreeMap<String, String> =
            all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        found.retain(|_, value| !value.is_empty());
        found
    }
}
