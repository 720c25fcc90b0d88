//! Node whose store is another server, which may know less of it than the node: nothing comes from
//! there while the node knows of a rollback.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, for_program, joined, wanted};
use super::*;
use crate::machine::PresenceMachine;
use crate::model::external::ExternalClient;
use crate::spec::{MinterPlan, Order, Plan};
use crate::store::owner_client::OwnerClient;

/// Server that opened the restored store, and knows nothing of the loss: it gives the numbers again.
#[derive(Debug, Default)]
struct Unaware {
    asked: AtomicU32,
    /// Signal for which the next call waits.
    held: Mutex<Option<Arc<Notify>>>,
}

impl Unaware {
    async fn wait(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(held) = held {
            held.notified().await;
        }
    }
}

#[async_trait]
impl OwnerClient for Unaware {
    async fn count(&self, _: &str, _: &[u8], count: u64, _: u64) -> Result<(u64, u64)> {
        self.wait().await;
        Ok((1, count))
    }

    async fn bound_of(&self, _: &str, _: &[u8], _: u64) -> Result<u64> {
        self.wait().await;
        Ok(1)
    }

    async fn mint(&self, _: &str, count: u32, _: u64) -> Result<Vec<u64>> {
        self.wait().await;
        Ok((1..=count.into()).collect())
    }
}

/// Returns a node that reaches the store through this server.
async fn program(world: &World, server: &Arc<Unaware>, dir: Option<&Scratch>) -> Node {
    let mut store = world.faulty();
    store.faults.owner_client = Some(Arc::clone(server) as _);
    let data_dir = dir.map(|dir| dir.0.clone());
    let settings = NodeSettings { data_dir, waits_for_recovery: true, ..NodeSettings::default() };
    Node::open(Arc::new(store), settings, world.platform()).await.unwrap()
}

