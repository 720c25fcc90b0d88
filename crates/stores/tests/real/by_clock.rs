//! Sources that a real Redis mints: one script for each number, under any failure of the server.

use redis::aio::MultiplexedConnection;
use snowmint_coord::{
    BootTimer, Bounds, Definition, ErrorKind, IdBatch, NewDefinition, Node, NodeSettings, Platform,
    Reserve, Result, Segment, SourceSpec, Store, Ticks, Timer as _,
};
use snowmint_core::{Layout, SystemClock, UnixMillis};
use snowmint_testkit::servers::{Redis, RedisClock, Server};

const LAYOUT: Layout = Layout::REDIS;

async fn hand(url: &str) -> MultiplexedConnection {
    redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

async fn define(store: &dyn Store) -> Definition {
    let new = NewDefinition {
        name: "orders".into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    store.define(&new).await.unwrap()
}

/// Longest lead of numbers over the server's clock: longer than a machine stalls.
const LEAD_MS: u64 = 60_000;

/// Takes numbers by the server's clock; the caller's clock in the request is far off.
async fn reserve_now(store: &dyn Store, source: &Definition, length: u64) -> Result<Segment> {
    let ticks = Ticks::of(&LAYOUT, 0, LEAD_MS, UnixMillis::ZERO);
    let within = Some(Bounds::Now(ticks));
    let definition_version = source.version;
    store.reserve(&Reserve { source: "orders".into(), length, definition_version, within }).await
}

/// Does the same, waiting for ticks and for an unreachable server.
async fn reserve_soon(store: &dyn Store, source: &Definition, length: u64) -> Segment {
    let begun = BootTimer.elapsed();
    while BootTimer.elapsed().since(begun) < 60_000 {
        match reserve_now(store, source, length).await {
            Ok(segment) => return segment,
            Err(error) => match error.kind() {
                ErrorKind::TickFull { .. } | ErrorKind::Unavailable => {
                    BootTimer.sleep_ms(20).await;
                }
                _ => panic!("{error}"),
            },
        }
    }
    panic!("no numbers in a minute")
}

fn tick_of(number: u64) -> u64 {
    number >> 10
}

/// Returns how often the server has run each of these commands for clients.
async fn ran(hand: &mut MultiplexedConnection, commands: &[&str]) -> Vec<u64> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(hand).await.unwrap();
    let count = |command: &&str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
        line.map_or(0, |line| {
            line.strip_prefix("calls=").unwrap().split(',').next().unwrap().parse().unwrap()
        })
    };
    commands.iter().map(count).collect()
}

#[tokio::test]
async fn one_number_is_one_round_trip_and_leaves_no_key_behind() {
    let server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    reserve_now(&*store, &source, 1).await.unwrap();
    let mut hand = hand(&server.url()).await;
    let size = async |hand: &mut MultiplexedConnection| -> u64 {
        redis::cmd("DBSIZE").query_async(hand).await.unwrap()
    };
    let keys = size(&mut hand).await;
    // The server also counts commands within scripts: of these, one each.
    let commands = ["evalsha", "eval", "script|load", "hincrby", "hset", "hget", "hgetall"];
    let before = ran(&mut hand, &commands).await;
    let mut last = 0;
    for _ in 0..200 {
        let reserved = reserve_soon(&*store, &source, 1).await;
        assert!(reserved.first > last && reserved.first == reserved.last);
        last = reserved.last;
    }
    let after = ran(&mut hand, &commands).await;
    let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(grown, [200, 0, 0, 200, 200, 200, 0]);
    assert_eq!(size(&mut hand).await, keys);

    // The same holds for numbers without time.
    let next = |length| Reserve {
        source: "orders".into(),
        length,
        definition_version: source.version,
        within: None,
    };
    let before = ran(&mut hand, &commands).await;
    for _ in 0..50 {
        let reserved = store.reserve(&next(2)).await.unwrap();
        assert_eq!((reserved.first, reserved.last), (last + 1, last + 2));
        last = reserved.last;
    }
    let after = ran(&mut hand, &commands).await;
    assert_eq!(after[0] - before[0], 50);
}

#[tokio::test]
async fn scripts_forgotten_by_a_server_are_sent_again() {
    let server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    let mut hand = hand(&server.url()).await;
    let mut last = 0;
    for _ in 0..20 {
        let () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut hand).await.unwrap();
        let reserved = reserve_soon(&*store, &source, 3).await;
        assert!(reserved.first > last && reserved.last > reserved.first);
        last = reserved.last;
    }
}

#[tokio::test]
async fn a_batch_is_as_many_as_the_tick_holds() {
    let server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    let reserved = reserve_soon(&*store, &source, 5_000).await;
    assert_eq!(reserved.last - reserved.first + 1, 1024, "the rest is asked for again");
    assert_eq!(tick_of(reserved.first), tick_of(reserved.last));
}

#[tokio::test]
async fn a_restart_and_a_kill_repeat_nothing() {
    let mut server = Server::from(Redis::start(&[]));
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    let mut last = reserve_soon(&*store, &source, 100).await.last;
    for kill in [false, true, false, true] {
        if kill {
            server.kill();
        } else {
            server.stop();
        }
        let away = reserve_now(&*store, &source, 1).await.unwrap_err();
        assert_eq!(away.kind().code(), "unavailable", "{away:?}");
        server.start();
        // The handle that was open before and a new handle both reserve later numbers.
        let other = snowmint_stores::open(&server.url(), "default").await.unwrap();
        for store in [&store, &other] {
            let reserved = reserve_soon(&**store, &source, 100).await;
            assert!(reserved.first > last, "{reserved:?} after {last}");
            last = reserved.last;
        }
    }
}

