//! PostgreSQL, from version 12: one database for any number of machines.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the store's |
//! | durable on reply | yes |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! **Atomic step.** A verb that writes is one transaction that begins by locking the store's row,
//! so writers queue and each sees everything committed before it. A verb that reads sees one
//! snapshot. No client blocks the queue for long: the server ends a transaction after five seconds
//! of silence from its client, and a wait for the lock after ten.
//!
//! **Durability.** A server with `fsync` or `full_page_writes` off is rejected. Each session
//! requires at least `synchronous_commit = on`.
//!
//! **Failover.** The system's identifier and its timeline are stored with the marks, and each step
//! that writes compares them. Both survive restarts. A promoted replica and a point-in-time
//! recovery begin a new timeline; tables moved to another server by a dump meet another identifier.
//! Replicas lag, so any of these may lack acknowledged writes, and the server itself cannot detect
//! the loss. Then nothing is granted until an operator accepts the server by `snowmint worker
//! recover --other-server`, and recovers the store; running processes stop at their next call of
//! it. A standby in recovery is rejected by that name, whether or not it lags.
//!
//! If every failover goes to a synchronous replica, which lacks nothing, set
//! `?failover=synchronous` in the URL: a new timeline is then accepted. A point-in-time recovery is
//! accepted too: move the store forward after it. A restored copy of the whole data directory has
//! the same timeline, so the server does not show it. Every handle and journal that has seen a
//! higher write count detects it.
//!
//! **Permissions.** The first user that opens the store makes the tables in the first schema of the
//! search path, and needs CREATE there; later, SELECT, INSERT, UPDATE and DELETE on them are
//! enough. All users may call `pg_control_system`, `pg_current_wal_lsn` and `pg_walfile_name`,
//! unless that permission was revoked or a hosted service lacks them. The server is then not
//! compared, which `snowmint doctor` reports.
//!
//! **URL.** `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE`;
//! without `sslmode`, TLS is used if the server offers it, without verification. Behind a pooler
//! that gives each transaction another session, like PgBouncer in transaction mode, set
//! `pooler=transaction`. Session settings are then sent with each transaction, prepared statements
//! do not outlive it, and an extension takes a transaction instead of one statement.
//!
//! **A lost reply.** If the reply to a commit is lost, its outcome is unknown; each verb documents
//! how it may be repeated. The next verb reopens a lost connection.

mod connections;
mod extend;
mod schema;
mod session;

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Backend, BackendStore, Failure, Seen, StoreInfo};
use snowmint_coord::{Capabilities, ClockOf, Error, Extend, PresenceBy, Result, Store};
use snowmint_core::UnixMillis;

use crate::failure::{Class, Label, Sentence};
use crate::opening::Settings;
use crate::sql::making::{tables_lost, tables_outdated};
use crate::sql::own::Own;
use crate::sql::server::{Failover, mute};
use crate::sql::{OpeningQuery, Session as _, Tx, network};
pub(crate) use connections::Connections;
use connections::{FORM, is_of_pooler};
pub(crate) use session::PostgresSession;

/// Capabilities of PostgreSQL.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Store,
    durable_on_reply: true,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// Expression for the server's clock in Unix milliseconds.
const NOW_MS: &str = "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)";

/// Expression for the system and its timeline, the prefix of a log file's name, or [`STANDBY`] on a
/// server in recovery. The timeline in `pg_control_checkpoint` is older right after a promotion.
///
/// [`STANDBY`]: crate::sql::server::STANDBY
const SERVER: &str = "(SELECT system_identifier FROM pg_catalog.pg_control_system()) || '/'
    || CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby' ELSE CAST(CAST(CAST('x'
       || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) AS bit(32))
       AS bigint) AS text) END";

/// Errors of a server that does not report its identity: a revoked permission, or a function that a
/// hosted service lacks. Other errors mean something else.
const MUTE: [&str; 2] = ["42501", "42883"];

/// One namespace in a database.
#[derive(Debug)]
struct Postgres {
    connections: Connections,
    /// Connections for steps of one message.
    own: Own<sqlx::Postgres>,
    namespace: String,
    label: Label,
    failover: Failover,
    /// Reason why the server does not report its identity.
    mute: Option<String>,
    /// Whether the URL declares failovers lossless although the server waits for no replica.
    is_unreplicated: bool,
}

