//! A server that starts while its store does not respond: real stores behind a cut network.

use std::collections::HashSet;
use std::fs;

use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers;

use super::server::{Folder, Resp, Server, curl, until};

const CONFIG: &str = "
[worker]
window = \"20m\"
start_without_store = true
[sources.orders]
";

/// A store, the network in front of it, and the folder of the server that restarts.
struct OfflineSetup {
    store: servers::Server,
    network: Proxy,
    folder: Folder,
    seen: HashSet<u64>,
}

impl OfflineSetup {
    fn new(store: servers::Server) -> Self {
        let folder = Folder::new(&format!("offline-{}", store.name()));
        fs::write(folder.join("config.toml"), CONFIG).unwrap();
        let network = Proxy::start(store.port());
        Self { store, network, folder, seen: HashSet::new() }
    }

    fn start(&self, data: &str, url: &str, clock_offset_ms: i64) -> Server {
        let (config, data) = (self.folder.join("config.toml"), self.folder.join(data));
        let arguments = ["--config", config.to_str().unwrap(), "--store", url, "--owner", "me"];
        let arguments = [&arguments[..], &["--data-dir", data.to_str().unwrap()]].concat();
        let offset = clock_offset_ms.to_string();
        Server::start(&arguments, &[("SNOWMINT_TEST_CLOCK_OFFSET_MS", &offset)])
    }

    /// Starts the server behind the network.
    fn again(&self, clock_offset_ms: i64) -> Server {
        self.start("data", &self.store.url_by(self.network.port()), clock_offset_ms)
    }

    /// Mints, and returns the worker number.
    fn mint(&mut self, server: &Server) -> u64 {
        let mut ids = Vec::new();
        Resp::connect(&server.resp).unwrap().incr("orders", 500, &mut ids).unwrap();
        assert_eq!(
            ids.len(),
            500,
            "{}: every request gets a response: {}",
            self.store.name(),
            server.printed()
        );
        let worker = ids[0] >> 12 & 0x3ff;
        for id in ids {
            assert!(self.seen.insert(id), "{}: {id} came twice", self.store.name());
        }
        worker
    }
}

fn is_offline(server: &Server) -> bool {
    server.get("/readyz").1["without_store_until"].is_string()
}

/// Returns whether a source mints now.
fn responds(server: &Server, source: &str) -> bool {
    let mut ids = Vec::new();
    Resp::connect(&server.resp).unwrap().incr(source, 1, &mut ids).unwrap();
    !ids.is_empty()
}

/// Returns how many attempts to join the store have failed.
fn failed_joins(server: &Server) -> f64 {
    // A node compares the store with its journal first.
    server.sample("snowmint_store_errors_total{verb=\"recall\",code=\"unavailable\"}")
}

fn continues_offline(store: servers::Server) {
    let mut setup = OfflineSetup::new(store);
    let server = setup.again(0);
    server.ready();
    let worker = setup.mint(&server);
    assert!(!is_offline(&server) && responds(&server, "numbers"));
    server.kill();

    setup.network.refuse();
    // The server mints at once, with the clock set back by less and by more than a journal may be
    // ahead.
    for offset_ms in [0, -300, -4_000] {
        let server = setup.again(offset_ms);
        server.ready();
        assert!(is_offline(&server), "{}", server.get("/readyz").1);
        server.says("minting offline in the rest of the window");
        let metrics = curl(&[&server.url("/metrics")]);
        assert!(metrics.contains("\nsnowmint_without_store 1"), "{metrics}");
        assert_eq!(setup.mint(&server), worker, "in its own window");
        assert!(!responds(&server, "numbers"), "numbers wait for the store");
        server.kill();
    }
    let server = setup.again(0);
    server.ready();
    setup.mint(&server);
    // Another server with the same name reaches the store.
    let other = setup.start("other", &setup.store.url(), 0);
    other.ready();
    setup.mint(&other);
    setup.mint(&server);

    setup.network.heal();
    until("the store is found again", || !is_offline(&server) && responds(&server, "numbers"));
    server.ready();
    assert_eq!(setup.mint(&server), worker, "it had no other holder in between");
    setup.mint(&other);

    // A clean stop releases everything.
    assert_eq!(server.stop(), 0);
    setup.network.refuse();
    let server = setup.again(0);
    server.not_ready(&["is unavailable"]);
    // Effects of a failed attempt are visible before the next one begins.
    let failed = failed_joins(&server);
    until("two more attempts fail", || failed_joins(&server) >= failed + 2.0);
    assert!(!responds(&server, "orders") && !is_offline(&server));
    setup.network.heal();
    server.ready();
    setup.mint(&server);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn server_starts_without_redis_in_the_rest_of_its_window() {
    continues_offline(servers::Redis::start(&[]).into());
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn server_starts_without_postgres_in_the_rest_of_its_window() {
    continues_offline(servers::Postgres::start(&[]).into());
}
