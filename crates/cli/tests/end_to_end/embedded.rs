//! Embedded clients with servers that are killed, stopped, frozen and replaced, and with lost
//! responses. No number comes twice, and every call succeeds within its deadline.

use std::collections::{BTreeMap, HashSet};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmint::{Counter, Options, Segment, Snowflake};
use snowmint_testkit::proxy::{Proxy, Way};
use snowmint_testkit::servers::{Redis, free_port};
use tokio::runtime::Runtime;

use super::server::{Folder, Server, TIMEOUT, client, curl, snowmint, until};

/// Configuration with the lease of section owners: the time that a server may serve a key after its
/// last renewal.
const CONFIG: &str = "[sources.orders]\n[sources.invoices]\nkind = \"segment\"\n\
    step = { rule = \"fixed\", size = 10 }\n\
    [sources.messages]\nkind = \"counter\"\n[sources.timeline]\norder = \"global\"\n\
    [counters]\nlease = \"2s\"\n[store]\noffered = true\n";
/// Deadline of every call in milliseconds: longer than a dead server's lease.
const WITHIN_MS: u64 = 60_000;
/// Number of minting rounds while one of three servers is away.
const ROUNDS: usize = 8;

/// IDs minted in this process and through servers.
#[derive(Default)]
struct Seen {
    orders: HashSet<u64>,
    invoices: HashSet<u64>,
    keys: BTreeMap<String, u64>,
    timeline: u64,
}

impl Seen {
    fn order(&mut self, id: u64) {
        assert!(self.orders.insert(id), "order {id} twice");
    }

    fn invoice(&mut self, number: u64) {
        assert!(self.invoices.insert(number), "invoice {number} twice");
    }

    fn message(&mut self, key: &str, number: u64) {
        let before = self.keys.insert(key.to_owned(), number).unwrap_or(0);
        assert!(number > before, "{key}: {number} after {before}");
    }

    fn timeline(&mut self, id: u64) {
        assert!(id > self.timeline, "{id} after {}", self.timeline);
        self.timeline = id;
    }
}

/// A program with an embedded client.
struct Program {
    mint: snowmint::Mint,
    orders: Snowflake,
    invoices: Segment,
    messages: Counter,
    timeline: Snowflake,
}

impl Program {
    /// Opens its sources. A busy machine may exceed the time limit of some seconds: then it tries
    /// again.
    async fn open(servers: &[&str]) -> Self {
        let url = format!("snowmint://{}", servers.join(","));
        let begun = Instant::now();
        loop {
            match Self::try_open(&url).await {
                Ok(program) => return program,
                Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
            }
        }
    }

    async fn try_open(url: &str) -> Result<Self, snowmint::Error> {
        let mint = Options::new().owner("program").wait_max_ms(WITHIN_MS).open(url).await?;
        Ok(Self {
            orders: mint.snowflake("orders").await?,
            invoices: mint.segment("invoices").await?,
            messages: mint.counter("messages").await?,
            timeline: mint.snowflake("timeline").await?,
            mint,
        })
    }

    /// Mints some IDs of each source.
    async fn round(&self, seen: &mut Seen, number: usize) {
        for _ in 0..20 {
            seen.order(self.orders.mint().unwrap());
        }
        for _ in 0..7 {
            seen.invoice(self.invoices.next().await.unwrap());
        }
        let key = format!("user-{}", number % 5);
        let first = self.messages.next(&key).await.unwrap();
        seen.message(&key, first);
        let (first, last) = self.messages.next_many(&key, 3).await.unwrap();
        assert_eq!(last - first, 2);
        seen.message(&key, first);
        seen.message(&key, last);
        let keys = [key, "all-users".to_owned()];
        for (key, number) in keys.iter().zip(self.messages.next_each(&keys).await.unwrap()) {
            seen.message(key, number);
        }
        seen.timeline(self.timeline.mint_async().await.unwrap());
    }
}

/// Mints IDs through a server. Repeats requests that fail for the moment, because the machine stood
/// still.
fn ids(server: &Server, source: &str, count: usize) -> Vec<u64> {
    let mut response = None;
    until(&format!("{source} get a response"), || {
        let (status, body) = server.get(&format!("/v1/ids/{source}?count={count}"));
        assert!(status == "200" || status == "503", "{status}: {body}");
        response = body["ids"].as_array().cloned();
        response.is_some()
    });
    let ids = response.unwrap();
    assert_eq!(ids.len(), count);
    ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect()
}

