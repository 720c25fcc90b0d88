//! `snowmint top`: one snapshot as text, and the live view in a pseudo-terminal.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use snowmint_testkit::children;

use super::server::{Folder, SNOWMINT, Server, clean, curl, snowmint, until};

const CONFIG: &str = "[sources.orders]\nlayout = \"twitter\"\n\
                      [sources.invoices]\nkind = \"segment\"\nstep = { min = 1000 }\n";

fn top(arguments: &[&str]) -> Output {
    snowmint().arg("top").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Returns the lines of one snapshot.
fn snapshot(server: &str) -> Vec<String> {
    let output = top(&["--once", "--interval", "100ms", "--server", server]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{error}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the words of the row with this word, from that word on.
fn row<'l>(lines: &'l [String], word: &str) -> Vec<&'l str> {
    // The heading names servers, too.
    let rows = lines.iter().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let from = |words: Vec<&'l str>| {
        let at = words.iter().position(|other| *other == word)?;
        Some(words[at..].to_vec())
    };
    rows.filter_map(from).next().unwrap_or_default()
}

#[test]
fn top_once_shows_three_servers_and_one_that_was_killed() {
    let folder = Folder::new("top-once");
    let mut servers: Vec<Server> =
        (1..=3).map(|number| Server::sharing(&folder, number, CONFIG)).collect();
    let all = servers.iter().map(|server| server.http.as_str()).collect::<Vec<_>>().join(",");
    let url = format!("snowmint://{all}");
    curl(&[&servers[0].url("/v1/ids/nothing")]);
    let mut lines = Vec::new();
    until("the snapshot has the rates of all servers", || {
        curl(&["-o", "/dev/null", &servers[1].url("/v1/ids/orders?count=1000")]);
        curl(&["-o", "/dev/null", &servers[2].url("/v1/ids/invoices?count=10")]);
        lines = snapshot(&url);
        let rate = |source: &str| {
            row(&lines, source).get(2).is_some_and(|rate| !["0", "-"].contains(rate))
        };
        lines.iter().any(|line| line.starts_with("Servers (3 of 3 ready"))
            && ["orders", "invoices"].into_iter().all(rate)
    });
    assert!(lines[0].contains("namespace default"), "{lines:?}");
    assert_eq!(lines[1], "ready; all 3 servers are ready");
    for (number, server) in servers.iter().enumerate() {
        let row = row(&lines, &server.http);
        // Address, state and worker number.
        assert_eq!(row[1..3], ["ready", &number.to_string()], "{lines:?}");
    }
    assert_eq!(row(&lines, "orders")[1], "snowflake");
    assert_eq!(row(&lines, "invoices")[1], "segment");
    // The rest of the last range, of which the server fetches at least 1,000.
    let prefetched = row(&lines, "invoices").pop().unwrap().replace(',', "");
    let prefetched: u64 = prefetched.parse().unwrap();
    assert!((1..1_000_000).contains(&prefetched), "{lines:?}");
    assert_eq!(row(&lines, "unknown_source"), ["unknown_source", "http", "0", "1"]);

    let killed = servers.remove(0);
    let address = killed.http.clone();
    killed.kill();
    until("the snapshot shows the killed server", || {
        lines = snapshot(&url);
        let row = row(&lines, &address);
        ["no", "gone"].iter().any(|state| row.get(1) == Some(state))
    });
    assert!(lines.iter().any(|line| line.contains(&format!("metrics of {address}"))));
}

/// Frozen servers accept connections, and send nothing. The time of each end proves that the calls
/// overlap.
#[test]
fn frozen_servers_delay_looks_by_seconds_and_once() {
    let frozen = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let call = move || {
            let (mut socket, _) = listener.accept().unwrap();
            let begun = Instant::now();
            // Until the caller gives up.
            let _ = socket.read_to_end(&mut Vec::new());
            (begun, Instant::now(), listener)
        };
        (address, std::thread::spawn(call))
    };
    let (probed, call) = frozen();
    let output = snowmint().args(["health", "--server", &probed]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("none within 5000 ms"), "{error}");
    drop(call.join());

    let folder = Folder::new("top-frozen");
    let server = Server::sharing(&folder, 1, "");
    server.ready();
    let (one, other) = (frozen(), frozen());
    let lines = snapshot(&format!("snowmint://{},{},{}", server.http, one.0, other.0));
    let is_shown = |address: &str| {
        let parts = [format!("metrics of {address}"), "none within 5000 ms".to_owned()];
        lines.iter().any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(is_shown(&one.0) && is_shown(&other.0), "{lines:?}");
    // The listeners are kept: each thread has accepted a call.
    let [(one_begun, one_ended, _one), (other_begun, other_ended, _other)] =
        [one.1.join().unwrap(), other.1.join().unwrap()];
    assert!(one_begun < other_ended && other_begun < one_ended, "one after the other");
}

