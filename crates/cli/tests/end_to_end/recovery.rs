//! Recovery, by the command lines in `docs/how-to/back-up-and-restore.md`, of a store that was
//! rolled back under three servers. Each server has a folder of its own, which no command reads, as
//! in containers.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use snowmint_testkit::servers;

use super::server::{Folder, Resp, Server, TIMEOUT, curl, snowmint, until};

const CONFIG: &str = "
[store]
offered = true
[sources.invoices]
kind = \"segment\"
step = { rule = \"fixed\", size = 50 }
[sources.parcels]
kind = \"segment\"
";

const LATE: &str = "
[sources.late]
kind = \"segment\"
";

/// Text with the steps of a recovery.
const DOCUMENT: &str = include_str!("../../../../docs/how-to/back-up-and-restore.md");

/// Command lines of the document, in its order: whether each plans, and whether it calls a server.
const LINES: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

/// Returns the words of the document's command that plans a recovery or moves the store, through a
/// server or with a configuration. A line that no test runs has no place in the document.
fn documented(plans: bool, calls: bool) -> Vec<&'static str> {
    let (_, steps) = DOCUMENT.split_once("\n## Restore\n").unwrap();
    let (steps, _) = steps.split_once("\n## ").unwrap();
    let lines = steps.lines().map(str::trim).filter(|line| line.starts_with("snowmint "));
    let lines: Vec<&str> = lines.collect();
    let kind = |line: &&str| (line.contains("--dry-run"), line.contains("--server"));
    assert!(lines.iter().map(kind).eq(LINES), "{lines:#?}");
    let at = LINES.iter().position(|line| *line == (plans, calls)).unwrap();
    lines[at].split_whitespace().skip(1).collect()
}

/// Three servers on one store.
pub(super) struct Shop {
    folder: Folder,
    url: String,
    namespace: &'static str,
    seen: HashSet<(String, u64)>,
}

impl Shop {
    pub(super) fn new(name: &str, url: &str) -> Self {
        Self::of(name, url, "default")
    }

    pub(super) fn of(name: &str, url: &str, namespace: &'static str) -> Self {
        let folder = Folder::new(&format!("recovery-{name}"));
        fs::write(folder.join("config.toml"), CONFIG).unwrap();
        Self { folder, url: url.into(), namespace, seen: HashSet::new() }
    }

    /// Returns the options of each command for the store.
    fn store(&self) -> [&str; 4] {
        ["--store", &self.url, "--namespace", self.namespace]
    }

    pub(super) fn start(&self, number: usize) -> Server {
        let (config, data) = (self.config(), self.data(number));
        let owner = format!("shop-{number}");
        let own = ["--config", &config, "--data-dir", &data, "--owner", &owner];
        Server::start(&[&self.store()[..], &own].concat(), &[])
    }

    fn config(&self) -> String {
        self.folder.join("config.toml").to_str().unwrap().into()
    }

    pub(super) fn data(&self, number: usize) -> String {
        self.folder.join(&format!("data-{number}")).to_str().unwrap().into()
    }

    /// Runs a command of an operator, who has the configuration and a folder that no server uses.
    pub(super) fn operator(&self, command: &[&str]) -> Output {
        self.at_the_store(&[command, &["--config", &self.config()]].concat())
    }

    /// Runs a command with the configuration that it names. The store is not named there.
    fn at_the_store(&self, command: &[&str]) -> Output {
        let data = self.folder.join("operator");
        fs::create_dir_all(&data).unwrap();
        snowmint().args(command).args(self.store()).arg("--data-dir").arg(data).output().unwrap()
    }

    /// Plans a recovery as an operator: with the store's URL, or through a running server.
    pub(super) fn plan(&self, through: Option<&Server>) -> Output {
        self.as_documented(true, through, &[])
    }

    /// Plans it with more options.
    pub(super) fn plan_more(&self, through: Option<&Server>, more: &[&str]) -> Output {
        self.as_documented(true, through, more)
    }

    /// Recovers the store as an operator in the same ways.
    pub(super) fn recover(&self, through: Option<&Server>, more: &[&str]) -> Output {
        self.as_documented(false, through, more)
    }

