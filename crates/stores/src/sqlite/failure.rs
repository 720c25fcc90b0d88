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

/// Primary code of an error of the disk, whatever was done there.
const IOERR: u32 = 10;
/// Free bytes below which a disk is full for SQLite: the index of its log grows by 32 KiB.
const FREE_BYTES_MIN: u64 = 65_536;

/// Returns whether a full disk may be behind this primary code. SQLite has FULL (13) only for a
/// write that stops there, and IOERR or CANTOPEN where it makes or extends other files.
const fn may_lack_space(code: u32) -> bool {
    matches!(code, IOERR | 14)
}

/// Returns whether the disk of the file has no space or no inode left.
fn is_disk_full(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).is_ok_and(|disk| {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let has_no_inode = disk.f_files > 0 && disk.f_favail == 0;
        // A file system without any space, such as /proc, is not full.
        disk.f_blocks > 0 && (free < FREE_BYTES_MIN || has_no_inode)
    })
}

/// Returns the error of a disk that is not full, or full in a way that its free space does not
/// show, such as by a quota.
fn disk_failed() -> Error {
    Error::unavailable(format!(
        "disk of the {LABEL} cannot be read or written; check the disk, its free space and quota, \
         and the file's folder"
    ))
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
            None => match class(&error, || is_disk_full(path)) {
                Class::Unavailable if primary_code(&error) == Some(IOERR) => disk_failed(),
                class => class.of_store(LABEL),
            },
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

fn class(error: &sqlx::Error, is_disk_full: impl FnOnce() -> bool) -> Class {
    match (error, primary_code(error)) {
        (_, Some(code)) if may_lack_space(code) && is_disk_full() => Class::StorageFull,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_cannot_grow_is_on_a_full_disk_only_if_that_is_full() {
        // IOERR_SHMSIZE of the index of the log, and CANTOPEN of a log that cannot be made.
        for (code, else_class) in [(4_874, Class::Unavailable), (14, Class::ReadOnly)] {
            let error = || sqlx::Error::Database(Box::new(Refused(code)));
            assert_eq!(class(&error(), || true), Class::StorageFull, "{code}");
            assert_eq!(class(&error(), || false), else_class, "{code}");
        }
        // CONSTRAINT.
        let other = sqlx::Error::Database(Box::new(Refused(19)));
        assert_eq!(class(&other, || true), Class::Internal);
    }

    #[test]
    fn failed_disk_is_named_as_one() {
        let path = Path::new("/no-such-folder/ids.db");
        let error = map_error(path, sqlx::Error::Database(Box::new(Refused(4_874))));
        assert_eq!(error.kind().code(), "unavailable");
        let (message, text) = (error.message(), error.full_message());
        assert!(message.starts_with("disk of the SQLite file cannot be"), "{message}");
        assert!(text.contains("/no-such-folder/ids.db"), "{text}");
    }

    /// Error of SQLite with an extended code.
    #[derive(Debug)]
    struct Refused(u32);

    impl std::fmt::Display for Refused {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "(code: {}) disk I/O error", self.0)
        }
    }

    impl std::error::Error for Refused {}

    impl sqlx::error::DatabaseError for Refused {
        fn message(&self) -> &str {
            "disk I/O error"
        }

        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.0.to_string().into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }
}