#[tokio::test]
async fn server_that_lost_acknowledged_writes_is_rejected() {
    let mut server = Server::from(Redis::start(&[]));
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    reserve_soon(&*store, &source, 1).await;
    server.stop();
    server.back_up();
    server.start();
    for _ in 0..5 {
        reserve_soon(&*store, &source, 1).await;
    }
    server.stop();
    server.restore();
    server.start();
    let begun = BootTimer.elapsed();
    let mut refused = reserve_now(&*store, &source, 1).await.unwrap_err();
    while refused.kind().code() == "unavailable" && BootTimer.elapsed().since(begun) < 60_000 {
        BootTimer.sleep_ms(20).await;
        refused = reserve_now(&*store, &source, 1).await.unwrap_err();
    }
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused:?}");
}

#[tokio::test]
async fn server_with_a_clock_rollback_continues_from_its_mark() {
    let clock = RedisClock::new();
    let server = Redis::start_by(&clock, &[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let source = define(&*store).await;
    let before = reserve_soon(&*store, &source, 10).await;
    let at = before.at.unwrap();

    clock.set(-50);
    let mut last = before.last;
    let mut numbers = 0;
    for _ in 0..20 {
        let reserved = reserve_now(&*store, &source, 1_000).await.unwrap();
        assert!(reserved.at.unwrap() < at, "the clock is behind: {reserved:?}");
        assert!(reserved.first > last);
        numbers += reserved.last - reserved.first + 1;
        last = reserved.last;
    }
    assert_eq!(numbers, 20_000, "ticks are spent as they are needed");
    assert!(tick_of(last) - tick_of(before.last) <= 20, "and no more of them");

    clock.set(-300);
    let refused = reserve_now(&*store, &source, 1).await.unwrap_err();
    assert!(
        matches!(
            refused.kind(),
            ErrorKind::ClockBehind { behind_ms: 200_000..=300_100, limit_ms: LEAD_MS }
        ),
        "{refused:?}"
    );
    clock.set(300);
    let ahead = reserve_now(&*store, &source, 1).await.unwrap();
    assert!(ahead.first > last && ahead.at.unwrap().since(at) >= 299_000, "{ahead:?}");
    clock.set(0);
    let refused = reserve_now(&*store, &source, 1).await.unwrap_err();
    assert_eq!(refused.kind().code(), "clock_behind", "five minutes are more than may be led");
}

async fn node(url: &str) -> Node {
    let store = snowmint_stores::open(url, "default").await.unwrap();
    let settings = NodeSettings { builtin: false, ..NodeSettings::default() };
    Node::open(store, settings, Platform::system()).await.unwrap()
}

async fn mint(node: &Node, source: &str, count: u32) -> Vec<u64> {
    match node.source(source).await.unwrap().mint(count, None, 30_000).await.unwrap() {
        IdBatch::Numbers(numbers) => numbers,
        other => panic!("{other:?}"),
    }
}

/// Twenty clients of two servers want far more numbers than the milliseconds hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_clients_of_two_servers_share_each_millisecond() {
    let server = Redis::start(&["--appendfsync", "always"]);
    let nodes = [node(&server.url()).await, node(&server.url()).await];
    let spec = SourceSpec::from_json(r#"{"layout":"redis","mint":"store","worker":99}"#).unwrap();
    nodes[0].define("orders", &spec).await.unwrap();
    let (begun, boot) = (UnixMillis::new(now_ms()), BootTimer.elapsed());
    let mut clients = Vec::new();
    for client in 0..20 {
        let node = nodes[client % 2].clone();
        clients.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for count in [1, 700, 1, 3_000, 1_024, 1, 1, 2_500] {
                ids.extend(mint(&node, "orders", count).await);
            }
            ids
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        let ids = client.await.unwrap();
        assert_eq!(ids.len(), 7_228, "exactly as many as were asked for");
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "each client's increase");
        all.extend(ids);
    }
    // The machine's clock may be set back meanwhile: numbers handed out before then lead it. Both
    // ends of each span are cut to whole milliseconds.
    let passed_ms = BootTimer.elapsed().since(boot) + 2;
    let ended = UnixMillis::new(now_ms()).max(begun.saturating_add(passed_ms));
    let layout = Layout::REDIS;
    for &id in &all {
        let parts = layout.unpack(id).unwrap();
        assert_eq!(parts.worker, 99);
        let time = layout.start_of(parts.tick);
        assert!(begun <= time.saturating_add(1) && time <= ended, "{begun} {time} {ended}");
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

fn now_ms() -> u64 {
    use snowmint_core::Clock as _;
    SystemClock.unix_ms().get()
}

/// A store has one worker number for good: another number is rejected.
#[tokio::test]
async fn another_worker_number_for_the_same_store_is_refused() {
    let server = Redis::start(&[]);
    let node = node(&server.url()).await;
    let spec = |worker: u64| {
        let json = format!(r#"{{"layout":"redis","mint":"store","worker":{worker}}}"#);
        SourceSpec::from_json(&json).unwrap()
    };
    node.define("orders", &spec(3)).await.unwrap();
    node.define("orders", &spec(3)).await.unwrap();
    for other in [spec(4), SourceSpec::from_json(r#"{"layout":"redis"}"#).unwrap()] {
        for refused in
            [node.define("orders", &other).await, node.alter("orders", &other, None).await]
        {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind().code(), "conflict", "{refused:?}");
        }
    }
    let ids = mint(&node, "orders", 5).await;
    assert!(ids.iter().all(|id| LAYOUT.unpack(*id).unwrap().worker == 3));
}
