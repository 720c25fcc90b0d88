//! Throwaway servers: real databases from the system's packages, on free loopback ports, each with
//! a folder that is removed with it.
//!
//! A missing server fails the test that needs it, with the name of its package
//! ([`programs`](crate::programs)).

mod certificate;
mod clock;
mod etcd;
mod mysql;
mod pgbouncer;
mod postgres;
mod redis;
mod redis_clock;
mod server;
mod zookeeper;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use snowmint_coord::random;

pub use certificate::Stranger;
pub use clock::FakeClock;
pub use etcd::Etcd;
pub use mysql::Mysql;
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use redis::{Redis, RedisCluster};
pub use redis_clock::RedisClock;
pub use server::Server;
pub use zookeeper::Zookeeper;

/// Lowest port; the ports of well-known services lie below.
const PORT_MIN: u16 = 10_000;
/// Default start of the ports that Linux gives to connections.
const PORTS_GIVEN: u16 = 32_768;

/// A folder that is removed with its contents.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    /// Makes a folder; `user`, if any, is its owner.
    fn new(user: Option<&str>) -> Self {
        let name = format!("snowmint-{}", random::incarnation().unwrap());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[allow(clippy::disallowed_methods, reason = "servers are waited for outside any runtime")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Returns a port on which no process listens, and that no other server of the tests got. It lies
/// below the ports that the system gives to connections and to programs that bind port 0. So it
/// stays free until its server has started, and while it is stopped.
///
/// # Panics
/// When no port is free.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    // The UDP port of the same number marks it as taken for other test processes, until this one
    // ends: before a server has started, no process listens.
    static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let next = NEXT.get_or_init(|| AtomicU64::new(random::number().unwrap() >> 1));
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let lowest_given = range.split_whitespace().next().and_then(|text| text.parse().ok());
    let ports = PORT_MIN..lowest_given.unwrap_or(PORTS_GIVEN).max(PORT_MIN + 1);
    for _ in ports.clone() {
        let number = next.fetch_add(1, Ordering::Relaxed) % u64::from(ports.end - ports.start);
        let port = ports.start + u16::try_from(number).unwrap();
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", port))
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
            return port;
        }
    }
    panic!("no port from {} to {} is free", ports.start, ports.end - 1)
}

/// Runs a command that must succeed.
fn done(command: &mut Command) {
    done_with(command, Stdio::null());
}

/// Runs a command that must succeed, with this input.
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

/// Returns whether a command succeeds.
fn succeeds(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns whether this process runs as root, as which databases do not run.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The system does not give these ports to connections meanwhile, either.
    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<u16> = (0..200).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 200);
        let given = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(ports.last().is_some_and(|highest| *highest < given), "{ports:?} and {given}");
    }
}
