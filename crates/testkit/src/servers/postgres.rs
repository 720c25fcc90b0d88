//! A throwaway PostgreSQL.

use std::path::PathBuf;
use std::process::Command;

use super::{Folder, Running, done, free_port, is_root, succeeds, wait_for};

/// A PostgreSQL server; gone when dropped.
#[derive(Debug)]
pub struct Postgres {
    // In this order: the server goes before its folder.
    _running: Running,
    _folder: Folder,
    port: u16,
}

impl Postgres {
    /// Starts one, with `settings` such as `fsync=off`.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        let user = is_root().then_some("postgres");
        let folder = Folder::new(user);
        let (data, log) = (folder.join("data"), folder.join("log"));
        done(as_user(user, "initdb").arg("-D").arg(&data).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]));
        let port = free_port();
        let mut command = as_user(user, "postgres");
        command.arg("-D").arg(&data).arg("-k").arg(&folder.0);
        command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", "max_connections=400"]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let running = Running::start(&mut command, "INT", &log);
        wait_for("PostgreSQL", &log, || {
            let mut probe = Command::new(program("pg_isready"));
            succeeds(probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]))
        });
        Self { _running: running, _folder: folder, port }
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// The program of the newest version on this machine.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin").join(name)).max();
    newest.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

fn as_user(user: Option<&str>, name: &str) -> Command {
    let Some(user) = user else { return Command::new(program(name)) };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--init-groups"]).arg(program(name));
    command
}
