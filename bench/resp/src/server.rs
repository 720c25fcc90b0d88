//! `snowmint serve` on free ports, with data of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running server; it and its data are gone when dropped.
pub struct Snowmint {
    child: Child,
    folder: PathBuf,
    pub port: u16,
}

/// Counters by key, as in Redis.
pub const COUNTERS: &str = "[sources.pages]\nkind = \"counter\"\ncounter = { keys = \"alone\" }\n\
                      [resp]\ndefault_counter_source = \"pages\"\n\
                      [counters]\nmemory_max_bytes = 4000000000\n";

/// A snowflake whose ticks are never full.
pub const WIDE: &str = "[sources.wide]\nlayout = \"time=41,worker=4,sequence=18\"\n";

impl Snowmint {
    pub fn start(binary: &str, config: &str) -> Self {
        let name = format!("snowmint-bench-{}-{}", std::process::id(), config.len());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("config.toml"), config).expect("a file");
        let (child, port) = serve(binary, &folder);
        Self { child, folder, port }
    }

    /// `kill -9`, and the same once more on the same data.
    pub fn kill_and_restart(&mut self, binary: &str) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it runs");
        (self.child, self.port) = serve(binary, &self.folder);
    }

    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let row = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = row.and_then(|row| row.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("Linux says how much memory it has") * 1024
    }
}

fn serve(binary: &str, folder: &Path) -> (Child, u16) {
    let mut child = Command::new(binary)
        .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"])
        .arg("--config")
        .arg(folder.join("config.toml"))
        .arg("--data-dir")
        .arg(folder.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{binary}: {error}; build it, or say --snowmint PATH"));
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it was asked for");
    BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.unwrap_or_else(|| panic!("serve said: {line}"));
    (child, port)
}

impl Drop for Snowmint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