    fn as_documented(&self, plans: bool, through: Option<&Server>, more: &[&str]) -> Output {
        let (config, url) = (self.config(), through.map(|server| server.url("")));
        let words = documented(plans, url.is_some()).into_iter().map(|word| match (word, &url) {
            ("FILE", None) => config.as_str(),
            ("URL", Some(url)) => url.as_str(),
            _ => word,
        });
        let command: Vec<&str> = words.chain(more.iter().copied()).collect();
        if url.is_some() {
            return snowmint().args(command).output().unwrap();
        }
        self.at_the_store(&command)
    }

    /// Defines a source that the configuration has from now on, and no earlier backup has.
    fn define_late(&self, servers: &Servers) {
        fs::write(self.folder.join("config.toml"), CONFIG.to_owned() + LATE).unwrap();
        for server in servers.iter().flatten() {
            server.signal("-HUP");
            let is_read = || server.printed().contains("configuration reloaded");
            until("the new source is defined", is_read);
        }
    }

    pub(super) fn mint(&mut self, server: &Server, source: &str, count: usize) {
        let mut ids = Vec::new();
        let end = Instant::now() + TIMEOUT;
        while ids.len() < count {
            let mut connection = Resp::connect(&server.resp).unwrap();
            connection.incr(source, (count - ids.len()).min(100), &mut ids).unwrap();
            assert!(
                Instant::now() < end,
                "{source}: {} of {count}: {}",
                ids.len(),
                server.printed()
            );
        }
        self.saw(source, ids);
    }

    fn saw(&mut self, source: &str, ids: Vec<u64>) {
        for id in ids {
            assert!(self.seen.insert((source.into(), id)), "{source}: {id} came twice");
        }
    }

    /// Runs an embedded client on the servers' store, which ends after minting.
    fn program(&self, server: &Server, count: &str) -> Output {
        let (store, data) = (format!("snowmint://{}", server.http), self.data(4));
        let place = ["-n", count, "--store", &store, "--data-dir", &data];
        snowmint().args(["mint", "parcels"]).args(place).output().unwrap()
    }

    fn mint_by_program(&mut self, server: &Server, count: &str) {
        let minted = self.program(server, count);
        assert!(minted.status.success(), "{}", text(&minted));
        self.saw("parcels", text(&minted).lines().map(|id| id.parse().unwrap()).collect());
    }
}

type Servers = [Option<Server>; 3];

pub(super) fn refuses(server: &Server) -> bool {
    let mut ids = Vec::new();
    Resp::connect(&server.resp).unwrap().incr("invoices", 1, &mut ids).unwrap();
    let status = curl(&["-o", "/dev/null", "-w", "%{http_code}", &server.url("/readyz")]);
    ids.is_empty() && status == "503"
}

pub(super) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns the server that the operator calls, the one that has seen the least.
fn queried(servers: &Servers, asks: bool) -> Option<&Server> {
    asks.then(|| at(servers, 1))
}

/// Returns the running server with this number.
fn at(servers: &Servers, number: usize) -> &Server {
    servers[number - 1].as_ref().unwrap()
}

