//! Order in real time over three servers, of which one dies, one joins and one leaves. Every
//! response has greater numbers than all responses before its request began.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use super::server::{Folder, Resp, Server, curl, until};

/// Lease of the order's owner: a server may serve this long after its last renewal.
const LEASE_MS: u64 = 3_000;
const CLIENTS: usize = 6;
/// Number of responses that each client gets before the next step.
const RESPONSES_MIN: usize = 10;
/// Longest wait of a client for a response. Generous: these machines are noisy.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Numbers and times of one request.
#[derive(Clone, Copy, Debug)]
struct TimedResponse {
    began: Instant,
    ended: Instant,
    lowest: u64,
    highest: u64,
}

/// Checks that every request's numbers are above all numbers in responses before it began. Returns
/// the number of overlaps: without any, the test would prove nothing.
fn check(mut history: Vec<TimedResponse>) -> usize {
    history.sort_by_key(|timed| timed.began);
    let mut by_end = history.clone();
    by_end.sort_by_key(|timed| timed.ended);
    let (mut highest, mut before, mut overlaps) = (0, 0, 0);
    for (index, one) in history.iter().enumerate() {
        while let Some(other) = by_end.get(before).filter(|other| other.ended < one.began) {
            highest = highest.max(other.highest);
            before += 1;
        }
        assert!(one.lowest > highest, "{one:?} came after {highest} was returned");
        overlaps += usize::from(before < index);
    }
    overlaps
}

#[test]
fn order_check_can_fail() {
    let start = Instant::now();
    let at = |began: u64, ended: u64, id: u64| TimedResponse {
        began: start + Duration::from_millis(began),
        ended: start + Duration::from_millis(ended),
        lowest: id,
        highest: id,
    };
    assert_eq!(check(vec![at(0, 5, 7), at(1, 9, 6), at(10, 11, 8)]), 1);
    let wrong = || check(vec![at(0, 5, 7), at(6, 9, 6)]);
    assert!(std::panic::catch_unwind(wrong).is_err());
}

fn start(folder: &Folder, number: usize) -> Server {
    let text = format!(
        "[sources.orders]\norder = \"global\"\n[sources.messages]\nkind = \"counter\"\n\
         [counters]\nlease = \"{LEASE_MS}ms\"\n"
    );
    Server::sharing(folder, number, &text)
}

/// Returns the numbers of one HTTP response; `None` without a response, or for an error.
fn by_http(address: &str, path: &str) -> Option<Vec<u64>> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(RESPONSE_WAIT_MAX)).ok()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/plain\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    if !head.starts_with("HTTP/1.1 200") {
        return None;
    }
    body.lines().map(|line| line.parse().ok()).collect()
}

fn by_resp(address: &str, source: &str) -> Option<Vec<u64>> {
    let mut ids = Vec::new();
    Resp::connect(address).ok()?.incr(source, 1, &mut ids).ok()?;
    (!ids.is_empty()).then_some(ids)
}

/// Request of a client.
type Ask = fn(&Server, usize) -> Option<Vec<u64>>;

fn orders(server: &Server, turn: usize) -> Option<Vec<u64>> {
    match turn % 3 {
        0 => by_resp(&server.resp, "orders"),
        1 => by_http(&server.http, "/v1/ids/orders"),
        _ => by_http(&server.http, "/v1/ids/orders?count=20"),
    }
}

/// Does the same, and repeats it while the minting server has lost its slot: the machine may have
/// stood still.
fn orders_at_last(server: &Server, turn: usize) -> Vec<u64> {
    let mut numbers = None;
    until("it gets a response", || {
        numbers = orders(server, turn);
        numbers.is_some()
    });
    numbers.unwrap()
}

fn messages(server: &Server, turn: usize) -> Option<Vec<u64>> {
    let count = turn % 5 + 1;
    by_http(&server.http, &format!("/v1/ids/messages?key=alice&count={count}"))
}