#[test]
fn top_without_a_terminal_or_a_server_says_what_to_do() {
    for (arguments, code, part) in [
        (&[][..], 2, "not a terminal; run snowmint top --once"),
        (&["--interval", "99ms"], 2, "not between 100ms and 1h"),
        (&["--once", "--server", "a b"], 2, "invalid server address"),
        (&["--once", "--server", "127.0.0.1:1"], 4, "no response from http://127.0.0.1:1"),
    ] {
        let output = top(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(part) && output.stdout.is_empty(), "{arguments:?}: {error}");
    }
}

/// Begin of a green text.
const GREEN: &str = "\u{1b}[38;5;2";

/// A shell that runs `top` in a pseudo-terminal, and then prints the terminal's settings.
struct Pseudo {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
}

impl Pseudo {
    fn start(server: &str) -> Self {
        let script = format!(
            "stty cols 100 rows 30; sh -c 'echo process=$$=; exec {SNOWMINT} top --interval 100ms \
             --server {server}'; echo code=$?; stty -a"
        );
        // Of util-linux: copies a pseudo-terminal to its standard output.
        let mut command = clean("script");
        command
            .args(["--quiet", "--command", &script, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = children::spawn(command).unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::<Mutex<String>>::default();
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 16 * 1024];
            while let Ok(1..) = output.read(&mut bytes).inspect(|read| {
                let text = String::from_utf8_lossy(&bytes[..*read]);
                shown.lock().unwrap().push_str(&text);
            }) {}
        });
        Self { child, keys, screen }
    }

    /// Waits until the screen shows a text, and forgets all up to it.
    fn shows(&self, text: &str) -> String {
        let mut before = String::new();
        until(&format!("the screen shows {text:?}"), || {
            let mut screen = self.screen.lock().unwrap();
            let Some((first, rest)) = screen.split_once(text) else { return false };
            (before, *screen) = (first.to_owned(), rest.to_owned());
            true
        });
        before
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Checks that the view has left the screen and restored the settings of the terminal.
    fn check_restored(mut self) {
        self.shows("\u{1b}[?1049l");
        self.shows("code=0");
        // The last line of the settings.
        let settings = self.shows("echoke");
        for setting in ["icanon", "echo", "isig", "opost"] {
            let is_set = settings.split_whitespace().any(|word| word == setting);
            assert!(is_set, "{setting}: {settings}");
        }
        self.child.wait().unwrap();
    }
}

impl Drop for Pseudo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn live_view_retries_a_killed_server_and_restores_the_terminal() {
    let folder = Folder::new("top-live");
    let server = Server::sharing(&folder, 1, CONFIG);
    let address = server.http.clone();
    let mut view = Pseudo::start(&address);
    view.shows("\u{1b}[?1049h");
    view.shows("ready");
    view.shows("orders");
    server.kill();
    view.shows("last response");
    let _server = Server::sharing_at(&folder, 1, CONFIG, &address);
    // Old values are not green.
    view.shows(GREEN);
    view.press("?");
    view.shows("any key closes it");
    view.press("x?");
    view.press("q");
    view.check_restored();
}

#[test]
fn live_view_restores_the_terminal_after_ctrl_c_and_sigterm() {
    // No server: the view waits for one.
    for is_signal in [false, true] {
        let mut view = Pseudo::start("127.0.0.1:1");
        view.shows("process=");
        let process = view.shows("=");
        view.shows("no response so far");
        if is_signal {
            children::signal(process.trim().parse().unwrap(), "-TERM");
        } else {
            view.press("\u{3}");
        }
        view.check_restored();
    }
}
