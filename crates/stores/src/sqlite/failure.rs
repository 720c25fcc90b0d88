//! Mapping of SQLite's errors to errors of the domain.

use std::path::Path;

use snowmint_coord::{Error, Retry};

use super::file::BUSY_TIMEOUT_MS;
use crate::failure::Class;

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
pub(super) fn explain(path: &Path, error: sqlx::Error) -> Error {
    let explained = if is_busy(&error) {
        Error::unavailable(format!(
            "{path:?} was locked by other writers for {BUSY_TIMEOUT_MS} ms; retry"
        ))
        .with_retry(Retry::AfterMs(BUSY_RETRY_MS))
    } else {
        class(&error).of_store(&format!("{path:?}"))
    };
    explained.with_source(error)
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
        // NOMEM, INTERRUPT, IOERR, PROTOCOL; and a lost connection.
        (_, Some(7 | 9 | 10 | 15))
        | (sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed, _) => {
            Class::Unavailable
        }
        _ => Class::Internal,
    }
}