/// Backs up, mints more, and restores. `while_down` changes the store's data; `stops` says whether
/// the servers are stopped before the restore, `asks` whether the recovery goes through a server.
fn recovered(
    name: &str,
    url: &str,
    mut while_down: impl FnMut(&str, &Servers),
    (stops, asks): (bool, bool),
) {
    let mut shop = Shop::new(name, url);
    let mut servers: Servers = [1, 2, 3].map(|number| Some(shop.start(number)));
    for server in servers.iter().flatten() {
        server.ready();
        shop.mint(server, "invoices", 10);
    }
    while_down("back up", &servers);
    // Only the second server issues numbers that the backup does not know, the third issues other
    // numbers.
    until("the store is found again", || !refuses(at(&servers, 2)));
    for _ in 0..20 {
        shop.mint(at(&servers, 2), "invoices", 100);
    }
    shop.mint(at(&servers, 3), "numbers", 500);
    shop.define_late(&servers);
    shop.mint(at(&servers, 2), "late", 70);
    // No server's own journal knows these numbers, and the embedded client has ended.
    shop.mint_by_program(at(&servers, 3), "3000");
    if stops {
        for server in servers.iter_mut().filter_map(Option::take) {
            assert_eq!(server.stop(), 0);
        }
    }
    while_down("restored", &servers);
    if stops {
        one_is_missed(&mut servers, &shop, asks);
    }
    until("all refuse", || servers.iter().flatten().all(refuses));
    until("all have reported", || shop.plan(queried(&servers, asks)).status.success());
    let same = shop.plan(queried(&servers, !asks));
    assert!(same.status.success(), "{}", text(&same));
    assert!(servers.iter().flatten().all(refuses), "a plan changes nothing");
    let refused = shop.program(at(&servers, 1), "1");
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    let done = shop.recover(queried(&servers, asks), &[]);
    assert!(done.status.success(), "{}", text(&done));
    assert!(!text(&done).contains("not in doubt"), "a plan changes nothing: {}", text(&done));
    if let Some(server) = queried(&servers, asks) {
        server.says("store recovered: worker marks at least ");
    }
    for server in servers.iter().flatten() {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
        shop.mint(server, "late", 100);
        shop.mint(server, "parcels", 100);
        shop.mint_by_program(server, "100");
    }
    let doctor = shop.operator(&["doctor"]);
    assert!(!text(&doctor).contains("in doubt"), "{}", text(&doctor));
    let again = shop.recover(queried(&servers, !asks), &[]);
    assert!(again.status.success() && text(&again).contains("not in doubt"), "{}", text(&again));
    // The recovery lasts: the journals know the store's present state.
    for server in servers.into_iter().flatten() {
        assert_eq!(server.stop(), 0);
    }
    let server = shop.start(2);
    shop.mint(&server, "invoices", 100);
}

