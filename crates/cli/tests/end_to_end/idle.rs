//! A server that nobody asks for anything rests, and loses nothing by it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::server::{Folder, Resp, Server, curl};

/// How long the server is watched.
const WATCHED: Duration = Duration::from_secs(10);
/// Switches of all threads, in that time: five wake-ups a second, as much again for who is handed what
/// the first woke up for, and room for a machine that is busy with other tests. One that writes its journal five times a second makes about 900.
const SWITCHES_MAX: u64 = 300;
/// Soon, so that the test need not wait for long.
const REST_AFTER: [(&str, &str); 1] = [("SNOWMINT_WORKER__REST_AFTER", "1s")];

fn serve(folder: &Folder) -> Server {
    let data = folder.join("data");
    let server = Server::start(&["--data-dir", data.to_str().unwrap()], &REST_AFTER);
    server.ready();
    server
}

fn mint(server: &Server, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    Resp::connect(&server.resp).unwrap().incr("default", count, &mut ids).unwrap();
    assert_eq!(ids.len(), count, "every request is answered with an ID: {}", server.said());
    ids
}

/// How often threads of the process have given their processor up, or had to.
fn switches(server: &Server) -> u64 {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap() {
        // A thread may end meanwhile.
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        sum += counts
            .map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap())
            .sum::<u64>();
    }
    sum
}

/// How often the store was asked this so far.
fn calls(server: &Server, verb: &str) -> u64 {
    let page = curl(&[&server.url("/metrics")]);
    let name = "snowmint_store_call_seconds_count{";
    let line =
        page.lines().find(|line| line.starts_with(name) && line.contains(&format!("\"{verb}\"")));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Watches the server while nobody is connected. Answers how often threads switched, and how often the
/// journal was written.
fn watch(server: &Server, journal: &Path) -> (u64, usize) {
    let written = || fs::metadata(journal).unwrap().modified().unwrap();
    let (before, begun) = (switches(server), Instant::now());
    let mut writes = BTreeSet::from([written()]);
    while begun.elapsed() < WATCHED {
        thread::sleep(Duration::from_millis(50));
        writes.insert(written());
    }
    (switches(server) - before, writes.len() - 1)
}

fn workers(ids: &[u64]) -> BTreeSet<u64> {
    ids.iter().map(|id| id >> 12 & 0x3ff).collect()
}

#[test]
fn an_idle_server_rests_and_mints_on_after_it() {
    let folder = Folder::new("idle");
    let server = serve(&folder);
    let mut all = mint(&server, 100);
    // Connections have ended by then, and what was opened at the start is read.
    thread::sleep(Duration::from_secs(4));
    let asked = ["renew", "extend"].map(|verb| calls(&server, verb));
    thread::sleep(Duration::from_secs(1));
    let (switches, writes) = watch(&server, &folder.join("data/journal"));
    assert!(switches <= SWITCHES_MAX, "{switches} switches in {WATCHED:?} of rest");
    assert!(writes <= 2, "the journal was written {writes} times in {WATCHED:?} of rest");
    assert_eq!(server.get("/readyz").0, "200", "a server at rest is ready");
    // One renewal each third of 10 s; one extend each half of 30 s, of the one pool.
    let [renews, extends] = ["renew", "extend"].map(|verb| calls(&server, verb));
    let (renews, extends) = (renews - asked[0], extends - asked[1]);
    assert!((2..=5).contains(&renews), "{renews} renewals in about 11 s");
    assert!(extends <= 1, "{extends} extends in about 11 s");

    // The first ID waits for one write of the journal.
    all.extend(mint(&server, 1));
    all.extend(mint(&server, 100));
    thread::sleep(Duration::from_secs(3));
    // At once after the rest, by the first ID that there is.
    all.extend(mint(&server, 1));
    server.kill();
    let server = serve(&folder);
    all.extend(mint(&server, 100));
    thread::sleep(Duration::from_secs(3));
    server.kill();
    // While it rests.
    let server = serve(&folder);
    all.extend(mint(&server, 100));
    assert!(all.is_sorted_by(|a, b| a < b), "increasing, over rests and kills: {all:?}");
    assert_eq!(workers(&all).len(), 1, "the journal's mark was never far ahead: {all:?}");
}
