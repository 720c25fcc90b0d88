//! Mapping of SQLite's errors to errors of the domain.

use std::path::Path;

use snowmint_coord::{Error, ErrorKind, Retry};

use super::file::BUSY_TIMEOUT_MS;

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
pub(super) fn explain(op: &'static str, path: &Path, error: sqlx::Error) -> Error {
    let what = path.display().to_string();
    let kind = match (&error, primary_code(&error)) {
        (_, Some(5 | 6)) => {
            let what = format!("{what}, kept busy by other writers for {BUSY_TIMEOUT_MS} ms,");
            return Error::new(op, ErrorKind::Unavailable { what })
                .with_retry(Retry::AfterMs(BUSY_RETRY_MS))
                .with_source(error);
        }
        // PERM, READONLY, CANTOPEN, AUTH.
        (_, Some(3 | 8 | 14 | 23)) => ErrorKind::Unwritable { what },
        (_, Some(13)) => ErrorKind::StorageFull { what },
        // CORRUPT, NOTADB; and values of an unexpected type.
        (_, Some(11 | 26))
        | (
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound,
            _,
        ) => ErrorKind::Corrupt { what },
        // NOMEM, INTERRUPT, IOERR, PROTOCOL; and a lost connection.
        (_, Some(7 | 9 | 10 | 15))
        | (sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed, _) => {
            ErrorKind::Unavailable { what }
        }
        _ => ErrorKind::Internal { what: format!("SQLite refused a statement on {what}") },
    };
    Error::new(op, kind).with_source(error)
}
