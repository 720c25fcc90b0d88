//! Transactions: one for each verb, and the values in their rows.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_coord::{ErrorKind, Incarnation, Mark, Result, StoreIdentity, Term};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Row, Sqlite};
use tokio::sync::OwnedMutexGuard;

use super::failure::{Failure, explain};
use super::file::{File, State};
use super::schema;

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;
/// What becomes of one.
pub(super) type Answer<'q, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'q>>;

/// What a verb answers inside its transaction, and whether it changed anything.
pub(super) type Step<T> = Result<(T, bool), Failure>;

/// One transaction, holding the handle's connection. Dropped before its end (when the caller goes
/// away in the middle) it takes the connection with it, which rolls back.
pub(super) struct Tx {
    state: OwnedMutexGuard<State>,
    file: Arc<File>,
    op: &'static str,
    /// As it was when the transaction began.
    pub(super) identity: StoreIdentity,
    /// How many more changes the rows that hold marks have seen.
    row_changes: i64,
    ended: bool,
}

impl Tx {
    /// Begins one with the statement `begin`.
    pub(super) async fn begin(
        state: OwnedMutexGuard<State>,
        file: Arc<File>,
        op: &'static str,
        begin: &'static str,
        refuse_if_went_back: bool,
    ) -> Result<Self> {
        let identity = StoreIdentity { id: String::new(), writes: 0 };
        let mut tx = Self { state, file, op, identity, row_changes: 0, ended: false };
        match tx.start(begin, refuse_if_went_back).await {
            Ok(()) => Ok(tx),
            Err(failure) => tx.end(Err(failure)).await,
        }
    }

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

    /// Runs a statement that inserts or updates rows that hold marks, and raises their `changes`.
    pub(super) async fn change_rows(&mut self, query: Statement<'_>) -> Result<(), Failure> {
        let changed = self.run(query).await?;
        self.count_changes(capped(changed));
        Ok(())
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
        let stale_rows = match &*self.state {
            State::Open(live) => live.stale_rows,
            State::Broken | State::Closed => None,
        };
        if let Some((seen, found)) = stale_rows.filter(|_| refuse) {
            return Err(Failure::Refused(ErrorKind::StoreWentBack {
                witness: format!("the number of changes to rows of {}", self.file.path.display()),
                seen,
                found,
            }));
        }
        let seen = self.file.writes_seen.load(Ordering::SeqCst);
        if self.identity.writes < seen {
            if !refuse {
                self.identity.writes = seen;
                return Ok(());
            }
            return Err(Failure::Refused(ErrorKind::StoreWentBack {
                witness: format!("the number of changes in {}", self.file.path.display()),
                seen,
                found: self.identity.writes,
            }));
        }
        Ok(())
    }

    /// Counts changes of rows that hold marks: each insert and update is one; a deleted row takes
    /// its own with it.
    pub(super) fn count_changes(&mut self, by: i64) {
        self.row_changes = self.row_changes.saturating_add(by);
    }

    /// Takes the rows as they are, however old, for the newest: they were moved forward.
    pub(super) async fn accept_rows(&mut self) -> Result<(), Failure> {
        let counted = schema::counted_changes(self.connection()?).await?;
        self.run(sqlx::query("UPDATE snowmint_store SET row_changes = ?").bind(counted)).await?;
        self.row_changes = 0;
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
                self.file.writes_seen.store(self.identity.writes, Ordering::SeqCst);
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
            sqlx::query(
                "UPDATE snowmint_store SET id = ?, writes = ?, row_changes = row_changes + ?",
            )
            .bind(self.identity.id.clone())
            .bind(integer("writes", self.identity.writes)?)
            .bind(self.row_changes),
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
