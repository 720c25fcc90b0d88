//! Floods over HTTP/2 cost the server little memory and few log lines, and end in time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::Instant;

use super::security::{entry, put, token};
use super::server::{Folder, Server, TIMEOUT, until};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Number of concurrent requests of a connection, minus one.
const STREAMS: u32 = 127;
/// Stream of the request that gets a response.
const LAST: u32 = 2 * STREAMS + 1;

/// Returns a frame: RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes a text of less than 16,000 bytes: RFC 7541, section 5.2.
fn text(text: &str) -> Vec<u8> {
    let length = text.len();
    let mut bytes = vec![u8::try_from(length.min(127)).unwrap()];
    if let Some(rest) = length.checked_sub(127) {
        let low = u8::try_from(rest % 128).unwrap();
        bytes.extend([low | 0x80, u8::try_from(rest / 128).unwrap()]);
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// Encodes a head: method and scheme from the static table of RFC 7541; path, host and other fields
/// as literals.
fn head(method: u8, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = [&[method, 0x86, 0x04][..], &text(path), &[0x01], &text("localhost")].concat();
    for (name, value) in more {
        block.extend([&[0x00][..], &text(name), &text(value)].concat());
    }
    block
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// A connection, and the number of responses besides the last.
struct Link(TcpStream, u32);

impl Link {
    fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.http).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut link = Self(stream, 0);
        link.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        link.send(&frame(SETTINGS, 0, 0, &[]));
        link
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Returns the kind and the stream of the next frame.
    fn next(&mut self) -> (u8, u32) {
        self.next_or_end().expect("the connection is open")
    }

    /// Returns the same, or `None` where the server has closed the connection.
    fn next_or_end(&mut self) -> Option<(u8, u32)> {
        let head: [u8; 9] = self.read(9)?.try_into().unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        self.read(usize::try_from(length).unwrap())?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        // Some requests are rejected before all have arrived.
        self.1 += u32::from(head[3] == HEADERS && stream != LAST);
        Some((head[3], stream))
    }

    fn read(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        match self.0.read_exact(&mut bytes).map_err(|error| error.kind()) {
            Ok(()) => Some(bytes),
            // A reset is an end, too.
            Err(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => None,
            Err(kind) => panic!("{kind}"),
        }
    }

    /// Sends these requests, and another one, at once: the server may close the connection.
    fn ask(server: &Server, requests: &[u8]) -> Self {
        let mut link = Self::to(server);
        let last = frame(HEADERS, END_STREAM | END_HEADERS, LAST, &head(GET, "/livez", &[]));
        link.send(&[requests, &last].concat());
        link
    }

    /// Sends these requests, and another one; its response shows that the server has seen all of
    /// them.
    fn flood(server: &Server, requests: &[u8]) -> Self {
        let mut link = Self::ask(server, requests);
        while link.next() != (HEADERS, LAST) {}
        link
    }

    /// Does the same where the server rejects requests: also the last one, or the connection.
    fn rejected(server: &Server, requests: &[u8]) -> Self {
        let mut link = Self::ask(server, requests);
        let is_last =
            |(kind, stream): (u8, u32)| stream == LAST && matches!(kind, HEADERS | RST_STREAM);
        while link.next_or_end().is_some_and(|seen| !is_last(seen)) {}
        link
    }
}

fn start(folder: &Folder, environment: &[(&str, &str)]) -> Server {
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], environment);
    server.ready();
    server
}

/// Mints with a token, over a connection of its own. Returns the first line of the response.
fn minted(server: &Server, token: &str) -> String {
    let mut stream = TcpStream::connect(&server.http).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!("host: localhost\r\nauthorization: Bearer {token}\r\nconnection: close");
    write!(stream, "GET /v1/ids/default HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.lines().next().unwrap_or_default().to_owned()
}

/// The flood shows no token. Meanwhile a client with one gets all its IDs.
#[test]
fn watch_flood_costs_little() {
    const LINKS: u64 = 300;
    /// Bound for each connection. Until it ends, h2 keeps what 128 requests at once needed: 41 KiB
    /// for their streams, 62 KiB for their frames, and at most 78 KiB for those of the responses.
    /// Buffers to read and write have 16 KiB each. The connection itself (16 KiB) and eight watches
    /// (40 KiB in a debug build) make it 270 KiB, and the allocator adds a tenth.
    const KIB_EACH_MAX: u64 = 300;
    let folder = Folder::new("watches");
    let app = token();
    let tokens = put(&folder, "tokens.toml", &entry("app", &[&app.hash], &["mint *"]));
    let server = start(&folder, &[("SNOWMINT_TOKENS__FILE", tokens.as_str())]);
    let watch = head(POST, "/grpc.health.v1.Health/Watch", &[("content-type", "application/grpc")]);
    let mut watches = Vec::new();
    for stream in (1..2 * STREAMS).step_by(2) {
        watches.extend(frame(HEADERS, END_HEADERS, stream, &watch));
        watches.extend(frame(DATA, END_STREAM, stream, &[0; 5]));
    }
    let mint = || assert_eq!(minted(&server, &app.token), "HTTP/1.1 200 OK");
    mint();
    let before_kib = server.anonymous_kib();
    let mut links = Vec::new();
    let most_kib = thread::scope(|scope| {
        // Its end also ends the client: a failed flood must not wait for it.
        let (going, over) = channel::<()>();
        scope.spawn(move || {
            while over.try_recv() == Err(TryRecvError::Empty) {
                mint();
            }
        });
        let held = (0..LINKS).map(|_| {
            links.push(Link::rejected(&server, &watches));
            server.anonymous_kib()
        });
        let most_kib = held.max().unwrap();
        drop(going);
        most_kib
    });
    let each_kib = most_kib.saturating_sub(before_kib) / LINKS;
    println!("{each_kib} KiB for each connection");
    assert!(each_kib < KIB_EACH_MAX, "{each_kib} KiB for each connection");
    mint();
}

/// Their heads take few bytes to send: four long lines repeat earlier lines of the connection.
#[test]
fn half_requests_cost_little_and_end() {
    const LINKS: u64 = 100;
    /// Bound for each connection; before bodies were read first it was 1,500.
    const KIB_EACH_MAX: u64 = 750;
    let folder = Folder::new("half");
    let server = start(&folder, &[("SNOWMINT_HTTP__REQUEST_TIME_MAX", "20s")]);
    let mut requests = Vec::new();
    for stream in (1..2 * STREAMS).step_by(2) {
        let mut block = head(POST, "/v1/ids/default", &[]);
        if stream == 1 {
            block.extend([&[0x40][..], &text("x-a"), &text(&"v".repeat(3_900))].concat());
        }
        // First entry of the dynamic table.
        block.extend(vec![0xbe; if stream == 1 { 3 } else { 4 }]);
        requests.extend(frame(HEADERS, END_HEADERS, stream, &block));
    }
    let before_kib = server.anonymous_kib();
    let mut links: Vec<_> = (0..LINKS).map(|_| Link::flood(&server, &requests)).collect();
    let each_kib = server.anonymous_kib().saturating_sub(before_kib) / LINKS;
    println!("{each_kib} KiB for each connection");
    assert!(each_kib < KIB_EACH_MAX, "{each_kib} KiB for each connection");
    // Pings continue, and each request still gets a response. Requests of later connections may be
    // over their client's share, which is a response at once; those of the first one are not.
    let link = links.first_mut().unwrap();
    until("all get a response", || {
        link.send(&frame(PING, 0, 0, &[7; 8]));
        while link.next().0 != PING {}
        link.1 == STREAMS
    });
}

/// Each connection ends in a warning of the library that reads frames; together these are few
/// lines.
#[test]
fn reset_flood_writes_few_lines() {
    const LINKS: usize = 300;
    /// Number of places where the library logs about such a connection.
    const PLACES: usize = 2;
    let folder = Folder::new("resets");
    let server = start(&folder, &[]);
    let mut resets = Vec::new();
    let ask = head(GET, "/v1/ids/default?count=10", &[]);
    for stream in (1..2_000).step_by(2) {
        resets.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &ask));
        resets.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    let flood = || {
        let mut link = Link::to(&server);
        // Sends until the server closes the connection.
        let _ = link.0.write_all(&resets);
        let _ = link.0.read_to_end(&mut Vec::new());
    };
    let begun = Instant::now();
    (0..LINKS).for_each(|_| flood());
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    until("the log reports the flood", || server.printed().contains(" h2::"));
    let lines = server.printed().lines().filter(|line| line.contains(" h2::")).count();
    let lines_max = PLACES * (seconds + 2);
    assert!(lines <= lines_max, "{lines} lines in {seconds} s:\n{}", server.printed());
    until("the log counts the omitted lines", || {
        flood();
        server.printed().lines().any(|line| line.contains(" h2::") && line.contains(" unsaid="))
    });
    assert_eq!(server.get("/v1/ids/default").0, "200");
}
