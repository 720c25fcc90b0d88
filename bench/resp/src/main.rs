//! IDs and counters over RESP, compared with redis-server: the same client (redis-benchmark) on the
//! same machine, in turn, round after round. The floor, a bare responder, shows how much the client
//! leaves to any server.
//!
//! `cargo build --profile dist --bin snowmint && cd bench && cargo run --release -p
//! snowmint-bench-resp`. Options: `-- --test` runs everything once, small; `-- --snowmint
//! PATH` takes another binary; `-- --apart` keeps clients off the servers' processors.

mod floor;
mod ids;

use std::process::Command;
use std::time::{Duration, Instant};

use snowmint_bench_servers::{
    COUNTERS, Client, Plan, Snowmint, assert_distinct, floor_to_be, median, ratio, rounds, served,
};
use snowmint_testkit::servers::Redis;

/// Amount of each measurement.
struct Much {
    rounds: usize,
    requests: u64,
    keys: u64,
    /// Number of live keys whose memory use is measured.
    live: u64,
    /// Threads of redis-benchmark that request IDs in a pipeline.
    threads: usize,
}

fn main() {
    if let Some(name) = floor_to_be() {
        return floor::serve(&name);
    }
    let plan = Plan::of_arguments();
    let much = plan.much(
        Much {
            rounds: 15,
            requests: 1_000_000,
            keys: 1_000_000,
            live: 10_000_000,
            threads: plan.threads,
        },
        Much { rounds: 1, requests: 10_000, keys: 1_000, live: 10_000, threads: plan.threads },
    );
    ids::speed(&much, &plan.binary);
    let ours = Snowmint::start(&plan.binary, COUNTERS);
    check(ours.resp);
    speed(&much, ours.resp);
    drop(ours);
    memory(&much, &plan.binary);
}

/// Checks every reply of two clients that count one key concurrently.
fn check(port: u16) {
    const EACH: usize = 100_000;
    let all: Vec<u64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut numbers = Vec::with_capacity(EACH);
                    Client::to(port).incr((0..EACH).map(|_| "shared"), &mut numbers);
                    assert!(numbers.is_sorted_by(|one, next| one < next), "out of order");
                    numbers
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client ends")).collect()
    });
    assert_eq!(all.len(), 2 * EACH, "a number was refused");
    assert_distinct("two clients of one key", all);
    println!("{} numbers of one key by two clients: each once, rising for each client\n", 2 * EACH);
}

fn speed(much: &Much, ours: u16) {
    let without = served(|| Redis::start(&["--appendonly", "no"]));
    let always = served(|| Redis::start(&[]));
    let servers = [
        ("snowmint", ours),
        ("redis-server, no persistence", port(&without)),
        ("redis-server, appendfsync always", port(&always)),
    ];
    let (requests, keys) = (much.requests.to_string(), much.keys.to_string());
    let how = ["-t", "incr", "-P", "64", "-c", "8", "-n", &requests, "-r", &keys];
    println!("| INCR, 64 in a pipeline, {} keys | median, 1/s | snowmint over it |", much.keys);
    println!("|---|---|---|");
    let rates = rounds(much.rounds, &servers, |(_, port)| benchmark(*port, &how, "INCR"));
    for ((name, _), theirs) in servers.iter().zip(&rates) {
        println!("| {name} | {:.0} | {:.2} |", median(theirs.clone()), ratio(&rates[0], theirs));
    }
}

fn port(redis: &Redis) -> u16 {
    let url = redis.url();
    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next());
    port.and_then(|port| port.parse().ok()).expect("a port in the URL")
}

/// Returns the requests per second that redis-benchmark reports in the row with this name.
fn benchmark(port: u16, how: &[&str], row: &str) -> f64 {
    let output = Command::new("redis-benchmark")
        .args(["-p", &port.to_string(), "--csv"])
        .args(how)
        .output()
        .expect("redis-benchmark is there: ci/setup installs it");
    let printed = String::from_utf8_lossy(&output.stdout);
    let begin = format!("\"{row}\",\"");
    let row = printed.lines().find_map(|line| line.strip_prefix(&begin));
    let rate = row.and_then(|row| row.split('"').next()).and_then(|rate| rate.parse().ok());
    rate.unwrap_or_else(|| panic!("redis-benchmark printed: {printed}"))
}

/// Function from a number to its key.
type Key = fn(u64) -> String;

/// Prints the memory use of live keys, seen from outside, and the restart time with them.
fn memory(much: &Much, binary: &str) {
    println!("\n| {} live keys | bytes of memory each | ready after a kill, ms |", much.live);
    println!("|---|---|---|");
    let kinds: [(&str, Key); 2] = [
        ("numbers, dense", |number| number.to_string()),
        ("texts of 13 bytes", |number| format!("user-{number:08}")),
    ];
    for (name, key) in kinds {
        let mut ours = Snowmint::start(binary, COUNTERS);
        let mut client = Client::to(ours.resp);
        // Every section exists before the memory is measured.
        client.incr((0..200_000).map(|number| format!("warm-{number}")), &mut Vec::new());
        let before = ours.resident_bytes();
        client.incr((0..much.live).map(key), &mut Vec::new());
        let bytes = ours.resident_bytes().saturating_sub(before) as f64 / much.live as f64;
        drop(client);
        let begun = Instant::now();
        ours.kill();
        ours.start_again();
        let took = first_reply(ours.resp, begun);
        println!("| {name} | {bytes:.1} | {:.0} |", took.as_secs_f64() * 1e3);
    }
}

fn first_reply(port: u16, begun: Instant) -> Duration {
    let mut numbers = Vec::new();
    while numbers.is_empty() {
        Client::to(port).incr(["7"].into_iter(), &mut numbers);
    }
    begun.elapsed()
}
