//! State of this handle's one connection.

use std::path::Path;

use sqlx::sqlite::SqliteConnection;

#[derive(Debug)]
pub(crate) enum FileState {
    Open(Live),
    /// Lost; the next verb reopens it.
    Broken,
    Closed,
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(super) connection: SqliteConnection,
    /// Identity of the file, whatever the path names later.
    pub(super) file_id: Option<FileId>,
    /// Whether some rows were older than the store's row when it was opened.
    pub(super) stale_rows: bool,
}

/// Device and number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    /// Returns none if the system has no such numbers.
    pub(super) fn of(path: &Path) -> std::io::Result<Option<Self>> {
        let metadata = std::fs::metadata(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(Some(Self(metadata.dev(), metadata.ino())))
        }
        #[cfg(not(unix))]
        {
            drop(metadata);
            Ok(None)
        }
    }
}
