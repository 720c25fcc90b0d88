//! A source is altered, disabled, deleted and defined again while a hundred clients request IDs
//! from three servers: all servers follow, and no number comes twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::server::{Folder, Resp, Server, curl, until};

/// Lease; servers poll the catalog three times within it.
const LEASE: &str = "300s";
/// Time limit for a notice: a server that follows within it did not rely on polling. Generous,
/// since these machines are noisy.
const NOTIFIED_WITHIN: Duration = Duration::from_secs(60);
const CLIENTS: usize = 100;

fn start(folder: &Folder, number: usize) -> Server {
    Server::sharing(folder, number, &format!("[counters]\nlease = \"{LEASE}\"\n"))
}

/// Makes a change, which must succeed: the response shows the source, except after a deletion.
fn change(server: &Server, method: &str, path: &str, body: &str) {
    let url = server.url(path);
    let response = curl(&["-X", method, "--json", body, "-w", "\n%{http_code}", &url]);
    let (shown, status) = response.rsplit_once('\n').unwrap();
    let expected = if method == "DELETE" { ("204", false) } else { ("200", true) };
    let is_shown = shown.contains("\"name\":\"bills\"");
    assert_eq!((status, is_shown), expected, "{method} {path} {body}: {response}");
}

/// Waits until every server gives the expected response for the source: a number, or this error.
fn all_say(servers: &[Server], expected: &str) {
    let until = Instant::now() + NOTIFIED_WITHIN;
    for server in servers {
        loop {
            let response = curl(&[&server.url("/v1/ids/bills")]);
            if response.contains(expected) {
                break;
            }
            assert!(Instant::now() < until, "{} says {response}, not {expected}", server.http);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Stops the clients, even if the test fails: it would wait for them.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests IDs until it is stopped, and keeps every number. Counts itself in `drew` at its first.
fn draw(address: &str, stop: &AtomicBool, drew: &AtomicUsize) -> Vec<u64> {
    let mut resp = Resp::connect(address).unwrap();
    let mut drawn = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let before = drawn.len();
        resp.incr("bills", 1, &mut drawn).unwrap();
        drew.fetch_add(usize::from(before == 0 && !drawn.is_empty()), Ordering::Relaxed);
        // The pause is longer while the source is disabled or deleted.
        let rest_ms = if drawn.len() > before { 50 } else { 200 };
        std::thread::sleep(Duration::from_millis(rest_ms));
    }
    drawn
}

#[test]
fn sources_change_under_a_hundred_clients_without_repeats() {
    let folder = Folder::new("altered");
    let servers: Vec<_> = (0..3).map(|number| start(&folder, number)).collect();
    let fixed = |size| format!("{{\"rule\":\"fixed\",\"size\":{size}}}");
    let new = format!("{{\"name\":\"bills\",\"kind\":\"segment\",\"step\":{}}}", fixed(2_000));
    change(&servers[0], "POST", "/v1/sources", &new);
    let (stop, drew) = (AtomicBool::new(false), AtomicUsize::new(0));
    let drawn = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (address, stop, drew) = (&servers[client % servers.len()].resp, &stop, &drew);
                scope.spawn(move || draw(address, stop, drew))
            })
            .collect();
        let stopping = Stop(&stop);
        all_say(&servers, "\"ids\"");
        change(
            &servers[1],
            "PATCH",
            "/v1/sources/bills",
            &format!("{{\"step\":{}}}", fixed(20_000)),
        );
        for (target, enabled) in [(2, false), (0, true), (1, false), (1, true)] {
            let body = format!("{{\"enabled\":{enabled}}}");
            change(&servers[target], "PATCH", "/v1/sources/bills", &body);
            all_say(&servers, if enabled { "\"ids\"" } else { "\"disabled\"" });
        }
        for (target, again) in [(0, 2), (2, 1)] {
            change(&servers[target], "DELETE", "/v1/sources/bills", "");
            all_say(&servers, "\"unknown_source\"");
            change(&servers[again], "POST", "/v1/sources", &new);
            all_say(&servers, "\"ids\"");
        }
        until("every client draws", || drew.load(Ordering::Relaxed) == CLIENTS);
        drop(stopping);
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    for one in &drawn {
        assert!(one.is_sorted_by(|a, b| a < b), "out of order for one client");
        seen.extend(one);
    }
    let count: usize = drawn.iter().map(Vec::len).sum();
    assert_eq!(seen.len(), count, "a number came twice");
}
