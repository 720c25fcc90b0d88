//! The stores, and the machines that use them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use snowmint_coord::{Error, Node, NodeSettings, Platform, SourceSpec, Store, random};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers::{Etcd, Mysql, Postgres, Redis, Server, Zookeeper};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::checker::{Checker, Voice};
use super::holder::{Holder, HolderSettings, NUMBERS, ORDERS, TIMEOUT};

/// Name of a store, and the function that starts its server, if it has one.
type Row = (&'static str, Option<fn() -> Server>);

/// The table of all stores.
pub(crate) const STORES: [Row; 6] = [
    ("SQLite", None),
    ("PostgreSQL", Some(|| Postgres::start(&[]).into())),
    ("MariaDB", Some(|| Mysql::start(&[]).into())),
    ("Redis", Some(|| Redis::start(&[]).into())),
    ("etcd", Some(|| Etcd::start().into())),
    ("ZooKeeper", Some(|| Zookeeper::start().into())),
];

/// Default length of windows.
pub(crate) const WINDOW_MS: u64 = 4_000;
/// TTL of a presence.
pub(crate) const TTL_MS: u64 = 3_000;
/// TTL of a process that must keep its number.
pub(crate) const STEADY_TTL_MS: u64 = 120_000;

/// Stores that a fault applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    All,
    /// Stores with a server process.
    Servers,
}

/// Returns the number of rounds: the given number, or as many times more as the environment says.
pub(crate) fn rounds(few: u64) -> u64 {
    let times = std::env::var("SNOWMINT_FAULTS_ROUNDS").ok();
    few * times.map_or(1, |times| times.parse().expect("SNOWMINT_FAULTS_ROUNDS is a number"))
}

/// Returns whether a store takes part. All do in a long run; `SNOWMINT_FAULTS_STORES` selects
/// stores by parts of their names, separated by commas. A part without a match panics: otherwise
/// nothing would run, and the test would pass.
pub(crate) fn is_selected(store: &str) -> bool {
    let stores = std::env::var("SNOWMINT_FAULTS_STORES").unwrap_or_default();
    for part in stores.split(',') {
        let is_known = STORES.iter().any(|(name, _)| name.contains(part));
        assert!(is_known, "SNOWMINT_FAULTS_STORES names no store by {part}");
    }
    stores.is_empty() || stores.split(',').any(|part| store.contains(part))
}

/// Returns whether all kinds of a fault are tried, however long it takes.
pub(crate) fn is_long() -> bool {
    std::env::var_os("SNOWMINT_FAULTS_LONG").is_some()
}

/// Returns an unpredictable number below `end`.
pub(crate) fn below(end: u64) -> u64 {
    u64::try_from(random::incarnation().unwrap().get() % u128::from(end)).unwrap()
}

pub(crate) fn sleep_ms(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// One store, with everything that runs on it.
pub(crate) struct Ground {
    pub(crate) name: &'static str,
    pub(crate) server: Option<Server>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) checker: Arc<Mutex<Checker>>,
    runtime: Runtime,
    folder: TempDir,
}

/// A machine: its directory and its name stay while processes start and end.
#[derive(Debug)]
pub(crate) struct Machine {
    voice: Voice,
    pub(crate) holder_settings: HolderSettings,
}

/// Runs a fault on each store, on all of them at once. `worker_bits` is the width of worker
/// numbers: the fewer numbers there are, the sooner they change their holder.
pub(crate) fn on_each(fault: &str, on: On, worker_bits: u32, harm: fn(&mut Ground) -> u64) {
    let all = STORES.iter().filter(|(_, server)| on == On::All || server.is_some());
    thread::scope(|scope| {
        let running: Vec<_> = all
            .map(|(name, server)| {
                scope.spawn(move || {
                    let server = server.map(|start| start());
                    // `ci/mysql` replaces MariaDB.
                    let name = server.as_ref().map_or(*name, Server::name);
                    let mut ground = Ground::new(name, server, worker_bits);
                    let rounds = harm(&mut ground);
                    let minted = ground.end();
                    println!("| {fault} | {name} | {rounds} | {minted} | 0 |");
                })
            })
            .collect();
        // A panic has the place in the code; this adds the store.
        let failed: Vec<_> = running
            .into_iter()
            .zip(STORES.iter().filter(|(_, server)| on == On::All || server.is_some()))
            .filter_map(|(run, (name, _))| run.join().is_err().then_some(*name))
            .collect();
        assert!(failed.is_empty(), "{fault}: failed on {failed:?}");
    });
}