/// The second server has seen the most, and reports it; the first has seen the least, and still
/// mints nothing. The third is missing at first, and the recovery waits for it.
fn one_is_missed(servers: &mut Servers, shop: &Shop, asks: bool) {
    servers[1] = Some(shop.start(2));
    until("the journaled server refuses", || refuses(at(servers, 2)));
    servers[0] = Some(shop.start(1));
    until("the other refuses", || refuses(at(servers, 1)));
    let mut plan = None;
    until("two have reported", || {
        let printed = text(plan.insert(shop.plan(queried(servers, asks))));
        ["of shop-1 on ", "of shop-2 on "]
            .iter()
            .all(|of| printed.lines().any(|line| line.contains(of) && line.ends_with("reported")))
    });
    let plan = plan.unwrap();
    assert_eq!(plan.status.code(), Some(3), "{}", text(&plan));
    let missing = |line: &str| line.contains("of shop-3 on ") && line.ends_with("MISSING");
    assert!(text(&plan).lines().any(missing), "{}", text(&plan));
    let refused = shop.recover(queried(servers, asks), &[]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    servers[2] = Some(shop.start(3));
}

fn on_a_server(mut store: servers::Server, how: (bool, bool)) {
    let (name, url) = (store.name().to_owned(), store.url());
    let while_down = |what: &str, _: &Servers| {
        store.stop();
        match what {
            "back up" => store.back_up(),
            _ => store.restore(),
        }
        store.start();
    };
    recovered(&format!("{name}-{}", how.0), &url, while_down, how);
}

#[test]
fn servers_on_a_restored_file_continue_after_recovery() {
    let folder = Folder::new("recovery-file");
    let (file, copy) = (folder.join("ids.db"), folder.join("copy.db"));
    let url = format!("sqlite:{}", file.display());
    let while_down = |what: &str, servers: &Servers| {
        // The servers are stopped so that the file and its log are consistent.
        let running = || servers.iter().flatten();
        running().for_each(|server| server.signal("-STOP"));
        let wal = |file: &Path| file.with_extension("db-wal");
        let sides = [(file.clone(), copy.clone()), (wal(&file), wal(&copy))];
        for (here, there) in &sides {
            let (from, to) = if what == "back up" { (here, there) } else { (there, here) };
            let _ = fs::remove_file(to);
            if from.exists() {
                fs::copy(from, to).unwrap();
            }
        }
        if what != "back up" {
            let _ = fs::remove_file(file.with_extension("db-shm"));
        }
        running().for_each(|server| server.signal("-CONT"));
    };
    recovered("sqlite", &url, while_down, (true, true));
}

/// Each run of this Redis is another store to its servers: first with all that it had, then with a
/// state from before a recovery. No command reads a server's folder.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn restarted_redis_continues_once_its_run_is_accepted() {
    let mut store = servers::Server::from(servers::Redis::start(&[]));
    let mut shop = Shop::new("other-server", &format!("{}?persistence=any", store.url()));
    let servers: Servers = [1, 2, 3].map(|number| Some(shop.start(number)));
    servers.iter().flatten().for_each(Server::ready);
    for asks in [true, false] {
        for server in servers.iter().flatten() {
            shop.mint(server, "invoices", 500);
            shop.mint(server, "numbers", 100);
        }
        store.stop();
        if asks {
            store.back_up();
        } else {
            store.restore();
        }
        store.start();
        let is_other = |server: &Server| {
            refuses(server) && curl(&[&server.url("/v1/ids/invoices")]).contains("store_mismatch")
        };
        until("all refuse", || servers.iter().flatten().all(is_other));
        let early = shop.recover(queried(&servers, asks), &[]);
        assert!(text(&early).contains("repeat this with --other-server"), "{}", text(&early));
        assert!(early.status.success(), "there is nothing to recover: {}", text(&early));
        let dry = shop.recover(queried(&servers, asks), &["--other-server", "--dry-run"]);
        assert_eq!(dry.status.code(), Some(2), "{}", text(&dry));

        let accepted = shop.recover(queried(&servers, asks), &["--other-server"]);
        assert!(accepted.status.success(), "{}", text(&accepted));
        assert!(text(&accepted).contains("store is in doubt"), "{}", text(&accepted));
        assert!(servers.iter().flatten().all(refuses), "an acceptance moves nothing");
        until("all have reported", || shop.plan(queried(&servers, asks)).status.success());
        let done = shop.recover(queried(&servers, asks), &[]);
        assert!(done.status.success(), "{}", text(&done));
    }
    for server in servers.iter().flatten() {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
        shop.mint(server, "parcels", 100);
    }
}

