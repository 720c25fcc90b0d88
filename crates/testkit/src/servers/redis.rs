//! Throwaway Redis: one server, or a cluster.

use std::process::Command;

use super::{Folder, Running, done, free_port, succeeds, wait_for};

/// A Redis server that keeps what it acknowledges, unless told otherwise; gone when dropped.
#[derive(Debug)]
pub struct Redis {
    // In this order: the server goes before its folder.
    running: Option<Running>,
    folder: Folder,
    settings: Vec<String>,
    port: u16,
}

impl Redis {
    /// Starts one, with settings such as `["--appendfsync", "everysec"]`.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server =
            Self { running: None, folder: Folder::new(None), settings, port: free_port() };
        server.restart();
        server
    }

    /// Ends it in peace if it runs, and starts it on the same files.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.running = None;
        let log = self.folder.join("log");
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--dir"]);
        command.arg(&self.folder.0);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]).args(&self.settings);
        self.running = Some(Running::start(&mut command, "TERM", &log));
        wait_for("Redis", &log, || succeeds(client(self.port).arg("PING")));
    }

    /// The URL of its first database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
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
        let places = servers.iter().map(|server| format!("127.0.0.1:{}", server.port));
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(places).arg("--cluster-yes");
        done(&mut create);
        for server in &servers {
            let log = server.folder.join("log");
            wait_for("the cluster", &log, || {
                let output = client(server.port).args(["CLUSTER", "INFO"]).output().unwrap();
                String::from_utf8_lossy(&output.stdout).contains("cluster_state:ok")
            });
        }
        Self { servers }
    }

    /// The URL of all its servers.
    #[must_use]
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("redis-cluster://{}", places.join(","))
    }
}

fn client(port: u16) -> Command {
    let mut client = Command::new("redis-cli");
    client.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]);
    client
}
