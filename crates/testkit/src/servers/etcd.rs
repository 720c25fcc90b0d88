//! A throwaway etcd.

use std::path::PathBuf;
use std::process::Command;

use super::certificate::{self, Certificate};
use super::server::{Recipe, Server};
use super::{Folder, done, free_port, succeeds};
use crate::{children, programs};

/// An etcd of one server; removed when dropped.
#[derive(Debug)]
pub struct Etcd(Server);

impl Etcd {
    /// Starts an etcd.
    ///
    /// # Panics
    /// When etcd is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let responds = |port| succeeds(client(port).args(["get", "x"]));
        Self::start_in(Folder::new(None), "http", "etcd://127.0.0.1:", responds, Vec::new())
    }

    /// Starts an etcd that speaks only TLS.
    ///
    /// # Panics
    /// When etcd is not installed, or does not start.
    #[must_use]
    pub fn start_with_tls() -> Self {
        let folder = Folder::new(None);
        let Certificate { certificate, key } = Certificate::make(&folder, None);
        let settings = vec!["--cert-file".into(), certificate, "--key-file".into(), key];
        // This checks whether the server accepts clients; it does not verify the certificate.
        let responds = |port| {
            let mut client = client_of("https", port);
            succeeds(client.args([
                "--insecure-transport=false",
                "--insecure-skip-tls-verify",
                "get",
                "x",
            ]))
        };
        Self::start_in(folder, "https", "etcds://127.0.0.1:", responds, settings)
    }

    /// Returns the certificate of the CA that signed its certificate, if it has one.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path(certificate::AUTHORITY)
    }

    fn start_in(
        folder: Folder,
        scheme: &'static str,
        url: &'static str,
        responds: fn(u16) -> bool,
        settings: Vec<PathBuf>,
    ) -> Self {
        let peers = format!("http://127.0.0.1:{}", free_port());
        let command = move |folder: &Folder, port| {
            let clients = format!("{scheme}://127.0.0.1:{port}");
            let mut command = children::command(programs::installed("etcd"));
            command.args(&settings);
            command.args(["--name", "one", "--data-dir"]).arg(folder.join("data"));
            command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
            command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
            command.args(["--initial-cluster", &format!("one={peers}"), "--log-level", "warn"]);
            command
        };
        let recipe = Recipe {
            name: "etcd",
            url: (url, ""),
            ends_with: "-TERM",
            command: Box::new(command),
            responds,
        };
        Self(Server::new(recipe, folder))
    }

    /// Restores a snapshot of its present data into a new cluster, which continues in its place.
    ///
    /// # Panics
    /// When the snapshot cannot be taken or restored, or the new cluster does not start.
    pub fn restore_into_another_cluster(&mut self) {
        let (snapshot, data) = (self.0.path("snapshot"), self.0.path("data"));
        done(self.client().args(["snapshot", "save"]).arg(&snapshot));
        self.0.stop();
        std::fs::remove_dir_all(&data).unwrap();
        // A cluster's ID is derived from its token and its members.
        let peers = format!("http://127.0.0.1:{}", free_port());
        let mut restore = self.client();
        restore.args(["snapshot", "restore"]).arg(&snapshot).arg("--data-dir").arg(&data);
        restore.args(["--name", "one", "--initial-cluster-token", &peers]);
        restore.args(["--initial-cluster", &format!("one={peers}")]);
        done(restore.args(["--initial-advertise-peer-urls", &peers]));
        std::fs::remove_file(&snapshot).unwrap();
        self.0.start();
    }

    /// Returns the URL of its one server.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Returns etcd's own client, without a command.
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
    client_of("http", port)
}

fn client_of(scheme: &str, port: u16) -> Command {
    let mut client = Command::new(programs::installed("etcdctl"));
    client.env("ETCDCTL_API", "3").arg(format!("--endpoints={scheme}://127.0.0.1:{port}"));
    client.arg("--dial-timeout=1s");
    client
}
