//! A server under operation: the service manager, signals, and a configuration that changes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Ran, TIMEOUT, ended, json, run, until};
use crate::server::{Server, serve};
use snowmint_testkit::proxy::{Proxy, Way};
use snowmint_testkit::{children, servers};

/// Socket on which a service manager listens.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { socket, path }
    }

    /// Receives the next message.
    #[track_caller]
    fn hear(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Receives the next message with this part; skips others before it.
    #[track_caller]
    fn hear_of(&self, part: &str) -> String {
        let until = Instant::now() + TIMEOUT;
        loop {
            let message = self.hear();
            if message.contains(part) {
                return message;
            }
            assert!(Instant::now() < until, "no {part}");
        }
    }
}

fn supervised(data_dir: &Path, manager: &Manager, more: &[&str]) -> std::process::Command {
    let mut command = serve(data_dir, more);
    command.env("NOTIFY_SOCKET", &manager.path);
    command
}

#[test]
fn service_manager_gets_every_state_change() {
    /// Shortest mean interval of the messages: three in each interval of the watchdog.
    const ALIVE_EVERY: Duration = Duration::from_millis(100);
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::new(folder.path());
    let mut command = supervised(&folder.path().join("data"), &manager, &[]);
    command.env("WATCHDOG_USEC", "300000");
    let begun = Instant::now();
    let server = Server::start(command);
    let ready = manager.hear_of("READY=1");
    assert!(ready.contains("STATUS=ready"), "{ready}");
    // The server is in fact ready.
    let (status, body) = server.get("/readyz");
    assert_eq!(status, 200, "{body}");
    // Liveness messages repeat. They may queue until they are read, so their pace counts from the
    // start.
    let messages = 20;
    for _ in 0..messages {
        manager.hear_of("WATCHDOG=1");
    }
    assert!(begun.elapsed() >= ALIVE_EVERY * (messages - 1), "{:?}", begun.elapsed());
    server.signal("-HUP");
    let reloading = manager.hear_of("RELOADING=1");
    let now: u64 = reloading
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="))
        .unwrap()
        .parse()
        .unwrap();
    assert!(now > 0, "{reloading}");
    manager.hear_of("READY=1");
    server.signal("-TERM");
    manager.hear_of("STOPPING=1");
    assert_eq!(server.wait().0, 0);
}

#[test]
fn server_that_cannot_mint_is_unready_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::new(folder.path());
    let config = folder.path().join("snowmint.toml");
    // The only worker number is held by another server.
    let layout = "time=62,worker=0,sequence=1,unit=1ms";
    std::fs::write(
        &config,
        format!("[sources]\nbuiltin = false\n[sources.one]\nlayout = \"{layout}\"\n"),
    )
    .unwrap();
    let store = format!("sqlite:{}", folder.path().join("ids.db").display());
    let args = ["--config", config.to_str().unwrap(), "--store", &store];
    let first = Server::start(serve(&folder.path().join("a"), &args));
    first.mint(&["one"]).ok();
    let server = Server::start(supervised(&folder.path().join("b"), &manager, &args));
    let status = manager.hear_of("STATUS=");
    assert!(status.contains("not ready: ") && !status.contains("READY=1"), "{status}");
    // SIGHUP must not cause a message that the server is ready.
    server.signal("-HUP");
    first.signal("-TERM");
    assert_eq!(first.wait().0, 0);
    let next = loop {
        let next = manager.hear();
        if next != status {
            break next;
        }
    };
    assert!(!next.contains("RELOADING"), "{next}");
    if !next.contains("READY=1") {
        manager.hear_of("READY=1");
    }
    drop(server);
}

