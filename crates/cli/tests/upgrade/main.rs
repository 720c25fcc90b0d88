//! Two builds of this program take turns on one store with live data, forward and back. `ci/upgrade`
//! builds the earlier one, and names it in `SNOWMINT_EARLIER`.
//!
//! Two servers are replaced one after the other, while clients of each kind of source count
//! without pause; programs of both builds mint through both servers.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::disallowed_methods, reason = "they wait in real time for real processes")]
#![allow(clippy::print_stdout, reason = "one row for each store")]

#[path = "../end_to_end/server.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod server;

use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
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
[sources.stored]
mint = "store"
worker = 7
[sources.messages]
kind = "counter"
"#;

/// Source, or key, that each client counts without pause.
const COUNTED: [&str; 5] = ["orders", "ordered", "invoices", "stored", "messages:alice"];

/// Numbers that each client gets on each pair of servers, and each program through each server.
const NUMBERS: usize = 100;

/// Program of the build at the commit in `ci/upgrade`.
fn earlier() -> String {
    std::env::var("SNOWMINT_EARLIER").expect("run ci/upgrade, which builds the earlier program")
}

/// Servers on one store, and the numbers that their clients got.
struct Shop {
    folder: Folder,
    url: String,
    /// RESP addresses of the two servers.
    addresses: Mutex<[String; 2]>,
    seen: Mutex<HashSet<(&'static str, u64)>>,
    errors: Mutex<Vec<String>>,
    ends: AtomicBool,
}

impl Shop {
    fn new(url: &str) -> Self {
        let folder = Folder::new("upgrade");
        fs::write(folder.join("config.toml"), CONFIG).unwrap();
        Self {
            folder,
            url: url.into(),
            addresses: Mutex::default(),
            seen: Mutex::default(),
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

    /// Counts at the server to which the last reply led, and at the other one when that one is away.
    fn count(&self, what: &'static str) {
        let (mut place, mut last) = (0, 0);
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
                self.got(what, &reply, &mut last);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn got(&self, what: &'static str, reply: &str, last: &mut u64) {
        let Some(number) = reply.strip_prefix(':').map(|number| number.parse().unwrap()) else {
            self.errors.lock().unwrap().push(format!("{what}: {reply}"));
            thread::sleep(Duration::from_millis(20));
            return;
        };
        assert!(self.seen.lock().unwrap().insert((what, number)), "{what}: {number} came twice");
        if what == "ordered" || what.contains(':') {
            assert!(number > *last, "{what}: {number} came after {last}");
        }
        *last = number;
    }

    fn counted(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|(name, _)| *name == what).count()
    }

    /// Waits until all clients continue, and lets programs of both builds mint through each server.
    fn continues(&self, servers: &[Server]) {
        let before = COUNTED.map(|what| self.counted(what));
        for (number, program) in [earlier(), SNOWMINT.to_owned()].iter().enumerate() {
            for server in servers {
                self.mint_by_program(program, number, server);
            }
        }
        for (what, before) in COUNTED.iter().zip(before) {
            until(what, || self.counted(what) > before + NUMBERS);
        }
    }

    fn mint_by_program(&self, program: &str, number: usize, server: &Server) {
        let (store, data) =
            (format!("snowmint://{}", server.http), self.path(&format!("p{number}")));
        let mut command = clean(program);
        command.args(["mint", "invoices", "-n", &NUMBERS.to_string()]);
        let minted = command.args(["--store", &store, "--data-dir", &data]).output().unwrap();
        assert!(minted.status.success(), "{program}: {minted:?}");
        for number in String::from_utf8(minted.stdout).unwrap().lines() {
            let number = number.parse().unwrap();
            assert!(self.seen.lock().unwrap().insert(("invoices", number)), "{number} came twice");
        }
    }
}

/// Ends the clients when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Replaces the servers one after the other, forward and back, and returns what the clients got.
fn takes_turns(name: &str, url: &str) {
    let shop = Shop::new(url);
    let (old, new) = (earlier(), SNOWMINT);
    let mut servers: Vec<Server> = (0..2).map(|place| shop.start(&old, place)).collect();
    thread::scope(|scope| {
        let shop = &shop;
        // A failed test ends its clients, too.
        let ends = Ends(&shop.ends);
        let clients = COUNTED.map(|what| scope.spawn(move || shop.count(what)));
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
    println!("{name}: {} numbers, {} errors", shop.seen.into_inner().unwrap().len(), errors.len());
    assert!(errors.is_empty(), "{errors:#?}");
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn servers_on_sqlite_take_turns() {
    let folder = Folder::new("upgrade-file");
    takes_turns("SQLite", &format!("sqlite:{}", folder.join("ids.db").display()));
}

fn on_a_server(store: &servers::Server) {
    takes_turns(store.name(), &store.url());
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
