//! Three servers on one store, called through the client crate for a long time. Every half minute
//! something happens: a server is killed, the store freezes, or a server stops cleanly and starts
//! again, as for an upgrade.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmint::{Counter, Mint, Options, Segment, Snowflake};
use snowmint_bench_servers::{Plan, Snowmint, WIDE, assert_distinct};
use snowmint_testkit::servers::{Postgres, Server};

use crate::table::{Table, Wanted};

/// Interval between two requests for IDs of one source.
const PACE: Duration = Duration::from_millis(1);
/// Deadline of a request: the default limit for the wait of a call.
const DEADLINE: Duration = Duration::from_millis(5_000);
/// Deadline for keys of a dead section owner: its lease, and an eighth of it, expire first.
const TAKEOVER: Duration = Duration::from_millis(15_000);

/// One kind of request.
#[derive(Clone)]
enum Operation {
    Snowflake(Snowflake),
    Segment(Segment),
    Counter(Counter),
}

/// Results of the requests of one kind.
#[derive(Default)]
struct Found {
    calls: u64,
    late: u64,
    refused: u64,
    slowest: Duration,
    ids: Vec<u64>,
}

pub fn run(plan: &Plan, table: &mut Table) {
    let seconds = plan.value("--seconds").map(|text| text.parse().expect("a number of seconds"));
    let length = Duration::from_secs(seconds.unwrap_or(plan.much(600, 9)));
    let every = Duration::from_secs(plan.much(30, 3));
    let mut store: Server = Postgres::start(&[]).into();
    let config = format!("{WIDE}[store]\noffered = true\n");
    let mut servers: Vec<_> =
        (0..3).map(|_| Snowmint::on_store(&plan.binary, &config, &store.url())).collect();
    let addresses = servers.iter().map(|server| format!("127.0.0.1:{}", server.http));
    let url = format!("snowmint://{}", addresses.collect::<Vec<_>>().join(","));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (mint, asks) = runtime.block_on(open(&url));
    let end = Arc::new(AtomicBool::new(false));
    let tasks = asks.map(|(name, deadline, operation)| {
        let task = runtime.spawn(call_until(operation, deadline, Arc::clone(&end)));
        (name, deadline, task)
    });
    let begun = Instant::now();
    let mut events = 0;
    while begun.elapsed() + every <= length {
        std::thread::sleep(every);
        happens(events, &mut servers, &mut store, every);
        events += 1;
    }
    std::thread::sleep(length.saturating_sub(begun.elapsed()));
    end.store(true, Ordering::Relaxed);
    for (name, deadline, task) in tasks {
        let found = runtime.block_on(task).expect("a client ends");
        show(table, name, deadline, events, found);
    }
    // The servers may still be starting, so that `close` may fail; the requests are complete.
    let _ = runtime.block_on(mint.close());
}

async fn open(url: &str) -> (Mint, [(&'static str, Duration, Operation); 3]) {
    let wait_ms = u64::try_from(TAKEOVER.as_millis()).expect("it fits");
    let mint = Options::new().wait_max_ms(wait_ms).open(url).await.expect("servers");
    let ids = mint.snowflake("wide").await.expect("a source");
    let numbers = mint.segment("numbers").await.expect("a source");
    let counter = mint.counter("counters").await.expect("a source");
    let asks = [
        ("IDs minted next to the caller", DEADLINE, Operation::Snowflake(ids)),
        ("numbers of a segment", DEADLINE, Operation::Segment(numbers)),
        ("a counter, asked of the servers", TAKEOVER, Operation::Counter(counter)),
    ];
    (mint, asks)
}

/// Sends requests at an even pace until `end` is set.
async fn call_until(operation: Operation, deadline: Duration, end: Arc<AtomicBool>) -> Found {
    let mut found = Found::default();
    while !end.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let result = match &operation {
            Operation::Snowflake(ids) => ids.mint_async().await,
            Operation::Segment(numbers) => numbers.next().await,
            Operation::Counter(counter) => counter.next("a").await,
        };
        let took = begun.elapsed();
        found.calls += 1;
        found.slowest = found.slowest.max(took);
        match result {
            Ok(id) => {
                found.ids.push(id);
                found.late += u64::from(took > deadline);
            }
            Err(error) => {
                eprintln!("after {took:?}: {error}");
                found.refused += 1;
            }
        }
        tokio::time::sleep(PACE.saturating_sub(took)).await;
    }
    found
}

/// Makes the next event happen; it is over before the one after it.
fn happens(number: usize, servers: &mut [Snowmint], store: &mut Server, every: Duration) {
    let at = (number / 3) % servers.len();
    let server = &mut servers[at];
    match number % 3 {
        0 => {
            server.kill();
            std::thread::sleep(every / 6);
            server.start_again();
        }
        1 => {
            store.freeze(true);
            std::thread::sleep(every / 3);
            store.freeze(false);
        }
        _ => {
            server.stop();
            server.start_again();
        }
    }
}

fn show(table: &mut Table, name: &str, deadline: Duration, events: usize, found: Found) {
    let Found { calls, late, refused, slowest, ids } = found;
    let share = 100.0 * (calls - late - refused) as f64 / calls as f64;
    assert_distinct(name, ids);
    let shown = format!(
        "{share:.4} % of {calls}, all distinct ({refused} refused, {late} late), slowest {:.0} ms, {events} events",
        slowest.as_secs_f64() * 1e3
    );
    let name = format!("three servers, response within {} s: {name}", deadline.as_secs());
    table.row(&name, share, shown, Wanted::Least(99.999), " %");
}
