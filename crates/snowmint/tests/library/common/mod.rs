//! Parts shared by the tests of this crate.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "a module of several test binaries")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use snowmint::{Mint, Options};
use snowmint_coord::{BootTimer, Timer as _};

/// A directory that is removed with its handle.
#[derive(Debug)]
pub struct TempDir(PathBuf);

static COUNT: AtomicU32 = AtomicU32::new(0);

impl TempDir {
    pub fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("snowmint-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the one mark file in it.
    pub fn mark_file(&self) -> PathBuf {
        let files: Vec<_> = std::fs::read_dir(self.0.join("workers"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "mark"))
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Remembers IDs, and fails when one repeats.
#[derive(Debug, Default)]
pub struct Seen(HashSet<u64>);

impl Seen {
    pub fn add(&mut self, id: u64) {
        assert!(self.0.insert(id), "{id} was minted twice");
    }

    #[allow(clippy::len_without_is_empty, reason = "no test asks")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Opens a store with a data directory that the previous handle may still hold for a moment.
pub async fn open_once_free(url: &str, options: impl Fn() -> Options) -> Mint {
    let opened = async {
        loop {
            match options().open(url).await {
                Err(error) if error.kind().code() == "locked" => BootTimer.sleep_ms(1).await,
                opened => return opened.unwrap(),
            }
        }
    };
    // Longer than anything takes, even on a busy machine.
    tokio::time::timeout(Duration::from_secs(60), opened).await.unwrap()
}
