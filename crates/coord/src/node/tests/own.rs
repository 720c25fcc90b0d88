//! Own sources of a node, and sources that were defined at run time.

use super::faulty::Faults;
use super::kills::{Scratch, in_time};
use super::supply::held;
use super::*;
use crate::journal::{DataDir, inspect};
use crate::node::saved::own_first;

/// A source with a mark that may lead the clock.
const BORROWS: &str = r#"{"on_rollback":"borrow"}"#;
/// The only worker number is worker 0.
const ONE_NUMBER: &str = r#"{"layout":"time=62,worker=0,sequence=1,unit=1ms"}"#;

fn set_own(node: &Node, names: &[&str]) {
    node.set_configured(names.iter().map(|&name| name.to_owned()));
}

fn not_minting(node: &Node) -> Vec<String> {
    node.not_minting_sources(|_| true, 9).iter().map(ToString::to_string).collect()
}

#[test]
fn own_sources_are_configured_or_built_in() {
    let own = |builtin| OwnSources::new(["orders".to_owned()], builtin);
    for name in [BUILTIN_DEFAULT, BUILTIN_NUMBERS, BUILTIN_COUNTERS] {
        assert!(own(true).has(name) && !own(false).has(name), "{name}");
    }
    assert!(own(false).has("orders") && !own(true).has("bills"));
}

/// Any token with `admin` over one name could otherwise take servers out of service.
#[tokio::test]
async fn readiness_ignores_a_source_defined_at_run_time() {
    let world = World::new();
    let (has, lacks) = (world.open().await, world.open().await);
    set_own(&lacks, &["orders"]);
    has.define("orders", &SourceSpec::default()).await.unwrap();
    has.define("small", &spec(ONE_NUMBER)).await.unwrap();
    has.source("small").await.unwrap();
    lacks.source("orders").await.unwrap();
    let full = lacks.source("small").await.unwrap_err();
    assert!(matches!(full.kind(), ErrorKind::PoolFull(_)), "{full}");
    world.pass(1_000).await;
    assert!(lacks.readiness().ready, "{:?}", lacks.readiness());
    assert!(lacks.source("orders").await.unwrap().try_mint().is_ok());
    let messages = not_minting(&lacks);
    assert!(messages.len() == 1 && messages[0].contains("source small"), "{messages:?}");
    assert_eq!(lacks.not_minting_sources(|_| true, 9)[0].code, "pool_full");
    assert_eq!(lacks.not_minting_sources(|source| source != "small", 9), []);
    assert_eq!(lacks.not_minting_sources(|_| true, 0), []);

    // The same source of the configuration decides.
    set_own(&lacks, &["orders", "small"]);
    world.pass(1_000).await;
    let reasons = lacks.readiness().reasons;
    assert!(reasons.len() == 1 && reasons[0].code == "pool_full", "{reasons:?}");
    assert_eq!(not_minting(&lacks), [""; 0]);
    set_own(&lacks, &["orders"]);
    switch(&lacks, "small", false).await;
    world.pass(1_000).await;
    assert!(lacks.readiness().ready, "{:?}", lacks.readiness());
    assert_eq!(not_minting(&lacks), [""; 0], "a disabled source is not needed");
}

#[tokio::test]
async fn readiness_ignores_an_ended_layout_of_another_source() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &[]);
    // 2^20 ms, of which about 8 s are left.
    let epoch = START.get() - 1_040_000;
    let keys = format!(
        r#"{{"layout":"time=20,worker=10,sequence=12,unit=1ms,epoch={epoch}","short_life":true}}"#
    );
    node.define("short", &spec(&keys)).await.unwrap();
    let opening = tokio::spawn({
        let node = node.clone();
        async move { node.source("short").await.map(drop) }
    });
    while !opening.is_finished() {
        world.pass(100).await;
    }
    opening.await.unwrap().unwrap();
    assert_eq!(not_minting(&node), [""; 0]);
    world.pass(9_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    let messages = not_minting(&node);
    assert!(messages.len() == 1 && messages[0].contains("source short ended at"), "{messages:?}");
}

