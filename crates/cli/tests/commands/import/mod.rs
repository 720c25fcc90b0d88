//! Moves from other systems, from their tables on real servers.
#![cfg_attr(not(feature = "real-servers"), allow(dead_code, reason = "other tests use the rest"))]

#[cfg(feature = "real-servers")]
mod redis;
#[cfg(feature = "real-servers")]
mod segments;
#[cfg(feature = "real-servers")]
mod workers;

use std::path::PathBuf;

use crate::common::{Ran, run};

#[cfg(not(feature = "real-servers"))]
#[test]
#[ignore = "moves from MariaDB, PostgreSQL, Redis and ZooKeeper: --features real-servers"]
fn moves_from_real_servers_are_left_out() {}

/// A directory with a store to move to.
struct ImportDir(tempfile::TempDir);

impl ImportDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dir(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("snowmint.db")
    }

    /// Runs `snowmint import ORIGIN --from URL …`.
    fn import(&self, origin: &str, from: &str, more: &[&str]) -> Ran {
        let fixed = ["import", origin, "--data-dir", self.dir(), "--from", from];
        run(&[&fixed[..], more].concat())
    }

    /// Returns the audit trail of changes made without a server.
    fn trail(&self) -> Vec<String> {
        let lines = std::fs::read_to_string(self.0.path().join("audit.log")).unwrap_or_default();
        lines.lines().map(str::to_owned).collect()
    }

    /// Returns the next IDs of a source.
    fn mint(&self, source: &str, count: usize) -> Vec<u64> {
        let count = count.to_string();
        let minted = run(&["mint", source, "-n", &count, "--data-dir", self.dir()]).ok();
        minted.lines().map(|id| id.parse().unwrap()).collect()
    }
}

/// Other users can read the command line while the command runs.
#[test]
fn password_on_the_command_line_is_reported() {
    let import_dir = ImportDir::new();
    let hint = "can read the password in --from";
    // This kind of URL has no tables, which is known without a connection.
    let url = "etcd://me:secret@127.0.0.1:1/leaf";
    let shown = import_dir.import("leaf", url, &[]);
    assert!(shown.code == 2 && shown.err.contains(hint), "{shown:?}");
    assert!(!shown.err.contains("secret"), "{shown:?}");
    let file = import_dir.0.path().join("url");
    std::fs::write(&file, url).unwrap();
    let kept = import_dir.import("leaf", &format!("file:{}", file.display()), &[]);
    assert!(kept.code == 2 && !kept.err.contains(hint), "{kept:?}");
    let none = import_dir.import("leaf", "etcd://me@127.0.0.1:1/leaf", &[]);
    assert!(!none.err.contains(hint), "{none:?}");
}
