//! A throwaway ZooKeeper.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::Folder;
use super::server::{Recipe, Server};
use crate::{children, programs};

/// A ZooKeeper of one server; removed when dropped.
#[derive(Debug)]
pub struct Zookeeper(Server);

impl Zookeeper {
    /// Starts a server.
    ///
    /// # Panics
    /// When ZooKeeper is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let command = |folder: &Folder, port: u16| {
            let settings = folder.join("settings");
            let text = format!(
                "tickTime=500\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
                 admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n\
                 minSessionTimeout=1000\nmaxSessionTimeout=60000\n",
                folder.join("data").display()
            );
            std::fs::write(&settings, text).unwrap();
            let mut command = children::command(programs::installed("java"));
            command.args(["-Xmx192m", "-XX:+UseSerialGC", "-cp"]);
            let jar = programs::installed_at("/usr/share/java/zookeeper.jar");
            command.arg(format!("/etc/zookeeper/conf:{}", jar.display()));
            command.arg("org.apache.zookeeper.server.ZooKeeperServerMain").arg(&settings);
            command
        };
        let recipe = Recipe {
            name: "ZooKeeper",
            url: ("zookeeper://127.0.0.1:", ""),
            ends_with: "-TERM",
            command: Box::new(command),
            responds: is_well,
        };
        Self(Server::new(recipe, Folder::new(None)))
    }

    /// Returns the URL of its one server.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Freezes the server, or resumes it.
    ///
    /// # Panics
    /// When it does not run.
    pub fn freeze(&self, frozen: bool) {
        self.0.freeze(frozen);
    }
}

impl From<Zookeeper> for Server {
    fn from(zookeeper: Zookeeper) -> Self {
        zookeeper.0
    }
}

fn is_well(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut reply = String::new();
    // A request that comes while the server starts may stay without a response.
    connection.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && connection.write_all(b"srvr").is_ok()
        && connection.read_to_string(&mut reply).is_ok()
        && reply.contains("Mode: ")
}
