//! Counters and global order on three servers. Every few seconds their processes, their connections
//! or the store's clock get a fault, while clients call all servers. Each response for a key lies
//! above all responses that came before its request began ([`Order`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use snowmint_coord::sources::hash_slot;
use snowmint_testkit::history::{Order, Violation};
use snowmint_testkit::servers::{FakeClock, Mysql, Postgres, Server as Store};

use super::clients::{Http, Reply, Resp};
use super::cluster::{Cluster, Reach, Reached};
use super::ground::{below, is_long, sleep_ms};
use super::server::{Folder, TIMEOUT};

/// Lease: time for which an owner may serve after its last renewal.
const LEASE_MS: u64 = 2_000;
const SERVERS: usize = 3;
/// Number of requests in flight on one connection.
const PIPELINE: usize = 64;
/// Number of counting clients: clients that wait for a section do not block the others.
const COUNTING: usize = 16;
/// One in this many requests is for one of a few hot keys.
const HOT_EVERY: u64 = 8;
const HOT_KEYS: u64 = 20;

/// Returns the length of a run in seconds, and the number of keys.
fn extent() -> (u64, u64) {
    let (seconds, keys) = if is_long() { (300, 1_000_000) } else { (25, 10_000) };
    let number = |name: &str, usual| {
        let given = std::env::var(name).ok();
        given.map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    (number("SNOWMINT_FAULTS_SECONDS", seconds), number("SNOWMINT_FAULTS_KEYS", keys))
}

/// Subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Series {
    /// IDs of the source of global order.
    Orders,
    /// Numbers of this key.
    Key(u64),
}

/// State that all clients of a run share.
struct Run {
    reached: Reached,
    order: Mutex<Order<Series>>,
    violation: Mutex<Option<Violation>>,
    keys: u64,
    refused: AtomicUsize,
    over: AtomicBool,
}

