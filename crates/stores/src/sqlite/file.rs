//! The file, and this handle's one connection to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Backend, Failure, Seen, StoreInfo};
use snowmint_coord::{
    BootTimer, Capabilities, ClockOf, Error, Extend, ForkGuard, Incarnation, Presence, PresenceBy,
    Result, Timer, private, random,
};
use snowmint_core::UnixMillis;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::failure::{is_busy, map_error};
use super::one_message::{EXTEND, RENEW};
use super::place::{BUSY_TIMEOUT_MS, LABEL, place};
use super::schema;
use super::session::{QueryFuture, SqliteSession, mixed_rows};
use super::state::{FileId, FileState, Live};
use crate::failure::Class;
use crate::sql::making::row_lost;
use crate::sql::{OpeningQuery, Tx, Value, extending};

/// Wait before opening is tried again, in milliseconds. Switching a new file to the write-ahead log
/// can fail at once while another process does the same, whatever the timeout.
const OPEN_RETRY_MS: u64 = 20;

/// Change of a connection's options. Only tests make one.
pub(super) type Adjust = fn(SqliteConnectOptions) -> SqliteConnectOptions;

/// Capabilities of a SQLite file.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: true,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// One namespace in a SQLite file, and this handle's connection to it.
#[derive(Debug)]
pub(crate) struct File {
    namespace: String,
    path: PathBuf,
    /// The detail of its errors.
    address: String,
    adjust: Adjust,
    state: Arc<Mutex<FileState>>,
}

/// Rejects a forked process. SQLite records its locks in memory. A forked child has a copy of these
/// records and none of the locks, and writes where it must not ("How To Corrupt An SQLite Database
/// File", 2.6).
fn refuse_forked() -> Result<()> {
    static FIRST: OnceLock<ForkGuard> = OnceLock::new();
    let here = ForkGuard::here()?;
    if FIRST.get_or_init(|| here).is_here() {
        return Ok(());
    }
    Err(Error::unsupported(
        "SQLite was used before a fork; start the child as a program (exec), or fork before \
         opening a store",
    ))
}

impl File {
    pub(super) async fn open(
        path: &Path,
        namespace: &str,
        create_if_missing: bool,
        adjust: Adjust,
    ) -> Result<Self> {
        refuse_forked()?;
        let path = absolute(path)?;
        let how = if create_if_missing {
            // If this fails, SQLite returns the reason. SQLite gives its other files the same
            // permissions.
            let _ = private::make_file(&path);
            OpenMode::Make { new_id: random::incarnation()?.to_string() }
        } else {
            let is_none = match std::fs::metadata(&path) {
                // An empty file would be written to.
                Ok(file) => file.len() == 0,
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            };
            if is_none {
                return Err(crate::opening::not_made(LABEL).with_detail(place(&path)));
            }
            OpenMode::Look
        };
        let begun = BootTimer.elapsed();
        let live = loop {
            match Live::open(path.clone(), adjust, how.clone()).await {
                Ok(live) => break live,
                Err(Failure::Backend(error))
                    if is_busy(&error) && BootTimer.elapsed().since(begun) < BUSY_TIMEOUT_MS =>
                {
                    BootTimer.sleep_ms(OPEN_RETRY_MS).await;
                }
                Err(failure) => {
                    let error = failure.into_error(LABEL, |error| map_error(&path, error));
                    return Err(error.with_detail(place(&path)));
                }
            }
        };
        let state = Arc::new(Mutex::new(FileState::Open(live)));
        let address = place(&path);
        Ok(Self { namespace: namespace.into(), path, address, adjust, state })
    }

    /// Runs a whole transaction that returns the write count, or nothing if it changed nothing.
    async fn in_one_message(
        &self,
        transaction: &str,
        values: Vec<Value>,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        let state = self.connected().await?;
        if matches!(&*state, FileState::Open(Live { stale_rows: true, .. })) {
            return Ok(None);
        }
        let rows = SqliteSession::new(state)
            .in_one_message(transaction, values)
            .await
            .map_err(Failure::Backend)?;
        rows.into_iter().next().map(extending::writes).transpose()
    }

