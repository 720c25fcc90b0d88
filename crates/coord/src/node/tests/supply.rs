//! Sources with a claimed worker number, and the number of claims.

use async_trait::async_trait;
use snowmint_core::ElapsedMillis;

use super::*;

pub(super) async fn held(world: &World) -> usize {
    let slots = world.handle().workers(world.clock.unix_ms()).await.unwrap();
    slots.iter().filter(|slot| slot.holder.is_some()).count()
}

#[tokio::test]
async fn a_source_that_is_off_or_deleted_keeps_no_worker_number() {
    let world = World::new();
    let node = world.open().await;
    for (name, json) in [
        ("orders", "{}"),
        ("bills", "{}"),
        ("slow", r#"{"on_rollback":"borrow","prefill":{"enabled":true}}"#),
        ("never", r#"{"prefill":{"enabled":true}}"#),
    ] {
        node.define(name, &spec(json)).await.unwrap();
    }
    switch(&node, "never", false).await;
    let mut sources = Vec::new();
    for name in ["orders", "bills", "slow", "never"] {
        let (source, ()) = tokio::join!(node.source(name), world.pass(500));
        sources.push(source.unwrap());
    }
    assert_eq!(held(&world).await, 2);
    let last = sources[0].try_mint().unwrap();
    switch(&node, "orders", false).await;
    node.delete("slow").await.unwrap();
    world.pass(1_000).await;
    assert_eq!(held(&world).await, 1, "bills has it still");
    node.delete("bills").await.unwrap();
    world.pass(1_000).await;
    assert_eq!(held(&world).await, 0);
    assert!(node.readiness().ready, "{:?}", node.readiness());
    assert_eq!(sources[0].try_mint().unwrap_err().kind().code(), "disabled");
    switch(&node, "orders", true).await;
    world.pass(1_000).await;
    assert!(sources[0].try_mint().unwrap() > last);
    assert_eq!(held(&world).await, 1);
}

/// Its pool is full, and stays so: no caller waits for it any more.
#[tokio::test]
async fn disabled_source_does_not_block_readiness() {
    for deletes in [true, false] {
        let world = World::new();
        let by_hand = NodeSettings { worker: Some(0), ..NodeSettings::default() };
        let (has, wants) = (world.open_with(by_hand.clone()).await, world.open_with(by_hand).await);
        has.define("orders", &SourceSpec::default()).await.unwrap();
        has.source("orders").await.unwrap();
        wants.source("orders").await.unwrap_err();
        assert!(!wants.readiness().ready);
        if deletes {
            has.delete("orders").await.unwrap();
        } else {
            switch(&has, "orders", false).await;
        }
        wants.catalog_changed();
        world.pass(1_000).await;
        assert!(wants.readiness().ready, "{:?}", wants.readiness());
        let claims = calls(&wants, "claim");
        world.pass(20_000).await;
        assert_eq!(calls(&wants, "claim"), claims);
    }
}

fn calls(node: &Node, verb: &str) -> u64 {
    let calls = node.stats().store_calls.into_iter().filter(|calls| calls.verb == verb);
    calls.map(|calls| calls.took.count()).sum()
}

/// A server opens a source again for each request, until it is open.
#[tokio::test]
async fn full_pool_is_claimed_at_its_own_interval() {
    let world = World::new();
    let by_hand = NodeSettings { worker: Some(0), ..NodeSettings::default() };
    let (has, wants) = (world.open_with(by_hand.clone()).await, world.open_with(by_hand).await);
    has.define("orders", &spec(r#"{"unique":"namespace"}"#)).await.unwrap();
    has.source("orders").await.unwrap();
    for _ in 0..10 {
        for _ in 0..100 {
            let full = wants.source("orders").await.unwrap_err();
            assert!(matches!(full.kind(), ErrorKind::PoolFull(_)), "{full}");
        }
        world.pass(100).await;
    }
    let (claims, lists) = (calls(&wants, "claim"), calls(&wants, "list"));
    assert!((1..=8).contains(&claims) && lists <= 8, "{claims} claims, {lists} lists");
    has.close().await.unwrap();
    world.pass(5_000).await;
    wants.source("orders").await.unwrap().try_mint().unwrap();
}

/// Timer that counts waits by their length.
#[derive(Clone, Debug)]
struct Counting {
    timer: ManualTimer,
    waits: Arc<Mutex<BTreeMap<u64, u64>>>,
}

#[async_trait]
impl Timer for Counting {
    fn elapsed(&self) -> ElapsedMillis {
        self.timer.elapsed()
    }

    async fn sleep_ms(&self, ms: u64) {
        *self.waits.lock().unwrap().entry(ms).or_default() += 1;
        self.timer.sleep_ms(ms).await;
    }
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test]
async fn filler_pauses_when_disabled_and_ends_when_deleted() {
    let world = World::new();
    let timer = Counting { timer: world.timer.clone(), waits: Arc::default() };
    let platform = Platform { timer: Arc::new(timer.clone()), ..world.platform() };
    let node = Node::open(world.handle(), NodeSettings::default(), platform).await.unwrap();
    node.define("orders", &spec(r#"{"prefill":{"enabled":true}}"#)).await.unwrap();
    world.pass(1_000).await;
    let before = tasks();
    let (source, ()) = tokio::join!(node.source("orders"), world.pass(500));
    let source = source.unwrap();
    let mut all = vec![0; 8 * 4_096];
    for _ in 0..3 {
        // All IDs that are there: then more are wanted.
        let _ = source.try_fill(&mut all);
        switch(&node, "orders", false).await;
        world.pass(1_000).await;
        timer.waits.lock().unwrap().clear();
        world.pass(20_000).await;
        let waits = timer.waits.lock().unwrap().clone();
        assert!(waits.values().sum::<u64>() < 100, "in 20 s: {waits:?}");
        switch(&node, "orders", true).await;
        world.pass(5_000).await;
    }
    assert!(tasks() > before);
    node.delete("orders").await.unwrap();
    world.pass(1_000).await;
    assert_eq!(tasks(), before);
    let gone = source.try_mint().unwrap_err();
    assert!(matches!(gone.kind(), ErrorKind::NotFound), "{gone}");
    node.define("orders", &spec(r#"{"prefill":{"enabled":true}}"#)).await.unwrap();
    world.pass(1_000).await;
    source.try_mint().unwrap();
}

/// Requests a source, and changes it while its worker number does not come.
async fn waits_while(alone: bool, change: impl AsyncFnOnce(&Node)) -> Result<()> {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    for name in ["orders", "bills"] {
        node.define(name, &SourceSpec::default()).await.unwrap();
    }
    world.pass(1_000).await;
    *lacks.lock().unwrap() = Some("claim");
    let begun = world.timer.elapsed();
    let names: &[&str] = if alone { &["orders"] } else { &["orders", "bills"] };
    let opening = names.iter().map(|name| {
        let (node, name) = (node.clone(), (*name).to_owned());
        tokio::spawn(async move { node.source(&name).await })
    });
    let mut opening: Vec<_> = opening.collect();
    world.pass(300).await;
    change(&node).await;
    world.pass(1_000).await;
    *lacks.lock().unwrap() = None;
    let result = tokio::select! {
        biased;
        result = opening.swap_remove(0) => result.unwrap(),
        () = world.pass(60_000) => panic!("no result"),
    };
    let waited_ms = world.timer.elapsed().since(begun);
    assert!(waited_ms <= 5_000, "{waited_ms} ms");
    result?.try_mint().map(|_| ())
}

#[tokio::test]
async fn waiting_caller_learns_of_a_disabled_source() {
    for alone in [true, false] {
        let off = waits_while(alone, async |node| {
            switch(node, "orders", false).await;
        });
        let off = off.await.unwrap_err();
        assert!(matches!(off.kind(), ErrorKind::Disabled), "{alone} {off}");
        let gone = waits_while(alone, async |node| node.delete("orders").await.unwrap());
        let gone = gone.await.unwrap_err();
        assert!(matches!(gone.kind(), ErrorKind::NotFound), "{alone} {gone}");
    }
}

#[tokio::test]
async fn waiting_caller_gets_the_altered_source() {
    for alone in [true, false] {
        let altered = waits_while(alone, async |node| {
            node.alter("orders", &spec(r#"{"on_rollback":"borrow"}"#), None).await.unwrap();
        });
        altered.await.unwrap();
    }
}
