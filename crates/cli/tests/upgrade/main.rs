//! Two builds of this program take turns on one store with live data, forward and back. `ci/upgrade`
//! builds the earlier one, and names it in `SNOWMINT_EARLIER`.
//!
//! Two servers are replaced one after the other, while clients at both mint without pause; programs
//! of both builds mint through both servers.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::disallowed_methods, reason = "they wait in real time for real processes")]

#[path = "../end_to_end/server.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod server;

use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Duration;

use server::{Folder, Resp, SNOWMINT, Server, clean, until};
use snowmint_testkit::servers;

const CONFIG: &str = r#"
[store]
offered = true
[sources.orders]
[sources.ordered]
order = "global"
[sources.invoices]
kind = "segment"
step = { rule = "fixed", size = 50 }
[sources.serials]
kind = "segment"
serial = { prefix = "S-", date = "yyyyMMdd" }
[sources.stored]
mint = "store"
worker = 7
[sources.messages]
kind = "counter"
"#;

/// Source, or key, of each client, and the server that it prefers.
const CLIENTS: [(&str, usize); 8] = [
    ("orders", 0),
    ("orders", 1),
    ("ordered", 0),
    ("invoices", 0),
    ("invoices", 1),
    ("stored", 0),
    ("stored", 1),
    ("messages:alice", 0),
];

/// Sources from which programs mint.
const SOURCES_OF_PROGRAMS: [&str; 2] = ["invoices", "serials"];

/// Number of IDs for each client on each pair of servers, and for each program through each server.
const IDS: usize = 100;

/// Program of the build at the commit in `ci/upgrade`.
fn earlier() -> String {
    std::env::var("SNOWMINT_EARLIER").expect("run ci/upgrade, which builds the earlier program")
}

