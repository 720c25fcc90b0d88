//! A throwaway etcd.

use std::process::Command;

use super::{Folder, Running, free_port, succeeds, wait_for};

/// An etcd of one server; gone when dropped.
#[derive(Debug)]
pub struct Etcd {
    // In this order: the server goes before its folder.
    _running: Running,
    _folder: Folder,
    port: u16,
}

impl Etcd {
    /// Starts one.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = Folder::new(None);
        let log = folder.join("log");
        let port = free_port();
        let clients = format!("http://127.0.0.1:{port}");
        let peers = format!("http://127.0.0.1:{}", free_port());
        let mut command = Command::new("etcd");
        command.args(["--name", "one", "--data-dir"]).arg(folder.join("data"));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("one={peers}"), "--log-level", "warn"]);
        let running = Running::start(&mut command, "TERM", &log);
        let server = Self { _running: running, _folder: folder, port };
        wait_for("etcd", &log, || succeeds(server.client().args(["get", "x"])));
        server
    }

    /// The URL of its one server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.port)
    }

    /// Its own client, to be given a command.
    #[must_use]
    pub fn client(&self) -> Command {
        let mut client = Command::new("etcdctl");
        client.env("ETCDCTL_API", "3").arg(format!("--endpoints=http://127.0.0.1:{}", self.port));
        client.arg("--dial-timeout=1s");
        client
    }
}
