//! A store is restored to an older state under three servers while clients and embedded clients
//! mint, and is recovered by the steps of `docs/how-to/recover-a-store.md`. No command
//! reads a server's folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snowmint_testkit::servers::Server as Store;

use super::clients::Http;
use super::ground::{STORES, below, is_long, is_selected, sleep_ms};
use super::server::{Folder, Server, TIMEOUT, snowmint};

const CONFIG: &str = "
[store]
offered = true
[sources.invoices]
kind = \"segment\"
[sources.orders]
order = \"global\"
[sources.stamps]
mint = \"store\"
worker = 7
[sources.messages]
kind = \"counter\"
";

/// Paths that clients request.
const PATHS: [&str; 7] = [
    "invoices",
    "numbers",
    "messages?key=alice",
    "messages?key=bob",
    "default",
    "orders",
    "stamps",
];
/// Number of paths with IDs without a time: these continue at once after a recovery, the others
/// once the clock has reached the marks.
const UNDATED: usize = 4;
const CLIENTS: usize = 4;
/// Shortest use of the store before the backup, between backup and restore, and afterwards.
const SHORT: Duration = Duration::from_secs(4);

/// State that all clients of a run share.
#[derive(Default)]
struct Run {
    /// All IDs, by path.
    ids: Mutex<BTreeMap<String, Vec<u64>>>,
    /// Errors, with their counts.
    refused: Mutex<BTreeMap<String, u64>>,
    /// Number of successful requests.
    response_count: AtomicU64,
    over: AtomicBool,
}

impl Run {
    fn minted(&self, what: &str, ids: impl IntoIterator<Item = u64>) {
        self.ids.lock().unwrap().entry(what.to_owned()).or_default().extend(ids);
        self.response_count.fetch_add(1, Ordering::Relaxed);
    }

    fn was_refused(&self, code: &str) {
        *self.refused.lock().unwrap().entry(code.to_owned()).or_default() += 1;
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Requests all paths in turn, from any server.
    fn asks(&self, servers: &[Server]) {
        let http = Http::within(TIMEOUT);
        for path in PATHS.iter().cycle().take_while(|_| !self.is_over()) {
            let server = &servers[usize::try_from(below(3)).unwrap()];
            let more = if path.contains('?') { '&' } else { '?' };
            let Some((status, body)) =
                http.get(&server.url(&format!("/v1/ids/{path}{more}count=10")))
            else {
                self.was_refused("no response");
                continue;
            };
            if status == 200 {
                let ids = body["ids"].as_array().unwrap();
                self.minted(path, ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()));
            } else {
                self.was_refused(body["error"]["code"].as_str().unwrap_or_default());
                sleep_ms(20);
            }
            sleep_ms(5);
        }
    }

    /// Runs embedded clients on the servers' store: each a new process, on an existing folder.
    fn runs_programs(&self, servers: &[Server], folder: &Folder) {
        let data = folder.join("program");
        for server in servers.iter().cycle().take_while(|_| !self.is_over()) {
            let store = format!("snowmint://{}", server.http);
            let place = ["-n", "300", "--store", &store, "--data-dir", data.to_str().unwrap()];
            let output = snowmint().args(["mint", "invoices"]).args(place).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            // IDs printed before an error are minted.
            self.minted("invoices", printed.lines().map(|id| id.parse().unwrap()));
            if !output.status.success() {
                self.was_refused("a program");
            }
            sleep_ms(500);
        }
    }

    /// Checks that every ID of the run is unique. Returns the number of IDs.
    fn check(&self, store: &str) -> usize {
        let mut all = self.ids.lock().unwrap();
        for (what, ids) in all.iter_mut() {
            ids.sort_unstable();
            let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
            assert_eq!(twice, None, "{store}: {what} came twice");
        }
        assert!(PATHS.iter().all(|path| all.contains_key(*path)), "{store}: {:?}", all.keys());
        all.values().map(Vec::len).sum()
    }