    /// Returns the connection, reopened if it was lost.
    async fn connected(&self) -> Result<OwnedMutexGuard<FileState>, Failure<sqlx::Error>> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        match &*state {
            FileState::Closed => {
                return Err(Failure::from(Class::Closed.of_store(LABEL)));
            }
            // A write now would be lost with a file that was replaced or removed. Stale rows are
            // counted again, since a step may have put the store in doubt.
            FileState::Open(live) if !live.is_at(&self.path) || live.stale_rows => {
                *state = FileState::Broken;
            }
            FileState::Open(_) | FileState::Broken => {}
        }
        if matches!(*state, FileState::Broken) {
            // Opening would return no better reason, and a new file would forget everything.
            let is_there = self.path.try_exists();
            if !is_there.map_err(|error| Failure::Backend(sqlx::Error::Io(error)))? {
                return Err(Failure::from(Error::unavailable(format!(
                    "{LABEL} is missing; move the same file back (a new or an older one would \
                     repeat IDs)"
                ))));
            }
            tracing::warn!(file = %self.path.display(), "reopening the store's file");
            *state =
                FileState::Open(Live::open(self.path.clone(), self.adjust, OpenMode::Again).await?);
        }
        Ok(state)
    }
}

#[async_trait]
impl Backend for File {
    type Rows = Tx<SqliteSession>;

    fn info(&self) -> StoreInfo<'_> {
        StoreInfo {
            capabilities: CAPABILITIES,
            namespace: &self.namespace,
            label: LABEL,
            address: Some(&self.address),
        }
    }

    async fn begin(&self, access: Access) -> Result<Self::Rows, Failure<sqlx::Error>> {
        // One message to the connection's thread instead of two: messages are what wakes an idle
        // process most.
        let query = match access {
            Access::Read => "BEGIN; SELECT id, writes FROM snowmint_store",
            Access::Write | Access::Forward => {
                "BEGIN IMMEDIATE; SELECT id, writes FROM snowmint_store"
            }
        };
        let state = self.connected().await?;
        let is_mixed = matches!(&*state, FileState::Open(Live { stale_rows: true, .. }));
        let opening = OpeningQuery { query, access, clock: false, server: None };
        let rows = Tx::begin(SqliteSession::new(state), &self.namespace, opening).await?;
        // Another step may have accepted them while this one waited to begin.
        if is_mixed { rows.check_changes(mixed_rows).await } else { Ok(rows) }
    }

    async fn extend(
        &self,
        item: &Extend,
        now: UnixMillis,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        // The caller's clock decides.
        if now < item.allowed_from() {
            return Ok(None);
        }
        self.in_one_message(EXTEND, extending::values(&self.namespace, item, seen)?.into()).await
    }

    async fn renew(
        &self,
        member: Incarnation,
        presence: Presence,
        now: UnixMillis,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        let values = vec![
            Value::text(&self.namespace),
            Value::text(member.to_string()),
            Value::capped(presence.sample.get()),
            Value::capped(presence.renewals),
            Value::capped(presence.ttl_ms),
            Value::capped(now.get()),
            Value::exact("writes", seen.writes)?,
            Value::text(&*seen.id),
        ];
        self.in_one_message(RENEW, values).await
    }

    fn map_error(&self, error: sqlx::Error) -> Error {
        map_error(&self.path, error)
    }

    async fn close(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        match std::mem::replace(&mut *state, FileState::Closed) {
            FileState::Open(live) => {
                live.connection.close().await.map_err(|error| map_error(&self.path, error))
            }
            FileState::Broken | FileState::Closed => Ok(()),
        }
    }
}

