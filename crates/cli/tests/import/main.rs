//! Moves from other systems, from their own tables on real servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[path = "../common/mod.rs"]
mod common;
mod redis;
mod segments;
#[path = "../common/server.rs"]
mod server;
mod workers;

use std::path::PathBuf;

use common::{Ran, run};

/// A directory with a store to move to.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dir(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("snowmint.db")
    }

    /// `snowmint import ORIGIN --from URL …`.
    fn import(&self, origin: &str, from: &str, more: &[&str]) -> Ran {
        let fixed = ["import", origin, "--data-dir", self.dir(), "--from", from];
        run(&[&fixed[..], more].concat())
    }

    /// What was left of changes that no server made.
    fn trail(&self) -> Vec<String> {
        let lines = std::fs::read_to_string(self.0.path().join("audit.log")).unwrap_or_default();
        lines.lines().map(str::to_owned).collect()
    }

    /// The IDs that a source mints next.
    fn mint(&self, source: &str, count: usize) -> Vec<u64> {
        let count = count.to_string();
        let minted = run(&["mint", source, "-n", &count, "--data-dir", self.dir()]).ok();
        minted.lines().map(|id| id.parse().unwrap()).collect()
    }
}
