//! SQLite, compiled in: one file, safe for several processes of one machine.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | yes |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! **Storage.** Write-ahead log with `synchronous=FULL`: a change is on disk before the reply. Each
//! handle has one connection. Each verb that writes is one `BEGIN IMMEDIATE` transaction, so
//! writers of all processes queue, for ten seconds at most. Keep the file on a local disk: locks of
//! network file systems cannot be trusted. Copy it only with all handles closed, or with SQLite's
//! own backup. Keep a copied or restored file together with its `-wal` file, or without any.
//!
//! The tables are those of all SQL stores, in SQLite's dialect; times are by the callers' clocks.
//!
//! **Store rollback.** Each handle remembers the highest `writes` it has seen. Before each change
//! it checks that the file at its path is still the one that it opened. The rows with marks count
//! their `changes`, and the store's row has the total (`row_changes`). A file restored next to the
//! `-wal` file of another state has old rows under a new store row, so the totals differ. Then no
//! count tells what is lost: the first process that finds this puts all namespaces in doubt. In all
//! these cases the file is rejected until an operator moves the store forward, each namespace of
//! it.

mod failure;
mod file;
mod one_message;
mod place;
mod schema;
mod session;
mod state;

use std::convert::identity;
use std::path::Path;
use std::sync::Arc;

use snowmint_coord::verbs::BackendStore;
use snowmint_coord::{Error, Result, Store};

use crate::opening::Settings;
pub use file::CAPABILITIES;
use file::{Adjust, File};

/// Opens the file at `path` for one namespace, and makes it if it is missing and may be made; its
/// directory must exist.
///
/// # Errors
/// - `Invalid` for an impossible path or namespace.
/// - `StoreReadOnly`, `StorageFull`.
/// - `UnsafeStore` when the file cannot have a write-ahead log.
/// - `Corrupt` when the file is damaged or not a SQLite file.
/// - `Unsupported` when a newer Snowmint made it.
/// - `NotFound` when it is missing and must not be made.
/// - `Unavailable` when other processes keep it busy.
pub async fn open(path: &Path, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(open_with(path, namespace, settings, identity).await?))
}

/// Opens the file that a URL names.
pub(crate) async fn open_url(
    url: &str,
    namespace: &str,
    settings: Settings,
) -> Result<Arc<dyn Store>> {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    // `sqlite://PATH` is the form of other programs; the path begins after the slashes.
    let path = path.strip_prefix("//").unwrap_or(path);
    // Other programs read parameters there; here they would be a part of the file's name.
    if path.contains('?') {
        return Err(Error::invalid(
            "URL of a SQLite file has a question mark, but takes no parameters; remove it",
        ));
    }
    open(path.as_ref(), namespace, settings).await
}

/// Opens like [`open`], with changed options of the connection.
async fn open_with(
    path: &Path,
    namespace: &str,
    settings: Settings,
    adjust: Adjust,
) -> Result<BackendStore<File>> {
    crate::opening::check_namespace(namespace)?;
    Ok(BackendStore::over(File::open(path, namespace, settings.create_if_missing, adjust).await?))
}

#[cfg(test)]
mod tests;