impl Live {
    /// Opens the connection; the future is boxed for the reason given at [`QueryFuture`].
    fn open(
        path: PathBuf,
        adjust: Adjust,
        how: OpenMode,
    ) -> QueryFuture<'static, Result<Self, Failure<sqlx::Error>>> {
        let mut options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(matches!(how, OpenMode::Make { .. }))
            .synchronous(SqliteSynchronous::Full)
            // Where the system has it (macOS), fsync reaches the disk only with this pragma.
            .pragma("fullfsync", "1")
            .pragma("checkpoint_fullfsync", "1")
            .busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))
            .disable_statement_logging();
        if how != OpenMode::Look {
            options = options.journal_mode(SqliteJournalMode::Wal);
        }
        let options = adjust(options);
        Box::pin(async move {
            let before = FileId::of(&path);
            let mut connection = options.connect().await.map_err(Failure::Backend)?;
            // A look leaves the mode as the last writer had it.
            if how != OpenMode::Look {
                check_mode(&mut connection).await?;
            }
            let check = sqlx::query("PRAGMA quick_check(1)")
                .fetch_one(&mut connection)
                .await
                .map_err(Failure::Backend)?;
            match check.try_get(0).map_err(Failure::Backend)? {
                "ok" => {}
                found => {
                    return Err(Failure::Damaged(format!("integrity check reports {found:?}")));
                }
            }
            match how {
                OpenMode::Make { new_id } => {
                    schema::prepare(&mut connection, LABEL, new_id, schema::STEPS).await?;
                }
                OpenMode::Look => schema::look(&mut connection, LABEL).await?,
                OpenMode::Again => {}
            }
            // One transaction, or a change between the two reads would look like a difference.
            sqlx::query("BEGIN").execute(&mut connection).await.map_err(Failure::Backend)?;
            let stored = sqlx::query("SELECT row_changes FROM snowmint_store")
                .fetch_optional(&mut connection)
                .await
                .map_err(Failure::Backend)?;
            let stored = stored.ok_or_else(row_lost)?;
            let stored: i64 = stored.try_get(0).map_err(Failure::Backend)?;
            let counted = schema::counted_changes(&mut connection).await?;
            sqlx::query("ROLLBACK").execute(&mut connection).await.map_err(Failure::Backend)?;
            let stale_rows = stored != counted;
            let file_id = FileId::of(&path);
            let file_id = file_id.map_err(|error| Failure::Backend(sqlx::Error::Io(error)))?;
            // The connection may have the former file, and its writes would be lost.
            if !before.is_ok_and(|before| before == file_id) {
                return Err(Failure::from(Error::unavailable(format!(
                    "store file {path:?} was replaced while it was opened; retry"
                ))));
            }
            Ok(Self { connection, file_id, stale_rows })
        })
    }

    /// Returns whether the path names the file of this connection.
    fn is_at(&self, path: &Path) -> bool {
        FileId::of(path).is_ok_and(|found| found == self.file_id)
    }
}

/// Rejects a file without a write-ahead log: SQLite keeps the earlier mode, without an error, where
/// the file system has no shared memory. In that mode a loss of power can bring back the rollback
/// journal of an acknowledged write.
async fn check_mode(connection: &mut SqliteConnection) -> Result<(), Failure<sqlx::Error>> {
    let query = sqlx::query_scalar("PRAGMA journal_mode");
    let mode: String = query.fetch_one(connection).await.map_err(Failure::Backend)?;
    if mode == "wal" {
        return Ok(());
    }
    Err(Failure::from(Error::unsafe_store(format!(
        "{LABEL} has journal_mode = {mode} instead of wal, which can lose acknowledged writes; \
         move it to a local disk"
    ))))
}

/// Action on a file when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OpenMode {
    /// Make it, or bring it to the newest version; `new_id` names the store if it is new.
    Make { new_id: String },
    /// Nothing: it must be ready.
    Look,
    /// Nothing: this handle had it open before.
    Again,
}

/// Returns the path from the root, so that a change of the working directory has no effect.
fn absolute(path: &Path) -> Result<PathBuf> {
    if path.to_str().is_none_or(|text| text.is_empty() || text.contains('\0')) {
        let message = "SQLite path is empty, not UTF-8, or has a zero byte; write sqlite:PATH";
        return Err(Error::invalid(message).with_detail(place(path)));
    }
    if path.as_os_str() == ":memory:" {
        return Err(Error::invalid("SQLite :memory: stores nothing; write memory:"));
    }
    std::path::absolute(path).map_err(|error| {
        Error::invalid("SQLite path cannot be made absolute; write sqlite:PATH")
            .with_detail(place(path))
            .with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::identity;

    use super::*;

    /// Its connection may have the former file, which no path names any more.
    #[tokio::test]
    async fn file_replaced_during_opening_is_not_used() {
        let name = format!("snowmint-{}", random::incarnation().unwrap());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let (path, other) = (folder.join("ids.db"), folder.join("other.db"));
        for made in [&path, &other] {
            File::open(made, "default", true, identity).await.unwrap().close().await.unwrap();
        }
        let mut opening = Live::open(path.clone(), identity, OpenMode::Again);
        // The first step takes in which file the path names, and the connection comes later.
        tokio::select! {
            biased;
            opened = &mut opening => panic!("it was opened at once: {:?}", opened.map(drop)),
            () = std::future::ready(()) => {}
        }
        std::fs::rename(&other, &path).unwrap();
        let refused = opening.await.map(drop).unwrap_err();
        let Failure::Rejected(refused) = refused else { panic!("{refused:?}") };
        assert!(refused.to_string().contains("was replaced"), "{refused}");
        drop(Live::open(path, identity, OpenMode::Again).await.unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