#[test]
fn changed_configuration_is_applied_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("snowmint.toml");
    // The file is replaced in one step: half a file would be another configuration.
    let write = |text: &str| {
        let new = folder.path().join("new.toml");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &config).unwrap();
    };
    write(
        "[log]\nfilter = \"error\"\n[sources.numbered]\nkind = \"segment\"\nstep.min = 10\n[sources.gone]\nkind = \"ulid\"\n\
         [sources.fixed]\nlayout = \"twitter\"\n",
    );
    let server =
        Server::start(serve(&folder.path().join("data"), &["--config", config.to_str().unwrap()]));
    let source =
        |name: &str| json(&run(&["source", "show", name, "--server", &server.http, "--json"]).ok());
    server.mint(&["-n", "10"]).ok();
    assert_eq!(source("numbered")["step"]["min"], 10);
    write(
        "[limits]\nbatch_max = 5\nunsent_max = 2000\n[log]\nfilter = \"debug\"\naccess = true\n[server]\nowner = \"other\"\n\
         [sources.numbered]\nkind = \"segment\"\nstep.min = 20\nenabled = false\n\
         [sources.fixed]\nlayout = \"discord\"\n[sources.added]\nkind = \"ulid\"\n",
    );
    server.signal("-HUP");
    until("more than 5 are refused", || server.mint(&["-n", "6"]).code == 2);
    server.mint(&["-n", "5"]).ok();
    until("the new source is there", || server.mint(&["added"]).code == 0);
    assert_eq!(server.mint(&["numbered"]).code, 1);
    assert_eq!(source("numbered")["step"]["min"], 20);
    assert!(source("fixed")["layout"].as_str().unwrap().contains("worker=10"));
    assert_eq!(source("gone")["enabled"], true);
    // An error changes nothing.
    for (text, part) in [
        ("[limits]\nbatch_max = \"many\"\n", "many"),
        ("[limits]\nbatch_mox = 7\n", "batch_mox"),
        // The error shows only when the value is used.
        ("[limits]\nbatch_max = 7\n[log]\nfilter = \"=;=\"\n", "=;="),
    ] {
        write(text);
        server.signal("-HUP");
        server.says(&["ERROR", "keeping the current configuration", part]);
        server.mint(&["-n", "5"]).ok();
        assert_eq!(server.mint(&["-n", "6"]).code, 2);
    }
    // The old configuration again.
    write("[sources.numbered]\nkind = \"segment\"\nstep.min = 10\nenabled = true\n");
    server.signal("-HUP");
    until("6 are had", || server.mint(&["-n", "6"]).code == 0);
    until("it is enabled", || server.mint(&["numbered"]).code == 0);
    server.signal("-TERM");
    let (code, log) = server.wait();
    assert_eq!(code, 0, "{log}");
    let logged =
        |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    for parts in [
        &["changed", "key=\"limits.batch_max\"", "old=\"100000\"", "new=\"5\""][..],
        &["INFO", "changed", "key=\"log.filter\"", "error", "debug"],
        &["changed", "key=\"sources.numbered.step.min\"", "old=\"10\"", "new=\"20\""],
        // What was applied is what the next change replaces.
        &["changed", "key=\"limits.batch_max\"", "old=\"5\"", "new=\"100000\""],
        &["INFO", "changed", "key=\"log.filter\"", "debug", "info"],
        &["changed", "key=\"log.access\"", "old=\"true\"", "new=\"false\""],
        &["changed", "key=\"sources.numbered.step.min\"", "old=\"20\"", "new=\"10\""],
        &["WARN", "key unchanged until a restart", "server.owner", "other"],
        &["WARN", "not changed", "sources.fixed.layout", "twitter", "discord", "why="],
        &["WARN", "not changed", "sources.gone", "stays unchanged"],
        &["ERROR", "keeping the current configuration", "log.filter", "=;="],
    ] {
        assert!(logged(parts), "{parts:?}:\n{log}");
    }
    // Before the new filter, only errors and the audit trail were logged.
    let quiet = |line: &&str| !line.contains("ERROR") && !line.contains(" audit: ");
    let first = log.lines().find(quiet).unwrap();
    assert!(first.contains("log.filter"), "{first}");
}

/// Sends a request without its body, which stays in progress for as long as allowed. The server has
/// read the head, and has responded that it waits for the body.
fn unfinished(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.http).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = "POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = [0; 21];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"HTTP/1.1 100 Continue");
    stream
}

#[test]
fn a_second_signal_does_not_wait_for_requests() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("snowmint.toml");
    std::fs::write(&config, "[limits]\nstop_max = \"10m\"\n[http]\nrequest_time_max = \"10m\"\n")
        .unwrap();
    let start = || {
        let data_dir = folder.path().join("data");
        Server::start(serve(&data_dir, &["--config", config.to_str().unwrap()]))
    };
    for (first, second) in [("-TERM", "-TERM"), ("-INT", "-TERM"), ("-TERM", "-INT")] {
        let server = start();
        let request = unfinished(&server);
        server.signal(first);
        until("no new connection is taken", || TcpStream::connect(&server.http).is_err());
        server.signal(second);
        // This is long before the ten minutes of a single signal.
        let (code, log) = server.wait();
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("requests in progress are cut off"), "{log}");
        drop(request);
    }
    // One signal waits, within the limit, which can change while the server runs.
    let server = start();
    let request = unfinished(&server);
    std::fs::write(&config, "[limits]\nstop_max = \"300ms\"\n").unwrap();
    server.signal("-HUP");
    server.says(&["changed", "limits.stop_max"]);
    server.signal("-TERM");
    let (code, log) = server.wait();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("closed with requests in progress"), "{log}");
    drop(request);
}

