//! What the SQL stores behind a network share.

use std::pin::Pin;

use snowmint_coord::{BootTimer, Error, ErrorKind, Timer as _};
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions as _, Database, Pool, Transaction};

/// Connections of one handle: a node sends little, and rarely two things at once.
pub(crate) const CONNECTIONS_MAX: u32 = 4;
/// Connections that were idle this long are made anew: below the `wait_timeout` of our sessions of MySQL.
pub(crate) const IDLE_KEPT_MS: u64 = 20_000;
/// How long a verb waits for a connection.
pub(crate) const ACQUIRE_TIMEOUT_MS: u64 = 10_000;
/// How long the last try takes, which is for saying why there was none.
const LAST_TRY_MS: u64 = 1_000;
/// How long a verb waits for the writers before it.
pub(crate) const LOCK_WAIT_MS: u64 = 10_000;
/// How long the server lets a client be silent in the middle of a transaction, which holds all other
/// writers up.
pub(crate) const IDLE_MS: u64 = 5000;

/// Boxed: the compiler cannot prove of sqlx's own futures, once they are part of longer ones, that
/// they are `Send`.
pub(crate) type Boxed<'t, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 't>>;

/// Begins a transaction. A connection of the pool that the server has closed meanwhile is found by this, its
/// first statement: to ask it before, as pools do, would cost every step one more round trip. All of them may be
/// such, also those that others are about to give back.
pub(crate) async fn begin<DB: Database>(
    pool: &Pool<DB>,
    statement: &'static str,
    is_lost: fn(&sqlx::Error) -> bool,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    for _ in 0..CONNECTIONS_MAX {
        match begin_to_its_end(pool, statement).await {
            Err(sqlx::Error::PoolTimedOut) => return Err(why_none(pool).await),
            Err(error) if is_lost(&error) => {}
            begun => return begun,
        }
    }
    begin_to_its_end(pool, statement).await
}

/// Whoever waits for it: of a transaction that is given up while it begins, sqlx does not know that there is one.
/// Its connection would go back to the pool within it, and what is asked next there be a part of it.
async fn begin_to_its_end<DB: Database>(
    pool: &Pool<DB>,
    statement: &'static str,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    let pool = pool.clone();
    let begun: Boxed<'static, _> = Box::pin(async move { pool.begin_with(statement).await });
    // Nobody cancels it, and it does not panic; the runtime may end.
    tokio::spawn(begun).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// What keeps connections from being made, where a pool says only that it waited for one: it tries again until its
/// time is up when nobody listens, as a server may that starts.
async fn why_none<DB: Database>(pool: &Pool<DB>) -> sqlx::Error {
    let options = pool.connect_options();
    let connecting: Boxed<'static, DB::Connection> =
        Box::pin(async move { options.connect().await });
    tokio::select! {
        biased;
        connected = connecting => match connected {
            Err(error) => error,
            // There are connections, and others have all of them.
            Ok(_) => sqlx::Error::PoolTimedOut,
        },
        () = BootTimer.sleep_ms(LAST_TRY_MS) => sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("no connection came about within {ACQUIRE_TIMEOUT_MS} ms"),
        )),
    }
}

/// A connection of the pool, or why there is none.
pub(crate) async fn acquire<DB: Database>(
    pool: &Pool<DB>,
) -> Result<PoolConnection<DB>, sqlx::Error> {
    let acquired: Boxed<'_, _> = Box::pin(pool.acquire());
    match acquired.await {
        Err(sqlx::Error::PoolTimedOut) => Err(why_none(pool).await),
        acquired => acquired,
    }
}

/// Whether this was the connection's end, and another may do better. What was asked may have happened.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => true,
        // The server shuts down, or has ended the session, as one that was silent for too long: PostgreSQL's words,
        // and MariaDB's.
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            ["57P", "08", "25P03", "70100"].iter().any(|class| code.starts_with(class))
        }
        _ => false,
    }
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