/// A window of such a source says nothing about counters, which end with the presence.
#[tokio::test]
async fn window_of_another_source_hides_no_expired_presence() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    set_own(&node, &["counts"]);
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    world.pass(1_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    *lacks.lock().unwrap() = Some(Faults::EVERY_VERB);
    world.pass(12_000).await;
    source.try_mint().unwrap();
    let reasons = node.readiness().reasons;
    assert!(reasons.len() == 1 && reasons[0].message.contains("presence"), "{reasons:?}");
}

#[tokio::test]
async fn definition_reaches_a_window_beyond_own_sources() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &["orders"]);
    let check = |before: Option<&str>, after: &str| {
        let before = before.map(spec);
        node.check_reach(before.as_ref(), &spec(after)).is_ok()
    };
    let (day, banked) = (
        r#"{"layout":"time=20,worker=10,sequence=22,unit=86400s"}"#,
        r#"{"on_rollback":"borrow","lead_max":"35s"}"#,
    );
    for (keys, allowed) in [
        ("{}", true),
        (r#"{"kind":"segment"}"#, true),
        (banked, true),
        (r#"{"on_rollback":"borrow","lead_max":"36s"}"#, false),
        (day, false),
    ] {
        assert_eq!(check(None, keys), allowed, "{keys}");
    }
    assert!(check(Some(day), day) && check(Some(day), banked) && !check(Some(banked), day));
    // The configuration's own sources set the limit.
    let hour = r#"{"on_rollback":"borrow","lead_max":"1h"}"#;
    assert!(!check(None, hour));
    node.define("orders", &spec(r#"{"lead_max":"1h"}"#)).await.unwrap();
    node.source("orders").await.unwrap();
    assert!(check(None, hour));
    set_own(&node, &[]);
    assert!(!check(None, hour));
}

async fn opened(world: &World, node: &Node, name: &str) -> Source {
    let (source, ()) = tokio::join!(node.source(name), world.pass(1_000));
    source.unwrap()
}

/// Each would otherwise take a number of the pool at each server, until none is left.
#[tokio::test]
async fn catalog_sources_that_borrow_share_a_worker_number() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &["orders", "bank"]);
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let names = ["bank", "one", "two", "three"];
    let mut sources = vec![opened(&world, &node, "orders").await];
    for name in names {
        node.define(name, &spec(BORROWS)).await.unwrap();
        sources.push(opened(&world, &node, name).await);
    }
    assert_eq!(held(&world).await, 3, "of orders, of bank, and of the others");
    for source in &sources {
        assert_ne!(source.try_mint().unwrap(), source.try_mint().unwrap());
    }
    // The configuration takes a source over, and drops it again.
    let two = &sources[3];
    for (own, numbers) in [(&["orders", "bank", "two"][..], 4), (&["orders", "bank"][..], 3)] {
        let before = two.try_mint().unwrap();
        set_own(&node, own);
        node.catalog_changed();
        world.pass(2_000).await;
        assert_eq!(held(&world).await, numbers, "{own:?}");
        assert!(two.try_mint().unwrap() > before);
    }
}

/// With `worker.number`, the pool of a source that borrows has a number for no other.
#[tokio::test]
async fn own_source_gets_the_configured_number_from_others() {
    for (own, other) in [("{}", BORROWS), (BORROWS, "{}"), (BORROWS, BORROWS)] {
        let world = World::new();
        let by_hand = NodeSettings { worker: Some(5), ..NodeSettings::default() };
        let node = world.open_with(by_hand).await;
        set_own(&node, &["orders"]);
        node.define("orders", &spec(own)).await.unwrap();
        node.define("other", &spec(other)).await.unwrap();
        let others = opened(&world, &node, "other").await;
        others.try_mint().unwrap();
        let orders = opened(&world, &node, "orders").await;
        orders.try_mint().unwrap();
        others.try_mint().unwrap_err();
        assert!(node.readiness().ready, "{:?}", node.readiness());
        let messages = not_minting(&node);
        assert!(messages.len() == 1 && messages[0].contains("worker.number"), "{messages:?}");
        assert!(!messages[0].contains("orders"), "{messages:?}");
        // It does not get the number back.
        let refused = node.source("other").await.unwrap_err();
        assert_eq!(refused.kind().code(), "unsupported", "{refused}");
        node.catalog_changed();
        world.pass(1_000).await;
        orders.try_mint().unwrap();
        assert_eq!(held(&world).await, 1);
    }
}

/// A reload may drop it from the configuration, or a call may alter its policy. It then mints under
/// another lease, for which the present one must give the number up.
#[tokio::test]
async fn only_source_of_a_configured_number_keeps_it() {
    let world = World::new();
    let by_hand = NodeSettings { worker: Some(5), ..NodeSettings::default() };
    let node = world.open_with(by_hand).await;
    set_own(&node, &["orders"]);
    node.define("orders", &spec(BORROWS)).await.unwrap();
    let orders = opened(&world, &node, "orders").await;
    let mut last = orders.try_mint().unwrap();
    let steps: [(&[&str], &str); 4] =
        [(&[], BORROWS), (&[], "{}"), (&[], BORROWS), (&["orders"], BORROWS)];
    for (own, keys) in steps {
        set_own(&node, own);
        node.alter("orders", &spec(keys), None).await.unwrap();
        node.catalog_changed();
        world.pass(2_000).await;
        // As a server opens it for its first request.
        let again = opened(&world, &node, "orders").await;
        let next = again.try_mint().unwrap();
        assert!(next > last, "{own:?} {keys}");
        last = next;
        assert_eq!(held(&world).await, 1, "{own:?} {keys}");
        assert_eq!(not_minting(&node), [""; 0], "{own:?} {keys}");
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

/// The journal may have no room for all, and a start without the store needs them.
#[tokio::test]
async fn definitions_of_own_sources_are_saved_first() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &["orders", "bills"]);
    for name in ["a", "bills", "orders", "z", "off"] {
        node.define(name, &SourceSpec::default()).await.unwrap();
        opened(&world, &node, name).await;
    }
    switch(&node, "off", false).await;
    let sources = node.core().known_sources();
    let saved = own_first(sources.iter(), |source| node.is_own(source));
    let names: Vec<_> = saved.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bills", "orders", "a", "z"]);
}

/// Returns how far the mark of the only worker number leads the clock.
async fn lead_ms(world: &World) -> u64 {
    let now = world.clock.unix_ms();
    let slots = world.handle().workers(now).await.unwrap();
    assert_eq!(slots.len(), 1, "{slots:?}");
    slots[0].mark.unix_millis().since(now)
}

/// A server is ready while a tick of its window is left, of its own sources' ticks.
#[tokio::test]
async fn long_ticks_of_another_source_end_no_readiness() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    set_own(&node, &["orders"]);
    let slow = spec(r#"{"layout":"time=31,worker=10,sequence=22,unit=15s"}"#);
    node.check_reach(None, &slow).unwrap();
    node.define("orders", &SourceSpec::default()).await.unwrap();
    node.define("slow", &slow).await.unwrap();
    let orders = opened(&world, &node, "orders").await;
    opened(&world, &node, "slow").await;
    while lead_ms(&world).await < 40_000 {
        world.pass(100).await;
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
    *lacks.lock().unwrap() = Some(Faults::EVERY_VERB);
    while lead_ms(&world).await > 1_000 {
        world.pass(100).await;
        orders.try_mint().unwrap();
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;

/// Opens a node with a journal over this store. Its only own source is `mine`; other segment sources
/// are `bills` and `more`.
async fn journalled(world: &World, dir: &Scratch, store: &Arc<dyn Store>) -> Node {
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let node = Node::open(Arc::clone(store), settings, world.platform()).await.unwrap();
    set_own(&node, &["mine"]);
    for name in ["bills", "mine", "more"] {
        node.define(name, &spec(FIXED)).await.unwrap();
    }
    node
}

/// Any token with `admin` over a pattern of names could otherwise fill the journal.
#[tokio::test]
async fn others_leave_journal_room_to_own_sources() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = journalled(&world, &dir, &world.handle()).await;
    // There is room for two.
    node.core().ctx.journal_budget.begin([].into(), 60);
    node.source("bills").await.unwrap().mint(1, None, 1_000).await.unwrap();
    let more = node.source("more").await.unwrap();
    let (refused, ()) = tokio::join!(more.mint(1, None, 300), world.pass(1_000));
    let refused = refused.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Exhausted), "{refused}");
    node.source("mine").await.unwrap().mint(1, None, 1_000).await.unwrap();
}

/// A token could otherwise define as many sources with earlier names as a journal has tails.
#[tokio::test]
async fn tails_of_own_sources_are_kept_first() {
    let (world, dir) = (World::new(), Scratch::new());
    let store = world.handle();
    let node = journalled(&world, &dir, &store).await;
    for name in ["bills", "mine", "more"] {
        node.source(name).await.unwrap().mint(10, None, 1_000).await.unwrap();
    }
    store.close().await.unwrap();
    let unused = node.core().close_prefetched();
    let sorted = node.core().sort(unused, "boot", 2).await;
    let kept: Vec<_> = sorted.kept.iter().map(|tail| tail.source.as_str()).collect();
    assert_eq!((kept, sorted.backs.len()), (vec!["mine", "bills"], 0));
}

/// Defines a source with 64 clock values for each worker; `width` decides its pool.
async fn define_clocked(node: &Node, name: &str, width: u8) {
    let layout = format!(r#"{{"layout":"time=41,clock=6,worker={width},sequence=8"}}"#);
    node.define(name, &spec(&layout)).await.unwrap();
}

/// Each clock value has a lease in the journal, and a journal that is too long ends all minting.
#[tokio::test]
async fn others_take_a_bounded_number_of_clock_values() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &["mine"]);
    for (name, width) in [("one", 1), ("two", 2), ("three", 3), ("mine", 4)] {
        define_clocked(&node, name, width).await;
    }
    for name in ["one", "two", "mine"] {
        opened(&world, &node, name).await.try_mint().unwrap();
    }
    let refused = node.source("three").await.unwrap_err();
    assert_eq!(refused.kind().code(), "limit_exceeded", "{refused}");
    for part in ["192 clock values", "limit 128", "\"three\""] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    node.delete("one").await.unwrap();
    world.pass(2_000).await;
    opened(&world, &node, "three").await.try_mint().unwrap();
    assert_eq!(held(&world).await, 3 * 64);
}

