//! A throwaway MariaDB.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::certificate::{self, Certificate};
use super::server::{Recipe, Server};
use super::{FakeClock, Folder, done, is_root, succeeds};
use crate::children;

/// A MariaDB server with a database `ids`; gone when dropped.
#[derive(Debug)]
pub struct Mysql(Server);

impl Mysql {
    /// Starts one, with `settings` such as `innodb-flush-log-at-trx-commit=2`.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Folder::new(user()), settings, None)
    }

    /// Starts one that goes by this clock.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start_by(clock: &FakeClock) -> Self {
        Self::start_in(Folder::new(user()), &[], Some(clock.clone()))
    }

    /// Starts one that speaks TLS.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(user());
        let Certificate { certificate, key } = Certificate::make(&folder, user());
        let certificate = format!("ssl-cert={}", certificate.display());
        let key = format!("ssl-key={}", key.display());
        Self::start_in(folder, &[&certificate, &key], None)
    }

    /// The URL of its database, with TLS of an authority.
    #[must_use]
    pub fn url_verified(&self, authority: &Path) -> String {
        format!("{}?ssl-mode=VERIFY_IDENTITY&ssl-ca={}", self.url(), authority.display())
    }

    /// The authority that has signed its certificate, if it has one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path(certificate::AUTHORITY)
    }

    fn start_in(folder: Folder, settings: &[&str], clock: Option<FakeClock>) -> Self {
        let user = user();
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg("--skip-test-db").arg(option("datadir", &folder, "data"));
        install.args(user.map(|user| format!("--user={user}")));
        // Two that start at once would take each other's temporary tables away.
        install.arg(option("tmpdir", &folder, ""));
        done(&mut install);
        let settings: Vec<_> = settings.iter().map(|setting| format!("--{setting}")).collect();
        let command = move |folder: &Folder, port| {
            // By its own `--user` it would lose the wish to end with us.
            let mut command = match &clock {
                Some(clock) => clock.command_as(user, "mariadbd"),
                None => children::command_as(user, "mariadbd"),
            };
            command.arg("--no-defaults").arg(option("datadir", folder, "data"));
            command.arg(option("socket", folder, "socket")).arg(format!("--port={port}"));
            command.args(["--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M"]);
            command.arg("--max-connections=400").arg(option("tmpdir", folder, ""));
            command.args(&settings);
            command
        };
        let recipe = Recipe {
            name: "MariaDB",
            url: ("mysql://root@127.0.0.1:", "/ids"),
            ends_with: "TERM",
            command: Box::new(command),
            answers: |port| succeeds(&mut client(port, "SELECT 1")),
        };
        let server = Server::new(recipe, folder);
        done(&mut client(server.port(), "CREATE DATABASE ids"));
        Self(server)
    }

    /// Runs statements in its database, as the administrator.
    ///
    /// # Panics
    /// When one fails.
    pub fn run(&self, statements: &str) {
        done(client(self.0.port(), statements).arg("ids"));
    }

    /// Copies the tables, with what they hold, into the database of another server.
    ///
    /// # Panics
    /// When that fails.
    pub fn copy_to(&self, other: &Self) {
        let dump = self.0.path("dump");
        let mut dumps = Command::new("mariadb-dump");
        dumps.args(["--no-defaults", "-uroot", "-h127.0.0.1", "--protocol=tcp"]);
        dumps.arg(format!("-P{}", self.0.port()));
        done(dumps.arg(format!("--result-file={}", dump.display())).arg("ids"));
        let restore = format!("SOURCE {}", dump.display());
        done(client(other.0.port(), &restore).arg("ids"));
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }
}

impl From<Mysql> for Server {
    fn from(mysql: Mysql) -> Self {
        mysql.0
    }
}

/// As whom it runs, if not as whoever runs this.
fn user() -> Option<&'static str> {
    is_root().then_some("mysql")
}

fn option(name: &str, folder: &Folder, path: &str) -> String {
    format!("--{name}={}", folder.join(path).display())
}

fn client(port: u16, statement: &str) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-uroot", "-h127.0.0.1", "--protocol=tcp"]);
    client.args([&format!("-P{port}"), "-e", statement]);
    client
}
