//! Throwaway Redis: one server, or a cluster.

use std::path::PathBuf;
use std::process::Command;

use super::certificate::{self, Certificate};
use super::server::{Recipe, Server, Start};
use super::{Folder, RedisClock, done, free_port, pause, succeeds};
use crate::{children, programs};

/// A Redis server that by default keeps what it acknowledges; removed when dropped.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Starts a server, with settings such as `["--appendfsync", "everysec"]`.
    ///
    /// # Panics
    /// When Redis is not installed, or does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Folder::new(None), settings, None)
    }

    /// Starts a server that uses this clock.
    ///
    /// # Panics
    /// The same as of [`start`](Self::start).
    #[must_use]
    pub fn start_by(clock: &RedisClock, settings: &[&str]) -> Self {
        Self::start_in(Folder::new(None), settings, Some(clock.clone()))
    }

    /// Starts a server that speaks only TLS.
    ///
    /// # Panics
    /// The same as of [`start`](Self::start).
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(None);
        let certificate = Certificate::make(&folder, None);
        Self::start_as(folder, &certificate, &[])
    }

    fn start_in(folder: Folder, settings: &[&str], clock: Option<RedisClock>) -> Self {
        let settings = owned(settings);
        let command = move |folder: &Folder, port: u16| {
            let mut command = durable(folder);
            command.args(["--port", &port.to_string()]).args(&settings);
            if let Some(clock) = &clock {
                clock.show_to(&mut command);
            }
            command
        };
        let responds = |port| succeeds(client(port).arg("PING"));
        Self::run(folder, ("redis://127.0.0.1:", "/0"), Box::new(command), responds)
    }

    /// Starts a server that presents this certificate, and trusts certificates of its CA.
    fn start_as(folder: Folder, certificate: &Certificate, settings: &[&str]) -> Self {
        let settings = owned(settings);
        let Certificate { certificate, key } = certificate.clone();
        let authority = certificate.with_file_name(certificate::AUTHORITY);
        let command = move |folder: &Folder, port: u16| {
            let mut command = durable(folder);
            command.args(["--port", "0", "--tls-port", &port.to_string()]);
            command.arg("--tls-cert-file").arg(&certificate).arg("--tls-key-file").arg(&key);
            command.arg("--tls-ca-cert-file").arg(&authority);
            command.args(["--tls-auth-clients", "no"]).args(&settings);
            command
        };
        let responds = |port| succeeds(secure_client(port).arg("PING"));
        Self::run(folder, ("rediss://127.0.0.1:", "/0"), Box::new(command), responds)
    }

    fn run(
        folder: Folder,
        url: (&'static str, &'static str),
        command: Box<Start>,
        responds: fn(u16) -> bool,
    ) -> Self {
        std::fs::create_dir(folder.join("data")).unwrap();
        let recipe = Recipe { name: "Redis", url, ends_with: "-TERM", command, responds };
        Self(Server::new(recipe, folder))
    }

    /// Returns the certificate of the CA that signed its certificate, if it has one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path(certificate::AUTHORITY)
    }

    /// Returns a certificate of that CA, and its key.
    #[must_use]
    pub fn certificate(&self) -> (PathBuf, PathBuf) {
        let Certificate { certificate, key } = Certificate::of(|name| self.0.path(name));
        (certificate, key)
    }

    /// Rejects, from now on, clients without a certificate of its CA.
    ///
    /// # Panics
    /// When it does not speak TLS.
    pub fn demand_certificates(&self) {
        done(secure_client(self.0.port()).args(["CONFIG", "SET", "tls-auth-clients", "yes"]));
    }

    /// Stops it cleanly, and starts it on the same files.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.0.stop();
        self.0.start();
    }

    /// Returns the URL of its first database.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }
}

impl From<Redis> for Server {
    fn from(redis: Redis) -> Self {
        redis.0
    }
}

/// A cluster of three Redis servers; removed when dropped.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<Redis>,
    scheme: &'static str,
    /// Folder with the certificate that the servers share, if they have one.
    folder: Folder,
}

impl RedisCluster {
    /// Starts a cluster.
    ///
    /// # Panics
    /// When Redis is not installed, or does not form a cluster.
    #[must_use]
    pub fn start() -> Self {
        let server = |bus: &str| Redis::start(&["--cluster-enabled", "yes", "--cluster-port", bus]);
        Self::of(server, "redis-cluster", client, Folder::new(None))
    }

    /// Starts a cluster that speaks only TLS.
    ///
    /// # Panics
    /// The same as of [`start`](Self::start).
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(None);
        let certificate = Certificate::make(&folder, None);
        let server = |bus: &str| {
            let settings =
                ["--cluster-enabled", "yes", "--cluster-port", bus, "--tls-cluster", "yes"];
            Redis::start_as(Folder::new(None), &certificate, &settings)
        };
        Self::of(server, "rediss-cluster", secure_client, folder)
    }

    fn of(
        server: impl Fn(&str) -> Redis,
        scheme: &'static str,
        client: fn(u16) -> Command,
        folder: Folder,
    ) -> Self {
        // The port of the cluster bus is, by default, the server's port plus ten thousand.
        let servers: Vec<Redis> = (0..3).map(|_| server(&free_port().to_string())).collect();
        let places = servers.iter().map(|server| format!("127.0.0.1:{}", server.0.port()));
        let mut create = client(servers[0].0.port());
        create.args(["--cluster", "create"]).args(places).arg("--cluster-yes");
        done(&mut create);
        // Each server reports the state for itself, some time after the command.
        for server in &servers {
            let agrees = || {
                let output = client(server.0.port()).args(["CLUSTER", "INFO"]).output().unwrap();
                String::from_utf8_lossy(&output.stdout).contains("cluster_state:ok")
            };
            assert!(
                (0..600).any(|_| agrees() || {
                    pause();
                    false
                }),
                "no cluster came to be"
            );
        }
        Self { servers, scheme, folder }
    }

    /// Returns the URL of all its servers.
    #[must_use]
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.0.port())).collect();
        format!("{}://{}", self.scheme, places.join(","))
    }

    /// Returns the certificate of the CA that signed their certificate, if they have one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.join(certificate::AUTHORITY)
    }
}

fn owned(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|setting| (*setting).to_owned()).collect()
}

/// Returns the command of a server that keeps what it acknowledges.
fn durable(folder: &Folder) -> Command {
    let mut command = children::command(programs::installed("redis-server"));
    command.args(["--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.join("data"));
    command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    command
}

fn client(port: u16) -> Command {
    let mut client = Command::new(programs::installed("redis-cli"));
    client.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]);
    client
}

/// Returns a client over TLS that does not verify the server's certificate: the tests do.
fn secure_client(port: u16) -> Command {
    let mut client = client(port);
    client.args(["--tls", "--insecure"]);
    client
}
