//! Counters on one server, on several servers with one store, and with servers that die.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snowmint_testkit::servers;

use super::grpc;
use super::server::{Folder, Resp, Server, client, curl, until};

/// Leases of section owners. Short where servers take over from peers; long where a machine that
/// stands still for some seconds must not lose keys; and endless.
const SHORT: &str = "6s";
const LONG: &str = "15s";
const ENDLESS: &str = "300s";

pub(super) fn redis(server: &Server, arguments: &[&str]) -> String {
    client("redis-cli", &[&["-p", server.resp_port()], arguments].concat()).trim().to_owned()
}

/// Counts with `redis-cli -c`, which follows redirects; `None` if no server owns the key now.
fn follow(server: &Server, key: &str) -> Option<u64> {
    let response = redis(server, &["-c", "INCR", &format!("messages:{key}")]);
    response.lines().last().and_then(|line| line.parse().ok())
}

/// Counts over HTTP; the server forwards the request to the section owner.
pub(super) fn ask(server: &Server, key: &str) -> Option<u64> {
    number_in(&curl(&[&server.url(&format!("/v1/ids/messages?key={key}"))]))
}

/// Returns the number in a response.
fn number_in(response: &str) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_str(response).ok()?;
    value["ids"][0].as_str()?.parse().ok()
}

/// Numbers by key: every later number of a key must be greater.
#[derive(Default)]
struct History(BTreeMap<String, u64>);

impl History {
    fn rises(&mut self, key: &str, number: u64) {
        let before = self.0.insert(key.into(), number).unwrap_or(0);
        assert!(number > before, "{key}: {number} after {before}");
    }
}

fn start(folder: &Folder, number: usize, lease: &str) -> Server {
    let text = format!("[sources.messages]\nkind = \"counter\"\n[counters]\nlease = \"{lease}\"\n");
    Server::sharing(folder, number, &text)
}

/// Waits until each server has sections of its own, which it acquires when it gets requests for
/// keys.
#[track_caller]
pub(super) fn all_have_keys(servers: &[Server], mut ask: impl FnMut()) {
    until("each has keys of its own", || {
        ask();
        servers.iter().all(|server| server.sample("snowmint_sections") > 0.0)
    });
}

