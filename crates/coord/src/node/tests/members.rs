//! Members that lists show as live, on a store without a clock of its own.

use super::*;

/// Time to live, shorter than the difference of the clocks, as with `counters.lease = "3s"`.
const TTL_MS: u64 = 3_000;

/// Returns the incarnations that lists of this node show as live: of members and of holders.
async fn live(node: &Node) -> [Vec<Incarnation>; 2] {
    let members = node.members().await.unwrap().into_iter().filter(|info| info.live);
    let mut members: Vec<_> = members.map(|info| info.member.incarnation).collect();
    let holders = node.workers().await.unwrap().into_iter().filter(|slot| slot.live);
    let mut holders: Vec<_> = holders.filter_map(|slot| slot.holder).collect();
    members.sort_unstable();
    holders.sort_unstable();
    [members, holders]
}

/// Its clock is within `clock_skew_max_ms`: it is ready, mints, and owns sections.
#[tokio::test]
async fn member_with_a_clock_within_the_skew_is_listed_as_live() {
    for (offset_ms, is_within) in [(-4_000, true), (4_000, true), (-60_000, false)] {
        let world = World::new();
        let start = START.get().checked_add_signed(offset_ms).unwrap();
        let wrong = Arc::new(ManualClock::new(UnixMillis::new(start)));
        // The tests move this clock by themselves.
        let platform = Platform { clock: Arc::clone(&wrong) as _, ..world.platform() };
        let pass = async |seconds: u64| {
            for _ in 0..seconds * 10 {
                wrong.advance_ms(100);
                world.pass(100).await;
            }
        };
        let settings = || NodeSettings { presence_ttl_ms: TTL_MS, ..NodeSettings::default() };
        let node = world.open_with(settings()).await;
        node.define("orders", &SourceSpec::default()).await.unwrap();
        node.source("orders").await.unwrap();
        let other = Node::open(world.handle(), settings(), platform).await.unwrap();
        pass(2).await;
        other.source("orders").await.unwrap().try_mint().unwrap();
        let ids = [node.incarnation().unwrap(), other.incarnation().unwrap()];
        let mut both = ids.to_vec();
        both.sort_unstable();
        let seen = |own: Incarnation| if is_within { both.clone() } else { vec![own] };
        for _ in 0..5 {
            pass(5).await;
            for (viewer, own) in [(&node, ids[0]), (&other, ids[1])] {
                assert_eq!(live(viewer).await, [seen(own), seen(own)], "{offset_ms}");
            }
        }

        // Without a last word, as a killed process. Its clock does not help it then.
        drop(other);
        live(&node).await;
        pass(4).await;
        assert_eq!(live(&node).await, [vec![ids[0]], vec![ids[0]]], "{offset_ms}");
    }
}