    /// Waits until each server has served all of these paths.
    fn check_serving(&self, servers: &[Server], paths: &[&str], what: &str) {
        let http = Http::within(TIMEOUT);
        let begun = Instant::now();
        let requests =
            servers.iter().flat_map(|server| paths.iter().map(move |path| (server, path)));
        for (server, path) in requests {
            let more = if path.contains('?') { '&' } else { '?' };
            let url = server.url(&format!("/v1/ids/{path}{more}count=1"));
            loop {
                let (status, body) = http.get(&url).expect("a response");
                if status == 200 {
                    let id = body["ids"][0].as_str().unwrap().parse().unwrap();
                    break self.minted(path, [id]);
                }
                // The clock reaches the marks within a minute or two.
                assert!(begun.elapsed() < 4 * TIMEOUT, "{what}: {path} {body}");
                sleep_ms(200);
            }
        }
    }
}

/// An operator, who has the servers' configuration and a folder that no server uses.
struct Operator<'a> {
    config: &'a str,
    url: &'a str,
    data: &'a Path,
}

impl Operator<'_> {
    fn recover(&self, more: &[&str]) -> Output {
        let place = ["--config", self.config, "--store", self.url, "--data-dir"];
        snowmint()
            .args(["worker", "recover"])
            .args(more)
            .args(place)
            .arg(self.data)
            .output()
            .unwrap()
    }

    /// Follows the steps once the servers have stopped minting.
    fn recovers(&self) {
        let begun = Instant::now();
        loop {
            let plan = self.recover(&["--dry-run"]);
            if plan.status.success() && !self.says(&plan).contains("not in doubt") {
                break;
            }
            assert!(begun.elapsed() < TIMEOUT, "{}", self.says(&plan));
            sleep_ms(200);
        }
        let done = self.recover(&[]);
        assert!(done.status.success(), "{}", self.says(&done));
    }

    #[allow(clippy::unused_self, reason = "whose output it is")]
    fn says(&self, output: &Output) -> String {
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }
}

/// Returns the length of a part of the run, a third each: before the backup, before the restore,
/// and after the recovery.
fn part() -> Duration {
    let seconds = std::env::var("SNOWMINT_FAULTS_SECONDS").ok();
    let seconds =
        seconds.map(|text| text.parse::<u64>().expect("SNOWMINT_FAULTS_SECONDS is a number"));
    seconds.map_or(SHORT, |seconds| Duration::from_secs(seconds) / 3)
}

fn on(name: &str, mut store: Store) {
    let folder = Folder::new(&format!("restored-{name}"));
    let config = folder.join("config.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let (config, url) = (config.to_str().unwrap(), store.url());
    let start = |number: usize| {
        let data = folder.join(&format!("data-{number}"));
        let (data, owner) = (data.to_str().unwrap(), format!("shop-{number}"));
        let place = ["--config", config, "--store", &url, "--data-dir", data, "--owner", &owner];
        let server = Server::start(&place, &[]);
        server.ready();
        server
    };
    let servers = [1, 2, 3].map(start);
    let data = folder.join("operator");
    std::fs::create_dir_all(&data).unwrap();
    let operator = Operator { config, url: &url, data: &data };
    let run = Run::default();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| run.asks(&servers));
        }
        scope.spawn(|| run.runs_programs(&servers, &folder));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run.check_serving(&servers, &PATHS, "at first");
            std::thread::sleep(part());
            store.stop();
            store.back_up();
            store.start();
            run.check_serving(&servers, &PATHS, "after the backup");
            std::thread::sleep(part());
            store.stop();
            store.restore();
            store.start();
            operator.recovers();
            let awaited = if is_long() { &PATHS[..] } else { &PATHS[..UNDATED] };
            run.check_serving(&servers, awaited, "after the recovery");
            std::thread::sleep(part());
        }));
        run.over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
    let ids = run.check(name);
    let (response_count, refused) =
        (run.response_count.load(Ordering::Relaxed), run.refused.lock().unwrap());
    let all: u64 = refused.values().sum();
    println!(
        "| store restored under three servers, clients and programs, and recovered | {name} | 1 | {ids} | 0 |"
    );
    println!("{name}: {response_count} requests with a response, {all} rejected: {refused:?}");
}

#[test]
fn store_restored_under_load_is_recovered_without_repeats() {
    let servers = STORES.iter().filter_map(|(name, server)| Some((*name, server.as_ref()?)));
    for (name, start) in servers {
        if is_selected(name) && (is_long() || name == "PostgreSQL") {
            on(name, start());
        }
    }
}
