//! Mapping of SQLite's errors to errors of the domain.

use std::path::Path;

use snowmint_coord::{Error, Retry};

use super::place::{BUSY_TIMEOUT_MS, LABEL, place};
use crate::failure::Class;
use crate::sql::making::{tables_lost, tables_outdated};

/// Time after which a caller that found the file busy may try again, in milliseconds.
const BUSY_RETRY_MS: u64 = 20;

pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

/// Returns SQLite's primary result code: <https://www.sqlite.org/rescode.html>.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<u32>().ok().map(|extended| extended & 0xff)
}

/// Maps SQLite's error to an error of the domain.
pub(super) fn map_error(path: &Path, error: sqlx::Error) -> Error {
    let mapped = if is_busy(&error) {
        Error::unavailable(format!(
            "{LABEL} was locked by other writers for {BUSY_TIMEOUT_MS} ms; retry"
        ))
        .with_retry(Retry::AfterMs(BUSY_RETRY_MS))
    } else {
        match missing(&error) {
            Some(Missing::Table) => tables_lost(LABEL),
            Some(Missing::Column) => tables_outdated(LABEL),
            None => class(&error).of_store(LABEL),
        }
    };
    mapped.with_detail(place(path)).with_source(error)
}

/// Part of the tables that a statement did not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Table,
    Column,
}

/// Returns the missing part of the tables. SQLite has only the general code 1 for it.
fn missing(error: &sqlx::Error) -> Option<Missing> {
    if primary_code(error) != Some(1) {
        return None;
    }
    let message = error.as_database_error()?.message();
    let mentions = |words: &str| message.contains(words);
    if mentions("no such table") {
        Some(Missing::Table)
    } else if mentions("no such column") || mentions("has no column named") {
        Some(Missing::Column)
    } else {
        None
    }
}

fn class(error: &sqlx::Error) -> Class {
    match (error, primary_code(error)) {
        // PERM, READONLY, CANTOPEN, AUTH.
        (_, Some(3 | 8 | 14 | 23)) => Class::ReadOnly,
        (_, Some(13)) => Class::StorageFull,
        // CORRUPT, NOTADB; and values of an unexpected type.
        (_, Some(11 | 26))
        | (
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound,
            _,
        ) => Class::Corrupt,
        // NOMEM, INTERRUPT, IOERR, PROTOCOL, SCHEMA; and a lost connection.
        (_, Some(7 | 9 | 10 | 15 | 17))
        | (sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed, _) => {
            Class::Unavailable
        }
        _ => Class::Internal,
    }
}
