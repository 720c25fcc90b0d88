//! A throwaway etcd.

use std::process::Command;

use super::server::{Recipe, Server};
use super::{Folder, free_port, succeeds};

/// An etcd of one server; gone when dropped.
#[derive(Debug)]
pub struct Etcd(Server);

impl Etcd {
    /// Starts one.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        let peers = format!("http://127.0.0.1:{}", free_port());
        let command = move |folder: &Folder, port| {
            let clients = format!("http://127.0.0.1:{port}");
            let mut command = Command::new("etcd");
            command.args(["--name", "one", "--data-dir"]).arg(folder.join("data"));
            command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
            command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
            command.args(["--initial-cluster", &format!("one={peers}"), "--log-level", "warn"]);
            command
        };
        let recipe = Recipe {
            name: "etcd",
            url: ("etcd://127.0.0.1:", ""),
            ends_with: "TERM",
            command: Box::new(command),
            answers: |port| succeeds(client(port).args(["get", "x"])),
        };
        Self(Server::new(recipe, Folder::new(None)))
    }

    /// The URL of its one server.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Its own client, to be given a command.
    #[must_use]
    pub fn client(&self) -> Command {
        client(self.0.port())
    }
}

impl From<Etcd> for Server {
    fn from(etcd: Etcd) -> Self {
        etcd.0
    }
}

fn client(port: u16) -> Command {
    let mut client = Command::new("etcdctl");
    client.env("ETCDCTL_API", "3").arg(format!("--endpoints=http://127.0.0.1:{port}"));
    client.arg("--dial-timeout=1s");
    client
}
