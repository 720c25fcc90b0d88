//! Connections to a database, and poolers in front of it.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::verbs::Access;
use snowmint_coord::{Error, Result};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::sql::network::{ACQUIRE_TIMEOUT_MS, CONNECTIONS_MAX, IDLE_MS, LOCK_WAIT_MS};
use crate::sql::parameters;

/// Form of a URL.
pub(super) const FORM: &str = "postgres://USER@HOST:PORT/DATABASE";

/// URL parameters that the driver accepts, and Snowmint's own, which are removed before.
const PARAMETERS: &[&str] = &[
    "failover",
    POOLER,
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "ssl-mode",
    "ssl-root-cert",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// URL parameter for the pooler in front of the server.
pub(super) const POOLER: &str = "pooler";
const TRANSACTION: &str = "transaction";

/// Raises `synchronous_commit` to `on`, since the user or the database may have turned it off;
/// stronger values stay. The session always sets a value, because an unset value follows later
/// changes in the server's files. The argument is `false` for the session, `true` for the
/// transaction.
macro_rules! stronger {
    ($of_transaction:literal) => {
        concat!(
            "SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') ",
            "THEN 'on' ELSE current_setting('synchronous_commit') END, ",
            $of_transaction,
            ")"
        )
    };
}

/// Settings of a transaction behind a pooler, set by the message that begins it. A pooler may give
/// each transaction another session of the server, with settings that other clients left.
macro_rules! begin {
    ($isolation:literal) => {
        concat!(
            "BEGIN ISOLATION LEVEL ",
            $isolation,
            "; SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL lock_timeout = 10000; ",
            stronger!("true")
        )
    };
}

/// Connections to a database, opened on first use. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pub(super) pool: PgPool,
    /// Whether each transaction may get another session of the server.
    pub(super) by_transaction: bool,
}

impl Connections {
    /// Returns connections to the database at a URL.
    ///
    /// # Errors
    /// `Invalid` for an impossible URL.
    pub(crate) fn to(url: &str, label: &str) -> Result<Self> {
        parameters::check::<PgConnectOptions>(url, label, PARAMETERS)?;
        let (pooler, url) = parameters::remove(url, POOLER);
        let by_transaction = match pooler.as_deref() {
            None => false,
            Some(TRANSACTION) => true,
            Some(value) => {
                return Err(Error::invalid(format!(
                    "{label}: {POOLER} = {value:?} is unknown; write {TRANSACTION} or leave it out"
                )));
            }
        };
        // The parser's message may contain the password.
        let options = PgConnectOptions::from_str(&url)
            .map_err(|_| Error::invalid(format!("{label}: URL cannot be parsed; write {FORM}")))?;
        let options = options.application_name("snowmint");
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_millis(ACQUIRE_TIMEOUT_MS))
            .test_before_acquire(false);
        let pool = if by_transaction {
            // A pooler accepts only the usual session settings.
            pool.connect_lazy_with(options.extra_float_digits(None))
        } else {
            let options = options.options([
                ("idle_in_transaction_session_timeout", IDLE_MS.to_string()),
                ("lock_timeout", LOCK_WAIT_MS.to_string()),
            ]);
            pool.after_connect(|connection, _| {
                Box::pin(async move { connection.execute(stronger!("false")).await.map(|_| ()) })
            })
            .connect_lazy_with(options)
        };
        Ok(Self { pool, by_transaction })
    }

    /// Returns the message that begins a transaction.
    pub(super) const fn begin(&self, access: Access) -> &'static str {
        match (access, self.by_transaction) {
            (Access::Read, false) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Access::Read, true) => begin!("REPEATABLE READ READ ONLY"),
            (Access::Write | Access::Forward, false) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            (Access::Write | Access::Forward, true) => begin!("READ COMMITTED"),
        }
    }

    /// Returns the connection options.
    pub(crate) fn options(&self) -> Arc<PgConnectOptions> {
        self.pool.connect_options()
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Returns whether an error shows a pooler that gives each transaction another session, without
/// `pooler` in the URL.
pub(super) fn is_of_pooler(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    match error.code().as_deref() {
        // PgBouncer: "unsupported startup parameter: options".
        Some("08P01") => error.message().contains("startup parameter"),
        // A prepared statement is missing or exists already: it was made in another session.
        Some("26000" | "42P05") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_transaction_are_those_of_a_session() {
        for begin in [begin!("READ COMMITTED"), begin!("REPEATABLE READ READ ONLY")] {
            assert!(begin.contains(&format!("idle_in_transaction_session_timeout = {IDLE_MS};")));
            assert!(begin.contains(&format!("lock_timeout = {LOCK_WAIT_MS};")));
        }
    }

    #[tokio::test]
    async fn pooler_parameter_accepts_only_transaction() {
        let to = |parameters: &str| Connections::to(&format!("postgres://a@b/c{parameters}"), "it");
        assert!(!to("").unwrap().by_transaction);
        assert!(to("?pooler=transaction&sslmode=disable").unwrap().by_transaction);
        for wrong in ["?pooler=session", "?pooler=", "?pooler"] {
            assert_eq!(to(wrong).unwrap_err().kind().code(), "invalid", "{wrong}");
        }
    }
}