/// Definition of a source of each kind whose numbers come from the store or its servers.
const BOUND: [(&str, &str); 8] = [
    ("worker numbers", r#"{"layout":"twitter"}"#),
    ("prefilled", r#"{"layout":"twitter","prefill":{"enabled":true}}"#),
    ("global order", r#"{"layout":"twitter","order":"global"}"#),
    ("minted by the store", r#"{"layout":"redis","mint":"store","worker":77}"#),
    ("prefetched", FIXED),
    ("per request", r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#),
    ("serials", r#"{"kind":"segment","serial":{"prefix":"S","date":"yyyyMMdd","width":5}}"#),
    ("counter", r#"{"kind":"counter"}"#),
];

/// Definitions of sources that need no store.
const FREE: [(&str, &str); 2] = [("UUID", r#"{"kind":"uuid"}"#), ("ULID", r#"{"kind":"ulid"}"#)];

/// Returns the row of a source; `None` where each store of the source is another node's.
fn row_of(plan: &Plan) -> Option<&'static str> {
    Some(match plan {
        Plan::Snowflake(plan) if plan.order == Order::Global => "global order",
        Plan::Snowflake(plan) => match plan.minter_plan {
            MinterPlan::Process if plan.prefill.is_some() => "prefilled",
            MinterPlan::Process => "worker numbers",
            MinterPlan::Store { .. } => "minted by the store",
            MinterPlan::Stores(_) => return None,
        },
        Plan::Segment(plan) if plan.serial.is_some() => "serials",
        Plan::Segment(_) => "prefetched",
        Plan::Counter(_) => "counter",
        Plan::Text(_) => "texts",
    })
}

/// Files with the calls of a source.
const CALLS: [&str; 2] =
    [include_str!("../../sources/mod.rs"), include_str!("../../sources/segment/lane.rs")];
/// Calls that return no number.
const NUMBERLESS: [&str; 4] = ["check_enabled", "section", "check_owner", "set_prefill_hooks"];

/// Returns the calls that may return numbers: a new one needs a row in [`call`].
fn paths() -> Vec<&'static str> {
    let blocks = CALLS.iter().map(|file| file.split_once("\nimpl Source {\n").unwrap().1);
    let blocks = blocks.map(|rest| rest.split_once("\n}\n").unwrap().0);
    let heads = blocks.flat_map(|block| block.split("\n    pub ").skip(1));
    let heads = heads.filter_map(|rest| rest.split_once(" {\n")).map(|(head, _)| head);
    let heads = heads.filter(|head| head.contains("Result<"));
    let names = heads.map(|head| {
        let head = head.trim_start_matches("async ").trim_start_matches("fn ");
        head.split_once('(').unwrap().0
    });
    names.filter(|name| !NUMBERLESS.contains(name)).collect()
}

/// Calls a source by this path.
async fn call(world: &World, source: &Source, path: &str) -> Result<()> {
    let keyed = source.kind() == crate::spec::Kind::Counter;
    let (key, keys): (_, &[&[u8]]) = (b"alice".as_slice(), &[b"alice", b"bob"]);
    match path {
        "try_mint" => source.try_mint().map(drop),
        "try_fill" => source.try_fill(&mut [0; 2]).map_err(|(_, error)| error),
        "mint" => in_time(world, source.mint(2, keyed.then_some("alice"), 500)).await.map(drop),
        "reserve_range" => in_time(world, source.reserve_range(2, 500)).await.map(drop),
        "count" => in_time(world, source.count(key, 2, 500)).await.map(drop),
        "try_count" => source.try_count(key, 2).map(drop),
        "count_each" => in_time(world, source.count_each(keys, 500)).await.map(drop),
        "try_count_each" => source.try_count_each(keys).map(drop),
        "bound_of" => in_time(world, source.bound_of(key, 500)).await.map(drop),
        "raise" => in_time(world, source.raise(key, 5, 500)).await,
        "numbers" => source.numbers()?.try_next().map(drop),
        "lane" => source.lane(2)?.try_next().map(drop),
        other => panic!("{other} has no row"),
    }
}

/// Checks that programs get nothing through the node's server from its store.
async fn passes_nothing_on(node: &Node, world: &World) {
    let (store, now) = (node.store(), world.clock.unix_ms());
    let one = Incarnation::new(1);
    let extended = store.extend(&[], now).await.map(drop);
    let renewed = store.renew(one, PresenceMachine::joining(5_000, now), now).await;
    for refused in [extended, renewed] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    }
}

/// Waits until the node knows that its store was rolled back, and returns its reasons.
async fn knows(world: &World, node: &Node) -> String {
    for _ in 0..300 {
        let readiness = node.readiness();
        if readiness.reasons.iter().any(|reason| reason.code == "store_rolled_back") {
            return readiness.summary();
        }
        world.pass(100).await;
    }
    panic!("{:?}", node.readiness())
}

async fn is_in_doubt(world: &World) -> bool {
    world.handle().standing().await.unwrap().doubt.is_some()
}

/// A source's call, and whether it gave something while the store was whole.
type Row = (Source, &'static str, bool);

/// Opens a source of each kind, and calls each by every path.
async fn rows(world: &World, node: &Node) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, definition) in BOUND.iter().chain(&FREE) {
        node.define(&name.replace(' ', "-"), &spec(definition)).await.unwrap();
        let source = in_time(world, node.source(&name.replace(' ', "-"))).await.unwrap();
        let row = row_of(&source.plan()).unwrap();
        assert!(row == *name || row == "texts" || *name == "per request", "{row}");
        let key = Some("alice").filter(|_| *name == "counter");
        in_time(world, source.mint(1, key, 5_000)).await.unwrap();
        for path in paths() {
            let gave = call(world, &source, path).await.is_ok();
            rows.push((source.clone(), path, gave));
        }
        let gives = rows.iter().filter(|(it, _, gave)| it.name() == source.name() && *gave);
        assert!(gives.count() > 0, "{name}");
    }
    rows
}

/// Calls a source once more, while the node knows of a rollback.
async fn refuses(world: &World, (source, path, gave): &Row) {
    let (called, name) = (call(world, source, path).await, source.name());
    if FREE.iter().any(|(free, _)| *free == name) {
        assert_eq!(called.is_ok(), *gave, "{name}: {path}");
        return;
    }
    assert!(called.is_err(), "{name}: {path}");
    let refused = called.unwrap_err();
    let may_wait = !path.starts_with("try_") && !["numbers", "lane"].contains(path);
    if may_wait && *gave {
        assert_eq!(refused.kind().code(), "store_rolled_back", "{name}: {path}: {refused}");
    }
}

#[tokio::test]
async fn no_kind_gives_anything_of_a_rollback_that_the_node_knows() {
    let (world, server) = (World::new(), Arc::<Unaware>::default());
    let node = program(&world, &server, None).await;
    joined(&world, &node).await;
    let backup = world.store.backup();
    let rows = rows(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let wanted = wanted(&world, 5).await;
    for_program(&node, &wanted).await.unwrap();
    let asked = server.asked.load(Ordering::SeqCst);
    assert!(asked > 4, "{asked}");

    world.store.restore(backup);
    knows(&world, &node).await;
    for row in &rows {
        refuses(&world, row).await;
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), asked, "the server was asked");
    let refused = for_program(&node, &wanted).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    passes_nothing_on(&node, &world).await;
    let client = ExternalClient { scope: "shop".into(), label: "one".into() };
    let lease = node.lease_external(&client, 10, 5_000, 9, &|_| false);
    let refused = in_time(&world, lease).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert!(!is_in_doubt(&world).await, "a program puts no store in doubt");
}

/// A question of before counts no more than one of then.
#[tokio::test]
async fn response_that_comes_after_the_doubt_is_not_used() {
    let (world, server) = (World::new(), Arc::<Unaware>::default());
    let node = program(&world, &server, None).await;
    joined(&world, &node).await;
    node.define("visits", &spec(r#"{"kind":"counter"}"#)).await.unwrap();
    let source = in_time(&world, node.source("visits")).await.unwrap();
    let comes = Arc::new(Notify::new());
    *server.held.lock().unwrap() = Some(Arc::clone(&comes));
    let counting = tokio::spawn({
        let source = source.clone();
        async move { source.count(b"alice", 1, 5_000).await }
    });
    settle().await;
    assert_eq!(server.asked.load(Ordering::SeqCst), 1);
    node.core().ctx.doubt(&Error::store_rolled_back("write count seen by a test", 2, 1));
    comes.notify_one();
    let refused = in_time(&world, counting).await.unwrap().unwrap_err();
    assert!(["store_rolled_back", "unavailable"].contains(&refused.kind().code()), "{refused}");
}

/// Starts a program that knows numbers which a store lacks, after a recovery to these values.
async fn returned(world: &World, dir: &Scratch, forward: &FastForward) -> Node {
    let server = Arc::<Unaware>::default();
    let node = program(world, &server, Some(dir)).await;
    joined(world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(world, &node, 50).await.last(), Some(&50));
    in_time(world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    world.store.restore(backup);
    world.handle().fast_forward(forward).await.unwrap();
    program(world, &server, Some(dir)).await
}

#[tokio::test]
async fn program_left_out_of_a_recovery_is_compared_as_a_server_is() {
    let (world, dir) = (World::new(), Scratch::new());
    let forward = FastForward { writes_at_least: 1_000, ..FastForward::default() };
    let node = returned(&world, &dir, &forward).await;
    let refused = in_time(&world, node.source("bills")).await;
    let refused = match refused {
        Ok(source) => in_time(&world, source.mint(1, None, 500)).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    let reasons = knows(&world, &node).await;
    for part in [
        "without which the store was recovered; IDs in between may have come twice",
        "run at the store's servers snowmint worker recover --segment bills=51",
    ] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
    assert!(!is_in_doubt(&world).await, "a program puts no store in doubt");
    let raised = FastForward {
        segments: vec![("bills".into(), Mark::new(51))],
        values_only: true,
        ..FastForward::default()
    };
    world.handle().fast_forward(&raised).await.unwrap();
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [51]);
    in_time(&world, node.close()).await.unwrap();
}

#[tokio::test]
async fn program_whose_numbers_a_recovery_covers_continues() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = returned(&world, &dir, &past_bills()).await;
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [1_000]);
    in_time(&world, node.close()).await.unwrap();
}