/// Servers on one store, and the IDs that their clients got.
struct Shop {
    folder: Folder,
    url: String,
    /// RESP addresses of the two servers.
    addresses: Mutex<[String; 2]>,
    seen: Mutex<HashSet<(&'static str, String)>>,
    counts: [AtomicUsize; CLIENTS.len()],
    errors: Mutex<Vec<String>>,
    ends: AtomicBool,
}

impl Shop {
    fn new(name: &str, url: &str) -> Self {
        let folder = Folder::new(&format!("upgrade-{name}"));
        fs::write(folder.join("config.toml"), CONFIG).unwrap();
        Self {
            folder,
            url: url.into(),
            addresses: Mutex::default(),
            seen: Mutex::default(),
            counts: Default::default(),
            errors: Mutex::default(),
            ends: AtomicBool::new(false),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().into()
    }

    /// Starts a server of this build at one of the two places.
    fn start(&self, program: &str, place: usize) -> Server {
        let (config, data) = (self.path("config.toml"), self.path(&format!("data-{place}")));
        let words = ["--config", &config, "--store", &self.url, "--data-dir", &data];
        let started = Server::run(clean(program), &words);
        let server = started.unwrap_or_else(|output| panic!("{program}: {output:?}"));
        server.ready();
        self.addresses.lock().unwrap()[place].clone_from(&server.resp);
        server
    }

    /// Mints at the preferred server. A client whose server is away, or leads it to the other one,
    /// uses that one for one connection.
    fn mint(&self, client: usize) {
        let (what, preferred) = CLIENTS[client];
        let (mut place, mut last) = (preferred, 0);
        while !self.ends.load(SeqCst) {
            let address = self.addresses.lock().unwrap()[place].clone();
            place = 1 - place;
            let Ok(mut connection) = Resp::connect(&address) else { continue };
            while !self.ends.load(SeqCst)
                && let Ok(reply) = connection.call(&["INCR", what])
            {
                if reply.starts_with("-MOVED ") {
                    break;
                }
                self.got(client, &reply, &mut last);
                // The preferred server is there again.
                if place == preferred && last % 16 == 0 {
                    break;
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn got(&self, client: usize, reply: &str, last: &mut u64) {
        let what = CLIENTS[client].0;
        let Some(text) = reply.strip_prefix(':') else {
            self.errors.lock().unwrap().push(format!("{what}: {reply}"));
            thread::sleep(Duration::from_millis(20));
            return;
        };
        let number = text.parse().unwrap();
        self.saw(what, text);
        if what == "ordered" || what.contains(':') {
            assert!(number > *last, "{what}: {number} came after {last}");
        }
        *last = number;
        self.counts[client].fetch_add(1, SeqCst);
    }

    fn saw(&self, what: &'static str, id: &str) {
        let is_new = self.seen.lock().unwrap().insert((what, id.to_owned()));
        assert!(is_new, "{what}: {id} came twice");
    }

    /// Lets programs of both builds mint through each server, and waits until each client got more.
    fn continues(&self, servers: &[Server]) {
        for (number, program) in [earlier(), SNOWMINT.to_owned()].iter().enumerate() {
            for (server, source) in
                servers.iter().flat_map(|server| SOURCES_OF_PROGRAMS.map(|source| (server, source)))
            {
                self.mint_by_program(program, number, server, source);
            }
        }
        let before = self.counts.each_ref().map(|count| count.load(SeqCst));
        for (client, before) in before.into_iter().enumerate() {
            let (what, _) = CLIENTS[client];
            until(what, || self.counts[client].load(SeqCst) > before + IDS);
        }
    }

    fn mint_by_program(&self, program: &str, number: usize, server: &Server, source: &'static str) {
        let (store, data) =
            (format!("snowmint://{}", server.http), self.path(&format!("p{number}")));
        let mut command = clean(program);
        command.args(["mint", source, "-n", &IDS.to_string()]);
        let minted = command.args(["--store", &store, "--data-dir", &data]).output().unwrap();
        assert!(minted.status.success(), "{program}: {minted:?}");
        let minted = String::from_utf8(minted.stdout).unwrap();
        assert_eq!(minted.lines().count(), IDS, "{minted}");
        minted.lines().for_each(|id| self.saw(source, id));
    }
}

/// Ends the clients when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Replaces the servers one after the other, forward and back.
fn take_turns(name: &str, url: &str) {
    let shop = Shop::new(name, url);
    let (old, new) = (earlier(), SNOWMINT);
    let mut servers: Vec<Server> = (0..2).map(|place| shop.start(&old, place)).collect();
    thread::scope(|scope| {
        let shop = &shop;
        // A failed test ends its clients, too.
        let ends = Ends(&shop.ends);
        let clients: Vec<_> =
            (0..CLIENTS.len()).map(|client| scope.spawn(move || shop.mint(client))).collect();
        for (place, program) in [(0, new), (1, new), (0, &old), (1, &old)] {
            shop.continues(&servers);
            // One server is away for a moment, as in `systemctl restart`.
            assert_eq!(servers.remove(place).stop(), 0);
            servers.insert(place, shop.start(program, place));
        }
        shop.continues(&servers);
        drop(ends);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    let errors = shop.errors.into_inner().unwrap();
    assert!(errors.is_empty(), "{errors:#?}");
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn servers_on_sqlite_take_turns() {
    let folder = Folder::new("upgrade-file");
    take_turns("sqlite", &format!("sqlite:{}", folder.join("ids.db").display()));
}

fn on_a_server(store: &servers::Server) {
    take_turns(store.name(), &store.url());
}

macro_rules! on_servers {
    ($($name:ident $start:expr;)*) => {
        $(
            #[test]
            fn $name() {
                on_a_server(&$start.into());
            }
        )*
    };
}

on_servers! {
    servers_on_redis_take_turns servers::Redis::start(&[]);
    servers_on_postgres_take_turns servers::Postgres::start(&[]);
    servers_on_mariadb_take_turns servers::Mysql::start(&[]);
    servers_on_etcd_take_turns servers::Etcd::start();
    servers_on_zookeeper_take_turns servers::Zookeeper::start();
}
