//! Very many connections at once, and connections over the limit.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::server::{Folder, SNOWMINT, Server, clean};

/// Number of idle connections, half of them HTTP and half RESP.
const CONNECTIONS: usize = 10_000;
/// Number of other files that this process may have open, for concurrent tests.
const OTHER_FILES: u64 = 1_000;
/// Largest memory of an idle connection in the server.
const KIB_EACH_MAX: u64 = 16;
/// Largest growth of the server while it mints with them, for allocators that keep memory.
const GROWTH_KIB_MAX: u64 = 8 * 1024;

/// Number of IDs minted meanwhile, each over its own connection.
const MINTED: usize = 2_000;
/// Largest ratio of processor time for these IDs, compared with no idle connections.
const COST_MAX: u64 = 3;

/// Returns `serve` under limits of open files that the shell sets, by `ulimit` with these
/// arguments.
fn limited(ulimit: &str) -> Command {
    let mut command = clean("sh");
    command.args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\""), SNOWMINT]);
    command
}

/// Raises the limit of this process, where each connection needs a descriptor, too.
fn raise_own_limit() {
    let needed = CONNECTIONS as u64 + OTHER_FILES;
    let hard = getrlimit(Resource::Nofile).maximum;
    assert!(
        hard.is_none_or(|hard| hard >= needed),
        "this test opens {CONNECTIONS} connections and needs a hard limit of {needed} open files, \
         which is {hard:?} here: raise it (ulimit -H -n, or --ulimit nofile= of the container)"
    );
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).unwrap();
}

#[derive(Clone, Copy)]
enum Protocol {
    Http,
    Resp,
}

/// A connection that requests one ID at a time, and keeps no state of its own.
struct Client {
    protocol: Protocol,
    stream: TcpStream,
}

impl Client {
    fn connect(server: &Server, protocol: Protocol) -> Self {
        let address = match protocol {
            Protocol::Http => &server.http,
            Protocol::Resp => &server.resp,
        };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { protocol, stream }
    }

    /// Mints one ID, or returns the error.
    fn try_mint(&mut self) -> std::io::Result<u64> {
        let request: &[u8] = match self.protocol {
            Protocol::Http => {
                b"GET /v1/ids/default HTTP/1.1\r\nhost: localhost\r\naccept: text/plain\r\n\r\n"
            }
            Protocol::Resp => b"INCR default\r\n",
        };
        self.stream.write_all(request)?;
        let mut response = Vec::new();
        let mut part = [0; 1024];
        loop {
            let count = self.stream.read(&mut part)?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            response.extend_from_slice(&part[..count]);
            let text = std::str::from_utf8(&response).unwrap();
            let number = match self.protocol {
                Protocol::Http => text.split_once("\r\n\r\n").map(|(head, body)| {
                    assert!(head.starts_with("HTTP/1.1 200 "), "{text}");
                    body
                }),
                Protocol::Resp => Some(text.strip_prefix(':').unwrap_or_else(|| panic!("{text}"))),
            };
            if let Some(number) = number.filter(|number| number.ends_with('\n')) {
                return Ok(number.trim().parse().unwrap());
            }
        }
    }

    fn mint(&mut self) -> u64 {
        self.try_mint().unwrap()
    }
}

/// Mints, each time over a new connection. Returns the processor time that the server used, in
/// ticks.
fn mint_by_new_connections(server: &Server, last: &mut u64) -> u64 {
    let before = server.processor_ticks();
    for protocol in [Protocol::Http, Protocol::Resp].into_iter().cycle().take(MINTED) {
        let id = Client::connect(server, protocol).mint();
        assert!(id > *last, "{id} after {last}");
        *last = id;
    }
    let ticks = server.processor_ticks() - before;
    assert!(ticks > 10, "{ticks} ticks for {MINTED} IDs say nothing");
    ticks
}

/// The server starts with a soft limit of 256 open files, common on many systems, and raises it.
#[test]
fn ten_thousand_idle_connections_cost_little() {
    raise_own_limit();
    let folder = Folder::new("connections");
    // HTTP connections may be idle for 75 s, and a busy machine could need more for all of this.
    let mut command = limited("-S -n 256");
    command.env("SNOWMINT_HTTP__IDLE_MAX", "30m");
    let server = Server::run(command, &["--data-dir", folder.path().to_str().unwrap()]).unwrap();
    server.ready();
    let before_kib = server.anonymous_kib();
    let mut last = 0;
    let alone_ticks = mint_by_new_connections(&server, &mut last);

    let mut resting: Vec<Client> = (0..CONNECTIONS)
        .map(|index| {
            let protocol = if index % 2 == 0 { Protocol::Http } else { Protocol::Resp };
            // Each connection is served once, so that its state exists.
            let mut client = Client::connect(&server, protocol);
            let id = client.mint();
            assert!(id > last, "{id} after {last}");
            last = id;
            client
        })
        .collect();
    let held_kib = server.anonymous_kib();
    let bound_kib = before_kib + CONNECTIONS as u64 * KIB_EACH_MAX;
    println!("{before_kib} KiB alone, {held_kib} KiB with {CONNECTIONS} connections");
    assert!(held_kib < bound_kib, "{before_kib} KiB became {held_kib}, at most {bound_kib}");

    // Other connections are served meanwhile: correctly, at the same cost, and in the same memory.
    let ticks = mint_by_new_connections(&server, &mut last);
    println!("{alone_ticks} ticks for {MINTED} IDs alone, {ticks} with them");
    assert!(ticks <= COST_MAX * alone_ticks, "{alone_ticks} ticks became {ticks}");
    let served_kib = server.anonymous_kib();
    assert!(
        served_kib < held_kib + GROWTH_KIB_MAX,
        "{held_kib} KiB became {served_kib} while others were served"
    );

    // All idle connections are still open.
    for client in &mut resting {
        let id = client.mint();
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    let again_kib = server.anonymous_kib();
    assert!(again_kib < bound_kib, "{before_kib} KiB became {again_kib}, at most {bound_kib}");
    drop(resting);
    assert_eq!(server.stop(), 0);
}

/// A hard limit below the configured connections is logged with its value and a remedy. A server
/// without free descriptors still serves its open connections, and closes idle ones for new ones.
#[test]
fn descriptor_shortage_is_reported_and_survived() {
    let folder = Folder::new("descriptors");
    let arguments = ["--data-dir", folder.path().to_str().unwrap()];
    let server = Server::run(limited("-n 100"), &arguments).unwrap();
    server.ready();
    let printed = server.printed();
    for part in ["at most 100 files may be open", "allow 20000", "20064", "LimitNOFILE"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let mut first = Client::connect(&server, Protocol::Http);
    let mut last = first.mint();
    // The system accepts these connections; the server cannot.
    let beyond: Vec<_> = (0..150).map(|_| Client::connect(&server, Protocol::Resp)).collect();
    for _ in 0..100 {
        let id = first.mint();
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    server.says("failed to accept a connection");
    // A new connection is accepted: idle connections of the other port are closed for it.
    let mut second = Client::connect(&server, Protocol::Http);
    assert!(second.mint() > last);
    last = second.mint();
    drop(beyond);
    assert!(Client::connect(&server, Protocol::Resp).mint() > last);
    assert_eq!(server.stop(), 0);
}