/// Opens the store in the database at `url` for one namespace, and makes its tables if they are
/// missing and may be made.
///
/// # Errors
/// - `Invalid` for an impossible URL or namespace, a wrong password or a missing database.
/// - `StorePermissionDenied` without the permissions.
/// - `UnsafeStore` when the server is set to lose acknowledged writes.
/// - `Unsupported` when a newer Snowmint made the tables.
/// - `NotFound` without tables, if they must not be made.
/// - `Unavailable` when the server does not respond.
pub async fn open(url: &str, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    crate::opening::check_namespace(namespace)?;
    let label = Label::of("PostgreSQL", url);
    let (failover, url) = Failover::of_url(url, &label)?;
    let connections = || Connections::to(&url, &label);
    let mut store = Postgres {
        connections: connections()?,
        own: Own::made_by(connections()?.pool),
        namespace: namespace.into(),
        label: label.clone(),
        failover,
        mute: None,
        is_unreplicated: false,
    };
    match store.prepare(settings.create_if_missing).await {
        Ok(()) => Ok(Arc::new(BackendStore::over(store))),
        Err(failure) => Err(failure.into_error(&store.label, |error| store.map_error(error))),
    }
}

impl Postgres {
    async fn prepare(&mut self, create_if_missing: bool) -> Result<(), Failure<sqlx::Error>> {
        schema::prepare(&self.connections, &self.label, create_if_missing).await?;
        let mut session = PostgresSession::begin(&self.connections, Access::Read)
            .await
            .map_err(Failure::Backend)?;
        if self.failover == Failover::Synchronous {
            self.is_unreplicated = schema::waits_for_no_replica(&mut session).await?;
        }
        match session.fetch(format!("SELECT {SERVER}"), Vec::new()).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error))
                if error.code().is_some_and(|code| MUTE.contains(&&*code)) =>
            {
                self.mute = Some(error.to_string());
            }
            Err(error) => return Err(Failure::Backend(error)),
        }
        session.roll_back().await.map_err(Failure::Backend)
    }
}

#[async_trait]
impl Backend for Postgres {
    type Rows = Tx<PostgresSession>;

    fn info(&self) -> StoreInfo<'_> {
        self.label.info(CAPABILITIES, &self.namespace)
    }

    async fn check_settings(&self) -> Result<(), Failure<sqlx::Error>> {
        let mut session = PostgresSession::begin(&self.connections, Access::Read)
            .await
            .map_err(Failure::Backend)?;
        schema::check_settings(&mut session, &self.label).await?;
        session.roll_back().await.map_err(Failure::Backend)
    }

    async fn begin(&self, access: Access) -> Result<Self::Rows, Failure<sqlx::Error>> {
        let session =
            PostgresSession::begin(&self.connections, access).await.map_err(Failure::Backend)?;
        let server = if self.mute.is_some() { "CAST(NULL AS TEXT)" } else { SERVER };
        let lock = match access {
            Access::Read => "",
            Access::Write | Access::Forward => "FOR UPDATE",
        };
        let query =
            format!("SELECT id, writes, {NOW_MS}, server, {server} FROM snowmint_store {lock}");
        let server = Some((self.failover, &*self.label));
        let opening = OpeningQuery { query: &query, access, clock: true, server };
        Tx::begin(session, &self.namespace, opening).await
    }

    async fn extend(
        &self,
        item: &Extend,
        _now: UnixMillis,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        // A statement outside a transaction runs with the settings that other clients left in the
        // session.
        if self.connections.by_transaction {
            return Ok(None);
        }
        self.extend_in_one(item, seen).await
    }

    fn warnings(&self) -> Vec<String> {
        let mute = self.mute.iter().map(|reason| mute(&self.label, reason));
        mute.chain(self.is_unreplicated.then(|| unreplicated(&self.label))).collect()
    }

    fn map_error(&self, error: sqlx::Error) -> Error {
        let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
        let mapped = match &*code {
            UNDEFINED_TABLE => tables_lost(&self.label),
            UNDEFINED_COLUMN => tables_outdated(&self.label),
            READ_ONLY => Error::store_read_only(format!(
                "{} is read-only, as a standby is; name the primary in the URL",
                self.label
            )),
            INTERNAL if is_of_dropped(&error) => Class::Unavailable.of_store(&self.label),
            _ => return map_error(&self.label, error, Class::of_store),
        };
        mapped.with_source(error)
    }

    async fn close(&self) -> Result<()> {
        self.own.close().await;
        self.connections.close().await;
        Ok(())
    }
}

