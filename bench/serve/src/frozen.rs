//! What callers feel while the store stands still: requests at an even pace, half of the highest, with the store
//! frozen in the middle and not, in turn.
//!
//! Each request has the time at which it was due; how late its answer is counts from then, so that waiting behind
//! others counts, too, and so does a client that does not get its turn.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use snowmint_bench_servers::{Plan, Snowmint, WIDE, assert_distinct, median};
use snowmint_testkit::servers::{Postgres, Redis, Server};

use crate::table::{Table, Wanted};
use crate::talk::Talk;

const CONNECTIONS: usize = 16;
/// How often it is looked what is due.
const PACE: Duration = Duration::from_micros(100);

/// Starts a store.
type Start = fn() -> Server;

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
    let (mut free, mut frozen, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.much(3, 1) {
        free.push(paced(talk, port, rate, length, &mut ids));
        let held = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Half of the time, in the middle.
                std::thread::sleep(length / 4);
                store.freeze(true);
                std::thread::sleep(length / 2);
                store.freeze(false);
            });
            paced(talk, port, rate, length, &mut ids)
        });
        frozen.push(held);
        // The window is filled again.
        std::thread::sleep(length / 4);
    }
    assert_distinct(name, ids);
    let ratios = frozen.iter().zip(&free).map(|(frozen, free)| frozen / free);
    let ratio = median(ratios.collect());
    let (free, frozen) = (median(free), median(frozen));
    let shown =
        format!("{frozen:.2} ms, without {free:.2} ms ({ratio:.2} of it), at {rate:.0} requests/s");
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

/// The 99.9th percentile in milliseconds of requests at an even pace.
fn paced(talk: Talk, port: u16, rate: f64, length: Duration, ids: &mut Vec<u64>) -> f64 {
    let (mut took, more) = std::thread::scope(|scope| {
        let mut lines = Vec::new();
        let mut readers = Vec::new();
        for _ in 0..CONNECTIONS {
            let (sender, due) = channel();
            let stream = connect(port);
            let other = stream.try_clone().expect("a socket");
            readers.push(scope.spawn(move || listen(talk, other, &due)));
            lines.push((stream, sender));
        }
        let (begun, mut sent) = (Instant::now(), 0_u64);
        while begun.elapsed() < length {
            let due = (begun.elapsed().as_secs_f64() * rate) as u64;
            while sent < due {
                let (stream, sender) = &mut lines[sent as usize % CONNECTIONS];
                sender
                    .send(begun + Duration::from_secs_f64(sent as f64 / rate))
                    .expect("it listens");
                stream.write_all(talk.request()).expect("the server reads");
                sent += 1;
            }
            std::thread::sleep(PACE);
        }
        drop(lines);
        let (mut took, mut ids) = (Vec::new(), Vec::new());
        for reader in readers {
            let (times, more) = reader.join().expect("a client ends");
            took.extend(times);
            ids.extend(more);
        }
        assert_eq!(took.len() as u64, sent, "every request is answered");
        (took, ids)
    });
    ids.extend(more);
    took.sort_unstable();
    took[took.len() * 999 / 1000].as_secs_f64() * 1e3
}

/// Answers as they come, until no more are due.
fn listen(talk: Talk, mut stream: TcpStream, due: &Receiver<Instant>) -> (Vec<Duration>, Vec<u64>) {
    let (mut took, mut ids, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    while let Ok(asked) = due.recv() {
        while ids.len() == took.len() {
            read_some(&mut stream, &mut bytes);
            talk.take(&mut bytes, |id| ids.push(id));
        }
        took.push(asked.elapsed());
    }
    (took, ids)
}

fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut more = [0; 16 * 1024];
    let length = stream.read(&mut more).expect("the server answers");
    assert_ne!(length, 0, "the server hung up");
    bytes.extend_from_slice(&more[..length]);
}
