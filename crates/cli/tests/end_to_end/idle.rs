//! An idle server does almost no work, and loses nothing.
//!
//! All measurements belong to the server's own process and to its own decisions. They count how
//! often its threads go to sleep, not how often a busy machine preempts them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::server::{Folder, Resp, Server, TIMEOUT, until};

/// Length of the measurement.
const WATCHED: Duration = Duration::from_secs(10);
/// Largest number of sleeps of all threads per second. It was 14.4 on a quiet machine, before idle
/// clocks and catalog had intervals of their own (bench/README.md). Most were for the one renewal,
/// which several threads pass along. A server that writes its journal five times a second sleeps 60
/// times more.
const SLEEPS_MAX: f64 = 60.0;
/// Largest number of journal writes per second: with the window, which is extended each 15 s.
const WRITES_MAX: f64 = 0.2;
/// Short idle time, so that the test need not wait for long.
const IDLE_AFTER: [(&str, &str); 1] = [("SNOWMINT_WORKER__IDLE_AFTER", "1s")];
/// Interval of the looks at the journal, and the number of equal looks in a row that shows an idle
/// server. An active server writes it each fifth of a second.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_AT_REST: u32 = 40;

struct Watched {
    server: Server,
    journal: PathBuf,
}

impl Watched {
    fn serve(folder: &Folder) -> Self {
        let data = folder.join("data");
        let server = Server::start(&["--data-dir", data.to_str().unwrap()], &IDLE_AFTER);
        server.ready();
        Self { server, journal: data.join("journal") }
    }

    fn mint(&self, count: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        Resp::connect(&self.server.resp).unwrap().incr("default", count, &mut ids).unwrap();
        assert_eq!(ids.len(), count, "every request gets an ID: {}", self.server.printed());
        ids
    }

    /// Returns the number of calls of this store verb so far.
    fn calls(&self, verb: &str) -> f64 {
        self.server.sample(&format!("snowmint_store_call_seconds_count{{verb=\"{verb}\"}}"))
    }

    /// Waits until the journal is no longer written.
    #[track_caller]
    fn rests(&self) {
        let begun = Instant::now();
        let (mut last, mut looks) = (written(&self.journal), 0);
        while looks < LOOKS_AT_REST {
            assert!(begun.elapsed() < TIMEOUT, "the journal is written on and on");
            thread::sleep(LOOK_EVERY);
            let now = written(&self.journal);
            looks = if now == last { looks + 1 } else { 0 };
            last = now;
        }
    }

    /// Measures the sleeps of threads and the journal writes, each per second, without any
    /// connection.
    fn watch(&self) -> (f64, f64) {
        let (before, begun) = (sleeps(&self.server), Instant::now());
        let mut writes = BTreeSet::from([written(&self.journal)]);
        while begun.elapsed() < WATCHED {
            thread::sleep(LOOK_EVERY);
            writes.insert(written(&self.journal));
        }
        let (after, seconds) = (sleeps(&self.server), begun.elapsed().as_secs_f64());
        let since = |(thread, count)| count - before.get(thread).copied().unwrap_or(0);
        let sleeps: u64 = after.iter().map(since).sum();
        (sleeps as f64 / seconds, (writes.len() - 1) as f64 / seconds)
    }
}

fn written(journal: &Path) -> SystemTime {
    fs::metadata(journal).unwrap().modified().unwrap()
}

/// Returns the number of voluntary sleeps of each thread in the process. Some threads end after a
/// while.
fn sleeps(server: &Server) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap() {
        let thread = thread.unwrap().path();
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        found.extend(count.map(|count| (thread, count.trim().parse().unwrap())));
    }
    assert!(!found.is_empty(), "the system does not say how often threads sleep");
    found
}

fn workers(ids: &[u64]) -> BTreeSet<u64> {
    ids.iter().map(|id| id >> 12 & 0x3ff).collect()
}

#[test]
fn idle_server_makes_few_store_calls_and_mints_again() {
    let folder = Folder::new("idle");
    let watched = Watched::serve(&folder);
    let mut all = watched.mint(100);
    watched.rests();
    let calls_before = ["renew", "extend"].map(|verb| watched.calls(verb));
    // The requesting connection is closed, and so are its resources.
    watched.rests();
    let begun = Instant::now();
    let (sleeps, writes) = watched.watch();
    println!("{sleeps:.1} sleeps and {writes:.2} writes of the journal in a second of rest");
    assert!(sleeps <= SLEEPS_MAX, "{sleeps} sleeps in a second of rest");
    assert!(writes <= WRITES_MAX, "the journal was written {writes} times in a second of rest");
    assert_eq!(watched.server.get("/readyz").0, "200", "a server at rest is ready");
    // One renewal each third of 3 s, and one extend each half of 30 s, for the one pool.
    until("it renews", || watched.calls("renew") >= calls_before[0] + 2.0);
    let [renews, extends] = ["renew", "extend"].map(|verb| watched.calls(verb));
    // Allows for the two seconds before the measurement, and for its edges.
    let seconds = begun.elapsed().as_secs_f64() + 3.0;
    assert!(renews - calls_before[0] <= seconds + 1.0, "{renews} renewals in {seconds} s");
    assert!(extends - calls_before[1] <= seconds / 15.0 + 1.0, "{extends} extends in {seconds} s");

    // The first ID waits for one write of the journal.
    all.extend(watched.mint(1));
    all.extend(watched.mint(100));
    watched.rests();
    // The server is killed right after the first ID that follows the idle time.
    all.extend(watched.mint(1));
    watched.server.kill();
    let watched = Watched::serve(&folder);
    all.extend(watched.mint(100));
    watched.rests();
    watched.server.kill();
    // The server is killed while it is idle.
    let watched = Watched::serve(&folder);
    all.extend(watched.mint(100));
    assert!(all.is_sorted_by(|a, b| a < b), "increasing, over rests and kills: {all:?}");
    assert_eq!(workers(&all).len(), 1, "the journal's mark was never far ahead: {all:?}");
}
