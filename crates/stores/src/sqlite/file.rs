//! The file: its one connection, transactions on it, and what SQLite's errors mean.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use snowmint_coord::{
    BootTimer, Error, ErrorKind, Incarnation, Mark, Result, Retry, StoreIdentity, Term, Timer,
    random,
};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Row, Sqlite};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::schema;

/// How long one statement waits for the writers of other processes.
const BUSY_TIMEOUT_MS: u64 = 10_000;
/// Switching a new file to the write-ahead log can fail at once while another process does the
/// same, whatever the timeout: how often to try again, and how long to wait in between.
const OPEN_TRIES: u32 = 50;
const OPEN_RETRY_MS: u64 = 20;

/// One namespace in a SQLite file, and this handle's connection to it.
#[derive(Debug)]
pub(super) struct File {
    pub(super) namespace: String,
    path: PathBuf,
    pages_max: Option<u32>,
    state: Arc<Mutex<State>>,
    /// The newest identity that was read or written here.
    seen: StdMutex<StoreIdentity>,
}

#[derive(Debug)]
enum State {
    Open(Live),
    /// Lost, and to be made anew by the next verb.
    Broken,
    Closed,
}

#[derive(Debug)]
struct Live {
    connection: SqliteConnection,
    /// Which file it is, whatever the path names later.
    file_id: Option<FileId>,
}

/// Why a verb did not do what it was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// By a rule; the connection is fine.
    Refused(ErrorKind),
    /// By SQLite.
    Sqlite(sqlx::Error),
    /// A value in the file is not what was written.
    Damaged(String),
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        Self::Refused(kind)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;
/// What becomes of one.
pub(super) type Answer<'q, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'q>>;

/// What a verb answers inside its transaction, and whether it changed anything.
pub(super) type Step<T> = Result<(T, bool), Failure>;

impl File {
    pub(super) async fn open(
        path: &Path,
        namespace: &str,
        pages_max: Option<u32>,
    ) -> Result<Arc<Self>> {
        let path = absolute(path)?;
        let new_id = random::incarnation()?.to_string();
        let mut tries = 0;
        let live = loop {
            match Live::open(path.clone(), pages_max, Some(new_id.clone())).await {
                Ok(live) => break live,
                Err(Failure::Sqlite(error)) if is_busy(&error) && tries < OPEN_TRIES => {
                    tries += 1;
                    BootTimer.sleep_ms(OPEN_RETRY_MS).await;
                }
                Err(failure) => return Err(explain("open store", &path, failure)),
            }
        };
        let seen = StdMutex::new(StoreIdentity { id: String::new(), writes: 0 });
        let state = Arc::new(Mutex::new(State::Open(live)));
        let file = Arc::new(Self { namespace: namespace.into(), path, pages_max, state, seen });
        file.read("open store").await?.end(Ok(((), false))).await?;
        Ok(file)
    }

    /// Begins a consistent read.
    pub(super) async fn read(self: &Arc<Self>, op: &'static str) -> Result<Tx> {
        self.begin(op, "BEGIN", true).await
    }

    /// Begins the atomic step of a verb that writes: no other writer until it ends.
    pub(super) async fn write(self: &Arc<Self>, op: &'static str) -> Result<Tx> {
        self.begin(op, "BEGIN IMMEDIATE", true).await
    }

    /// As [`write`](Self::write), on a store that went back too: for the operator's way out.
    pub(super) async fn write_after_going_back(self: &Arc<Self>, op: &'static str) -> Result<Tx> {
        self.begin(op, "BEGIN IMMEDIATE", false).await
    }

    async fn begin(
        self: &Arc<Self>,
        op: &'static str,
        begin: &'static str,
        refuse_if_went_back: bool,
    ) -> Result<Tx> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        match &*state {
            State::Closed => {
                let what = self.path.display().to_string();
                return Err(Error::new(op, ErrorKind::Closed { what }));
            }
            // Written to now, a file that was replaced or removed would take the change with it.
            State::Open(live) if live.file_id != FileId::of(&self.path) => *state = State::Broken,
            State::Open(_) | State::Broken => {}
        }
        if matches!(*state, State::Broken) {
            // Opening would say no more than that it cannot; making a new file would forget all.
            if !self.path.exists() {
                let what = format!("{} (the file is gone)", self.path.display());
                return Err(Error::new(op, ErrorKind::Unavailable { what }));
            }
            tracing::warn!(file = %self.path.display(), "opening the store's file again");
            let live = Live::open(self.path.clone(), self.pages_max, None)
                .await
                .map_err(|failure| explain(op, &self.path, failure))?;
            *state = State::Open(live);
        }
        let identity = StoreIdentity { id: String::new(), writes: 0 };
        let mut tx = Tx { state, file: Arc::clone(self), op, identity, ended: false };
        match tx.start(begin, refuse_if_went_back).await {
            Ok(()) => Ok(tx),
            Err(failure) => tx.end(Err(failure)).await,
        }
    }

    pub(super) async fn close(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        match std::mem::replace(&mut *state, State::Closed) {
            State::Open(live) => live
                .connection
                .close()
                .await
                .map_err(|error| explain("close", &self.path, Failure::Sqlite(error))),
            State::Broken | State::Closed => Ok(()),
        }
    }

    fn seen(&self) -> StoreIdentity {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, identity: &StoreIdentity) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = identity.clone();
    }
}

