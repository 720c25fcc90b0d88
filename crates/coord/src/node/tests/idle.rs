//! An idle node calls the store as rarely as possible, and sees other changes a little later.

use super::kills::Scratch;
use super::stats::calls;
use super::*;

const HOUR_MS: u64 = 3_600_000;

/// Returns a node with a journal that is soon idle, and its folder. The test sets the presence's
/// time to live.
async fn idle_node(world: &World, presence_ttl_ms: u64) -> (Node, Scratch) {
    let dir = Scratch::new();
    let settings = NodeSettings {
        data_dir: Some(dir.0.clone()),
        idle_after_ms: Some(1_000),
        presence_ttl_ms,
        ..NodeSettings::default()
    };
    (world.open_with(settings).await, dir)
}

#[tokio::test]
async fn idle_node_polls_clock_and_catalog_every_ten_seconds() {
    const WATCHED_MS: u64 = 120_000;
    // With a presence longer than ten seconds, an idle node checks once per presence.
    for (ttl_ms, looks) in [(1_000, 12), (3_000, 12), (10_000, 12), (60_000, 2)] {
        let world = World::new();
        let (node, _dir) = idle_node(&world, ttl_ms).await;
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let source = node.source("orders").await.unwrap();
        let call_counts = async || {
            let before = node.stats();
            world.pass(WATCHED_MS).await;
            let after = node.stats();
            ["renew", "members", "list"].map(|verb| calls(&after, verb).0 - calls(&before, verb).0)
        };
        source.try_mint().unwrap();
        world.pass(10_000).await;
        let [renewals, clocks, catalogs] = call_counts().await;
        let usual = 3 * WATCHED_MS / ttl_ms;
        // Time passes in steps of 100 ms, which may delay a renewal.
        assert!((usual * 3 / 4..=usual + 1).contains(&renewals), "{ttl_ms}: {renewals} renewals");
        for seen in [clocks, catalogs] {
            assert!((looks - 1..=looks + 1).contains(&seen), "{ttl_ms}: {clocks}, {catalogs}");
        }
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

/// Other servers renew three times between two checks of this node: it still uses their clocks.
#[tokio::test]
async fn idle_node_notices_a_wrong_clock_in_ten_seconds() {
    let world = World::new();
    let servers = [idle_node(&world, 3_000).await, idle_node(&world, 3_000).await];
    let third = world.machine_ahead(0);
    let (node, _dir) = idle_node(&third, 3_000).await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    node.source("orders").await.unwrap().try_mint().unwrap();
    world.pass_with(&third, 30_000).await;
    for wrong_ms in [HOUR_MS, 30_000] {
        third.clock.step_ahead_ms(wrong_ms);
        world.pass_with(&third, 11_000).await;
        let readiness = node.readiness();
        let says = |reason: &Reason| reason.message.contains("most members' clocks");
        assert!(
            !readiness.ready && readiness.reasons.iter().any(says),
            "{wrong_ms}: {readiness:?}"
        );
        third.clock.step_back_ms(wrong_ms);
        world.pass_with(&third, 11_000).await;
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
    assert!(servers.iter().all(|(server, _)| server.readiness().ready));
}
