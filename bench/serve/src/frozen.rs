//! Latency for callers while the store is frozen: requests at an even pace, half of the highest, in
//! turn with the store frozen in the middle and with it running.
//!
//! Each request has a due time, and its latency counts from then: waiting behind other requests
//! counts, too, and so does a client that gets no processor. A floor (bare hyper, redis-server),
//! called at the same pace in turn, shows what the machine alone adds.

use std::any::Any;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use snowmint_bench_servers::{
    Plan, Snowmint, WIDE, assert_distinct, connect, median, served, start_floor,
};
use snowmint_testkit::servers::{Postgres, Redis, Server};

use crate::table::{Table, Wanted};
use crate::talk::{Talk, read_some};

const CONNECTIONS: usize = 16;
/// Pause between checks for due requests, where checking without a pause would take the server's
/// processors.
const REST: Duration = Duration::from_micros(100);

/// Starts a store.
type Start = fn() -> Server;

/// A bare responder.
struct Floor {
    name: &'static str,
    port: u16,
    /// Guard that ends the responder when dropped.
    _server: Box<dyn Any>,
}

impl Floor {
    fn start(talk: Talk) -> Self {
        match talk {
            Talk::Http => {
                let (process, port) = start_floor("http");
                Self { name: "bare hyper", port, _server: Box::new(process) }
            }
            Talk::Resp => {
                let server = Server::from(served(|| Redis::start(&["--save", ""])));
                Self { name: "redis-server", port: server.port(), _server: Box::new(server) }
            }
        }
    }
}

pub fn run(plan: &Plan, table: &mut Table) {
    let stores: [(&str, Start); 2] = [
        ("Redis", || Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]).into()),
        ("PostgreSQL", || Postgres::start(&[]).into()),
    ];
    for (name, start) in stores {
        let store = start();
        let ours = Snowmint::on_store(&plan.binary, WIDE, &store.url());
        for talk in Talk::ALL {
            row(plan, table, &format!("{}, store {name}", talk.name()), (&store, &ours, talk));
        }
    }
}

fn row(plan: &Plan, table: &mut Table, name: &str, case: (&Server, &Snowmint, Talk)) {
    let (store, ours, talk) = case;
    let length = Duration::from_secs(plan.much(20, 1));
    let port = match talk {
        Talk::Http => ours.http,
        Talk::Resp => ours.resp,
    };
    let highest = highest(talk, port, Duration::from_secs(plan.much(3, 1)));
    let rate = highest / 2.0;
    let floor = Floor::start(talk);
    let paced = |port, ids: &mut Vec<u64>| Paced::of(plan, talk, rate, length).ask(port, ids);
    let (mut bare, mut free, mut frozen, mut ids) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.much(3, 1) {
        // The floor's numbers are not IDs.
        bare.push(paced(floor.port, &mut Vec::new()));
        free.push(paced(port, &mut ids));
        let held = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Half of the time, in the middle.
                std::thread::sleep(length / 4);
                store.freeze(true);
                std::thread::sleep(length / 2);
                store.freeze(false);
            });
            paced(port, &mut ids)
        });
        frozen.push(held);
        // The window is refilled.
        std::thread::sleep(length / 4);
    }
    assert_distinct(name, ids);
    let ratios = frozen.iter().zip(&free).map(|(frozen, free)| frozen / free);
    let ratio = median(ratios.collect());
    let (bare, free, frozen) = (median(bare), median(free), median(frozen));
    let shown = format!(
        "{frozen:.2} ms, without {free:.2} ms ({ratio:.2} of it), {} {bare:.2} ms, at {rate:.0} requests/s",
        floor.name
    );
    let name = format!("p99.9 with the store frozen for {:?}, {name}", length / 2);
    table.row(&name, frozen, shown, Wanted::Most(2.0), " ms");
}

/// Returns responses per second when each connection sends a request as soon as it has a response.
fn highest(talk: Talk, port: u16, length: Duration) -> f64 {
    let begun = Instant::now();
    let ask = || {
        let (mut stream, mut bytes, mut count) = (connect(port), Vec::new(), 0_u64);
        while begun.elapsed() < length {
            stream.write_all(talk.request()).expect("the server reads");
            let before = count;
            while count == before {
                read_some(&mut stream, &mut bytes);
                talk.read_ids_from(&mut bytes, |_| count += 1);
            }
        }
        count
    };
    let count: u64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().expect("a client ends")).sum()
    });
    count as f64 / begun.elapsed().as_secs_f64()
}

