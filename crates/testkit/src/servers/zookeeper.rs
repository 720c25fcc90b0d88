//! A throwaway ZooKeeper.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use super::{Folder, Running, done, free_port, wait_for};

/// A ZooKeeper of one server; gone when dropped.
#[derive(Debug)]
pub struct Zookeeper {
    // In this order: the server goes before its folder.
    running: Running,
    _folder: Folder,
    port: u16,
}

impl Zookeeper {
    /// Starts one.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = Folder::new(None);
        let (log, settings) = (folder.join("log"), folder.join("settings"));
        let port = free_port();
        let text = format!(
            "tickTime=500\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n\
             minSessionTimeout=1000\nmaxSessionTimeout=60000\n",
            folder.join("data").display()
        );
        std::fs::write(&settings, text).unwrap();
        let mut command = Command::new("java");
        command.args(["-Xmx192m", "-XX:+UseSerialGC", "-cp"]);
        command.arg("/etc/zookeeper/conf:/usr/share/java/zookeeper.jar");
        command.arg("org.apache.zookeeper.server.ZooKeeperServerMain").arg(&settings);
        let running = Running::start(&mut command, "TERM", &log);
        wait_for("ZooKeeper", &log, || is_well(port));
        Self { running, _folder: folder, port }
    }

    /// The URL of its one server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("zookeeper://127.0.0.1:{}", self.port)
    }

    /// Holds the server still, or lets it go on.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn freeze(&self, frozen: bool) {
        let signal = if frozen { "STOP" } else { "CONT" };
        done(Command::new("kill").args(["-s", signal, &self.running.child.id().to_string()]));
    }
}

fn is_well(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = String::new();
    // A question that comes while the server starts may stay without an answer.
    connection.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && connection.write_all(b"srvr").is_ok()
        && connection.read_to_string(&mut answer).is_ok()
        && answer.contains("Mode: ")
}
