//! SQLite, compiled in: one file, safe for several processes of one machine.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | yes |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! **Storage.** Write-ahead log with `synchronous=FULL`: a change is on disk before it is answered.
//! Each handle has one connection; each verb that writes is one `BEGIN IMMEDIATE` transaction, so
//! that writers of all processes queue up, for ten seconds at most. Keep the file on a local disk:
//! the locks of network file systems cannot be trusted. Copy it only with all handles closed, or
//! with SQLite's own backup; a copied or restored file goes with its `-wal` file or without any.
//!
//! The tables are those of all SQL stores, each in its own words; times are by the callers' clocks.
//!
//! **Going back.** Each handle remembers the highest `writes` it has seen, and looks before each
//! change whether the file at its path is still the one that it opened. The rows that hold marks
//! count their `changes`, and the store's row counts them all (`row_changes`): a file that was put
//! back beside a `-wal` file that is not its own has old rows under a new store row, and the counts
//! differ. All of these are refused until an operator moves the store forward, each namespace of it.

mod at_once;
mod failure;
mod file;
mod schema;
mod session;

use std::path::Path;
use std::sync::Arc;

use snowmint_coord::verbs::StoreOver;
use snowmint_coord::{Capabilities, ClockOf, PresenceBy, Result, Store};

use crate::Settings;
use file::File;

/// What a SQLite file can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: true,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// Opens the file at `path` for one namespace, and makes it if there is none and it may be made; its
/// directory must exist.
///
/// # Errors
/// `Invalid` for an impossible path or namespace, `Unwritable`, `StorageFull`, `Corrupt` when the
/// file is damaged or no SQLite file, `Unsupported` when a newer Snowmint made it, `NotFound` when
/// there is none and none may be made, `Unavailable` when other processes keep it busy.
pub async fn open(path: &Path, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(open_with(path, namespace, settings, None).await?))
}

/// As [`open`], where the file may have `pages_max` pages of 4 KiB.
async fn open_with(
    path: &Path,
    namespace: &str,
    settings: Settings,
    pages_max: Option<u32>,
) -> Result<StoreOver<File>> {
    crate::check_namespace(namespace)?;
    Ok(StoreOver::over(File::open(path, namespace, settings.make, pages_max).await?))
}

#[cfg(test)]
mod tests;