/// Requests at an even pace.
struct Paced {
    talk: Talk,
    /// Number of client threads.
    threads: usize,
    /// Requests per second of each thread.
    rate: f64,
    length: Duration,
    /// Pause of each thread between checks for due requests. A thread that sleeps wakes up late, by
    /// milliseconds now and then, which is not the server's latency: a thread with a processor of
    /// its own never pauses.
    rest: Option<Duration>,
}

impl Paced {
    fn of(plan: &Plan, talk: Talk, rate: f64, length: Duration) -> Self {
        let threads = plan.threads;
        let rest = (!plan.apart).then_some(REST);
        Self { talk, threads, rate: rate / threads as f64, length, rest }
    }

    /// Sends the requests; returns the 99.9th percentile of the latency in milliseconds.
    fn ask(&self, port: u16, ids: &mut Vec<u64>) -> f64 {
        let mut took = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.threads).map(|_| scope.spawn(|| self.one(port))).collect();
            let mut took = Vec::new();
            for thread in threads {
                let (its_ids, its_took) = thread.join().expect("a client ends");
                ids.extend(its_ids);
                took.extend(its_took);
            }
            took
        });
        took.sort_unstable();
        took[took.len() * 999 / 1000].as_secs_f64() * 1e3
    }

    /// Returns the IDs and latencies of one thread.
    fn one(&self, port: u16) -> (Vec<u64>, Vec<Duration>) {
        let connections = CONNECTIONS / self.threads;
        let mut lines: Vec<_> = (0..connections).map(|_| Line::to(port)).collect();
        // Growing the vectors during the run would delay responses.
        let all = (self.rate * self.length.as_secs_f64()) as usize + connections;
        let (mut ids, mut took) = (Vec::with_capacity(all), Vec::with_capacity(all));
        let (begun, mut sent) = (Instant::now(), 0_usize);
        let at = |number: usize| Duration::from_secs_f64(number as f64 / self.rate);
        while begun.elapsed() < self.length || took.len() < sent {
            // Requests that became due since the last check, in turn.
            while at(sent) < begun.elapsed().min(self.length) {
                lines[sent % connections].ask(self.talk, begun + at(sent));
                sent += 1;
            }
            for line in &mut lines {
                line.hear(self.talk, |late, id| {
                    took.push(late);
                    ids.push(id);
                });
            }
            match self.rest {
                Some(rest) => std::thread::sleep(rest),
                None => std::hint::spin_loop(),
            }
        }
        (ids, took)
    }
}

/// A non-blocking connection, so that one thread serves many. With a thread per connection, many
/// threads that wake up at once would take the server's two cores, and would dominate the result.
struct Line {
    stream: TcpStream,
    /// Due times of requests without a response.
    due: VecDeque<Instant>,
    bytes: Vec<u8>,
}

impl Line {
    fn to(port: u16) -> Self {
        let stream = connect(port);
        stream.set_nonblocking(true).expect("a socket");
        Self { stream, due: VecDeque::new(), bytes: Vec::new() }
    }

    fn ask(&mut self, talk: Talk, due: Instant) {
        self.stream.write_all(talk.request()).expect("the server reads");
        self.due.push_back(due);
    }

    /// Reads all responses that have arrived; passes the latency and the ID of each to `each`.
    fn hear(&mut self, talk: Talk, mut each: impl FnMut(Duration, u64)) {
        let mut more = [0; 16 * 1024];
        while !self.due.is_empty() {
            match self.stream.read(&mut more) {
                Ok(0) => panic!("the server hung up"),
                Ok(length) => self.bytes.extend_from_slice(&more[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("no response of the server: {error}"),
            }
            let due = &mut self.due;
            talk.read_ids_from(&mut self.bytes, |id| {
                each(due.pop_front().expect("it was asked").elapsed(), id);
            });
        }
    }
}