/// Returns the warning for a server without replicas. A replication manager that sets the names may
/// leave them empty for a while, in which it promotes no replica.
fn unreplicated(label: &str) -> String {
    format!(
        "{label}: the URL says failover=synchronous, and synchronous_standby_names is empty, so a replica that is promoted \
         may lack what was acknowledged; name the replicas there, or leave failover out of the URL"
    )
}

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";
/// SQLSTATE of a missing column.
const UNDEFINED_COLUMN: &str = "42703";
/// SQLSTATE of a write where only reads are allowed.
const READ_ONLY: &str = "25006";
/// SQLSTATE of an error inside the server.
const INTERNAL: &str = "XX000";
/// SQLSTATE of a text that the server cannot store: it has a zero byte.
const BAD_CHARACTER: &str = "22021";

/// Returns whether an error inside the server says that a table was dropped while a statement began
/// to use it, as during the load of a dump. The server does not translate these messages.
fn is_of_dropped(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| says_dropped(error.message()))
}

fn says_dropped(message: &str) -> bool {
    ["could not open relation with OID", "cache lookup failed for relation"]
        .iter()
        .any(|words| message.starts_with(words))
}

/// Maps PostgreSQL's error to an error of the domain.
pub(crate) fn map_error(label: &str, error: sqlx::Error, sentence: Sentence) -> Error {
    let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
    let mapped = if is_of_pooler(&error) {
        Error::unsupported(format!(
            "{label} is behind a pooler in transaction mode; add ?pooler=transaction to the URL"
        ))
    } else if code == BAD_CHARACTER {
        Error::invalid("text with a zero byte cannot be stored; remove the byte")
    } else if code.is_empty() {
        sentence(network::class(&error, FORM), label)
    } else {
        sentence(class(&code), label)
    };
    mapped.with_source(error)
}

/// Returns the class of an SQLSTATE:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn class(code: &str) -> Class {
    match code {
        "53100" => Class::StorageFull,
        READ_ONLY => Class::ReadOnly,
        "42501" => Class::PermissionDenied,
        "XX001" | "XX002" => Class::Corrupt,
        "3D000" => Class::NoDatabase,
        code if code.starts_with("28") => Class::Credentials,
        // Tables are being dropped and recreated, as during the load of a dump: a plan is out of
        // date, or a key is still missing.
        "0A000" | "42P10" => Class::Unavailable,
        // Connections, resources, deadlocks and other conflicts, locks, shutdowns.
        code if ["08", "53", "40", "55", "57", "25P03"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Class::Unavailable
        }
        _ => Class::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_show_the_capabilities() {
        assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
    }

    #[test]
    fn a_server_in_recovery_has_the_name_of_a_standby() {
        assert!(SERVER.contains(&format!("'{}'", crate::sql::server::STANDBY)));
    }

    #[test]
    fn only_a_table_that_was_dropped_meanwhile_is_no_internal_error() {
        for (message, is_dropped) in [
            ("could not open relation with OID 16403", true),
            ("cache lookup failed for relation 16403", true),
            ("cache lookup failed for type 16403", false),
            ("unexpected data beyond EOF in block 3 of relation base/5/16403", false),
        ] {
            assert_eq!(says_dropped(message), is_dropped, "{message}");
        }
    }

    #[tokio::test]
    async fn a_bad_url_shows_no_password() {
        let refused = open("postgres://root:secret@[bad/ids", "default", Settings::default());
        let refused = refused.await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid");
        assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
    }

    /// A typo in the name of a parameter would leave the server unverified, without a warning.
    #[tokio::test]
    async fn a_parameter_that_would_be_passed_over_is_refused() {
        for (parameters, expected) in [
            ("sslmoed=verify-full", "sslmoed"),
            ("sslmode=foo", "sslmode"),
            ("sslmode=verify-full&port=x", "port"),
            ("options[a=b", "options[a"),
            // Possibly the end of a password that had to be percent-encoded.
            ("secret@host/ids", "percent-encoded"),
        ] {
            let url = format!("postgres://root:secret@127.0.0.1:1/ids?{parameters}");
            let refused = open(&url, "default", Settings::default()).await.unwrap_err();
            assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
            assert!(refused.to_string().contains(expected), "{expected}: {refused}");
            assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
        }
    }
}
