//! Tables in another system's database: MySQL or PostgreSQL.

use std::path::PathBuf;

use snowmint_coord::verbs::Access;
use snowmint_coord::{Error, Result};
use sqlx::mysql::MySqlPool;

use crate::failure::{Class, Label, at};
use crate::mysql::{self, MySqlSession};
use crate::postgres::{self, Connections, PostgresSession};
use crate::scheme::feature_of;
use crate::sql::{Session as _, Value};

/// A database of another system.
#[derive(Debug)]
pub(super) struct Tables {
    pool: DatabasePool,
    pub(super) label: Label,
}

#[derive(Debug)]
enum DatabasePool {
    MySql(MySqlPool),
    Postgres(Connections),
}

/// A transaction in the database. Dropped before its end, it rolls back.
pub(super) struct LegacyStep<'t> {
    session: LegacySession,
    tables: &'t Tables,
}

enum LegacySession {
    MySql(MySqlSession),
    Postgres(PostgresSession),
}

/// A row, each column as text, since a column may contain anything.
pub(super) type TextRow = Vec<Option<String>>;

impl Tables {
    /// Returns the database without connecting.
    pub(super) fn open(url: &str) -> Result<Self> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::unsupported(
                "legacy database needs a Tokio runtime; call inside one",
            ));
        }
        match feature_of(url) {
            Some("mysql") => {
                let label = Label::of("MySQL", url);
                match mysql::pool(url, &label) {
                    Ok(pool) => Ok(Self { pool: DatabasePool::MySql(pool), label }),
                    Err(error) => Err(label.locate(error)),
                }
            }
            Some("postgres") => {
                let label = Label::of("PostgreSQL", url);
                match Connections::to(url, &label) {
                    Ok(pool) => Ok(Self { pool: DatabasePool::Postgres(pool), label }),
                    Err(error) => Err(label.locate(error)),
                }
            }
            _ => Err(Error::invalid(
                "URL of a legacy database names neither MySQL nor PostgreSQL; write \
                 mysql://USER:PASSWORD@HOST/DATABASE or postgres://…",
            )
            .with_detail(at(&crate::opening::shown(url)))),
        }
    }

    /// Returns the location of the database, whatever the user.
    pub(super) fn location(&self) -> String {
        let shown = |host: &str, port: u16, socket: Option<&PathBuf>, database: Option<&str>| {
            let at = socket.map(|socket| socket.display().to_string());
            let at = at.unwrap_or_else(|| format!("{}:{port}", host.to_lowercase()));
            format!("{at}/{}", database.unwrap_or_default())
        };
        match &self.pool {
            DatabasePool::MySql(pool) => {
                let to = pool.connect_options();
                let at = shown(to.get_host(), to.get_port(), to.get_socket(), to.get_database());
                format!("MySQL at {at}")
            }
            DatabasePool::Postgres(connections) => {
                let to = connections.options();
                let at = shown(to.get_host(), to.get_port(), to.get_socket(), to.get_database());
                format!("PostgreSQL at {at}")
            }
        }
    }

    pub(super) async fn begin(&self, access: Access) -> Result<LegacyStep<'_>> {
        let session = match &self.pool {
            DatabasePool::MySql(pool) => {
                MySqlSession::begin(pool, access).await.map(LegacySession::MySql)
            }
            DatabasePool::Postgres(pool) => {
                PostgresSession::begin(pool, access).await.map(LegacySession::Postgres)
            }
        };
        let session = session.map_err(|error| self.map_error(error))?;
        Ok(LegacyStep { session, tables: self })
    }

    /// Returns whether the database takes no writes: usually a replica, which may lag behind its
    /// primary.
    pub(super) async fn is_read_only(&self) -> Result<bool> {
        let query = match &self.pool {
            DatabasePool::MySql(_) => "SELECT CAST(@@global.read_only AS CHAR)",
            DatabasePool::Postgres(_) => {
                "SELECT CASE WHEN pg_is_in_recovery() THEN '1' ELSE '0' END"
            }
        };
        let mut step = self.begin(Access::Read).await?;
        let rows = step.fetch(query.into(), Vec::new()).await?;
        step.roll_back().await?;
        let text = rows.first().and_then(|row| row.first()).cloned().flatten();
        // Some versions report a number, some a word.
        Ok(!matches!(text.as_deref(), None | Some("0" | "OFF")))
    }

    fn map_error(&self, error: sqlx::Error) -> Error {
        let map_error = match &self.pool {
            DatabasePool::MySql(_) => mysql::map_error,
            DatabasePool::Postgres(_) => postgres::map_error,
        };
        self.label.locate(map_error(&self.label, error, Class::of_legacy))
    }
}