#[test]
fn access_log_has_a_line_per_request_if_enabled() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    for wanted in [true, false] {
        let mut command = serve(&data_dir, &[]);
        command.env("SNOWMINT_LOG__ACCESS", wanted.to_string());
        let server = Server::start(command);
        server.mint(&["-n", "3"]).ok();
        assert_eq!(server.mint(&["absent"]).code, 1);
        assert_eq!(server.get("/v1/ids/counters?key=a-person").0, 200);
        assert_eq!(server.get("/v1/counters/counters/a-person").0, 200);
        assert_eq!(server.get("/nowhere").0, 404);
        for url in [format!("redis://{}", server.resp), format!("grpc://{}", server.http)] {
            run(&["bench", &url, "-n", "1", "-c", "1", "--source", "numbers"]).ok();
        }
        let mut resp = TcpStream::connect(&server.resp).unwrap();
        resp.set_read_timeout(Some(TIMEOUT)).unwrap();
        resp.write_all(b"INCRBY numbers 7\r\nMINT numbers 0\r\nPI\x1bNG\r\nPING\r\n").unwrap();
        let mut replies = String::new();
        while !replies.contains("PONG") {
            let mut bytes = [0; 512];
            let length = resp.read(&mut bytes).unwrap();
            replies.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
        }
        server.signal("-TERM");
        let (_, log) = server.wait();
        let lines: Vec<&str> =
            log.lines().filter(|line| line.contains("snowmint::access")).collect();
        if !wanted {
            assert_eq!(lines, Vec::<&str>::new());
            continue;
        }
        for parts in [
            &["http", "POST /v1/ids/default ", "source=\"default\"", "count=3", "outcome=\"ok\""][..],
            &["http", "POST /v1/ids/absent ", "outcome=\"unknown_source\""],
            &["http", "GET /v1/ids/counters ", "source=\"counters\"", "count=1", "ok"],
            &["http", "GET /nowhere", "outcome=\"not_found\""],
            &["grpc", "/snowmint.v1.Mint/Mint", "source=\"numbers\"", "count=32", "ok"],
            &["resp", "request=INCR ", "source=\"numbers\"", "count=1 ", "ok"],
            &["resp", "request=MINT ", "source=\"numbers\"", "count=32", "ok"],
            &["resp", "request=INCRBY ", "count=7", "ok"],
            &["resp", "request=MINT ", "source=\"numbers\"", "outcome=\"bad_request\""],
            &["resp", "request=PING ", "outcome=\"ok\""],
        ] {
            let found = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
            assert!(found, "{parts:?}:\n{log}");
        }
        assert!(lines.iter().all(|line| line.contains("micros=")), "{log}");
        assert!(!log.contains("a-person") && !lines.concat().contains('\x1b'), "{log}");
    }
}

/// An operator who stops a server during its start does not wait for the store.
#[test]
fn server_with_an_unresponsive_store_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let store = format!("redis://{}/0", mute.local_addr().unwrap());
    let command = serve(&folder.path().join("data"), &["--store", &store]);
    let mut server = children::spawn(command).unwrap();
    // The server calls the store and gets no response.
    let connection = mute.accept().unwrap();
    children::signal(server.id(), "-TERM");
    // A server that had waited until it gave the store up would report its absence: exit code 4.
    assert_eq!(ended(&mut server).code(), Some(0));
    drop(connection);
}

/// Starts a server that opens all its sources before it serves, since the configuration restricts
/// its worker number. Five of them use secondary stores that do not respond. While the server waits
/// for the first of these, calls `meanwhile` and sends SIGTERM.
fn stopped_while_opening(
    folder: &Path,
    more: &[&str],
    stop_max: &str,
    meanwhile: impl FnOnce(),
) -> Ran {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    mute.set_nonblocking(true).unwrap();
    let url = format!("redis://{}/0", mute.local_addr().unwrap());
    let mut text = format!(
        "[limits]\nstop_max = \"{stop_max}\"\n[worker]\nnumber = 7\n\
         [stores]\neast = \"{url}\"\nwest = \"{url}\"\n\
         [sources]\nbuiltin = false\n[sources.first]\n"
    );
    for number in 0..5 {
        let keys = "kind = \"segment\"\nstores = \"east,west\"\n";
        text.push_str(&format!("[sources.later{number}]\n{keys}"));
    }
    let config = folder.join("snowmint.toml");
    std::fs::write(&config, text).unwrap();
    let arguments = [&["--config", config.to_str().unwrap()][..], more].concat();
    let mut command = serve(&folder.join("data"), &arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = children::spawn(command).unwrap();
    let mut connection = None;
    until("a secondary store is called", || {
        connection = mute.accept().ok();
        connection.is_some()
    });
    meanwhile();
    children::signal(server.id(), "-TERM");
    ended(&mut server);
    drop(connection);
    server.wait_with_output().unwrap().into()
}

/// A server that opened its other sources first would then serve: its first line would say so.
#[test]
fn stop_signal_ends_a_server_opening_sources() {
    let folder = tempfile::tempdir().unwrap();
    let ran = stopped_while_opening(folder.path(), &[], "1m", || ());
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    // It had joined the store, and has left it.
    assert!(ran.err.lines().any(|line| line.ends_with("stopped")), "{}", ran.err);
}

/// The primary store stops responding, too: the server cannot release its worker number in time.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn server_opening_sources_ends_in_time_without_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = servers::Server::from(servers::Redis::start(&[]));
    let network = Proxy::start(store.port());
    let url = store.url_by(network.port());
    let ran = stopped_while_opening(folder.path(), &["--store", &url], "300ms", || {
        network.hold(Way::ToServer);
        network.hold(Way::ToClient);
    });
    assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{}", ran.err);
    assert!(ran.err.contains("within 300 ms"), "{}", ran.err);
}
