//! Connections to a database, and what stands between it and us.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::ErrorKind;
use snowmint_coord::verbs::Access;
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::sql::network::{ACQUIRE_TIMEOUT_MS, CONNECTIONS_MAX, IDLE_MS, LOCK_WAIT_MS};
use crate::sql::parameters;

/// What the driver makes of a URL's parameters, and those of ours, which are taken out before.
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

/// The parameter of a URL that says what stands in front of the server.
pub(super) const POOLER: &str = "pooler";
const TRANSACTION: &str = "transaction";

/// The user, or the database, may have it off; what is stronger than `on` stays. It is set in any case, since what a session
/// has not set itself follows the server's files while it lasts. For the session (`false`), or for the transaction (`true`).
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

/// What each of our sessions is set to. A pooler may give each transaction another of the server's sessions, which
/// others have set as they like: there every transaction is set so, by the message that begins it.
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

/// Connections to a database, which are made when they are needed. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pub(super) pool: PgPool,
    /// Whether each transaction may be given another of the server's sessions.
    pub(super) by_transaction: bool,
}

impl Connections {
    /// # Errors
    /// `Invalid` for an impossible URL.
    pub(crate) fn to(url: &str, label: &str) -> Result<Self, ErrorKind> {
        parameters::check::<PgConnectOptions>(url, label, PARAMETERS)?;
        let (pooler, url) = parameters::take(url, POOLER);
        let by_transaction = match pooler.as_deref() {
            None => false,
            Some(TRANSACTION) => true,
            Some(_) => {
                let what = format!("{label}: {POOLER} is {TRANSACTION}, or not there");
                return Err(ErrorKind::Invalid { what });
            }
        };
        // What the parser says may show the password.
        let options = PgConnectOptions::from_str(&url).map_err(|_| ErrorKind::Invalid {
            what: format!("{label}: no URL of the form postgres://USER@HOST:PORT/DATABASE"),
        })?;
        let options = options.application_name("snowmint");
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_millis(ACQUIRE_TIMEOUT_MS))
            .test_before_acquire(false);
        let pool = if by_transaction {
            // A pooler takes no settings of the session but the usual ones.
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

    /// What begins a transaction.
    pub(super) const fn begin(&self, access: Access) -> &'static str {
        match (access, self.by_transaction) {
            (Access::Read, false) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Access::Read, true) => begin!("REPEATABLE READ READ ONLY"),
            (Access::Write | Access::Forward, false) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            (Access::Write | Access::Forward, true) => begin!("READ COMMITTED"),
        }
    }

    /// Where they lead.
    pub(crate) fn options(&self) -> Arc<PgConnectOptions> {
        self.pool.connect_options()
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Whether an error says that a pooler gives each transaction another session, which the URL does not say.
pub(super) fn is_of_pooler(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    match error.code().as_deref() {
        // PgBouncer: "unsupported startup parameter: options".
        Some("08P01") => error.message().contains("startup parameter"),
        // A prepared statement is not there, or there already: it was made in another session.
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
    async fn a_pooler_is_of_the_one_kind_that_there_is() {
        let to = |parameters: &str| Connections::to(&format!("postgres://a@b/c{parameters}"), "it");
        assert!(!to("").unwrap().by_transaction);
        assert!(to("?pooler=transaction&sslmode=disable").unwrap().by_transaction);
        for wrong in ["?pooler=session", "?pooler=", "?pooler"] {
            assert_eq!(to(wrong).unwrap_err().code(), "invalid", "{wrong}");
        }
    }
}
