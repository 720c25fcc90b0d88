//! MySQL from version 8.0.21, and MariaDB from 10.5: one database for any number of machines.
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
//! snapshot. The tables are InnoDB's. A wait for the lock ends after ten seconds. After thirty
//! seconds of silence from a client, the server ends its session and transaction.
//!
//! **Durability.** A server with `innodb_flush_log_at_trx_commit` other than 1 is rejected: it can
//! lose acknowledged writes. So is one that does not report such a setting.
//!
//! **Failover.** The server's ID is stored with the marks, and each step that writes compares it.
//! MySQL has a `server_uuid` in its data directory. MariaDB has a `server_id` in its configuration,
//! which must differ among replicas. (MariaDB's `server_uid` is made of the network card's address:
//! each new container would look like a failover.)
//!
//! A promoted replica may lack acknowledged writes, and so may tables moved to another server by a
//! dump. Then nothing is granted until an operator accepts the server by `snowmint worker recover
//! --other-server`, and recovers the store; running processes stop at their next call of it. With
//! synchronous replication a promoted replica lacks nothing: set `?failover=synchronous` in the
//! URL, and any server of the same product is accepted.
//!
//! The server's ID does not show a copy restored on the same server, or on another MariaDB with the
//! same `server_id`. Every handle and journal that has seen a higher write count detects such a
//! copy.
//!
//! **Permissions.** The first user that opens the store makes the tables, and needs CREATE, ALTER
//! and INDEX; later, SELECT, INSERT, UPDATE and DELETE on them are enough.
//!
//! **URL.** `mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE`;
//! without `ssl-mode`, TLS is used if the server offers it, without verification.
//!
//! **A lost reply.** If the reply to a commit is lost, its outcome is unknown; each verb documents
//! how it may be repeated. The next verb reopens a lost connection.

mod extend;
mod failure;
mod message;
mod schema;
mod session;
mod texts;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Backend, BackendStore, Failure, Seen, StoreInfo};
use snowmint_coord::{Capabilities, ClockOf, Error, Extend, PresenceBy, Result, Store};
use snowmint_core::UnixMillis;
use sqlx::Executor as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};

use crate::failure::{Class, Label};
use crate::opening::Settings;
use crate::sql::making::{tables_lost, tables_outdated};
use crate::sql::network::{ACQUIRE_TIMEOUT_MS, CONNECTIONS_MAX, IDLE_KEPT_MS};
use crate::sql::own::Own;
use crate::sql::server::Failover;
use crate::sql::{OpeningQuery, Session as _, Tx, parameters};
pub(crate) use failure::map_error;
use failure::{NO_SUCH_COLUMN, NO_SUCH_TABLE, number};
use message::Message;
pub(crate) use session::MySqlSession;
use texts::{FORM, NOW_MS, SERVER, SETTINGS};

/// Capabilities of MySQL.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Store,
    durable_on_reply: true,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// URL parameters that the driver accepts, and `failover`, which is removed before.
const PARAMETERS: &[&str] = &[
    "failover",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "sslmode",
    "sslca",
    "sslcert",
    "sslkey",
    "charset",
    "collation",
    "statement-cache-capacity",
    "socket",
    "timezone",
    "time-zone",
];

/// One namespace in a database.
#[derive(Debug)]
struct MySql {
    pool: MySqlPool,
    /// Connections for steps of one message.
    own: Own<sqlx::MySql>,
    namespace: String,
    label: Label,
    failover: Failover,
    message: Message,
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
    let label = Label::of("MySQL", url);
    let (failover, url) = Failover::of_url(url, &label)?;
    let pool = pool(&url, &label)?;
    let mapped = |error| map_error(&label, error, Class::of_store);
    let prepared = schema::prepare(&pool, &label, settings.create_if_missing).await;
    let message = prepared.map_err(|failure| failure.into_error(&label, mapped))?;
    let own = own(&url, &label, message)?;
    let namespace = namespace.into();
    Ok(Arc::new(BackendStore::over(MySql { pool, own, namespace, label, failover, message })))
}

/// Returns connections to a database, opened on first use.
pub(crate) fn pool(url: &str, label: &str) -> Result<MySqlPool> {
    connections(url, label, SETTINGS)
}

/// Returns the connections for extensions in this form.
fn own(url: &str, label: &str, message: Message) -> Result<Own<sqlx::MySql>> {
    Ok(Own::made_by(connections(url, label, message.settings())?))
}

/// Returns connections that each begin with these statements.
fn connections(url: &str, label: &str, settings: &'static [&'static str]) -> Result<MySqlPool> {
    parameters::check::<MySqlConnectOptions>(url, label, PARAMETERS)?;
    // The parser's message may contain the password.
    let options = MySqlConnectOptions::from_str(url)
        .map_err(|_| Error::invalid(format!("{label}: URL cannot be parsed; write {FORM}")))?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(Error::invalid(format!("{label}: URL names no database; write {FORM}")));
    }
    let pool = MySqlPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(Duration::from_millis(ACQUIRE_TIMEOUT_MS))
        .test_before_acquire(false)
        .idle_timeout(Duration::from_millis(IDLE_KEPT_MS))
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for setting in settings {
                    connection.execute(*setting).await?;
                }
                Ok(())
            })
        });
    Ok(pool.connect_lazy_with(options))
}

#[async_trait]
impl Backend for MySql {
    type Rows = Tx<MySqlSession>;

    fn info(&self) -> StoreInfo<'_> {
        self.label.info(CAPABILITIES, &self.namespace)
    }

    async fn check_settings(&self) -> Result<(), Failure<sqlx::Error>> {
        let mut session =
            MySqlSession::begin(&self.pool, Access::Read).await.map_err(Failure::Backend)?;
        schema::check_settings(&mut session, &self.label).await?;
        session.roll_back().await.map_err(Failure::Backend)
    }

    async fn begin(&self, access: Access) -> Result<Self::Rows, Failure<sqlx::Error>> {
        let session = MySqlSession::begin(&self.pool, access).await.map_err(Failure::Backend)?;
        let lock = match access {
            Access::Read => "",
            Access::Write | Access::Forward => "FOR UPDATE",
        };
        let query =
            format!("SELECT id, writes, {NOW_MS}, server, {SERVER} FROM snowmint_store {lock}");
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
        self.extend_in_one(item, seen).await
    }

    fn map_error(&self, error: sqlx::Error) -> Error {
        let mapped = match number(&error) {
            Some(NO_SUCH_TABLE) => tables_lost(&self.label),
            Some(NO_SUCH_COLUMN) => tables_outdated(&self.label),
            _ => return map_error(&self.label, error, Class::of_store),
        };
        mapped.with_source(error)
    }

    async fn close(&self) -> Result<()> {
        self.own.close().await;
        self.pool.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
