//! 100,000 requests outstanding at once: sent while the server is stopped, so that no response
//! comes before all requests are sent.

use std::time::{Duration, Instant};

use snowmint_bench_servers::{Plan, Snowmint, WIDE, assert_distinct};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::table::{Table, Wanted};
use crate::talk::Talk;

const CONNECTIONS: usize = 500;

pub fn run(plan: &Plan, table: &mut Table) {
    let each = plan.much(200, 20);
    let ours = Snowmint::start(&plan.binary, WIDE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    for talk in Talk::ALL {
        let (ids, mut took) = runtime.block_on(once(&ours, talk, each));
        let requested = CONNECTIONS * each;
        assert_eq!(ids.len(), requested, "all got a response");
        assert_distinct("outstanding", ids);
        took.sort_unstable();
        let at = |share: usize| took[requested * share / 100].as_secs_f64() * 1e3;
        let shown = format!(
            "all got a response, all distinct; p50 {:.0} ms, p99 {:.0} ms, last {:.0} ms",
            at(50),
            at(99),
            took[requested - 1].as_secs_f64() * 1e3
        );
        let name = format!("{requested} requests outstanding at once, {}", talk.name());
        table.row(&name, 1.0, shown, Wanted::Stated, "");
    }
}

/// Returns every ID, and the time of each response after the server resumed.
async fn once(ours: &Snowmint, talk: Talk, each: usize) -> (Vec<u64>, Vec<Duration>) {
    let port = match talk {
        Talk::Http => ours.http,
        Talk::Resp => ours.resp,
    };
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        // A connection with a response has been accepted.
        stream.write_all(talk.request()).await.expect("the server reads");
        read_ids(talk, &mut stream, 1, Instant::now()).await;
        connections.push(stream);
    }
    ours.signal("STOP");
    let requests = talk.request().repeat(each);
    for stream in &mut connections {
        stream.write_all(&requests).await.expect("there is room for them on the way");
    }
    let begun = Instant::now();
    ours.signal("CONT");
    let tasks = connections.into_iter().map(|mut stream| {
        tokio::spawn(async move { read_ids(talk, &mut stream, each, begun).await })
    });
    let tasks: Vec<_> = tasks.collect();
    let (mut ids, mut took) = (Vec::new(), Vec::new());
    for task in tasks {
        let (more, times) = task.await.expect("a client ends");
        ids.extend(more);
        took.extend(times);
    }
    (ids, took)
}

async fn read_ids(
    talk: Talk,
    stream: &mut TcpStream,
    wanted: usize,
    begun: Instant,
) -> (Vec<u64>, Vec<Duration>) {
    let (mut ids, mut took, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    while ids.len() < wanted {
        let length = stream.read_buf(&mut bytes).await.expect("a response of the server");
        assert_ne!(length, 0, "the server hung up after {} responses", ids.len());
        talk.read_ids_from(&mut bytes, |id| ids.push(id));
        took.resize(ids.len(), begun.elapsed());
    }
    (ids, took)
}
