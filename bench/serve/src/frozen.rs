//! What callers feel while the store stands still: requests at an even pace, half of the highest, with the store
//! frozen in the middle and not, in turn.
//!
//! Each request has the time at which it was due; how late its answer is counts from then, so that waiting behind
//! others counts, too, and so does a client that does not get its turn. What the machine alone adds, a floor shows
//! that is asked at the same pace, in turn: bare hyper, and redis-server.

use std::any::Any;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use snowmint_bench_servers::{Plan, Snowmint, WIDE, assert_distinct, median, served};
use snowmint_testkit::servers::{Postgres, Redis, Server};

use crate::floor;
use crate::table::{Table, Wanted};
use crate::talk::Talk;

const CONNECTIONS: usize = 16;
/// How often it is looked what is due, where looking would take the server's processors.
const REST: Duration = Duration::from_micros(100);

/// Starts a store.
type Start = fn() -> Server;

/// What answers and does nothing else.
struct Floor {
    name: &'static str,
    port: u16,
    /// It ends with this.
    _server: Box<dyn Any>,
}

impl Floor {
    fn start(talk: Talk) -> Self {
        match talk {
            Talk::Http => {
                let (process, port) = floor::start("http");
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
        // Its numbers are no IDs.
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
        // The window is filled again.
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

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Answers a second when every connection asks as soon as it is answered.
fn highest(talk: Talk, port: u16, length: Duration) -> f64 {
    let begun = Instant::now();
    let ask = || {
        let (mut stream, mut bytes, mut count) = (connect(port), Vec::new(), 0_u64);
        while begun.elapsed() < length {
            stream.write_all(talk.request()).expect("the server reads");
            let before = count;
            while count == before {
                read_some(&mut stream, &mut bytes);
                talk.take(&mut bytes, |_| count += 1);
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
    /// How many threads ask.
    threads: usize,
    /// What each of them asks in a second.
    rate: f64,
    length: Duration,
    /// How long each rests between looks at what is due. One that sleeps wakes up late, by milliseconds now and then,
    /// which says nothing of the server: none rests that has a processor of its own.
    rest: Option<Duration>,
}

impl Paced {
    fn of(plan: &Plan, talk: Talk, rate: f64, length: Duration) -> Self {
        let threads = plan.threads;
        let rest = (!plan.apart).then_some(REST);
        Self { talk, threads, rate: rate / threads as f64, length, rest }
    }

    /// The 99.9th percentile in milliseconds.
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

    /// What one thread was answered, and how late.
    fn one(&self, port: u16) -> (Vec<u64>, Vec<Duration>) {
        let connections = CONNECTIONS / self.threads;
        let mut lines: Vec<_> = (0..connections).map(|_| Line::to(port)).collect();
        // To take more on the way would hold answers up.
        let all = (self.rate * self.length.as_secs_f64()) as usize + connections;
        let (mut ids, mut took) = (Vec::with_capacity(all), Vec::with_capacity(all));
        let (begun, mut sent) = (Instant::now(), 0_usize);
        let at = |number: usize| Duration::from_secs_f64(number as f64 / self.rate);
        while begun.elapsed() < self.length || took.len() < sent {
            // What became due since the last look, in turn.
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

/// A connection that never blocks: a thread serves many. A thread for each would have the server's two
/// cores to themselves when many wake up at once, and that is what would be measured.
struct Line {
    stream: TcpStream,
    /// When those that are not answered were due.
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

    /// All that has been answered: how late, and with which ID.
    fn hear(&mut self, talk: Talk, mut each: impl FnMut(Duration, u64)) {
        let mut more = [0; 16 * 1024];
        while !self.due.is_empty() {
            match self.stream.read(&mut more) {
                Ok(0) => panic!("the server hung up"),
                Ok(length) => self.bytes.extend_from_slice(&more[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the server answers: {error}"),
            }
            let due = &mut self.due;
            talk.take(&mut self.bytes, |id| {
                each(due.pop_front().expect("it was asked").elapsed(), id);
            });
        }
    }
}

fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut more = [0; 16 * 1024];
    let length = stream.read(&mut more).expect("the server answers");
    assert_ne!(length, 0, "the server hung up");
    bytes.extend_from_slice(&more[..length]);
}