impl Ground {
    fn new(name: &'static str, server: Option<Server>, worker_bits: u32) -> Self {
        let layout = format!("time=41,worker={worker_bits},sequence=4,epoch=2026-01-01T00:00:00Z");
        let orders = SourceSpec::from_json(&format!(r#"{{"layout":"{layout}"}}"#)).unwrap();
        let numbers =
            SourceSpec::from_json(r#"{"kind":"segment","step":{"min":50,"max":1000}}"#).unwrap();
        let runtime = Runtime::new().unwrap();
        let ground = Self {
            name,
            proxy: server.as_ref().map(|server| Proxy::start(server.port())),
            server,
            checker: Arc::new(Mutex::new(Checker::new(&orders))),
            runtime,
            folder: tempfile::tempdir().unwrap(),
        };
        ground.ask(async |store| {
            let node = Node::open(store, NodeSettings::default(), Platform::system()).await?;
            node.define(ORDERS, &orders).await?;
            node.define(NUMBERS, &numbers).await?;
            node.close().await
        });
        ground
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        match &self.server {
            Some(server) => server.url(),
            None => format!("sqlite:{}", self.path("ids.db").display()),
        }
    }

    /// Returns the server of a store that has one.
    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    /// Calls the store as an operator would, with retries.
    pub(crate) fn ask<T>(&self, question: impl AsyncFn(Arc<dyn Store>) -> Result<T, Error>) -> T {
        let end = std::time::Instant::now() + TIMEOUT;
        self.runtime.block_on(async {
            loop {
                let result = match snowmint_stores::open(&self.url(), "default").await {
                    Ok(store) => {
                        let result = question(Arc::clone(&store)).await;
                        let _ = store.close().await;
                        result
                    }
                    Err(error) => Err(error),
                };
                match result {
                    Ok(result) => return result,
                    Err(error) => {
                        let in_time = std::time::Instant::now() < end;
                        assert!(in_time, "{}: {error:?}", self.name);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        })
    }

    /// Returns whether a write step ends within a second, so that no process is frozen in the
    /// middle of one.
    pub(crate) fn can_write(&self) -> bool {
        let write = async {
            let store = snowmint_stores::open(&self.url(), "default").await?;
            // This step may write, but finds nothing to write.
            store.leave(random::incarnation()?, SystemClock.unix_ms()).await?;
            store.close().await
        };
        let within = Duration::from_secs(1);
        let written = self.run(async { tokio::time::timeout(within, write).await });
        matches!(written, Ok(Ok(())))
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Returns a machine; every second one keeps a journal.
    pub(crate) fn machine(&self, index: usize) -> Machine {
        let journalled = index.is_multiple_of(2);
        let holder_settings = HolderSettings {
            url: self.url(),
            owner: format!("machine-{index}"),
            data_dir: journalled.then(|| self.path(&format!("machine-{index}"))),
            window_ms: WINDOW_MS,
            presence_ttl_ms: TTL_MS,
            batch: 20,
            rest_ms: 5,
        };
        if let Some(dir) = &holder_settings.data_dir {
            std::fs::create_dir_all(dir).unwrap();
        }
        Machine { voice: Voice { machine: index, life: 0, journalled }, holder_settings }
    }

    /// Returns the same machine with its store calls through the proxy.
    pub(crate) fn machine_behind_proxy(&self, index: usize) -> Machine {
        let mut machine = self.machine(index);
        let (server, proxy) = (self.server.as_ref().unwrap(), self.proxy.as_ref().unwrap());
        machine.holder_settings.url = server.url_by(proxy.port());
        machine
    }

    /// Starts a process on a machine.
    pub(crate) fn start(&self, machine: &mut Machine) -> Holder {
        machine.voice.life += 1;
        Holder::start(&machine.holder_settings, machine.voice, &self.checker)
    }

    /// Panics if a violation is known.
    #[track_caller]
    pub(crate) fn check(&self) {
        let so_far = self.checker.lock().unwrap().so_far();
        if let Err(violation) = so_far {
            panic!("{}: {violation}", self.name);
        }
    }

    /// Checks everything after all holders have ended. Returns the number of IDs.
    fn end(&self) -> usize {
        let (slots, next_number) = self.ask(async |store| {
            let slots = store.workers(SystemClock.unix_ms()).await?;
            Ok((slots, store.get(NUMBERS).await?.segment.mark.get()))
        });
        let checker = self.checker.lock().unwrap();
        if let Err(violation) = checker.end(&slots, next_number) {
            panic!("{}: {violation}", self.name);
        }
        assert!(checker.ids() > 1_000, "{}: only {} IDs", self.name, checker.ids());
        checker.ids()
    }
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}
