//! Several servers on one store, as an operator runs and sees them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::common::{Ran, json, run, until};
use crate::server::{Server, serve};

const DAY_MS: u64 = 86_400_000;

/// A folder with one store, and a data directory for each server.
struct ServersDir(tempfile::TempDir);

impl ServersDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.0.path().join("ids.db").display())
    }

    fn data_dir(&self, number: usize) -> PathBuf {
        self.0.path().join(format!("server-{number}"))
    }

    fn config(&self, number: usize, text: &str) -> String {
        let file = self.0.path().join(format!("{number}.toml"));
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn start(&self, number: usize, config: &str) -> Server {
        let config = self.config(number, config);
        let (store, owner) = (self.store(), format!("shop-{number}"));
        let more = ["--store", &store, "--config", &config, "--owner", &owner];
        Server::start(serve(&self.data_dir(number), &more))
    }
}

#[test]
fn ids_are_unique_per_source_and_where_chosen_in_the_namespace() {
    let config = "[sources.orders]\n[sources.bills]\n\
                  [sources.sheep]\nunique = \"namespace\"\n[sources.goats]\nunique = \"namespace\"\n";
    let servers_dir = ServersDir::new();
    let servers: Vec<_> = (0..3).map(|number| servers_dir.start(number, config)).collect();
    // All run at once, in the same milliseconds.
    let minted = |source: &str| -> Vec<String> {
        let minting: Vec<_> = servers
            .iter()
            .map(|server| (server.http.clone(), source.to_owned()))
            .map(|(http, source)| {
                std::thread::spawn(move || {
                    run(&["mint", &source, "-n", "5000", "--server", &http]).ok()
                })
            })
            .collect();
        let texts = minting.into_iter().map(|minting| minting.join().unwrap());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    for names in [&["orders"][..], &["bills"], &["sheep", "goats", "sheep"]] {
        let all: Vec<_> = names.iter().flat_map(|name| minted(name)).collect();
        assert_eq!(all.len(), 15_000 * names.len());
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{names:?}");
    }
}

#[test]
fn conflicting_member_is_rejected_and_both_definitions_shown() {
    let servers_dir = ServersDir::new();
    let _server = servers_dir.start(0, "[sources.orders]\nburst = \"5ms\"\n");
    let config = servers_dir.config(1, "[sources.orders]\nburst = \"7ms\"\n");
    let store = servers_dir.store();
    let ran: Ran = serve(&servers_dir.data_dir(1), &["--store", &store, "--config", &config])
        .output()
        .unwrap()
        .into();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    for shown in
        ["sources.orders", r#"already defined with burst = "5ms""#, r#"requested burst = "7ms""#]
    {
        assert!(ran.err.contains(shown), "{shown}: {}", ran.err);
    }
    // A server with the same definition is another member.
    let _other = servers_dir.start(2, "[sources.orders]\nburst = \"5ms\"\n");
}

#[test]
fn worker_list_shows_holders_and_times() {
    let servers_dir = ServersDir::new();
    let (one, _two) = (servers_dir.start(0, ""), servers_dir.start(1, ""));
    assert_eq!(one.mint(&[]).code, 0);
    let list =
        |more: &[&str]| run(&[&["worker", "list", "--server", &one.http], more].concat()).ok();
    let mut workers: Vec<serde_json::Value> = Vec::new();
    until("both have a window", || {
        workers = list(&["--json"]).lines().map(json).collect();
        // A number that was just claimed has no window yet.
        let is_open = |worker: &serde_json::Value| worker["mark"] != "1970-01-01T00:00:00.000Z";
        workers.len() == 2 && workers.iter().all(is_open)
    });
    let owners: HashSet<_> =
        workers.iter().map(|worker| worker["owner"].as_str().unwrap()).collect();
    assert_eq!(owners, HashSet::from(["shop-0", "shop-1"]));
    let shown = list(&[]);
    let heads = "POOL NUMBER STATE OWNER HOST PROCESS TERM MARK LAUNCHED HELD SINCE LAST RENEWED";
    let first: Vec<_> = shown.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(first.join(" "), heads);
    for worker in &workers {
        assert!(worker["live"] == true && worker["term"] == 1, "{worker}");
        assert_eq!(worker["own"], worker["owner"] == "shop-0");
        let line = shown.lines().find(|line| line.contains(worker["owner"].as_str().unwrap()));
        let line = line.unwrap();
        let time = |key: &str| worker[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        assert!(time("launched") <= time("held_since"), "{worker}");
        assert!(time("last_renewed") < time("mark"), "{worker}");
        for key in ["pool", "host", "mark", "launched", "held_since"] {
            assert!(line.contains(worker[key].as_str().unwrap()), "{key}: {line}");
        }
        assert!(line.contains(&worker["process"].to_string()), "{line}");
        assert!(line.contains(if worker["own"] == true { " own " } else { " held " }), "{line}");
    }
}

/// Returns a layout of 40 time bits that ends this many days from now.
fn ending_in(days: u64) -> String {
    let now_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    let epoch_ms = now_ms + days * DAY_MS - (1 << 40);
    format!("time=40,worker=10,sequence=13,epoch={epoch_ms}")
}

fn config(layout: &str, more: &str) -> String {
    format!("[sources.orders]\nlayout = \"{layout}\"\n{more}")
}

#[test]
fn layout_near_its_end_is_rejected_or_warned_about() {
    let servers_dir = ServersDir::new();
    let (soon, later) = (config(&ending_in(300), ""), config(&ending_in(900), ""));
    let store = servers_dir.store();
    let file = servers_dir.config(0, &soon);
    let start = |dir: &Path| serve(dir, &["--store", &store, "--config", &file]).output().unwrap();
    let ran: Ran = start(&servers_dir.data_dir(0)).into();
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("within a year") && ran.err.contains("short_life"), "{}", ran.err);
    let ran = run(&["doctor", "--config", &file, "--store", &store]);
    assert!(ran.code == 1 && ran.out.contains("the layout of orders ends"), "{}", ran.out);

    let server = servers_dir.start(1, &later);
    assert_eq!(server.mint(&["orders"]).code, 0);
    let layout = ending_in(200);
    let define = ["source", "define", "bills", "--server", &server.http, "--layout", &layout];
    let refused = run(&define);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("short_life"), "{}", refused.err);
    run(&[&define[..], &["--short_life", "true"]].concat()).ok();
    assert_eq!(server.mint(&["bills"]).code, 0);
    server.signal("-TERM");
    let (code, log) = server.wait();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("the layout of orders ends") && log.contains("plan the next"), "{log}");
}

