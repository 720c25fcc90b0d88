//! A throwaway MariaDB.

use std::process::Command;

use super::{Folder, Running, done, free_port, is_root, succeeds, wait_for};

/// A MariaDB server with a database `ids`; gone when dropped.
#[derive(Debug)]
pub struct Mysql {
    // In this order: the server goes before its folder.
    _running: Running,
    _folder: Folder,
    port: u16,
}

impl Mysql {
    /// Starts one, with `settings` such as `innodb-flush-log-at-trx-commit=2`.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        let user = is_root().then_some("mysql");
        let folder = Folder::new(user);
        let (data, log, socket) = (folder.join("data"), folder.join("log"), folder.join("socket"));
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg("--skip-test-db").arg(format!("--datadir={}", data.display()));
        install.args(user.map(|user| format!("--user={user}")));
        // Two that start at once would take each other's temporary tables away.
        let temporary = format!("--tmpdir={}", folder.0.display());
        install.arg(&temporary);
        done(&mut install);
        let port = free_port();
        let mut command = Command::new("mariadbd");
        command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        command.args(user.map(|user| format!("--user={user}")));
        command.arg(format!("--socket={}", socket.display())).arg(format!("--port={port}"));
        command.args(["--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M"]);
        command.args(["--max-connections=400", &temporary]);
        command.args(settings.iter().map(|setting| format!("--{setting}")));
        let running = Running::start(&mut command, "TERM", &log);
        let client = |statement: &str| {
            let mut client = Command::new("mariadb");
            client.args(["--no-defaults", "-uroot", "-h127.0.0.1", "--protocol=tcp"]);
            client.args([&format!("-P{port}"), "-e", statement]);
            client
        };
        wait_for("MariaDB", &log, || succeeds(&mut client("SELECT 1")));
        done(&mut client("CREATE DATABASE ids"));
        Self { _running: running, _folder: folder, port }
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/ids", self.port)
    }
}