/// Drops, creates and fills tables, one after the other, while servers use them. The servers report
/// an unavailable, another or an older store, and never an internal error.
fn loaded_under_servers(
    name: &str,
    url: &str,
    dump: impl FnOnce() -> PathBuf,
    load: impl FnOnce(&Path),
) {
    let mut shop = Shop::new(name, url);
    let servers: Servers = [1, 2, 3].map(|number| Some(shop.start(number)));
    for server in servers.iter().flatten() {
        server.ready();
        shop.mint(server, "invoices", 60);
        shop.mint(server, "numbers", 100);
    }
    let dump = dump();
    for server in servers.iter().flatten() {
        shop.mint(server, "invoices", 500);
    }
    let loading = AtomicBool::new(true);
    let codes = std::thread::scope(|scope| {
        let asking = servers.iter().flatten().map(|server| {
            let loading = &loading;
            scope.spawn(move || {
                let (mut ids, mut codes) = (Vec::new(), BTreeSet::new());
                while loading.load(SeqCst) || !refuses(server) {
                    for source in ["invoices", "numbers", "default"] {
                        let response = curl(&["-XPOST", &server.url(&format!("/v1/ids/{source}"))]);
                        match response.split_once("\"code\":\"") {
                            None if source == "invoices" => ids.push(response),
                            None => {}
                            Some((_, code)) => {
                                codes.extend(code.split('"').next().map(str::to_owned))
                            }
                        }
                    }
                }
                (ids, codes)
            })
        });
        let asking: Vec<_> = asking.collect();
        load(&dump);
        loading.store(false, SeqCst);
        let mut all = BTreeSet::new();
        for (ids, codes) in asking.into_iter().map(|thread| thread.join().unwrap()) {
            for response in ids {
                let body: serde_json::Value = serde_json::from_str(&response).expect(&response);
                let id = body["ids"][0].as_str().unwrap().parse().unwrap();
                assert!(shop.seen.insert(("invoices".into(), id)), "{id} came twice");
            }
            all.extend(codes);
        }
        all
    });
    let of_a_store = ["store_rolled_back", "store_mismatch", "unavailable", "window_spent"];
    let is_odd = |code: &&String| !of_a_store.contains(&code.as_str());
    let printed: Vec<_> = servers.iter().flatten().map(Server::printed).collect();
    assert!(!codes.iter().any(|code| is_odd(&code)), "{codes:?} {printed:?}");
    assert!(codes.contains("store_rolled_back"), "{codes:?}");
    until("all have reported", || shop.plan(queried(&servers, true)).status.success());
    let done = shop.recover(queried(&servers, true), &[]);
    assert!(done.status.success(), "{}", text(&done));
    for server in servers.iter().flatten() {
        shop.mint(server, "invoices", 500);
        shop.mint(server, "numbers", 100);
    }
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn dump_loaded_into_postgres_is_an_older_store() {
    let store = servers::Postgres::start(&[]);
    loaded_under_servers("loaded-postgres", &store.url(), || store.dump(), |dump| store.load(dump));
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs MariaDB: --features real-servers")]
fn dump_loaded_into_mariadb_is_an_older_store() {
    let store = servers::Mysql::start(&[]);
    loaded_under_servers("loaded-mariadb", &store.url(), || store.dump(), |dump| store.load(dump));
}

/// Runs a server while an operator gives its store a new identity: every further call is fenced.
fn fenced(name: &str, url: &str) {
    let shop = Shop::new(name, url);
    let server = shop.start(1);
    server.ready();
    let mints = |source: &str| {
        let mut ids = Vec::new();
        Resp::connect(&server.resp).unwrap().incr(source, 1, &mut ids).unwrap();
        !ids.is_empty()
    };
    assert!(mints("invoices") && mints("numbers"));
    let plan = shop.operator(&["worker", "fast-forward", "--dry-run", "--json"]);
    let journals = text(&plan);
    let journal =
        journals.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let fence =
        ["worker", "fast-forward", "--new-identity", "--without", journal, "--counters-above=0"];
    let fenced = shop.operator(&fence);
    assert!(fenced.status.success(), "{}", text(&fenced));
    until("the server refuses", || refuses(&server));
    let response = curl(&[&server.url("/v1/ids/invoices")]);
    assert!(response.contains("store_mismatch"), "{response}");
    // The fence lasts, for prefetched numbers and for new ones.
    for _ in 0..30 {
        assert!(!["invoices", "numbers", "default"].into_iter().any(mints));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn a_server_that_is_fenced_off_a_file_mints_nothing_more() {
    let folder = Folder::new("fenced-file");
    fenced("fenced-sqlite", &format!("sqlite:{}", folder.join("ids.db").display()));
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn a_server_that_is_fenced_off_redis_mints_nothing_more() {
    let store = servers::Redis::start(&[]);
    fenced("fenced-redis", &store.url());
}

macro_rules! on_servers {
    ($($name:ident $start:expr, $stops:literal, $asks:literal;)*) => {
        $(
            #[test]
            #[cfg_attr(not(feature = "real-servers"), ignore = "needs the store in its name: --features real-servers")]
            fn $name() {
                on_a_server($start.into(), ($stops, $asks));
            }
        )*
    };
}

on_servers! {
    restored_redis_is_recovered servers::Redis::start(&[]), true, false;
    restored_postgres_is_recovered servers::Postgres::start(&[]), true, false;
    restored_mariadb_is_recovered servers::Mysql::start(&[]), true, true;
    restored_etcd_is_recovered servers::Etcd::start(), true, true;
    restored_zookeeper_is_recovered servers::Zookeeper::start(), true, false;
    postgres_restored_under_running_servers_is_recovered servers::Postgres::start(&[]), false, true;
}