impl Run {
    fn new(reached: Reached, keys: u64) -> Self {
        Self {
            reached,
            order: Mutex::default(),
            violation: Mutex::default(),
            keys,
            refused: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn order(&self) -> MutexGuard<'_, Order<Series>> {
        self.order.lock().unwrap()
    }

    /// Returns whether enough was tried for a result.
    fn has_enough(&self) -> bool {
        let order = self.order();
        order.responses() > 1_000 && order.overlapped() > 100
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns one of the running servers.
    fn any(&self) -> Option<Reach> {
        let reached = self.reached.read().unwrap();
        let index = below(reached.len().max(1) as u64);
        reached.get(usize::try_from(index).unwrap()).cloned()
    }

    fn key(&self) -> u64 {
        if below(HOT_EVERY) == 0 { below(HOT_KEYS) } else { below(self.keys) }
    }

    fn record(&self, series: Series, floor: u64, reply: (u64, u64), by: &str) {
        let checked = self.order().record(&series, floor, reply, by);
        if let Err(violation) = checked {
            self.violation.lock().unwrap().get_or_insert(violation);
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// Makes one request. Returns the other response as an error, if it has no numbers.
    fn ask(
        &self,
        series: Series,
        by: &str,
        ask: impl FnOnce() -> Option<Reply>,
    ) -> Result<(), String> {
        let floor = self.order().floor(&series);
        let instead = match ask() {
            Some(Reply::Numbers(lowest, highest)) => {
                self.record(series, floor, (lowest, highest), by);
                return Ok(());
            }
            Some(instead) => format!("{by} returned {instead:?} for {series:?}"),
            None => format!("{by} returned nothing for {series:?}"),
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        sleep_ms(10);
        Err(instead)
    }

    /// Does the same over HTTP.
    fn ask_by(&self, http: &Http, series: Series, reach: &Reach, count: u64) -> Result<(), String> {
        let path = match series {
            Series::Orders => format!("orders?count={count}"),
            Series::Key(key) => format!("messages?key={key}&count={count}"),
        };
        let url = format!("http://{}/v1/ids/{path}", reach.http);
        self.ask(series, &reach.http, || http.numbers(&url))
    }

    /// Requests IDs in order, from any server, over either protocol.
    fn orders(&self) {
        let http = Http::new();
        while !self.is_over() {
            let Some(reach) = self.any() else { continue };
            let count = 1 + below(20);
            if below(2) == 0 {
                let _refused = self.ask_by(&http, Series::Orders, &reach, count);
                continue;
            }
            let count = count.to_string();
            let _refused = self.ask(Series::Orders, &reach.resp, || {
                let mut resp = Resp::connect(&reach.resp).ok()?;
                resp.ask(&[vec!["MINT", "orders", &count]]).ok()?.pop()
            });
        }
    }

    /// Requests numbers of keys over HTTP, which servers forward to the section owner.
    fn forwarded(&self) {
        let http = Http::new();
        while !self.is_over() {
            let Some(reach) = self.any() else { continue };
            let _refused = self.ask_by(&http, Series::Key(self.key()), &reach, 1 + below(5));
        }
    }

    /// Requests numbers of keys as a cluster client of Redis does, many at once.
    fn counts(&self) {
        let mut cluster_client = ClusterClient::default();
        while !self.is_over() {
            let Some(reach) = self.any() else { continue };
            cluster_client.pipeline(self, &reach.resp);
        }
    }

    /// Checks that each server serves the order and some keys; returns a failed server's response
    /// as an error.
    fn all_respond(&self) -> Result<(), String> {
        let (http, reached) = (Http::new(), self.reached.read().unwrap().clone());
        if reached.len() < SERVERS {
            return Err(format!("only {reached:?} run"));
        }
        for series in std::iter::once(Series::Orders).chain((0..10).map(Series::Key)) {
            reached.iter().try_for_each(|reach| self.ask_by(&http, series, reach, 1))?;
        }
        Ok(())
    }
}

/// Stops the clients however the run ends.
struct Ends<'a>(&'a Run);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// A client that remembers the owner of each hash slot.
#[derive(Default)]
struct ClusterClient {
    owners: HashMap<u16, String>,
    connections: HashMap<String, Resp>,
}

impl ClusterClient {
    /// Returns keys that this server owns, as far as known.
    fn keys(&self, run: &Run, address: &str) -> Vec<(u64, String)> {
        let mut keys = Vec::with_capacity(PIPELINE);
        for _ in 0..4 * PIPELINE {
            let key = run.key();
            let name = format!("messages:{key}");
            let owner = self.owners.get(&hash_slot(name.as_bytes()));
            if owner.is_none_or(|owner| owner == address) {
                keys.push((key, name));
            }
            if keys.len() == PIPELINE {
                break;
            }
        }
        keys
    }

    fn pipeline(&mut self, run: &Run, address: &str) {
        let keys = self.keys(run, address);
        let commands: Vec<_> = keys.iter().map(|(_, name)| vec!["INCR", name.as_str()]).collect();
        let floors: Vec<_> = {
            let order = run.order();
            keys.iter().map(|(key, _)| order.floor(&Series::Key(*key))).collect()
        };
        let Ok(replies) = self.ask(address, &commands) else {
            self.connections.remove(address);
            self.owners.retain(|_, owner| owner != address);
            return sleep_ms(10);
        };
        let mut refused = 0;
        for (((key, name), floor), reply) in keys.iter().zip(floors).zip(replies) {
            let slot = hash_slot(name.as_bytes());
            match reply {
                Reply::Numbers(lowest, highest) => {
                    run.record(Series::Key(*key), floor, (lowest, highest), address);
                }
                Reply::Moved(owner) => drop(self.owners.insert(slot, owner)),
                Reply::Refused { .. } => {
                    refused += 1;
                    self.owners.remove(&slot);
                }
            }
        }
        if refused > 0 {
            run.refused.fetch_add(refused, Ordering::Relaxed);
            sleep_ms(10);
        }
    }

    fn ask(&mut self, address: &str, commands: &[Vec<&str>]) -> std::io::Result<Vec<Reply>> {
        if !self.connections.contains_key(address) {
            self.connections.insert(address.to_owned(), Resp::connect(address)?);
        }
        self.connections.get_mut(address).unwrap().ask(commands)
    }
}

/// Number of kinds of faults.
const KINDS: u64 = 5;

/// Faults of the servers and of the store's clock, with their counts.
#[derive(Default)]
struct Harm {
    done: BTreeMap<&'static str, u64>,
}

impl Harm {
    fn next(&mut self, turn: u64, cluster: &mut Cluster, clock: &FakeClock) {
        let number = usize::try_from(below(SERVERS as u64)).unwrap();
        // The time is shorter or longer than a lease.
        let ms = LEASE_MS / 4 + below(2 * LEASE_MS);
        // The kinds take turns, so that a short run has all of them.
        let what = match turn % KINDS {
            0 => {
                cluster.kill(number);
                sleep_ms(ms / 2);
                "killed"
            }
            1 => {
                cluster.pause(number, ms);
                "paused"
            }
            2 => {
                cluster.cut_off(number, ms);
                "cut off"
            }
            3 => {
                clock.set(step_s());
                if below(2) == 0 {
                    cluster.kill(number);
                }
                sleep_ms(ms / 2);
                clock.set(step_s() * i64::try_from(below(2)).unwrap());
                "clock stepped"
            }
            _ => {
                cluster.stop(number);
                "stopped"
            }
        };
        *self.done.entry(what).or_default() += 1;
    }
}

/// Returns the offset of the store's clock: from a second to a week, ahead or back.
fn step_s() -> i64 {
    let bound = [10, 600, 86_400, 7 * 86_400][usize::try_from(below(4)).unwrap()];
    let seconds = i64::try_from(1 + below(bound)).unwrap();
    if below(2) == 0 { seconds } else { -seconds }
}

/// Runs all faults on one store.
fn in_order(folder: &str, start: fn(&FakeClock) -> Store) {
    let (seconds, keys) = extent();
    let folder = Folder::new(&format!("order-{folder}"));
    let clock = FakeClock::new(folder.join("clock"));
    let store = start(&clock);
    let name = store.name();
    let config = format!(
        "[sources]\nbuiltin = false\n[sources.orders]\norder = \"global\"\n\
         [sources.messages]\nkind = \"counter\"\n[counters]\nlease = \"{LEASE_MS}ms\"\n"
    );
    let mut cluster = Cluster::new(&folder, &store, SERVERS, &config);
    cluster.start_all();
    let run = Run::new(cluster.reached(), keys);
    let mut harm = Harm::default();
    std::thread::scope(|scope| {
        let _ends = Ends(&run);
        let counts = [Run::counts as fn(&Run); COUNTING];
        for work in counts.into_iter().chain([Run::orders, Run::orders, Run::forwarded]) {
            let run = &run;
            scope.spawn(move || work(run));
        }
        let until = Instant::now() + Duration::from_secs(seconds);
        sleep_ms(LEASE_MS);
        // Each kind occurs at least once, and the run continues until it can be judged: a busy
        // machine takes longer.
        for turn in 0.. {
            let enough = turn >= KINDS && (run.has_enough() || Instant::now() >= until + TIMEOUT);
            if (Instant::now() >= until && enough) || run.is_over() {
                break;
            }
            harm.next(turn, &mut cluster, &clock);
            cluster.start();
            sleep_ms(below(LEASE_MS));
        }
        clock.set(0);
        cluster.start_all();
        // All servers respond again, in the same processes.
        let calm = Instant::now() + TIMEOUT;
        let (responses, mut insteads) = (run.order().responses(), Vec::new());
        while !run.is_over()
            && let Err(instead) = run.all_respond()
        {
            insteads.push(instead);
            assert!(
                Instant::now() < calm,
                "{name}: not all respond again, after {} responses: {insteads:?}; done: {:?}; printed: {}",
                run.order().responses() - responses,
                harm.done,
                cluster.printed()
            );
        }
    });
    if let Some(violation) = run.violation.lock().unwrap().as_ref() {
        panic!("{name}: {violation}; done: {:?}", harm.done);
    }
    let order = run.order();
    let (responses, overlapped) = (order.responses(), order.overlapped());
    println!(
        "| owners killed, paused, cut off and stopped, the store's clock stepped: {} keys and a global \
         order | {name} | {} | {responses} | 0 |",
        order.keys() - 1,
        harm.done.values().sum::<u64>()
    );
    let refused = run.refused.load(Ordering::Relaxed);
    println!("{name}: {seconds} s, {overlapped} overlapped, {refused} refused, {:?}", harm.done);
    drop(order);
    assert!(run.has_enough(), "{name}: {responses} responses, {overlapped} overlapped");
    assert_eq!(harm.done.len() as u64, KINDS, "{name}: {:?}", harm.done);
}

#[test]
fn results_rise_while_owners_are_harmed_on_postgresql() {
    in_order("PostgreSQL", |clock| Postgres::start_by(clock).into());
}

#[test]
fn results_rise_while_owners_are_harmed_on_mariadb() {
    in_order("MariaDB", |clock| Mysql::start_by(clock).into());
}