/// Runs clients on all servers while servers die, join and leave, until all clients get responses
/// again.
fn in_order(name: &str, ask: Ask) {
    let folder = Folder::new(name);
    let servers: RwLock<Vec<Server>> =
        RwLock::new((0..3).map(|number| start(&folder, number)).collect());
    let history: Mutex<Vec<(usize, TimedResponse)>> = Mutex::default();
    let over = AtomicBool::new(false);
    let later = |share: u64| std::thread::sleep(Duration::from_millis(LEASE_MS * share));
    // Waits until every client has responses to requests that it began from now on.
    let await_responses = |what: &str| {
        let now = Instant::now();
        until(what, || {
            let mut responses = [0; CLIENTS];
            for (client, timed) in history.lock().unwrap().iter() {
                responses[*client] += usize::from(timed.began > now);
            }
            responses.iter().all(|count| *count >= RESPONSES_MIN)
        });
    };
    std::thread::scope(|scope| {
        let _over = Over(&over);
        for client in 0..CLIENTS {
            let (servers, history, over) = (&servers, &history, &over);
            scope.spawn(move || {
                let mut turn = client;
                while !over.load(Ordering::Relaxed) {
                    turn += 1;
                    let servers = servers.read().unwrap();
                    let began = Instant::now();
                    let response = ask(&servers[turn % servers.len()], turn);
                    let ended = Instant::now();
                    drop(servers);
                    let Some(numbers) = response else {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    };
                    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
                    let (lowest, highest) = (numbers[0], numbers[numbers.len() - 1]);
                    let timed = TimedResponse { began, ended, lowest, highest };
                    history.lock().unwrap().push((client, timed));
                }
            });
        }
        await_responses("all servers respond");
        later(1);
        let dies = servers.write().unwrap().remove(0);
        dies.kill();
        later(2);
        await_responses("two serve for the one that died");
        let comes = start(&folder, 3);
        servers.write().unwrap().push(comes);
        later(1);
        await_responses("a new one responds, too");
        let leaves = servers.write().unwrap().remove(0);
        assert_eq!(leaves.stop(), 0);
        await_responses("they respond after one has left");
    });
    let history = history.into_inner().unwrap();
    let overlaps = check(history.into_iter().map(|(_, timed)| timed).collect());
    assert!(overlaps > 10, "{overlaps} overlapped");
}

/// Stops the clients even if the test fails: it would wait for them.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn ids_of_a_global_order_rise_in_real_time() {
    in_order("global-order", orders);
}

#[test]
fn numbers_of_a_key_rise_in_real_time() {
    in_order("key-order", messages);
}

#[test]
fn any_server_mints_in_order_and_ids_carry_time() {
    let folder = Folder::new("anywhere");
    let servers: Vec<_> = (0..2).map(|number| start(&folder, number)).collect();
    let mut last = 0;
    for turn in 0..30 {
        for server in &servers {
            let numbers = orders_at_last(server, turn);
            assert!(numbers[0] > last, "{numbers:?} after {last}");
            last = numbers[numbers.len() - 1];
        }
    }
    let decoded = curl(&[&servers[0].url(&format!("/v1/decode/{last}?source=orders"))]);
    let decoded: serde_json::Value = serde_json::from_str(&decoded).unwrap();
    assert_eq!(decoded["worker"].as_u64(), Some(0), "{decoded}");
    // Every server gives the IDs in the requested text form.
    for server in &servers {
        let mut id = String::new();
        until("it gets a response", || {
            let (_, body) = server.get("/v1/ids/orders?format=base62");
            id = body["ids"][0].as_str().unwrap_or_default().to_owned();
            !id.is_empty()
        });
        assert!((10..=11).contains(&id.len()), "{id}");
        let (status, refused) = server.get("/v1/ids/orders?count=100000000");
        assert_eq!(
            (status.as_str(), refused["error"]["code"].as_str()),
            ("413", Some("limit_exceeded"))
        );
    }
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}
