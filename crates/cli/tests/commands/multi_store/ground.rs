//! Common parts of these tests: a folder for servers and their stores, load, and their state.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ran, json, run};
use crate::http::Http;
use crate::server::{Server, serve};

/// Longest wait of a request while a store is away, on an idle machine: far less than the time
/// limit of a store call. docs/evidence/faults.md has the measured time.
const BOUND: Duration = Duration::from_secs(3);
/// Number of round trips between two threads by which the wait may be longer on a busy machine. A
/// request takes some dozens of such turns, in three processes.
const TURNS: u32 = 4;
const LONG: Duration = Duration::from_secs(60);

/// A folder for a server and its stores.
pub(crate) struct StoresDir(tempfile::TempDir);

impl StoresDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn sqlite(&self, name: &str) -> String {
        format!("sqlite:{}", self.path(name).display())
    }

    /// Writes a configuration with a segment source on these stores.
    pub(crate) fn config(&self, stores: &[(&str, &str)]) -> String {
        self.config_with(stores, "")
    }

    /// Writes the same configuration with more keys of the source.
    pub(crate) fn config_with(&self, stores: &[(&str, &str)], keys: &str) -> String {
        let names: Vec<_> = stores.iter().map(|(name, _)| *name).collect();
        let keys = format!("kind = \"segment\"\nstores = \"{}\"\n{keys}", names.join(","));
        self.config_of(stores, &keys)
    }

    /// Writes a configuration with these stores and a source with these keys.
    pub(crate) fn config_of(&self, stores: &[(&str, &str)], keys: &str) -> String {
        let file = self.path("snowmint.toml");
        let urls: String =
            stores.iter().map(|(name, url)| format!("{name} = \"{url}\"\n")).collect();
        let data = self.path("data");
        let text = format!(
            "[server]\ndata_dir = {data:?}\n[store]\noffered = true\n[stores]\n{urls}[sources.orders]\n{keys}"
        );
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub(crate) fn start(&self, stores: &[(&str, &str)]) -> Server {
        self.start_by(&self.config(stores))
    }

    pub(crate) fn start_by(&self, config: &str) -> Server {
        Server::start(serve(&self.path("data"), &["--config", config]))
    }
}

/// Clients that request IDs until they are stopped.
pub(crate) struct Drawing {
    stop: Arc<AtomicBool>,
    all: Vec<JoinHandle<(Vec<String>, Duration)>>,
    /// Slowest round trip between two threads of this process: a measure of the machine's load
    /// meanwhile.
    pulse: JoinHandle<Duration>,
}

impl Drawing {
    /// Starts `each` clients for each server, with `count` IDs per request. Every request must
    /// succeed.
    pub(crate) fn from(servers: &[&Server], each: usize, count: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let all = servers.iter().flat_map(|server| std::iter::repeat_n(&server.http, each));
        let all = all.map(|http| draw(http, count, &stop)).collect();
        let pulse = pulse(&stop);
        Self { stop, all, pulse }
    }

    /// Stops the clients, adds all their IDs to `seen`, and checks that no request was slow.
    #[track_caller]
    pub(crate) fn end(self, seen: &mut Seen) {
        self.stop.store(true, Ordering::SeqCst);
        let pulse = self.pulse.join().unwrap();
        for one in self.all {
            let (ids, slowest) = one.join().unwrap();
            let bound = BOUND + TURNS * pulse;
            assert!(slowest < bound, "a request took {slowest:?}, a turn of two threads {pulse:?}");
            println!("slowest of those who drew {} IDs: {slowest:?}", ids.len());
            seen.add(ids);
        }
    }
}

fn pulse(stop: &Arc<AtomicBool>) -> JoinHandle<Duration> {
    let stop = Arc::clone(stop);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() {
            far.write_all(&byte).unwrap();
        }
    });
    std::thread::spawn(move || {
        let (mut slowest, mut byte) = (Duration::ZERO, [0]);
        while !stop.load(Ordering::SeqCst) {
            let begun = Instant::now();
            near.write_all(&byte).unwrap();
            near.read_exact(&mut byte).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            // The sleep counts, too: it is as late as the machine is busy.
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    })
}

fn draw(http: &str, count: usize, stop: &Arc<AtomicBool>) -> JoinHandle<(Vec<String>, Duration)> {
    let (url, stop) = (format!("http://{http}/v1/ids/orders?count={count}"), Arc::clone(stop));
    std::thread::spawn(move || {
        let client = Http::within(LONG);
        let (mut drawn, mut slowest) = (Vec::new(), Duration::ZERO);
        while !stop.load(Ordering::SeqCst) {
            let begun = Instant::now();
            let (status, body) = client.get(&url).unwrap();
            slowest = slowest.max(begun.elapsed());
            assert_eq!(status, 200, "{body}");
            let ids = json(&body)["ids"].as_array().unwrap().clone();
            assert_eq!(ids.len(), count);
            drawn.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
            std::thread::sleep(Duration::from_millis(2));
        }
        (drawn, slowest)
    })
}

/// All issued IDs; each comes once.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) HashSet<String>);

impl Seen {
    #[track_caller]
    pub(crate) fn add(&mut self, ids: impl IntoIterator<Item = String>) {
        for id in ids {
            assert!(self.0.insert(id.clone()), "{id} came twice");
        }
    }
}

pub(crate) fn drawn(server: &Server, count: u32) -> Vec<String> {
    let text = server.mint(&["orders", "-n", &count.to_string()]).ok();
    text.lines().map(str::to_owned).collect()
}

/// Mints batches until each of this many stores has served, and returns all IDs: the faster store
/// may serve alone for a while. `number` reads the number of an ID.
#[track_caller]
pub(crate) fn drawn_from_all(
    server: &Server,
    count: u32,
    stores: usize,
    number: impl Fn(&str) -> u64,
) -> Vec<String> {
    let (mut ids, mut residues) = (Vec::new(), HashSet::new());
    wait_until("every store serves", || {
        let batch = drawn(server, count);
        residues.extend(batch.iter().map(|id| number(id) % stores as u64));
        ids.extend(batch);
        residues.len() == stores
    });
    ids
}

/// Returns the server's status of one store of the source.
pub(crate) fn share(server: &Server, store: &str) -> Value {
    let source = json(&run(&["source", "show", "orders", "--json", "--server", &server.http]).ok());
    let mut status = source["store_status"].as_array().into_iter().flatten();
    status.find(|share| share["store"] == store).cloned().unwrap_or_default()
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn page(server: &Server, path: &str) -> String {
    let url = format!("http://{}{path}", server.http);
    let (status, text) = Http::within(LONG).get(&url).unwrap();
    assert_eq!(status, 200, "{text}");
    text
}

pub(crate) fn pass(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

pub(crate) fn restripe(config: &str, increment: &str, more: &[&str]) -> Ran {
    let fixed = ["source", "restripe", "orders", "--json", "--increment", increment];
    run(&[&fixed[..], &["--config", config], more].concat())
}
