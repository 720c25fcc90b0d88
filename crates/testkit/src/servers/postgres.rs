//! A throwaway PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::certificate::{self, Certificate};
use super::server::{Recipe, Server};
use super::{FakeClock, Folder, done, is_root, succeeds};
use crate::{children, programs};

/// A PostgreSQL server; removed when dropped.
#[derive(Debug)]
pub struct Postgres(Server);

impl Postgres {
    /// Starts a server, with `settings` such as `fsync=off`.
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Folder::new(user()), settings, None)
    }

    /// Starts a server that uses this clock.
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start_by(clock: &FakeClock) -> Self {
        Self::start_in(Folder::new(user()), &[], Some(clock.clone()))
    }

    /// Starts a server that speaks TLS.
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(user());
        let Certificate { certificate, key } = Certificate::make(&folder, user());
        let certificate = format!("ssl_cert_file={}", certificate.display());
        let key = format!("ssl_key_file={}", key.display());
        Self::start_in(folder, &["ssl=on", &certificate, &key], None)
    }

    /// Returns the URL of its database, with TLS verified by this CA.
    #[must_use]
    pub fn url_verified(&self, authority: &Path) -> String {
        format!("{}?sslmode=verify-full&sslrootcert={}", self.url(), authority.display())
    }

    /// Returns the certificate of the CA that signed its certificate, if it has one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path(certificate::AUTHORITY)
    }

    fn start_in(folder: Folder, settings: &[&str], clock: Option<FakeClock>) -> Self {
        done(as_user(user(), "initdb").arg("-D").arg(folder.join("data")).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]));
        Self::start_on(folder, settings, clock)
    }

    /// Starts a server on the data in a folder.
    fn start_on(folder: Folder, settings: &[&str], clock: Option<FakeClock>) -> Self {
        let user = user();
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let command = move |folder: &Folder, port: u16| {
            let mut command = match &clock {
                Some(clock) => clock.command_as(user, program("postgres")),
                None => children::command_as(user, program("postgres")),
            };
            command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder.join(""));
            command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", "max_connections=400"]);
            for setting in &settings {
                command.args(["-c", setting]);
            }
            command
        };
        let responds = |port: u16| {
            let mut probe = Command::new(program("pg_isready"));
            succeeds(probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]))
        };
        let recipe = Recipe {
            name: "PostgreSQL",
            url: ("postgres://postgres@127.0.0.1:", "/postgres"),
            ends_with: "-INT",
            command: Box::new(command),
            responds,
        };
        Self(Server::new(recipe, folder))
    }

    /// Starts a standby with a copy of its present data. The standby stays in recovery, and gets no
    /// later write.
    ///
    /// # Panics
    /// When the data cannot be copied, or the standby does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let folder = Folder::new(user());
        let data = folder.join("data");
        let mut copies = as_user(user(), "pg_basebackup");
        copies.args(["-U", "postgres", "-h", "127.0.0.1", "-p", &self.0.port().to_string()]);
        done(copies.args(["-X", "stream", "-c", "fast", "-D"]).arg(&data));
        std::fs::write(data.join("standby.signal"), "").unwrap();
        Self::start_on(folder, &[], None)
    }

    /// Stops it, starts it as a replica, and promotes it, as a failover does.
    ///
    /// # Panics
    /// When it does not start, or is not promoted.
    pub fn promote(&mut self) {
        self.0.stop();
        let data = self.0.path("data");
        std::fs::write(data.join("standby.signal"), "").unwrap();
        self.0.start();
        done(as_user(user(), "pg_ctl").args(["promote", "-w", "-D"]).arg(data));
    }

    /// Runs statements in its database, as the administrator.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn run(&self, statements: &str) {
        done(self.client().args(["-c", statements]));
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
        let mut dumps = as_user(user(), "pg_dump");
        done(dumps.args(["--clean", "--if-exists", "-f"]).arg(&dump).args(["-d", &self.url()]));
        dump
    }

    /// Runs the statements of a dump, one by one.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn load(&self, dump: &Path) {
        done(self.client().arg("-f").arg(dump));
    }

    fn client(&self) -> Command {
        let mut client = Command::new(program("psql"));
        client.args(["-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url()]);
        client
    }

    /// Returns the URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Returns the URL of its database for a user without a password.
    #[must_use]
    pub fn url_as(&self, user: &str) -> String {
        self.url().replacen("postgres@", &format!("{user}@"), 1)
    }
}

/// Returns the user that runs the server, unless it is the current user.
fn user() -> Option<&'static str> {
    is_root().then_some("postgres")
}

impl From<Postgres> for Server {
    fn from(postgres: Postgres) -> Self {
        postgres.0
    }
}

/// Returns the program of the newest version on this machine.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin").join(name)).max();
    newest.filter(|path| path.exists()).unwrap_or_else(|| programs::installed(name))
}

fn as_user(user: Option<&str>, name: &str) -> Command {
    let Some(user) = user else { return Command::new(program(name)) };
    let mut command = Command::new(programs::installed("setpriv"));
    command.args(["--reuid", user, "--regid", user, "--init-groups"]).arg(program(name));
    command
}
