//! All protocols and compatibility APIs at once: no number comes twice.

use std::collections::HashSet;
use std::thread;

use super::super::server::{Folder, Resp, Server, curl, until};
use super::serve;

const FILE: &str = r#"
[compat.leaf]
enabled = true
[compat.tinyid]
enabled = true
segment_length = 700
[compat.cosid]
enabled = true
[compat.cosid.keys]
"demo.order" = "orders"

[sources.orders]
kind = "segment"
[sources.thirds]
kind = "segment"
offset = 2
increment = 3
[sources.flakes]
layout = "leaf"
"#;

/// Number of requests of each client.
const ROUNDS: usize = 25;

/// A client: sends a request, and returns the numbers that it got.
type Client = fn(&Server, &str) -> Vec<u64>;

/// Sends a request, and repeats it while it fails because the machine stood still.
fn ask(arguments: &[&str]) -> String {
    let mut response = String::new();
    until("it gets a response", || {
        response = curl(&[&["--fail"], arguments].concat());
        !response.is_empty()
    });
    response
}

fn get(server: &Server, path: &str) -> String {
    ask(&[&server.url(path)])
}

fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|sign: char| !sign.is_ascii_digit()).filter(|part| !part.is_empty());
    digits.map(|digits| digits.parse().unwrap()).collect()
}

fn leaf(server: &Server, source: &str) -> Vec<u64> {
    let kind = if source == "flakes" { "snowflake" } else { "segment" };
    let ids = numbers(&get(server, &format!("/api/{kind}/get/{source}")));
    assert_eq!(ids.len(), 1);
    ids
}

fn tinyid(server: &Server, source: &str) -> Vec<u64> {
    let path = format!("/tinyid/id/nextId?bizType={source}&batchSize=300&token=t");
    let response: serde_json::Value = serde_json::from_str(&get(server, &path)).unwrap();
    assert_eq!(response["code"], 200, "{response}");
    let ids = response["data"].as_array().unwrap();
    assert_eq!(ids.len(), 300);
    ids.iter().map(|id| id.as_u64().unwrap()).collect()
}

fn tinyid_simple(server: &Server, source: &str) -> Vec<u64> {
    let ids = get(server, &format!("/id/nextIdSimple?bizType={source}&batchSize=150&token=t"));
    let ids = numbers(&ids);
    assert_eq!(ids.len(), 150);
    ids
}

/// Counts like `SegmentId` of Tinyid's Java client: from the first number above the current one
/// with the remainder, in steps of delta up to the highest number.
fn tinyid_client(server: &Server, source: &str) -> Vec<u64> {
    let url = server.url(&format!("/tinyid/id/nextSegmentIdSimple?token=t&bizType={source}"));
    let segment = ask(&["-X", "POST", "--data", "", &url]);
    let [mut current, loading, max, delta, remainder] = numbers(&segment)[..] else {
        panic!("{segment}")
    };
    assert!(current < loading && loading < max, "{segment}");
    if current % delta != remainder {
        while current % delta != remainder {
            current += 1;
        }
    } else {
        current += delta;
    }
    let mut ids = Vec::new();
    while current <= max {
        ids.push(current);
        current += delta;
    }
    assert_eq!(ids.len(), 700, "{segment}");
    ids
}

/// Counts like `DefaultIdSegment` of CosId: `step` numbers, the last of which is the response.
fn cosid_client(server: &Server, _: &str) -> Vec<u64> {
    let step = 250;
    let url = server.url(&format!("/segments/demo/order?step={step}"));
    let max: u64 = ask(&["-X", "PATCH", &url]).parse().unwrap();
    (max - step + 1..=max).collect()
}

fn own(server: &Server, source: &str) -> Vec<u64> {
    let ids = get(server, &format!("/v1/ids/{source}?count=200&format=number"));
    let ids = numbers(&ids);
    assert_eq!(ids.len(), 200);
    ids
}

fn own_row(server: &Server, source: &str) -> Vec<u64> {
    let url = server.url(&format!("/v1/segments/{source}"));
    let row: serde_json::Value =
        serde_json::from_str(&ask(&["--json", r#"{"length":333}"#, &url])).unwrap();
    let number = |name: &str| numbers(&row[name].to_string())[0];
    let step = usize::try_from(number("increment")).unwrap();
    let ids: Vec<_> = (number("first")..=number("last")).step_by(step).collect();
    assert_eq!(ids.len(), 333, "{row}");
    ids
}

fn redis(server: &Server, source: &str) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut connection = Resp::connect(&server.resp).unwrap();
    while ids.len() < 100 {
        // Requests on a full tick are repeated.
        let rest = 100 - ids.len();
        connection.incr(source, rest, &mut ids).unwrap();
    }
    ids
}

/// Runs all clients at once, and checks that no number comes twice. Returns all numbers.
fn at_once(server: &Server, source: &str, clients: &[Client]) -> HashSet<u64> {
    let of_clients: Vec<Vec<u64>> = thread::scope(|scope| {
        let clients: Vec<_> = clients
            .iter()
            .map(|ask| scope.spawn(move || (0..ROUNDS).flat_map(|_| ask(server, source)).collect()))
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for ids in of_clients {
        for id in ids {
            assert!(seen.insert(id), "{id} of {source} twice");
        }
    }
    seen
}

#[test]
fn no_number_repeats_across_compatibility_apis() {
    let folder = Folder::new("compat-at-once");
    let server = serve(&folder, FILE);
    let clients: [Client; 8] =
        [leaf, tinyid, tinyid_simple, tinyid_client, cosid_client, own, own_row, redis];
    let seen = at_once(&server, "orders", &clients);
    assert_eq!(seen.len(), ROUNDS * (1 + 300 + 150 + 700 + 250 + 200 + 333 + 100));
    // A client of CosId cannot count by three; all other clients can.
    let clients: [Client; 7] = [leaf, tinyid, tinyid_simple, tinyid_client, own, own_row, redis];
    let seen = at_once(&server, "thirds", &clients);
    assert_eq!(seen.len(), ROUNDS * (1 + 300 + 150 + 700 + 200 + 333 + 100));
    assert!(seen.iter().all(|id| id % 3 == 2));
    let clients: [Client; 5] = [leaf, tinyid, tinyid_simple, own, redis];
    let seen = at_once(&server, "flakes", &clients);
    assert_eq!(seen.len(), ROUNDS * (1 + 300 + 150 + 200 + 100));
}

#[test]
fn issued_numbers_are_not_repeated_after_a_crash() {
    let folder = Folder::new("compat-crash");
    let clients: [Client; 4] = [leaf, tinyid_client, cosid_client, own];
    let server = serve(&folder, FILE);
    let before = at_once(&server, "orders", &clients);
    server.kill();
    let server = serve(&folder, FILE);
    let after = at_once(&server, "orders", &clients);
    assert_eq!(before.intersection(&after).count(), 0);
}
