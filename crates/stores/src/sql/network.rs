//! Connections and errors of the SQL stores behind a network.

use std::pin::Pin;

use snowmint_coord::{BootTimer, within};
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions as _, Database, Pool, Transaction};

use crate::failure::Class;

/// Most connections of one handle: a node sends little, and rarely two statements at once.
pub(crate) const CONNECTIONS_MAX: u32 = 4;
/// Idle time after which a connection is replaced, in milliseconds: below the `wait_timeout` of our
/// MySQL sessions.
pub(crate) const IDLE_KEPT_MS: u64 = 20_000;
/// Longest wait of a verb for a connection, in milliseconds.
pub(crate) const ACQUIRE_TIMEOUT_MS: u64 = 10_000;
/// Duration of the last try, which finds the reason for the failure, in milliseconds.
const LAST_TRY_MS: u64 = 1_000;
/// Longest wait of a verb for the writers before it, in milliseconds.
pub(crate) const LOCK_WAIT_MS: u64 = 10_000;
/// Longest silence that the server allows a client inside a transaction, which blocks all other
/// writers, in milliseconds.
pub(crate) const IDLE_MS: u64 = 5000;

/// A boxed future: the compiler cannot prove that sqlx's own futures are `Send` once they are part
/// of longer ones.
pub(crate) type Boxed<'t, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 't>>;

/// Begins a transaction. This first statement detects a pooled connection that the server has
/// closed. Testing it before, as pools do, would cost every step one more round trip. All
/// connections may be closed, including those about to return to the pool.
pub(crate) async fn begin<DB: Database>(
    pool: &Pool<DB>,
    statement: &'static str,
    is_lost: fn(&sqlx::Error) -> bool,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    for _ in 0..CONNECTIONS_MAX {
        match begin_to_its_end(pool, statement).await {
            Err(sqlx::Error::PoolTimedOut) => return Err(connection_error(pool).await),
            Err(error) if is_lost(&error) => {}
            begun => return begun,
        }
    }
    begin_to_its_end(pool, statement).await
}

/// Begins a transaction even if the caller stops waiting. If a call is cancelled while its
/// transaction begins, sqlx does not know of the transaction. The connection would return to the
/// pool inside it, and the next statement would become part of it.
async fn begin_to_its_end<DB: Database>(
    pool: &Pool<DB>,
    statement: &'static str,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    let pool = pool.clone();
    let begun: Boxed<'static, _> = Box::pin(async move { pool.begin_with(statement).await });
    // The task is never cancelled and does not panic, but the runtime may end.
    tokio::spawn(begun).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Returns the error that prevents connections. The pool reports only a timeout: if nothing
/// listens, as during a server's start, it retries until its time is up.
async fn connection_error<DB: Database>(pool: &Pool<DB>) -> sqlx::Error {
    let options = pool.connect_options();
    let connecting: Boxed<'static, DB::Connection> =
        Box::pin(async move { options.connect().await });
    match within(&BootTimer, LAST_TRY_MS, connecting).await {
        Some(Err(error)) => error,
        // Connections work, but other callers have all of them.
        Some(Ok(_)) => sqlx::Error::PoolTimedOut,
        None => sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("no connection within {ACQUIRE_TIMEOUT_MS} ms"),
        )),
    }
}

/// Acquires a connection from the pool, or returns the reason for the failure.
pub(crate) async fn acquire<DB: Database>(
    pool: &Pool<DB>,
) -> Result<PoolConnection<DB>, sqlx::Error> {
    let acquired: Boxed<'_, _> = Box::pin(pool.acquire());
    match acquired.await {
        Err(sqlx::Error::PoolTimedOut) => Err(connection_error(pool).await),
        acquired => acquired,
    }
}

/// Returns whether the connection ended and another may succeed. The request may have been applied.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => true,
        // The server shuts down, or has ended the session, for example after too long a silence:
        // PostgreSQL's codes, then MariaDB's.
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            ["57P", "08", "25P03", "70100"].iter().any(|class| code.starts_with(class))
        }
        _ => false,
    }
}

/// Returns the class of an error that has no code of the database; `form` is the form of a URL.
pub(crate) const fn class(error: &sqlx::Error, form: &'static str) -> Class {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound => {
            Class::Corrupt
        }
        sqlx::Error::PoolClosed => Class::Closed,
        sqlx::Error::Configuration(_) => Class::BadUrl(form),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed => Class::Unavailable,
        _ => Class::Internal,
    }
}