#[tokio::test]
async fn clocked_source_moves_when_the_configuration_drops_it() {
    let world = World::new();
    let node = world.open().await;
    set_own(&node, &["mine"]);
    for (name, width) in [("one", 1), ("mine", 4)] {
        define_clocked(&node, name, width).await;
        opened(&world, &node, name).await.try_mint().unwrap();
    }
    set_own(&node, &[]);
    node.catalog_changed();
    world.pass(2_000).await;
    node.source("mine").await.unwrap().try_mint().unwrap();
    let slots = world.handle().workers(world.clock.unix_ms()).await.unwrap();
    let first = slots.iter().find(|slot| slot.pool == "workers-4-clock-6").unwrap();
    assert!(first.term.get() > 1, "its former lease has ended: {first:?}");
}

/// A token could otherwise fill the journal with sources that it defines, mints from and deletes.
#[tokio::test]
async fn ended_leases_in_the_journal_are_bounded() {
    let (world, dir) = (World::new(), Scratch::new());
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let node = world.open_with(settings).await;
    for width in 1..=6 {
        let name = format!("clocked-{width}");
        define_clocked(&node, &name, width).await;
        opened(&world, &node, &name).await.try_mint().unwrap();
        node.delete(&name).await.unwrap();
        world.pass(2_000).await;
    }
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let leases = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.leases;
    assert_eq!(leases.len(), 256);
}