/// Returns the first successful result.
#[track_caller]
fn at_last<T>(key: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let mut response = None;
    until(&format!("{key} has an owner"), || {
        response = ask();
        response.is_some()
    });
    response.unwrap()
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn a_key_is_counted_by_redis_cli_and_curl_alike() {
    let folder = Folder::new("counted");
    let server = start(&folder, 0, ENDLESS);
    let mut history = History::default();
    for _ in 0..3 {
        history.rises("alice", redis(&server, &["INCR", "messages:alice"]).parse().unwrap());
        history.rises("alice", ask(&server, "alice").unwrap());
    }
    let before = history.0["alice"];
    assert_eq!(redis(&server, &["INCRBY", "messages:alice", "10"]), (before + 10).to_string());
    assert_eq!(redis(&server, &["GET", "messages:alice"]), (before + 10).to_string());
    assert_eq!(redis(&server, &["GET", "messages:absent"]), "");
    let (status, bound) = server.get("/v1/counters/messages/alice");
    assert_eq!((status.as_str(), &bound["bound"]), ("200", &(before + 10).to_string().into()));
    let many = curl(&["-H", "Accept: text/plain", &server.url("/v1/ids/messages?key=7&count=5")]);
    assert_eq!(many.lines().collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
    for wrong in [&["INCR", "messages"][..], &["INCR", "messages:"], &["INCR", "default:x"]] {
        assert!(redis(&server, wrong).starts_with("ERR"), "{wrong:?}");
    }
    history.rises("alice", before + 10);
    // After a crash it continues above at once: the data directory is the same.
    server.kill();
    let server = start(&folder, 0, ENDLESS);
    history.rises("alice", follow(&server, "alice").unwrap());
    assert_eq!(server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn keys_stand_alone_where_that_is_configured() {
    let folder = Folder::new("alone");
    let config = folder.join("config.toml");
    let text = format!(
        "[sources.pages]\nkind = \"counter\"\ncounter = {{ keys = \"alone\" }}\n\
         [resp]\ndefault_counter_source = \"pages\"\n[counters]\nlease = \"{ENDLESS}\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let data = folder.join("data");
    let arguments = ["--config", config.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let server = Server::start(&arguments, &[]);
    server.ready();
    assert_eq!(redis(&server, &["INCR", "page:views:7"]), "1");
    assert_eq!(redis(&server, &["INCR", "page:views:7"]), "2");
    assert_eq!(redis(&server, &["CLUSTER", "KEYSLOT", "page:views:7"]), "2861");
    // The Redis benchmark counts ordinary keys.
    let arguments = ["-p", server.resp_port(), "-t", "incr", "-n", "20000", "-r", "2000"];
    let printed =
        client("redis-benchmark", &[&arguments[..], &["-P", "16", "-c", "4", "--csv"]].concat());
    assert!(printed.contains("\"INCR\","), "{printed}");
    let counted: u64 = redis(&server, &["GET", "counter:000000000007"]).parse().unwrap();
    assert!((1..1_000).contains(&counted), "{counted}");
    assert_eq!(server.stop(), 0);
}

/// Only the journal shows that the earlier lives of a server have ended. A wait for the lease of
/// any of them would take five times as long as this test allows.
#[test]
fn server_killed_several_times_counts_again_at_once() {
    for kills in 1..=3 {
        let folder = Folder::new(&format!("killed-{kills}"));
        let mut server = start(&folder, 0, ENDLESS);
        let before = at_last("alice", || ask(&server, "alice"));
        for _ in 0..kills {
            server.kill();
            server = start(&folder, 0, ENDLESS);
        }
        let after = at_last("alice", || ask(&server, "alice"));
        assert!(after > before, "{after} after {before}, killed {kills} times");
    }
}

/// Any server raises the bound, and the section owner keeps it.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn a_bound_is_raised_by_every_server() {
    let folder = Folder::new("raised");
    let servers: Vec<_> = (0..2).map(|number| start(&folder, number, LONG)).collect();
    let raise = |server: &Server, key: &str, bound: u64| {
        let (url, body) = (
            server.url(&format!("/v1/counters/messages/{key}")),
            format!("{{\"bound\":\"{bound}\"}}"),
        );
        let response = curl(&["-X", "PUT", "--json", &body, "-w", "\n%{http_code}", &url]);
        let (body, status) = response.rsplit_once('\n').unwrap();
        (status == "200").then(|| serde_json::from_str::<serde_json::Value>(body).unwrap())
    };
    let keys: Vec<String> = (0..20).map(|number| format!("user-{number}")).collect();
    all_have_keys(&servers, || {
        for key in &keys {
            at_last(key, || ask(&servers[0], key));
        }
    });
    for (number, key) in (1_u64..).zip(&keys) {
        for (turn, server) in (1_u64..).zip(&servers) {
            let bound = number * 1_000 + turn * 100;
            let bound_of = |body: serde_json::Value| body["bound"].as_str().unwrap().parse().ok();
            assert_eq!(
                at_last(key, || raise(server, key, bound).and_then(bound_of)),
                bound,
                "{key}"
            );
            // No server lowers the bound.
            at_last::<u64>(key, || raise(server, key, 1).and_then(bound_of));
            for other in &servers {
                assert!(at_last(key, || ask(other, key)) > bound, "{key}");
            }
        }
    }
    // Both servers own some of the keys: with one owner no request would have been forwarded.
    let mut history = [0, 0];
    for key in &keys {
        for (count, server) in history.iter_mut().zip(&servers) {
            let moved = redis(server, &["INCR", &format!("messages:{key}")]);
            *count += usize::from(moved.contains("MOVED"));
        }
    }
    assert!(history.iter().all(|&moved| moved > 0), "{history:?}");
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn three_servers_share_keys_and_replace_killed_owners() {
    let folder = Folder::new("shared");
    let mut servers: Vec<_> = (0..3).map(|number| start(&folder, number, SHORT)).collect();
    let keys: Vec<String> = (0..60).map(|number| format!("user-{number}")).collect();
    let mut history = History::default();
    // Any server is called, over either protocol.
    let round = |servers: &[Server], history: &mut History| {
        for (index, key) in keys.iter().enumerate() {
            let server = &servers[index % servers.len()];
            let by_redis = index % 2 == 0;
            let ask = || if by_redis { follow(server, key) } else { ask(server, key) };
            history.rises(key, at_last(key, ask));
        }
    };
    round(&servers, &mut history);
    let mut slots = String::new();
    until("each of the three has sections", || {
        slots = redis(&servers[0], &["CLUSTER", "NODES"]);
        slots.lines().count() == 3 && slots.lines().all(|line| line.split(' ').count() > 8)
    });
    round(&servers, &mut history);
    servers.remove(1).kill();
    round(&servers, &mut history);
    servers.push(start(&folder, 3, SHORT));
    all_have_keys(&servers, || round(&servers, &mut history));
    assert_eq!(servers.remove(0).stop(), 0);
    round(&servers, &mut history);
}

/// Protocol of a client. HTTP and gRPC forward a request for a key to its owner, RESP redirects the
/// client there.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http,
    Resp,
    Grpc,
}

/// Clients during a planned restart: of each protocol one at each of two servers.
const CLIENTS: [Protocol; 6] = [
    Protocol::Http,
    Protocol::Http,
    Protocol::Resp,
    Protocol::Resp,
    Protocol::Grpc,
    Protocol::Grpc,
];

/// Pause of a client that starts no program for each request: without it these clients would take
/// the processors.
const PAUSE: Duration = Duration::from_millis(20);

impl Protocol {
    /// Requests a number of a source, or of a key of it.
    fn number(self, server: &Server, source: &str, key: Option<&str>) -> Result<u64, String> {
        match self {
            Self::Http => {
                let response = curl(&[&server.url(&path(source, key))]);
                number_in(&response).ok_or(response)
            }
            Self::Resp => {
                std::thread::sleep(PAUSE);
                let name = key.map(|key| format!("{source}:{key}"));
                followed(&server.resp, name.as_deref().unwrap_or(source))
            }
            Self::Grpc => {
                std::thread::sleep(PAUSE);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let ids = runtime.unwrap().block_on(grpc::mint(server, source, key, 1));
                ids.map(|ids| ids[0]).map_err(|status| format!("{status:?}"))
            }
        }
    }
}

fn path(source: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("?key={key}"));
    format!("/v1/ids/{source}{}", key.unwrap_or_default())
}

/// Redirects that a client of Redis Cluster follows: the least of those that people use.
const REDIRECTS_MAX: usize = 3;

/// Requests a number like a client of Redis Cluster: it follows redirects, and nothing else. So no
/// redirect may lead to a server that has stopped, nor back and forth.
fn followed(own: &str, name: &str) -> Result<u64, String> {
    let mut address = own.to_owned();
    let mut way = Vec::new();
    for _ in 0..=REDIRECTS_MAX {
        let reply = Resp::connect(&address).and_then(|mut resp| resp.call(&["INCR", name]));
        let reply = reply.unwrap_or_else(|error| error.to_string());
        if let Some(number) = reply.strip_prefix(':') {
            return number.parse().map_err(|_| reply.clone());
        }
        way.push(format!("{address}: {reply}"));
        match reply.strip_prefix("-MOVED ").and_then(|moved| moved.split(' ').next_back()) {
            Some(moved) => moved.clone_into(&mut address),
            None => break,
        }
    }
    Err(way.join("; "))
}

/// Returns the requests of a client: for keys of its own, so that their order is known, and to each
/// other kind of source.
fn wanted(client: usize) -> Vec<(&'static str, Option<String>)> {
    let keys = (0..4).map(|number| ("messages", Some(format!("key-{client}-{number}"))));
    let others = ["orders", "one", "default", "stamps"].map(|source| (source, None));
    keys.chain(others).collect()
}

/// Runs `what` while clients send requests of all kinds to two servers: every request must succeed.
fn requested_meanwhile<T>(servers: &[Server], what: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (client, protocol) in CLIENTS.into_iter().enumerate() {
            let (server, over) = (&servers[client % 2], &over);
            scope.spawn(move || {
                let (mut history, wanted) = (History::default(), wanted(client));
                let requests = wanted.iter().cycle();
                for (source, key) in requests.take_while(|_| !over.load(Ordering::SeqCst)) {
                    let name = path(source, key.as_deref());
                    let number = protocol.number(server, source, key.as_deref());
                    let number = number.unwrap_or_else(|no| panic!("{protocol:?} {name}: {no}"));
                    history.rises(&name, number);
                }
            });
        }
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(what));
        over.store(true, Ordering::SeqCst);
        outcome.unwrap()
    })
}

/// Each of three servers on this store is stopped cleanly and started again, as in an upgrade, and
/// a fourth joins. Clients of the other servers request all sources meanwhile: these servers wait
/// for the section owner, and no request fails.
fn each_is_restarted(folder: &Folder, store: &str, more: &str) {
    let sources = format!(
        "[sources.messages]\nkind = \"counter\"\n\
         [sources.orders]\norder = \"global\"\n\
         [sources.one]\nkind = \"segment\"\nstep = {{ rule = \"fixed\", size = 1 }}\n\
         [sources.stamps]\nmint = \"store\"\nworker = 9\n{more}"
    );
    let start_at = |number: usize, address: &str| {
        Server::sharing_on(store, folder, (number, sources.as_str()), address)
    };
    // A restarted server has the same address.
    let addresses = [0, 1, 2].map(|_| format!("127.0.0.1:{}", servers::free_port()));
    let start = |number: usize| start_at(number, &addresses[number]);
    let mut servers: Vec<_> = (0..3).map(start).collect();
    all_have_keys(&servers, || {
        for (source, key) in (0..CLIENTS.len()).flat_map(wanted) {
            let path = path(source, key.as_deref());
            at_last(&path, || number_in(&curl(&[&servers[0].url(&path)])));
        }
    });
    for restarted in 0..3 {
        let stopping = servers.remove(restarted);
        let again = requested_meanwhile(&servers, || {
            assert_eq!(stopping.stop(), 0);
            let again = start(restarted);
            until("it has keys again", || again.sample("snowmint_sections") > 0.0);
            again
        });
        servers.insert(restarted, again);
    }
    let fourth = requested_meanwhile(&servers, || {
        let fourth = start_at(3, "127.0.0.1:0");
        until("it has keys", || fourth.sample("snowmint_sections") > 0.0);
        fourth
    });
    servers.push(fourth);
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn planned_restart_fails_no_request_to_other_servers() {
    let folder = Folder::new("planned");
    let store = format!("sqlite:{}", folder.join("ids.db").display());
    each_is_restarted(&folder, &store, &format!("[counters]\nlease = \"{LONG}\"\n"));
}

/// The same with the default lease. A machine that stands still for some seconds costs servers
/// their lease, and requests wait for it, within `limits.wait_max`.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn planned_restart_with_the_default_lease_fails_no_request() {
    let store = servers::Postgres::start(&[]);
    each_is_restarted(&Folder::new("planned-postgres"), &store.url(), "");
}
