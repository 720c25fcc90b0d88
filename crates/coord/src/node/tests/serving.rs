//! Slots that a server gives up, because it cannot use them or peers cannot reach it.

use snowmint_core::UnixMillis;

use super::*;
use crate::error::Retry;
use crate::model::member::Serves;

const HOUR_MS: i64 = 3_600_000;

/// Server with a clock of its own.
struct Server {
    node: Node,
    order: Source,
    counted: Source,
    clock: Arc<ManualClock>,
}

async fn server(world: &World, address: &str) -> Server {
    let clock = Arc::new(ManualClock::new(world.clock.unix_ms()));
    let platform = Platform { clock: Arc::clone(&clock) as _, ..world.platform() };
    let settings = NodeSettings {
        address: address.into(),
        owner: address.into(),
        presence_ttl_ms: 3_000,
        ..NodeSettings::default()
    };
    let node = Node::open(world.handle(), settings, platform).await.unwrap();
    node.define("orders", &spec(r#"{"order":"global","layout":"twitter"}"#)).await.unwrap();
    node.define("counted", &spec(r#"{"kind":"counter"}"#)).await.unwrap();
    let (order, counted) =
        (node.source("orders").await.unwrap(), node.source("counted").await.unwrap());
    settle().await;
    Server { node, order, counted, clock }
}

async fn three(world: &World) -> [Server; 3] {
    let servers = [
        server(world, "one:1").await,
        server(world, "two:1").await,
        server(world, "three:1").await,
    ];
    // Until each server has seen all others, and called for its own slots.
    for _ in 0..40 {
        pass(world, &servers, 100).await;
        for server in &servers {
            let _ = mint(server).await;
            for key in 0..50 {
                let _ = count(server, key).await;
            }
        }
    }
    servers
}

async fn pass(world: &World, servers: &[Server], ms: u64) {
    for _ in 0..ms / 100 {
        servers.iter().for_each(|server| server.clock.advance_ms(100));
        world.pass(100).await;
    }
}

/// Repeats the call, without time passing, until there is a result or another owner is named.
async fn result_of<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    for _ in 0..50 {
        match ask().await {
            Err(error) if error.retry() != Retry::Never => settle().await,
            result => return result,
        }
    }
    ask().await
}

async fn mint(server: &Server) -> Result<u64> {
    result_of(async || server.order.try_mint()).await
}

async fn count(server: &Server, key: u32) -> Result<(u64, u64)> {
    let key = format!("key-{key}");
    result_of(async || server.counted.count(key.as_bytes(), 1, 0).await).await
}

/// Returns the server that mints in order, within this time.
async fn owner(world: &World, servers: &[Server], within_ms: u64) -> Option<usize> {
    for _ in 0..=within_ms / 100 {
        for (place, server) in servers.iter().enumerate() {
            if mint(server).await.is_ok() {
                return Some(place);
            }
        }
        pass(world, servers, 100).await;
    }
    None
}

/// Returns how many of fifty keys a server counts.
async fn keys_of(server: &Server) -> usize {
    let mut keys = 0;
    for key in 0..50 {
        keys += usize::from(count(server, key).await.is_ok());
    }
    keys
}

async fn says(world: &World, server: &Server) -> Serves {
    let members = world.handle().members(world.clock.unix_ms()).await.unwrap();
    let own = server.node.incarnation().unwrap();
    let info = members.into_iter().find(|info| info.member.incarnation == own).unwrap();
    info.status.serves
}

#[tokio::test]
async fn owner_with_a_wrong_clock_gives_up_order_in_a_second() {
    for offset_ms in [-HOUR_MS, HOUR_MS, -9_000] {
        let world = World::new();
        let servers = three(&world).await;
        let before = owner(&world, &servers, 1_000).await.unwrap();
        let wrong = &servers[before];
        let right = wrong.clock.unix_ms();
        let set = |clock: UnixMillis, offset_ms: i64| {
            UnixMillis::new(clock.get().saturating_add_signed(offset_ms))
        };
        wrong.clock.set(set(right, offset_ms));
        let keys = keys_of(wrong).await;
        let mut highest = 0;
        let mut refused_ms = 0;
        let mut gave_up_ms = None;
        for step in 1..=100_u64 {
            pass(&world, &servers, 100).await;
            if gave_up_ms.is_none() && says(&world, wrong).await == Serves::Counters {
                gave_up_ms = Some(step * 100);
            }
            let mut minted = false;
            for server in &servers {
                if let Ok(id) = mint(server).await {
                    assert!(id > highest, "{offset_ms}: {id} after {highest}");
                    (highest, minted) = (id, true);
                }
            }
            refused_ms += u64::from(!minted) * 100;
        }
        assert!(gave_up_ms.is_some_and(|ms| ms <= 1_000), "{offset_ms}: {gave_up_ms:?} ms");
        assert!(refused_ms <= 2_000, "{offset_ms}: no server mints for {refused_ms} ms");
        assert_eq!(says(&world, wrong).await, Serves::Counters, "{offset_ms}");
        let after = owner(&world, &servers, 0).await.unwrap();
        assert_ne!(after, before, "{offset_ms}");
        assert!(keys > 0, "{offset_ms}");
        assert_eq!(keys_of(wrong).await, keys, "{offset_ms}: counters need no clock");
        // With the right time, it resumes what it gave up.
        let ago_ms = i64::try_from(world.clock.unix_ms().since(right)).unwrap();
        wrong.clock.set(set(right, ago_ms));
        pass(&world, &servers, 30_000).await;
        assert_eq!(says(&world, wrong).await, Serves::All, "{offset_ms}");
        assert_eq!(owner(&world, &servers, 3_000).await, Some(before), "{offset_ms}");
    }
}

#[tokio::test]
async fn order_stays_with_its_owner_if_all_clocks_are_wrong() {
    let world = World::new();
    let servers = three(&world).await;
    let before = owner(&world, &servers, 1_000).await.unwrap();
    for server in &servers {
        server.clock.set(UnixMillis::new(server.clock.unix_ms().get() - 3_600_000));
    }
    pass(&world, &servers, 20_000).await;
    for server in &servers {
        server.clock.set(world.clock.unix_ms());
    }
    assert_eq!(owner(&world, &servers, 3_000).await, Some(before));
}

#[tokio::test]
async fn a_server_that_most_others_cannot_reach_gives_everything_up() {
    let world = World::new();
    let servers = three(&world).await;
    let before = owner(&world, &servers, 1_000).await.unwrap();
    let lost = &servers[before];
    let others: Vec<&Server> =
        servers.iter().filter(|server| !std::ptr::eq(*server, lost)).collect();
    let lost_member = lost.node.incarnation().unwrap();
    let keys = keys_of(lost).await;
    assert!(keys > 0);

    // Only one of its peers cannot reach it.
    others[0].node.suspect_peer(lost_member);
    pass(&world, &servers, 200).await;
    let tries = others[0].node.peers_to_probe().await;
    assert_eq!(tries.iter().map(|server| server.member).collect::<Vec<_>>(), [lost_member]);
    others[0].node.peer_probed(lost_member, false);
    pass(&world, &servers, 5_000).await;
    assert_eq!(says(&world, lost).await, Serves::All);
    assert_eq!(keys_of(lost).await, keys);

    // The other peer learns of this, probes too, and gets no response either.
    assert_eq!(others[1].node.peers_to_probe().await[0].member, lost_member);
    others[1].node.peer_probed(lost_member, false);
    pass(&world, &servers, 3_000).await;
    assert_eq!(says(&world, lost).await, Serves::Nothing);
    assert_eq!(keys_of(lost).await, 0);
    for key in 0..50 {
        let counted = [count(others[0], key).await, count(others[1], key).await];
        assert!(counted.iter().any(Result::is_ok), "{key}: {counted:?}");
    }
    assert_ne!(owner(&world, &servers, 1_000).await, Some(before));

    // It is reached again.
    for other in &others {
        other.node.peer_probed(lost_member, true);
    }
    pass(&world, &servers, 15_000).await;
    assert_eq!(says(&world, lost).await, Serves::All);
    assert_eq!(owner(&world, &servers, 3_000).await, Some(before));
    for key in 0..50 {
        let _ = count(lost, key).await;
    }
    assert_eq!(keys_of(lost).await, keys);
}

/// Probes the peers of a server that are due, as servers do each second. One does not respond.
async fn probe_peers(server: &Server, silent: Incarnation) {
    let due = tokio::select! {
        biased;
        due = server.node.peers_to_probe() => due,
        () = tokio::task::yield_now() => Vec::new(),
    };
    due.iter().for_each(|peer| server.node.peer_probed(peer.member, peer.member != silent));
}

/// A request of one peer got no response. Its probe, its report, the other peer's probe and report,
/// and the owner's look at both reports follow one another, each within a second or two.
#[tokio::test]
async fn unreachable_owner_gives_up_within_ten_seconds() {
    let world = World::new();
    let servers = three(&world).await;
    let before = owner(&world, &servers, 1_000).await.unwrap();
    let lost = &servers[before];
    let others: Vec<&Server> =
        servers.iter().filter(|server| !std::ptr::eq(*server, lost)).collect();
    let lost_member = lost.node.incarnation().unwrap();
    assert!(keys_of(lost).await > 0);
    others[0].node.suspect_peer(lost_member);
    let mut waited_ms = 0;
    while says(&world, lost).await != Serves::Nothing || keys_of(lost).await > 0 {
        assert!(waited_ms < 10_000, "still an owner after {waited_ms} ms");
        if waited_ms % 1_000 == 0 {
            for other in &others {
                probe_peers(other, lost_member).await;
            }
        }
        pass(&world, &servers, 100).await;
        waited_ms += 100;
    }
    assert!(mint(lost).await.is_err());
}

/// No time passes: the peers know at once, and no caller waits for a lease or the next list.
#[tokio::test]
async fn stopping_server_hands_over_while_it_still_serves() {
    let world = World::new();
    let servers = three(&world).await;
    let leaving = owner(&world, &servers, 1_000).await.unwrap();
    let kept = keys_of(&servers[leaving]).await;
    let leaves = &servers[leaving].node;
    assert!(leaves.announce_stop().await.unwrap());
    assert_eq!(says(&world, &servers[leaving]).await, Serves::Nothing);
    assert_eq!(keys_of(&servers[leaving]).await, kept, "kept until the peers know");
    assert!(mint(&servers[leaving]).await.is_ok());
    let peers = servers.iter().filter(|server| !std::ptr::eq(*server, &servers[leaving]));
    let peers: Vec<&Server> = peers.collect();
    for peer in &peers {
        peer.node.members_changed(1_000).await;
    }
    leaves.hand_over().await.unwrap();
    assert_eq!(leaves.stats().sections, 0);
    let keys = keys_of(peers[0]).await + keys_of(peers[1]).await;
    assert_eq!(keys, 50);
    // The one that leaves sends callers there.
    let error = count(&servers[leaving], 0).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotOwner { .. }), "{error}");
    // The mark of the order lies ahead of the clock, and the next owner continues there.
    let next = owner(&world, &servers, 1_000).await;
    assert!(next.is_some_and(|next| next != leaving), "{next:?}");
}

/// No other server takes over, so it serves to the end.
#[tokio::test]
async fn last_server_keeps_its_sections_at_a_stop() {
    let world = World::new();
    let servers = [server(&world, "one:1").await];
    assert_eq!(keys_of(&servers[0]).await, 50);
    assert!(servers[0].node.announce_stop().await.unwrap());
    servers[0].node.members_changed(1_000).await;
    servers[0].node.hand_over().await.unwrap();
    assert_eq!(keys_of(&servers[0]).await, 50);
    servers[0].node.close().await.unwrap();
}

#[tokio::test]
async fn partitioned_nodes_keep_their_sections() {
    let world = World::new();
    let servers = [server(&world, "one:1").await, server(&world, "two:1").await];
    for _ in 0..30 {
        pass(&world, &servers, 100).await;
        for server in &servers {
            keys_of(server).await;
        }
    }
    let keys = [keys_of(&servers[0]).await, keys_of(&servers[1]).await];
    assert_eq!(keys[0] + keys[1], 50, "{keys:?}");
    let members = servers.each_ref().map(|server| server.node.incarnation().unwrap());
    servers[0].node.peer_probed(members[1], false);
    servers[1].node.peer_probed(members[0], false);
    for _ in 0..50 {
        pass(&world, &servers, 100).await;
    }
    assert_eq!([keys_of(&servers[0]).await, keys_of(&servers[1]).await], keys);
}

/// No caller is sent to it, so no peer needs its status, and each announcement is a write.
#[tokio::test]
async fn node_without_address_announces_nothing() {
    for (address, expected) in [("one:1", Serves::Counters), ("", Serves::All)] {
        let world = World::new();
        let servers = [server(&world, address).await];
        pass(&world, &servers, 1_000).await;
        mint(&servers[0]).await.unwrap();
        let clock = &servers[0].clock;
        clock.set(UnixMillis::new(clock.unix_ms().get() - 3_600_000));
        pass(&world, &servers, 3_000).await;
        assert_eq!(says(&world, &servers[0]).await, expected, "{address:?}");
    }
}

/// Half of all sections is relinquished in many calls, one after the other: callers wait for those
/// in flight.
#[tokio::test]
async fn joining_node_gets_its_sections_at_store_speed() {
    let world = World::new();
    let (first, source) = counters::server(&world, "one:1").await;
    for key in 0.. {
        if first.stats().sections >= u64::from(crate::model::pool::SECTIONS) {
            break;
        }
        counters::count(&source, &key.to_string()).await.unwrap();
    }
    let (second, _) = counters::server(&world, "two:1").await;
    // Until it is seen, and a moment more.
    world.pass(3_000 + 500).await;
    let left = first.stats().sections;
    assert!(left < u64::from(crate::model::pool::SECTIONS) * 6 / 10, "{left} are not relinquished");
    drop(second);
}