impl Live {
    /// Boxed for the reason that [`Tx::run`] is.
    fn open(path: PathBuf, pages_max: Option<u32>, make: Option<String>) -> Answer<'static, Self> {
        let mut options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(make.is_some())
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // Where the system has it (macOS), fsync reaches the disk only so.
            .pragma("fullfsync", "1")
            .pragma("checkpoint_fullfsync", "1")
            .busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))
            .disable_statement_logging();
        if let Some(pages) = pages_max {
            options = options.pragma("max_page_count", pages.to_string());
        }
        Box::pin(async move {
            let mut connection = options.connect().await?;
            let check = sqlx::query("PRAGMA quick_check(1)").fetch_one(&mut connection).await?;
            match check.try_get(0)? {
                "ok" => {}
                found => return Err(Failure::Damaged(found.to_owned())),
            }
            if let Some(new_id) = make {
                schema::prepare(&mut connection, path.display().to_string(), new_id).await?;
            }
            Ok(Self { connection, file_id: FileId::of(&path) })
        })
    }
}

/// One transaction, holding the handle's connection. Dropped before its end (when the caller goes
/// away in the middle) it takes the connection with it, which rolls back.
pub(super) struct Tx {
    state: OwnedMutexGuard<State>,
    file: Arc<File>,
    op: &'static str,
    /// As it was when the transaction began.
    pub(super) identity: StoreIdentity,
    ended: bool,
}