/// Does the same through a server.
fn ask(server: &Server, seen: &mut Seen) {
    ids(server, "orders", 5).into_iter().for_each(|id| seen.order(id));
    ids(server, "invoices", 5).into_iter().for_each(|number| seen.invoice(number));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_client_mints_while_servers_are_replaced() {
    let folder = Folder::new("embedded");
    // The ports are fixed, so that no other process gets one while its server is stopped.
    let addresses: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
    let start =
        |(number, http): (usize, &String)| Some(Server::sharing_at(&folder, number, CONFIG, http));
    let mut servers: Vec<_> = addresses.iter().enumerate().map(start).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let program = Program::open(&addresses).await;
    let mut seen = Seen::default();
    let mut rounds = 0;
    // Each server is killed once, and stopped once as in an upgrade.
    for step in 0..6 {
        let one = step % 3;
        let other = servers[(one + 1) % 3].as_ref().unwrap();
        program.round(&mut seen, rounds).await;
        ask(other, &mut seen);
        let server = servers[one].take().unwrap();
        if step < 3 {
            server.kill();
        } else {
            let stopped = tokio::task::spawn_blocking(|| server.stop());
            program.round(&mut seen, rounds).await;
            assert_eq!(stopped.await.unwrap(), 0);
        }
        // Each call succeeds within its deadline, whatever the other servers do.
        for _ in 0..ROUNDS {
            program.round(&mut seen, rounds).await;
            rounds += 1;
        }
        ask(servers[(one + 1) % 3].as_ref().unwrap(), &mut seen);
        servers[one] = Some(Server::sharing_at(&folder, one, CONFIG, addresses[one]));
    }
    until("the program is ready", || program.mint.readiness().ready);
    program.mint.close().await.unwrap();
}

/// Number of lost responses that suffices.
const LOST_MIN: u64 = 10;

/// All responses of a server, and its connections, are lost at times: the requests were executed,
/// and are sent again.
#[test]
fn repeated_requests_are_applied_once() {
    let folder = Folder::new("embedded-lost");
    let server = Server::sharing(&folder, 0, CONFIG);
    let port = server.http.rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Arc::new(Proxy::start(port));
    let there = format!("127.0.0.1:{}", proxy.port());
    // The proxy has a runtime of its own, and this runtime ends first.
    let runtime = Runtime::new().unwrap();
    let program = runtime.block_on(Program::open(&[&there]));
    let done = Arc::new(AtomicBool::new(false));
    let weather = std::thread::spawn({
        let (proxy, done) = (Arc::clone(&proxy), Arc::clone(&done));
        move || {
            while !done.load(Ordering::Relaxed) {
                proxy.hold(Way::ToClient);
                std::thread::sleep(Duration::from_millis(40));
                // Responses held meanwhile are lost with their connection.
                proxy.cut();
                proxy.heal();
                std::thread::sleep(Duration::from_millis(150));
            }
        }
    });
    let mut seen = Seen::default();
    let mut rounds = 0;
    // Each call ends within its deadline, or fails. Without lost responses, the test would prove
    // nothing.
    while rounds < 25 || (proxy.responses_lost() < LOST_MIN && rounds < 1_000) {
        runtime.block_on(program.round(&mut seen, rounds));
        ask(&server, &mut seen);
        rounds += 1;
    }
    done.store(true, Ordering::Relaxed);
    weather.join().unwrap();
    assert!(proxy.responses_lost() >= LOST_MIN, "{} replies were lost", proxy.responses_lost());
    runtime.block_on(program.mint.close()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
async fn frozen_server_is_skipped() {
    let folder = Folder::new("embedded-frozen");
    // A process frozen in the middle of a step on a file would block all others that share the
    // file.
    let store = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let servers: Vec<_> = (0..2)
        .map(|number| Server::sharing_on(&store.url(), &folder, (number, CONFIG), "127.0.0.1:0"))
        .collect();
    let addresses: Vec<&str> = servers.iter().map(|server| server.http.as_str()).collect();
    let program = Program::open(&addresses).await;
    let mut seen = Seen::default();
    program.round(&mut seen, 0).await;
    for server in &servers {
        server.signal("-STOP");
        for round in 0..30 {
            program.round(&mut seen, round).await;
        }
        server.signal("-CONT");
        // Requests from before the freeze are executed now.
        program.round(&mut seen, 0).await;
        server.ready();
        ask(server, &mut seen);
    }
    program.mint.close().await.unwrap();
}

#[test]
fn blocking_client_mints_through_servers() {
    let folder = Folder::new("embedded-blocking");
    let server = Server::sharing(&folder, 0, CONFIG);
    let options = Options::new().wait_max_ms(WITHIN_MS);
    let mint = options.open_blocking(&format!("snowmint://{}", server.http)).unwrap();
    let mut seen = Seen::default();
    let (orders, invoices) = (mint.snowflake("orders").unwrap(), mint.segment("invoices").unwrap());
    let messages = mint.counter("messages").unwrap();
    for _ in 0..20 {
        seen.order(orders.mint().unwrap());
        seen.invoice(invoices.next().unwrap());
        seen.message("alice", messages.next("alice").unwrap());
    }
    let timeline = mint.snowflake("timeline").unwrap();
    let mut many = [0; 5];
    for _ in 0..5 {
        seen.timeline(timeline.mint().unwrap());
        timeline.fill(&mut many).unwrap();
        many.iter().for_each(|&id| seen.timeline(id));
    }
    // Sources that only servers mint cannot be minted without waiting: the error comes at once.
    let refused = timeline.try_mint().unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused}");
    ask(&server, &mut seen);
    mint.close().unwrap();
    assert_eq!(server.stop(), 0);
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// `--store snowmint://…` is a store for every command, and for a local server of programs in other
/// languages.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn commands_and_servers_mint_through_servers_too() {
    let folder = Folder::new("embedded-commands");
    // No server dies in this test.
    let config = CONFIG.replace("lease = \"2s\"", "lease = \"60s\"");
    let server = Server::sharing(&folder, 0, &config);
    let store = format!("snowmint://{}", server.http);
    let run = |arguments: &[&str]| {
        printed(&snowmint().args(arguments).args(["--store", &store]).output().unwrap())
    };
    let mut seen = Seen::default();
    for line in run(&["mint", "orders", "-n", "50"]).lines() {
        seen.order(line.parse().unwrap());
    }
    for line in run(&["mint", "invoices", "-n", "5"]).lines() {
        seen.invoice(line.parse().unwrap());
    }
    for _ in 0..2 {
        let number = run(&["mint", "messages", "--key", "alice"]);
        seen.message("alice", number.trim().parse().unwrap());
    }

    let home = folder.join("embedded");
    let home = home.to_str().unwrap();
    let second = Server::start(&["--store", &store, "--data-dir", home], &[]);
    second.ready();
    let ask_both = |seen: &mut Seen| {
        ask(&second, seen);
        ask(&server, seen);
        ids(&second, "timeline", 2).into_iter().for_each(|id| seen.timeline(id));
        for server in [&second, &server] {
            let words = ["-p", server.resp_port(), "INCR", "messages:alice"];
            let mut number = None;
            until("a number of alice's", || {
                number = client("redis-cli", &words).trim().parse().ok();
                number.is_some()
            });
            seen.message("alice", number.unwrap());
        }
        let (_, bound) = second.get("/v1/counters/messages/alice");
        assert_eq!(bound["bound"].as_str().unwrap(), seen.keys["alice"].to_string());
    };
    ask_both(&mut seen);
    ask_both(&mut seen);
    // Changes through the server are in its audit trail, with the caller's address.
    let define = r#"{"name":"parcels","kind":"segment"}"#;
    curl(&["-f", "--json", define, &second.url("/v1/sources")]);
    curl(&["-f", "-X", "DELETE", &second.url("/v1/sources/parcels")]);
    for how in ["source parcels defined", "source parcels switched"] {
        let parts = ["audit", how, "anyone at 127.0.0.1"];
        until(how, || {
            let printed = server.printed();
            printed.lines().any(|line| parts.iter().all(|part| line.contains(part)))
        });
    }
    assert_eq!(second.stop(), 0);
    assert_eq!(server.stop(), 0);
}

/// A server offers its store only if configured, and the error names the key.
#[test]
fn a_store_that_is_not_offered_is_not_used() {
    let folder = Folder::new("embedded-not");
    let server = Server::sharing(&folder, 0, "[sources.orders]\n");
    let store = format!("snowmint://{}", server.http);
    let refused = snowmint().args(["mint", "orders", "--store", &store]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("store.offered = true"), "{message}");
}