impl LegacyStep<'_> {
    /// Returns the name of the text type in a cast.
    pub(super) const fn text(&self) -> &'static str {
        match self.session {
            LegacySession::MySql(_) => "CHAR",
            LegacySession::Postgres(_) => "TEXT",
        }
    }

    pub(super) async fn fetch(
        &mut self,
        query: String,
        values: Vec<Value>,
    ) -> Result<Vec<TextRow>> {
        let rows = match &mut self.session {
            LegacySession::MySql(session) => session.fetch(query, values).await,
            LegacySession::Postgres(session) => session.fetch(query, values).await,
        };
        let text = |value| match value {
            Value::Text(text) => Some(text),
            Value::Integer(number) => Some(number.to_string()),
            Value::Null => None,
        };
        let rows = rows.map_err(|error| self.map_error(error))?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    /// Selects the columns of all rows of a table, or selects and locks the rows with `only` in the
    /// first column.
    pub(super) async fn select(
        &mut self,
        table: &str,
        columns: &[&str],
        only: Option<&str>,
    ) -> Result<Vec<TextRow>> {
        let cast = |column: &&str| format!("CAST({column} AS {})", self.text());
        let shown: Vec<_> = columns.iter().map(cast).collect();
        let key = columns.first().copied().unwrap_or_default();
        let (rest, values) = match only {
            None => (format!("ORDER BY {key}"), Vec::new()),
            Some(only) => (format!("WHERE {key} = ? FOR UPDATE"), vec![Value::text(only)]),
        };
        let query = format!("SELECT {} FROM {table} {rest}", shown.join(", "));
        self.fetch(query, values).await
    }

    /// Returns the number that MySQL would give to the table's next row; 0 if the database does not
    /// report it.
    pub(super) async fn next_number(&mut self, table: &str) -> Result<u64> {
        if matches!(self.session, LegacySession::Postgres(_)) {
            return Ok(0);
        }
        // The value in information_schema can be a day old.
        let rows = self.fetch(format!("SHOW CREATE TABLE {table}"), Vec::new()).await?;
        let made = rows.first().and_then(|row| row.get(1)).and_then(Option::as_deref);
        Ok(made.and_then(next_of).unwrap_or(0))
    }

    /// Runs a statement that must touch exactly one row.
    pub(super) async fn change(&mut self, statement: String, values: Vec<Value>) -> Result<()> {
        let touched = match &mut self.session {
            LegacySession::MySql(session) => session.run(statement, values).await,
            LegacySession::Postgres(session) => session.run(statement, values).await,
        };
        match touched.map_err(|error| self.map_error(error))? {
            1 => Ok(()),
            touched => Err(self.tables.label.locate(Error::unavailable(format!(
                "legacy database {} changed {touched} rows, expected 1; retry",
                self.tables.label
            )))),
        }
    }

    /// Commits the transaction.
    pub(super) async fn commit(self) -> Result<()> {
        let ended = match self.session {
            LegacySession::MySql(session) => session.commit().await,
            LegacySession::Postgres(session) => session.commit().await,
        };
        ended.map_err(|error| self.tables.map_error(error))
    }

    /// Ends the transaction without a change.
    pub(super) async fn roll_back(self) -> Result<()> {
        let ended = match self.session {
            LegacySession::MySql(session) => session.roll_back().await,
            LegacySession::Postgres(session) => session.roll_back().await,
        };
        ended.map_err(|error| self.tables.map_error(error))
    }

    fn map_error(&self, error: sqlx::Error) -> Error {
        let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
        // Codes for a missing table and a missing column.
        if matches!(code.as_ref(), "42S02" | "42P01" | "42S22" | "42703") {
            let label = &self.tables.label;
            let message =
                format!("legacy database {label} lacks this table or column; check system and URL");
            return label.locate(Error::not_found(message)).with_source(error);
        }
        self.tables.map_error(error)
    }
}

/// Parses the next number from the statement that makes a table. The options are on one line, where
/// no text written by users precedes this option.
fn next_of(statement: &str) -> Option<u64> {
    let options = statement.lines().find(|line| line.starts_with(") ENGINE="))?;
    let (_, rest) = options.split_once(" AUTO_INCREMENT=")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::next_of;

    #[test]
    fn the_next_number_stands_among_the_options() {
        let made = |options: &str| {
            format!(
                "CREATE TABLE `WORKER_NODE` (\n  `ID` bigint(20) NOT NULL AUTO_INCREMENT,\n  `X` int \
                     COMMENT ' AUTO_INCREMENT=9',\n  PRIMARY KEY (`ID`)\n{options}"
            )
        };
        for (options, next) in [
            (") ENGINE=InnoDB AUTO_INCREMENT=6 DEFAULT CHARSET=latin1", Some(6)),
            (") ENGINE=InnoDB AUTO_INCREMENT=6", Some(6)),
            (") ENGINE=InnoDB DEFAULT CHARSET=latin1", None),
            (") ENGINE=InnoDB AUTO_INCREMENT=7 COMMENT=' AUTO_INCREMENT=9'\n/*!50100 */", Some(7)),
        ] {
            assert_eq!(next_of(&made(options)), next, "{options}");
        }
        assert_eq!(next_of(""), None);
    }
}
