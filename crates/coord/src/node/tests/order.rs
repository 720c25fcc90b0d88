//! Global-order sources of several nodes over the memory store.

use snowmint_core::{Layout, UnixMillis};

use super::*;
use crate::error::Retry;
use crate::model::exclusive::stall_ms;
use crate::model::pool::{SECTIONS, SECTIONS_POOL};
use crate::sources::Decoded;

const TTL_MS: u64 = 9_000;

async fn server(world: &World, address: &str) -> (Node, Source) {
    server_on(world, world.platform(), address).await
}

async fn server_on(world: &World, platform: Platform, address: &str) -> (Node, Source) {
    let settings = NodeSettings {
        address: address.into(),
        owner: address.into(),
        presence_ttl_ms: TTL_MS,
        ..NodeSettings::default()
    };
    let node = Node::open(world.handle(), settings, platform).await.unwrap();
    node.define("orders", &spec(r#"{"order":"global","layout":"twitter"}"#)).await.unwrap();
    let source = node.source("orders").await.unwrap();
    settle().await;
    (node, source)
}

/// Repeats the call, without time passing, until there is a result.
async fn mint(source: &Source) -> Result<u64> {
    for _ in 0..200 {
        match source.try_mint() {
            Err(error) if error.retry() != Retry::Never => settle().await,
            result => return result,
        }
    }
    source.try_mint()
}

fn is_not_owner(result: &Result<u64>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::NotOwner { .. }))
}

/// Last ID: every ID must be greater than all before, whichever server minted it.
#[derive(Default)]
struct History(u64);

impl History {
    fn rises(&mut self, id: u64) {
        assert!(id > self.0, "{id} after {}", self.0);
        self.0 = id;
    }
}

/// Returns the mark of the source's slot.
async fn mark_ms(world: &World) -> u64 {
    let slots = world.handle().workers(world.clock.unix_ms()).await.unwrap();
    let mut ordered =
        slots.iter().filter(|slot| slot.pool == SECTIONS_POOL && slot.slot >= u64::from(SECTIONS));
    let mark = ordered.next().unwrap().mark.get();
    assert!(ordered.next().is_none());
    mark
}

async fn writes(world: &World) -> u64 {
    world.handle().identity().await.unwrap().writes
}

#[tokio::test]
async fn one_process_mints_and_its_ids_carry_time() {
    let world = World::new();
    let (node, source) = server(&world, "one:1").await;
    let mut history = History::default();
    for _ in 0..50 {
        history.rises(mint(&source).await.unwrap());
        let batch = numbers(source.mint(100, None, 0).await.unwrap());
        batch.into_iter().for_each(|id| history.rises(id));
        world.pass(100).await;
    }
    let id = mint(&source).await.unwrap();
    let Decoded::Snowflake { parts, time, .. } = source.decode(&id.to_string(), None).unwrap()
    else {
        panic!("a snowflake")
    };
    assert_eq!((time, parts.worker), (world.clock.unix_ms(), 0));
    node.close().await.unwrap();
    assert_eq!(source.try_mint().unwrap_err().kind().code(), "closed");
}

#[tokio::test]
async fn window_is_short_and_moves_only_while_minting() {
    let world = World::new();
    let (_node, source) = server(&world, "one:1").await;
    mint(&source).await.unwrap();
    let writes_before = writes(&world).await;
    for _ in 0..20 {
        mint(&source).await.unwrap();
        settle().await;
        let ahead_ms = mark_ms(&world).await - world.clock.unix_ms().get();
        assert!((1..=1_000).contains(&ahead_ms), "{ahead_ms}");
        world.pass(100).await;
    }
    // Within two seconds, in which each member also renews.
    let written = writes(&world).await - writes_before;
    assert!((4..=10).contains(&written), "{written}");
    let before = mark_ms(&world).await;
    world.pass(60_000).await;
    assert_eq!(mark_ms(&world).await, before);
    mint(&source).await.unwrap();
}

#[tokio::test]
async fn servers_forward_order_and_hand_over_seamlessly() {
    let world = World::new();
    let mut history = History::default();
    let mut servers = vec![
        server(&world, "one:1").await,
        server(&world, "two:1").await,
        server(&world, "three:1").await,
    ];
    let mut owners = std::collections::BTreeSet::new();
    while servers.len() > 1 {
        // Each round calls every server; exactly one mints, except during a hand-over.
        let mut silent_rounds = 0;
        for round in 0..60 {
            world.pass(100).await;
            let mut by = None;
            for (index, (_, source)) in servers.iter().enumerate() {
                match mint(source).await {
                    Ok(id) => {
                        history.rises(id);
                        by = Some(index);
                    }
                    // It continues above the window of the previous owner, at half speed.
                    Err(error) if matches!(error.kind(), ErrorKind::TickFull { .. }) => {}
                    result => assert!(is_not_owner(&result), "{round}: {result:?}"),
                }
            }
            match by {
                Some(index) => {
                    silent_rounds = 0;
                    owners.insert(servers[index].0.incarnation());
                }
                None => silent_rounds += 1,
            }
            assert!(silent_rounds < 10, "no owner for a second");
        }
        // The owner of the order leaves.
        let mut owner = None;
        for _ in 0..10 {
            for (index, (_, source)) in servers.iter().enumerate() {
                if mint(source).await.inspect(|id| history.rises(*id)).is_ok() {
                    owner = Some(index);
                }
            }
            if owner.is_some() {
                break;
            }
            world.pass(100).await;
        }
        let (left, _) = servers.remove(owner.unwrap());
        left.close().await.unwrap();
        let mut waited_ms = 0;
        'waiting: loop {
            for (_, source) in &servers {
                if let Ok(id) = mint(source).await {
                    history.rises(id);
                    break 'waiting;
                }
            }
            world.pass(100).await;
            waited_ms += 100;
            assert!(waited_ms < 1_000, "no owner after {waited_ms} ms");
        }
    }
    assert!(owners.len() >= 2, "{owners:?}");
}

