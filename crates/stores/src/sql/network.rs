//! What the SQL stores behind a network share.

use std::pin::Pin;

use snowmint_coord::{Error, ErrorKind};

/// Connections of one handle: a node sends little, and rarely two things at once.
pub(crate) const CONNECTIONS_MAX: u32 = 4;
/// How long a verb waits for a connection.
pub(crate) const ACQUIRE_TIMEOUT_MS: u64 = 10_000;
/// How long a verb waits for the writers before it.
pub(crate) const LOCK_WAIT_MS: u64 = 10_000;
/// How long the server lets a client be silent in the middle of a transaction, which holds all other
/// writers up.
pub(crate) const IDLE_MS: u64 = 5000;

/// Boxed: the compiler cannot prove of sqlx's own futures, once they are part of longer ones, that
/// they are `Send`.
pub(crate) type Boxed<'t, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 't>>;

/// The store in messages.
pub(crate) fn label(product: &str, url: &str) -> String {
    format!("{product} at {}", crate::shown(url))
}

/// Says an error that has no code of the database's.
pub(crate) fn explain(op: &'static str, label: &str, error: sqlx::Error) -> Error {
    let what = label.to_owned();
    let kind = match &error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound => {
            ErrorKind::Corrupt { what }
        }
        sqlx::Error::PoolClosed => ErrorKind::Closed { what },
        sqlx::Error::Configuration(_) => {
            ErrorKind::Invalid { what: format!("{label} cannot be reached as the URL says") }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed => ErrorKind::Unavailable { what },
        _ => ErrorKind::Internal { what: format!("{label} refused a statement") },
    };
    Error::new(op, kind).with_source(error)
}
