//! A throwaway MariaDB, or MySQL where `SNOWMINT_MYSQL` names its folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::certificate::{self, Certificate};
use super::server::{Recipe, Server};
use super::{FakeClock, Folder, done, done_with, is_root, succeeds};
use crate::{children, programs};

/// Environment variable with the folder of a MySQL, which has its programs in `bin`, as `ci/mysql`
/// makes it. If it is set, all tests run on it instead of the system's MariaDB.
const FOLDER: &str = "SNOWMINT_MYSQL";

/// A server with a database `ids`; removed when dropped.
#[derive(Debug)]
pub struct Mysql(Server);

impl Mysql {
    /// Starts a server, with `settings` such as `innodb-flush-log-at-trx-commit=2`.
    ///
    /// # Panics
    /// When the server is not installed, or does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Folder::new(user()), settings, None)
    }

    /// Starts a server that uses this clock.
    ///
    /// # Panics
    /// When the server is not installed, or does not start.
    #[must_use]
    pub fn start_by(clock: &FakeClock) -> Self {
        Self::start_in(Folder::new(user()), &[], Some(clock.clone()))
    }

    /// Starts a server that speaks TLS.
    ///
    /// # Panics
    /// When the server is not installed, or does not start.
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(user());
        let Certificate { certificate, key } = Certificate::make(&folder, user());
        let certificate = format!("ssl-cert={}", certificate.display());
        let key = format!("ssl-key={}", key.display());
        Self::start_in(folder, &[&certificate, &key], None)
    }

    /// Starts a server without TLS.
    ///
    /// # Panics
    /// When the server is not installed, or does not start.
    #[must_use]
    pub fn start_without_tls() -> Self {
        let setting = if folder().is_some() { "tls-version=" } else { "skip-ssl" };
        Self::start(&[setting])
    }

    /// Returns the name of the product: `MySQL` or `MariaDB`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Returns the URL of its database, with TLS verified by this CA.
    #[must_use]
    pub fn url_verified(&self, authority: &Path) -> String {
        format!("{}?ssl-mode=VERIFY_IDENTITY&ssl-ca={}", self.url(), authority.display())
    }

    /// Returns the certificate of the CA that signed its certificate, if it has one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path(certificate::AUTHORITY)
    }

    fn start_in(folder: Folder, settings: &[&str], clock: Option<FakeClock>) -> Self {
        install(&folder);
        let user = user();
        let settings: Vec<_> = settings.iter().map(|setting| format!("--{setting}")).collect();
        let command = move |folder: &Folder, port| {
            // With its own `--user`, it would lose the request to end with this process.
            let program = program("mysqld", "mariadbd");
            let mut command = match &clock {
                Some(clock) => clock.command_as(user, program),
                None => children::command_as(user, program),
            };
            command.arg("--no-defaults").arg(option("datadir", folder, "data"));
            command.arg(option("socket", folder, "socket")).arg(format!("--port={port}"));
            command.args(["--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M"]);
            command.arg("--max-connections=400").arg(option("tmpdir", folder, ""));
            // The default of current MariaDB releases; others do not know the setting.
            command.arg("--loose-innodb-snapshot-isolation=ON");
            command.args(only_mysql(&["--mysqlx=OFF", "--secure-file-priv=NULL"])).args(&settings);
            command
        };
        let recipe = Recipe {
            name: if self::folder().is_some() { "MySQL" } else { "MariaDB" },
            url: ("mysql://root@127.0.0.1:", "/ids"),
            ends_with: "-TERM",
            command: Box::new(command),
            responds: |port| succeeds(client(port).args(["-e", "SELECT 1"])),
        };
        let server = Server::new(recipe, folder);
        done(client(server.port()).args(["-e", "CREATE DATABASE ids"]));
        Self(server)
    }

    /// Runs statements in its database, as the administrator.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn run(&self, statements: &str) {
        done(client(self.0.port()).args(["-e", statements, "ids"]));
    }

    /// Copies the tables and their rows into the database of another server.
    ///
    /// # Panics
    /// When copying fails.
    pub fn copy_to(&self, other: &Self) {
        other.load(&self.dump());
    }

    /// Writes the tables and their rows into a file, as statements that replace existing tables.
    ///
    /// # Panics
    /// When the dump fails.
    #[must_use]
    pub fn dump(&self) -> PathBuf {
        let dump = self.0.path("dump");
        let mut dumps = Command::new(program("mysqldump", "mariadb-dump"));
        dumps.args(["--no-defaults", "-uroot", "-h127.0.0.1", "--protocol=tcp"]);
        dumps.args(only_mysql(&["--set-gtid-purged=OFF"])).arg(format!("-P{}", self.0.port()));
        done(dumps.arg(format!("--result-file={}", dump.display())).arg("ids"));
        dump
    }

    /// Runs the statements of a dump, one by one.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn load(&self, dump: &Path) {
        done_with(client(self.0.port()).arg("ids"), File::open(dump).unwrap());
    }

    /// Returns the URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Returns the URL of its database for a user with a password.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        self.url().replacen("root@", &format!("{user}:{password}@"), 1)
    }
}

impl From<Mysql> for Server {
    fn from(mysql: Mysql) -> Self {
        mysql.0
    }
}

/// Prepares a server's data before its first start.
fn install(folder: &Folder) {
    let user = user();
    let mut install = if self::folder().is_some() {
        let mut install = children::command_as(user, program("mysqld", ""));
        install.args(["--no-defaults", "--initialize-insecure"]);
        install
    } else {
        let mut install = Command::new(programs::installed("mariadb-install-db"));
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg("--skip-test-db").args(user.map(|user| format!("--user={user}")));
        install
    };
    // Two installations that start at once would remove each other's temporary tables.
    done(install.arg(option("datadir", folder, "data")).arg(option("tmpdir", folder, "")));
}

/// Returns the user that runs the server, unless it is the current user.
fn user() -> Option<&'static str> {
    is_root().then_some("mysql")
}

/// Returns the folder of the MySQL in use; `None` for MariaDB.
fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns the path of a program, by its names in MySQL and in MariaDB.
fn program(in_mysql: &str, in_mariadb: &str) -> PathBuf {
    let in_folder = |folder: PathBuf| folder.join("bin").join(in_mysql);
    folder().map_or_else(|| programs::installed(in_mariadb), in_folder)
}

/// Returns the arguments for MySQL; none for MariaDB.
fn only_mysql<'w>(words: &'w [&'w str]) -> &'w [&'w str] {
    if folder().is_some() { words } else { &[] }
}

fn option(name: &str, folder: &Folder, path: &str) -> String {
    format!("--{name}={}", folder.join(path).display())
}

fn client(port: u16) -> Command {
    let mut client = Command::new(program("mysql", "mariadb"));
    client.args(["--no-defaults", "-uroot", "-h127.0.0.1", "--protocol=tcp"]);
    client.arg(format!("-P{port}"));
    client
}
