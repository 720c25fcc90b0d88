//! Throwaway Redis: one server, or a cluster.

use std::process::Command;

use super::server::{Recipe, Server};
use super::{Folder, RedisClock, done, free_port, pause, succeeds};
use crate::children;

/// A Redis server that keeps what it acknowledges, unless told otherwise; gone when dropped.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Starts one, with settings such as `["--appendfsync", "everysec"]`.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_with(settings, None)
    }

    /// Starts one that goes by a clock of its own.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_by(clock: &RedisClock, settings: &[&str]) -> Self {
        Self::start_with(settings, Some(clock.clone()))
    }

    fn start_with(settings: &[&str], clock: Option<RedisClock>) -> Self {
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let folder = Folder::new(None);
        std::fs::create_dir(folder.join("data")).unwrap();
        let command = move |folder: &Folder, port: u16| {
            let mut command = children::command("redis-server");
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
            command.arg("--dir").arg(folder.join("data"));
            command.args(["--appendonly", "yes", "--appendfsync", "always"]).args(&settings);
            if let Some(clock) = &clock {
                clock.show_to(&mut command);
            }
            command
        };
        let recipe = Recipe {
            name: "Redis",
            url: ("redis://127.0.0.1:", "/0"),
            ends_with: "TERM",
            command: Box::new(command),
            answers: |port| succeeds(client(port).arg("PING")),
        };
        Self(Server::new(recipe, folder))
    }

    /// Ends it in peace, and starts it on the same files.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.0.stop();
        self.0.start();
    }

    /// The URL of its first database.
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

/// A cluster of three Redis servers; gone when dropped.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<Redis>,
}

impl RedisCluster {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no Redis on this machine, or it does not form a cluster.
    #[must_use]
    pub fn start() -> Self {
        // The port of the servers' own bus is this one plus ten thousand, unless said.
        let servers: Vec<Redis> = (0..3)
            .map(|_| {
                let bus = free_port().to_string();
                Redis::start(&["--cluster-enabled", "yes", "--cluster-port", &bus])
            })
            .collect();
        let places = servers.iter().map(|server| format!("127.0.0.1:{}", server.0.port()));
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(places).arg("--cluster-yes");
        done(&mut create);
        // Each of them says so for itself, some time after it was told.
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
        Self { servers }
    }

    /// The URL of all its servers.
    #[must_use]
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.0.port())).collect();
        format!("redis-cluster://{}", places.join(","))
    }
}

fn client(port: u16) -> Command {
    let mut client = Command::new("redis-cli");
    client.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]);
    client
}