impl Tx {
    pub(super) fn namespace(&self) -> String {
        self.file.namespace.clone()
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, Failure> {
        match &mut *self.state {
            State::Open(live) => Ok(&mut live.connection),
            State::Broken | State::Closed => Err(Failure::Refused(ErrorKind::Internal {
                what: "a transaction without a connection".into(),
            })),
        }
    }

    /// Runs a statement and says how many rows it touched.
    ///
    /// Boxed, as the two below: the compiler cannot prove of sqlx's own futures, once they are part
    /// of longer ones, that they are `Send`.
    pub(super) fn run<'t>(&'t mut self, query: Statement<'t>) -> Answer<'t, u64> {
        Box::pin(async move { Ok(query.execute(self.connection()?).await?.rows_affected()) })
    }

    /// The one row of a query, if there is one.
    pub(super) fn row<'t>(&'t mut self, query: Statement<'t>) -> Answer<'t, Option<SqliteRow>> {
        Box::pin(async move { Ok(query.fetch_optional(self.connection()?).await?) })
    }

    /// The row of a query that always has one.
    pub(super) async fn one(&mut self, query: Statement<'_>) -> Result<SqliteRow, Failure> {
        let row = self.row(query).await?;
        row.ok_or_else(|| Failure::Damaged("a row is missing".into()))
    }

    /// All rows of a query.
    pub(super) fn rows<'t>(&'t mut self, query: Statement<'t>) -> Answer<'t, Vec<SqliteRow>> {
        Box::pin(async move { Ok(query.fetch_all(self.connection()?).await?) })
    }

    async fn start(&mut self, begin: &'static str, refuse: bool) -> Result<(), Failure> {
        self.run(sqlx::query(begin)).await?;
        let row = self.one(sqlx::query("SELECT id, writes FROM snowmint_store")).await?;
        self.identity = StoreIdentity { id: row.try_get(0)?, writes: number(&row, 1)? };
        let seen = self.file.seen();
        if self.identity.writes < seen.writes {
            if !refuse {
                self.identity.writes = seen.writes;
                return Ok(());
            }
            return Err(Failure::Refused(ErrorKind::StoreWentBack {
                witness: format!("the number of changes in {}", self.file.path.display()),
                seen: seen.writes,
                found: self.identity.writes,
            }));
        }
        Ok(())
    }

    /// `writes` once this transaction has changed something.
    pub(super) fn writes_after(&self) -> u64 {
        self.identity.writes.saturating_add(1)
    }

    /// Commits a change and counts it; rolls back everything else.
    pub(super) async fn end<T>(mut self, answer: Step<T>) -> Result<T> {
        let answer = match answer {
            Ok((answer, true)) => self.commit().await.map(|()| answer),
            Ok((answer, false)) => self.roll_back().await.map(|()| answer),
            Err(Failure::Refused(kind)) => {
                // Should it fail, the connection is dropped below, which rolls back as well.
                match self.roll_back().await {
                    Ok(()) => Err(Failure::Refused(kind)),
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(answer) => {
                self.ended = true;
                self.file.remember(&self.identity);
                Ok(answer)
            }
            Err(failure) => {
                self.ended = matches!(failure, Failure::Refused(_));
                Err(explain(self.op, &self.file.path, failure))
            }
        }
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.identity.writes = self.writes_after();
        self.run(
            sqlx::query("UPDATE snowmint_store SET id = ?, writes = ?")
                .bind(self.identity.id.clone())
                .bind(integer("writes", self.identity.writes)?),
        )
        .await?;
        self.run(sqlx::query("COMMIT")).await?;
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<(), Failure> {
        self.run(sqlx::query("ROLLBACK")).await?;
        Ok(())
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if !self.ended {
            *self.state = State::Broken;
        }
    }
}

/// Device and number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    /// None when there is no file, or the system has no such numbers.
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = std::fs::metadata(path).ok()?;
            Some(Self(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            None
        }
    }
}

/// The path from the root, so that a change of the working directory changes nothing.
fn absolute(path: &Path) -> Result<PathBuf> {
    let shown = path.display();
    if path.to_str().is_none_or(|text| text.is_empty() || text.contains('\0')) {
        let what = format!("{shown:?} is no path of a SQLite file; write sqlite:PATH");
        return Err(Error::invalid("open store", what));
    }
    if path.as_os_str() == ":memory:" {
        let what = "SQLite in memory keeps nothing; the URL of a store in memory is memory:";
        return Err(Error::invalid("open store", what));
    }
    std::path::absolute(path).map_err(|error| {
        let what = format!("{shown:?} is no path of a SQLite file");
        Error::invalid("open store", what).with_source(error)
    })
}

fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

/// SQLite's primary result code: <https://www.sqlite.org/rescode.html>.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<u32>().ok().map(|extended| extended & 0xff)
}

/// Says a failure in the words of the domain.
fn explain(op: &'static str, path: &Path, failure: Failure) -> Error {
    let what = path.display().to_string();
    let error = match failure {
        Failure::Refused(kind) => return Error::new(op, kind),
        Failure::Damaged(found) => {
            return Error::new(op, ErrorKind::Corrupt { what: format!("{what} ({found})") });
        }
        Failure::Sqlite(error) => error,
    };
    let kind = match (&error, primary_code(&error)) {
        (_, Some(5 | 6)) => {
            let what = format!("{what}, kept busy by other writers for {BUSY_TIMEOUT_MS} ms,");
            return Error::new(op, ErrorKind::Unavailable { what })
                .with_retry(Retry::AfterMs(OPEN_RETRY_MS))
                .with_source(error);
        }
        // PERM, READONLY, CANTOPEN, AUTH
        (_, Some(3 | 8 | 14 | 23)) => ErrorKind::Unwritable { what },
        (_, Some(13)) => ErrorKind::StorageFull { what },
        // CORRUPT, NOTADB; and values of another type than was written.
        (_, Some(11 | 26))
        | (
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound,
            _,
        ) => ErrorKind::Corrupt { what },
        // NOMEM, INTERRUPT, IOERR, PROTOCOL; and a connection that is gone.
        (_, Some(7 | 9 | 10 | 15))
        | (sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed, _) => {
            ErrorKind::Unavailable { what }
        }
        _ => ErrorKind::Internal { what: format!("SQLite refused a statement on {what}") },
    };
    Error::new(op, kind).with_source(error)
}

/// A number for a column: SQLite's integers have 63 bits and a sign.
pub(super) fn integer(what: &str, value: u64) -> Result<i64, Failure> {
    i64::try_from(value).map_err(|_| {
        Failure::Refused(ErrorKind::Invalid {
            what: format!("{what} {value} is above {}, the highest that can be kept", i64::MAX),
        })
    })
}

/// A number that is only ever shown or compared: the highest that can be kept stands for all above.
pub(super) fn capped(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A column that was written as an unsigned number.
pub(super) fn number(row: &SqliteRow, index: usize) -> Result<u64, Failure> {
    let value: i64 = row.try_get(index)?;
    u64::try_from(value).map_err(|_| Failure::Damaged(format!("{value} where no sign can be")))
}

pub(super) fn mark(row: &SqliteRow, index: usize) -> Result<Mark, Failure> {
    number(row, index).map(Mark::new)
}

pub(super) fn term(row: &SqliteRow, index: usize) -> Result<Term, Failure> {
    number(row, index).map(Term::new)
}

pub(super) fn incarnation(text: &str) -> Result<Incarnation, Failure> {
    text.parse().map_err(|_| Failure::Damaged(format!("{text:?} where an incarnation should be")))
}