#[tokio::test]
async fn clocks_that_disagree_do_not_break_the_order() {
    let world = World::new();
    let mut history = History::default();
    // Each is within the allowed distance from the store's clock, and they are seconds apart.
    for offset_ms in [0_i64, 1_500, -1_500, 900, -300] {
        let now = world.clock.unix_ms().get();
        let own = UnixMillis::new(now.saturating_add_signed(offset_ms));
        let clock = Arc::new(ManualClock::new(own));
        let platform = Platform { clock: Arc::clone(&clock) as _, ..world.platform() };
        let (node, source) = server_on(&world, platform, "").await;
        let before = history.0;
        for _ in 0..200 {
            match mint(&source).await {
                Ok(id) => history.rises(id),
                // Behind the last IDs: half speed until it has caught up.
                Err(error) if matches!(error.kind(), ErrorKind::TickFull { .. }) => {}
                Err(error) => panic!("{offset_ms}: {error}"),
            }
            clock.advance_ms(3);
            world.timer.advance_ms(3);
            settle().await;
        }
        assert!(history.0 > before, "{offset_ms}: something was minted");
        node.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_does_not_break_the_order() {
    let world = World::new();
    let (_node, source) = server(&world, "").await;
    let mut history = History::default();
    for step_back_ms in [1, 10, 400, 3_000] {
        for _ in 0..10 {
            history.rises(mint(&source).await.unwrap());
            world.pass(100).await;
        }
        world.clock.set(UnixMillis::new(world.clock.unix_ms().get() - step_back_ms));
        for _ in 0..10 {
            history.rises(
                mint(&source).await.unwrap_or_else(|error| panic!("{step_back_ms}: {error}")),
            );
            world.pass(20).await;
        }
    }
}

#[tokio::test]
async fn global_order_moves_only_after_lease_and_margin() {
    let world = World::new();
    let mut history = History::default();
    let (first, source) = server(&world, "").await;
    history.rises(mint(&source).await.unwrap());
    let (_second, other) = server(&world, "").await;
    assert!(is_not_owner(&mint(&other).await));
    // As good as killed: it stops renewing, and gives nothing back.
    drop((first, source));
    let mut waited_ms = 0;
    let id = loop {
        world.pass(100).await;
        waited_ms += 100;
        assert!(waited_ms <= stall_ms(TTL_MS) + TTL_MS / 3 + 500, "{waited_ms}");
        match mint(&other).await {
            Ok(id) => break id,
            result => assert!(is_not_owner(&result), "{result:?}"),
        }
    };
    history.rises(id);
    assert!(waited_ms >= TTL_MS, "{waited_ms}");
}

#[tokio::test]
async fn altered_policy_continues_above() {
    let world = World::new();
    let (node, source) = server(&world, "").await;
    let mut history = History::default();
    for keys in [r#""burst":"20ms""#, r#""on_rollback":"fail""#, r#""sequence_start":"random""#] {
        for _ in 0..20 {
            history.rises(mint(&source).await.unwrap());
        }
        let altered = spec(&format!(r#"{{"order":"global","layout":"twitter",{keys}}}"#));
        node.alter("orders", &altered, None).await.unwrap();
        world.pass(1_000).await;
        for _ in 0..20 {
            history.rises(mint(&source).await.unwrap());
        }
    }
}

/// The layouts' units are from 1 ms to a second; a window has room for some ticks of each.
#[tokio::test]
async fn every_unit_has_time_enough() {
    let world = World::new();
    let (node, _source) = server(&world, "").await;
    for (name, layout) in [
        ("hundredths", Layout::SONYFLAKE.to_string()),
        ("seconds", "time=31,worker=19,sequence=13,unit=1s,epoch=2026-01-01T00:00:00Z".to_owned()),
    ] {
        let keys = format!(r#"{{"order":"global","layout":"{layout}"}}"#);
        node.define(name, &spec(&keys)).await.unwrap();
        let source = node.source(name).await.unwrap();
        let mut history = History::default();
        for _ in 0..50 {
            history.rises(mint(&source).await.unwrap());
            world.pass(100).await;
        }
    }
}
