//! Segments: many real servers on one source, and servers that are killed while they serve it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::clients::{Http, Reply};
use super::ground::{STORES, below, is_long, is_selected, rounds, sleep_ms};
use super::server::{Folder, Server, TIMEOUT, WAIT_MAX};
use super::shared::Drawn;

const SERVERS: usize = 20;
/// Small step, so that the servers always call the store, and conflict there.
const STEP: u64 = 50;
const AT_ONCE: u64 = 10;
/// Divisor of fairness. With a queue on the row's lock, or with one script for a reserve (Redis),
/// the slowest server serves at least this part of the average. Elsewhere the order is a matter of
/// chance: SQLite's lock is polled, etcd and ZooKeeper are written by compare-and-set. There the
/// test checks only that no request fails by waiting too long (`limits.wait_max`).
const FAIR_PART: u64 = 8;
const FAIR: [&str; 3] = ["PostgreSQL", "MariaDB", "Redis"];
/// Smallest average number of requests per server: chance would decide among fewer.
const REQUESTS_MIN: u64 = 40;

fn config(folder: &Folder, store: &str, step: &str) -> String {
    let path = folder.join("config.toml");
    let text = format!(
        "[store]\nurl = \"{store}\"\n[sources]\nbuiltin = false\n\
         [sources.numbers]\nkind = \"segment\"\nstep = {{ {step} }}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn start(folder: &Folder, config: &str, number: usize) -> Server {
    let data = folder.join(&format!("server-{number}"));
    let arguments = ["--config", config, "--data-dir", data.to_str().unwrap()];
    Server::start(&arguments, &[(WAIT_MAX, "30s")])
}

/// Runs one store after the other, with twenty processes on each.
#[test]
fn twenty_processes_share_a_source() {
    for (name, start_store) in STORES {
        if is_selected(name) {
            let folder = Folder::new(&format!("twenty-{name}"));
            let store = start_store.map(|start| start());
            let sqlite = format!("sqlite:{}", folder.join("ids.db").display());
            let name = store.as_ref().map_or(name, |store| store.name());
            twenty(name, &folder, &store.as_ref().map_or(sqlite, |store| store.url()));
        }
    }
}

fn twenty(name: &str, folder: &Folder, store: &str) {
    let config = config(folder, store, &format!("rule = \"fixed\", size = {STEP}"));
    let servers: Vec<_> = std::thread::scope(|scope| {
        // The first server creates the tables; all others start at once.
        let first = start(folder, &config, 0);
        let config = &config;
        let starting: Vec<_> =
            (1..SERVERS).map(|number| scope.spawn(move || start(folder, config, number))).collect();
        let others = starting.into_iter().map(|starting| starting.join().unwrap());
        std::iter::once(first).chain(others).collect()
    });
    servers.iter().for_each(Server::ready);
    let drawn = Drawn::new("numbers", store);
    let (over, seconds) = (AtomicBool::new(false), rounds(if is_long() { 20 } else { 4 }));
    let response_count = AtomicU64::new(0);
    let drew: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let draws = |server| {
            let (drawn, over, response_count) = (&drawn, &over, &response_count);
            scope.spawn(move || {
                let (http, mut count, mut longest) = (Http::within(TIMEOUT), 0, Duration::ZERO);
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    // No request ever fails: the servers wait for each other.
                    match drawn.draw(&http, server, AT_ONCE) {
                        Some(Reply::Numbers(..)) => {
                            count += AT_ONCE;
                            response_count.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("{name}: {other:?}; it says {}", server.printed()),
                    }
                    longest = longest.max(begun.elapsed());
                }
                (count, longest)
            })
        };
        let drawing: Vec<_> = servers.iter().map(draws).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        let until = Instant::now() + TIMEOUT;
        let enough = REQUESTS_MIN * servers.len() as u64;
        while response_count.load(Ordering::Relaxed) < enough && Instant::now() < until {
            sleep_ms(100);
        }
        over.store(true, Ordering::Relaxed);
        assert!(
            response_count.load(Ordering::Relaxed) >= enough,
            "{name}: {response_count:?} requests"
        );
        drawing.into_iter().map(|draws| draws.join().unwrap()).collect()
    });
    let http = Http::within(TIMEOUT);
    drawn.comes_to_account(&http, &servers, STEP);
    let counts = || drew.iter().map(|(count, _)| *count);
    let (least, most) = (counts().min().unwrap(), counts().max().unwrap());
    let longest = drew.iter().map(|(_, longest)| *longest).max().unwrap();
    let fair = counts().sum::<u64>() / drew.len() as u64 / FAIR_PART;
    assert!(least >= fair || !FAIR.contains(&name), "{name}: not fair: {drew:?}");
    let missing = drawn.missing();
    std::thread::scope(|scope| {
        for server in servers {
            scope.spawn(move || assert_eq!(server.stop(), 0, "{name}"));
        }
    });
    // Released numbers are no longer missing, and nothing else has changed.
    assert!(drawn.missing() <= missing, "{name}");
    println!("| 20 processes draw from one source | {name} | {seconds} s | {} | 0 |", drawn.used());
    println!(
        "{name}: {least} to {most} each, none waited {longest:?}; {missing} prefetched or lost"
    );
}

const MIN: u64 = 100;

/// On each store, a server is killed repeatedly while it serves.
#[test]
fn numbers_are_dense_but_for_the_budget_when_servers_are_killed() {
    std::thread::scope(|scope| {
        for (name, start_store) in STORES {
            if is_selected(name) {
                scope.spawn(move || {
                    let folder = Folder::new(&format!("killed-{name}"));
                    let store = start_store.map(|start| start());
                    let sqlite = format!("sqlite:{}", folder.join("ids.db").display());
                    let name = store.as_ref().map_or(name, |store| store.name());
                    killed(name, &folder, &store.as_ref().map_or(sqlite, |store| store.url()));
                });
            }
        }
    });
}

fn killed(name: &str, folder: &Folder, store: &str) {
    let config = config(folder, store, &format!("min = {MIN}"));
    let drawn = Drawn::new("numbers", store);
    let rounds = rounds(if is_long() { 100 } else { 5 });
    for round in 0..=rounds {
        let server = start(folder, &config, 0);
        server.ready();
        let until = Instant::now() + Duration::from_millis(50 + below(400));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let http = Http::within(TIMEOUT);
                    // The server is killed in the middle of a response.
                    while let Some(Reply::Numbers(..)) = drawn.draw(&http, &server, AT_ONCE) {}
                });
            }
            sleep_ms(
                u64::try_from(until.saturating_duration_since(Instant::now()).as_millis()).unwrap(),
            );
            server.signal("-KILL");
        });
        drop(server);
        // A process may lose half of the numbers that it took, and two small fetches in any case;
        // numbers in responses that no client received come on top.
        let lives = round + 1;
        let lost_max = drawn.used() + lives * 2 * (MIN + AT_ONCE);
        drawn.wasted_at_most(lost_max).unwrap_or_else(|violation| panic!("{name}: {violation}"));
    }
    let (used, missing) = (drawn.used(), drawn.missing());
    println!(
        "| server killed (`kill -9`) while it draws numbers | {name} | {rounds} | {used} | 0 |"
    );
    println!("{name}: {missing} lost, {used} used");
}