#[test]
fn exhaustion_of_worker_numbers_is_visible() {
    let servers_dir = ServersDir::new();
    let layout = config("time=50,worker=1,sequence=12", "");
    let (_one, two) = (servers_dir.start(0, &layout), servers_dir.start(1, &layout));
    for server in [&_one, &two] {
        assert_eq!(server.mint(&["orders"]).code, 0);
    }
    let file = servers_dir.config(2, &layout);
    let ran = run(&["doctor", "--config", &file, "--store", &servers_dir.store()]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    let expected = "of 2 worker numbers of pool workers-1, live members hold 2";
    assert!(ran.out.contains(expected), "{}", ran.out);
}

/// Returns the worker of one ID that a server mints.
fn worker_of(server: &Server) -> u64 {
    let minted = server.mint(&[]).ok();
    let layout = "time=41,worker=10,sequence=12";
    let decoded = run(&["decode", "--json", "--layout", layout, minted.trim()]).ok();
    json(&decoded)["worker"].as_u64().unwrap()
}

#[test]
fn configured_worker_number_is_held_by_one_process() {
    let servers_dir = ServersDir::new();
    let config = "[worker]\nnumber = 7\n";
    let first = servers_dir.start(0, config);
    assert_eq!(worker_of(&first), 7);

    let (file, store) = (servers_dir.config(1, config), servers_dir.store());
    let more = ["--store", &store, "--config", &file];
    let refused: Ran = serve(&servers_dir.data_dir(1), &more).output().unwrap().into();
    assert_eq!((refused.code, refused.out.as_str()), (3, ""), "{}", refused.err);
    for part in
        ["number 7 of pool \"workers-10\"", "by \"shop-0\"", "held by process", "worker.number"]
    {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }

    // A released number is free at once.
    first.signal("-TERM");
    assert_eq!(first.wait().0, 0);
    let other = servers_dir.start(1, config);
    assert_eq!(worker_of(&other), 7);
    // A journal proves its own process dead, whatever process follows it there.
    other.kill();
    assert_eq!(worker_of(&servers_dir.start(1, config)), 7);

    let outside = servers_dir.config(2, "[worker]\nnumber = 1024\n");
    let more = ["--store", &store, "--config", &outside];
    let refused: Ran = serve(&servers_dir.data_dir(2), &more).output().unwrap().into();
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
    assert!(refused.err.contains("out of range, maximum 1023"), "{}", refused.err);
}

/// A caller that may define a source could end the next start of all servers.
#[test]
fn catalog_source_without_the_configured_number_ends_no_start() {
    let servers_dir = ServersDir::new();
    let config = "[worker]\nnumber = 5\n";
    let server = servers_dir.start(0, config);
    let layout = "time=41,worker=1,sequence=12,unit=1ms";
    run(&["source", "define", "small", "--server", &server.http, "--layout", layout]).ok();
    server.signal("-TERM");
    assert_eq!(server.wait().0, 0);
    let again = servers_dir.start(0, config);
    again.says(&["failed to open the source", "small", "out of range, maximum 1"]);
    assert_eq!(worker_of(&again), 5);
    again.signal("-TERM");
    assert_eq!(again.wait().0, 0);
    // A source of the configuration ends it.
    let own = servers_dir.config(1, &format!("{config}[sources.small]\nlayout = \"{layout}\"\n"));
    let more = ["--store", &servers_dir.store(), "--config", &own];
    let refused: Ran = serve(&servers_dir.data_dir(1), &more).output().unwrap().into();
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
}

/// Its name comes before those of the server's own sources.
#[test]
fn catalog_source_takes_no_configured_number() {
    let servers_dir = ServersDir::new();
    let config = "[worker]\nnumber = 5\n";
    let server = servers_dir.start(0, config);
    run(&["source", "define", "a", "--server", &server.http, "--on_rollback", "borrow"]).ok();
    server.signal("-TERM");
    assert_eq!(server.wait().0, 0);
    let again = servers_dir.start(0, config);
    again.says(&["failed to open the source", "a number of their own"]);
    assert_eq!(worker_of(&again), 5);
}

#[test]
fn doctor_warns_of_a_full_pool_of_a_catalog_source() {
    let servers_dir = ServersDir::new();
    let (one, two) = (servers_dir.start(0, ""), servers_dir.start(1, ""));
    let layout = "time=50,worker=1,sequence=12";
    run(&["source", "define", "orders", "--server", &one.http, "--layout", layout]).ok();
    for server in [&one, &two] {
        assert_eq!(server.mint(&["orders"]).code, 0);
    }
    let expected = "of 2 worker numbers of pool workers-1, live members hold 2";
    let store = servers_dir.store();
    let doctor = |config: &str| {
        let file = servers_dir.config(2, config);
        let data = servers_dir.data_dir(2);
        let data = data.to_str().unwrap();
        run(&["doctor", "--config", &file, "--store", &store, "--data-dir", data])
    };
    let ran = doctor("");
    assert!(ran.code == 0 && ran.out.contains(&format!("WARNING workers   {expected}")), "{ran:?}");
    // The same finding is an error for a source of the configuration.
    let ran = doctor(&config(layout, ""));
    assert!(ran.code == 1 && ran.out.contains(&format!("ERROR   workers   {expected}")), "{ran:?}");
}

#[test]
fn worker_number_is_never_reused_if_configured() {
    let servers_dir = ServersDir::new();
    let config = "[worker]\nreuse = \"never\"\n";
    for start in 0..3 {
        let server = servers_dir.start(0, config);
        assert_eq!(worker_of(&server), start);
        server.signal("-TERM");
        assert_eq!(server.wait().0, 0);
    }
    // A server that reuses numbers could mint with another member's number.
    let other = servers_dir.start(1, "");
    let refused = other.mint(&[]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("worker.reuse"), "{}", refused.err);
}

#[test]
fn separate_generators_need_separate_worker_numbers() {
    let servers_dir = ServersDir::new();
    let config = "[worker]\nnumber = 3\n[sources.fast]\non_rollback = \"borrow\"\n";
    let (file, store) = (servers_dir.config(0, config), servers_dir.store());
    let more = ["--store", &store, "--config", &file];
    let refused: Ran = serve(&servers_dir.data_dir(0), &more).output().unwrap().into();
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
    assert!(refused.err.contains("a number of their own"), "{}", refused.err);
}
