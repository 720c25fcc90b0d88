//! Throwaway servers: real databases from the system's packages, on free loopback ports, with a
//! folder of their own that goes with them.
//!
//! A server that is missing fails whoever asks for it. `ci/setup` installs them.

mod certificate;
mod clock;
mod etcd;
mod mysql;
mod postgres;
mod redis;
mod redis_clock;
mod server;
mod zookeeper;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use snowmint_coord::random;

pub use certificate::Stranger;
pub use clock::FakeClock;
pub use etcd::Etcd;
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use redis::{Redis, RedisCluster};
pub use redis_clock::RedisClock;
pub use server::Server;
pub use zookeeper::Zookeeper;

/// A folder that is removed with its contents.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    /// A new one; `user`, if any, is its owner.
    fn new(user: Option<&str>) -> Self {
        let name = format!("snowmint-{}", random::incarnation().unwrap());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        if let Some(user) = user {
            done(Command::new("chown").arg(user).arg(&path));
        }
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[allow(clippy::disallowed_methods, reason = "servers are waited for outside any runtime")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs a command that must succeed.
fn done(command: &mut Command) {
    done_with(command, Stdio::null());
}

/// The same, which reads this.
fn done_with(command: &mut Command, input: impl Into<Stdio>) {
    let output = command.stdin(input).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whether a command succeeds.
fn succeeds(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Whether this process is the system's administrator, as whom databases refuse to run.
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}
