//! Serials of nodes over the memory store.

use std::collections::HashSet;

use snowmint_core::{ManualClock, UnixMillis};

use super::*;
use crate::sources::{Decoded, IdBatch};
use crate::store::memory::MemoryClock;

const DAY_MS: u64 = 86_400_000;

/// Returns a node with a clock of its own.
async fn node_at(world: &World, time: UnixMillis) -> (Node, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(time));
    let platform = Platform { clock: Arc::clone(&clock) as _, ..world.platform() };
    let node = Node::open(world.handle(), NodeSettings::default(), platform).await.unwrap();
    (node, clock)
}

async fn serials(world: &World, source: &Source, count: u32) -> Result<Vec<String>> {
    let minting = source.mint(count, None, 40_000);
    tokio::pin!(minting);
    for _ in 0..10_000 {
        tokio::select! {
            biased;
            result = &mut minting => return result.map(|values| match values {
                IdBatch::Texts(texts) => texts,
                IdBatch::Numbers(numbers) => panic!("{numbers:?}"),
            }),
            () = settle() => world.timer.advance_ms(5),
        }
    }
    panic!("no result within 50 s");
}

#[tokio::test]
async fn clock_differences_at_midnight_repeat_no_serial() {
    let world = World::new();
    let daily = r#"{"kind":"segment","serial":{"prefix":"S","date":"yyyyMMdd","width":5},
        "step":{"rule":"fixed","size":3}}"#;
    let mut nodes = Vec::new();
    for ahead_ms in [0, 3_000, 6_000] {
        let (node, clock) = node_at(&world, UnixMillis::new(START.get() - 10_000 + ahead_ms)).await;
        node.define("bills", &spec(daily)).await.unwrap();
        nodes.push((node.source("bills").await.unwrap(), clock, node, String::new()));
    }
    let mut seen = HashSet::new();
    for round in 0..80 {
        for (source, clock, _, last) in &mut nodes {
            for serial in serials(&world, source, 2).await.unwrap() {
                assert!(serial > *last, "{round}: {serial} after {last}");
                let Decoded::Serial { period, number } = source.decode(&serial, None).unwrap()
                else {
                    panic!("{serial} is no serial");
                };
                let date = period.unwrap();
                assert_eq!(serial, format!("S{}{number:05}", date.replace('-', "")));
                assert!(number >= 1 && ["2026-05-31", "2026-06-01"].contains(&date.as_str()));
                assert!(seen.insert(serial.clone()), "{round}: {serial} twice");
                *last = serial;
            }
            clock.advance_ms(500);
        }
        if round == 50 {
            // Back to the day before, which no node returns to.
            nodes[1].1.step_back_ms(60_000);
        }
        world.timer.advance_ms(500);
    }
    for (.., last) in &nodes {
        assert!(last.starts_with("S20260601"), "{last}");
    }
    for day in ["S20260531", "S20260601"] {
        assert!(seen.contains(&format!("{day}00001")), "{day} begins with 1");
    }
    // A later node, with a clock that is behind, continues in the newest day.
    let (node, _) = node_at(&world, UnixMillis::new(START.get() - 5_000)).await;
    let late = serials(&world, &node.source("bills").await.unwrap(), 1).await.unwrap();
    assert!(late[0].starts_with("S20260601") && seen.insert(late[0].clone()), "{late:?}");
}

#[tokio::test]
async fn a_number_too_wide_is_an_error_until_the_next_period() {
    let world = World::new();
    let (node, clock) = node_at(&world, START).await;
    let daily = r#"{"kind":"segment","serial":{"date":"yyyyMMdd","width":1},
        "step":{"rule":"fixed","size":4}}"#;
    node.define("bills", &spec(daily)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    for day in 1..=3 {
        let nine = serials(&world, &source, 9).await.unwrap();
        let expected: Vec<_> = (1..=9).map(|number| format!("2026060{day}{number}")).collect();
        assert_eq!(nine, expected);
        for _ in 0..3 {
            let refused = serials(&world, &source, 1).await.unwrap_err();
            assert_eq!(refused.kind().code(), "exhausted", "{refused}");
            let expected = format!("period 2026-06-0{day}, maximum 9");
            assert!(refused.message().contains(&expected), "{refused}");
            settle().await;
        }
        clock.advance_ms(DAY_MS);
        world.timer.advance_ms(DAY_MS);
    }
}

#[tokio::test]
async fn prefetched_serials_expire_at_midnight() {
    let world = World::new();
    let (node, clock) = node_at(&world, START).await;
    node.define("bills", &spec(r#"{"kind":"segment","serial":{"date":"yyyyMM","width":6}}"#))
        .await
        .unwrap();
    let source = node.source("bills").await.unwrap();
    assert_eq!(serials(&world, &source, 2).await.unwrap(), ["202606000001", "202606000002"]);
    clock.advance_ms(30 * DAY_MS - 1);
    world.timer.advance_ms(30 * DAY_MS - 1);
    assert_eq!(serials(&world, &source, 1).await.unwrap(), ["202606000003"]);
    clock.advance_ms(1);
    assert_eq!(serials(&world, &source, 1).await.unwrap(), ["202607000001"]);
    let stats = source.stats().numbers.unwrap();
    assert!(stats.lost >= 97, "{stats:?}: the rest of June");
    assert!(source.try_mint().is_err() && source.reserve_range(1, 0).await.is_err());
    assert!(source.numbers().is_err() && source.try_fill(&mut [0]).is_err());
    node.close().await.unwrap();
    // Numbers that were given back are handed out again, also by a newly opened node.
    let (node, _) = node_at(&world, clock.unix_ms()).await;
    let source = node.source("bills").await.unwrap();
    assert_eq!(serials(&world, &source, 1).await.unwrap(), ["202607000002"]);
}

/// The node's clock is a day ahead, on a store with a clock of its own: the node is rejected, and
/// must not make all other nodes write tomorrow's date either.
#[tokio::test]
async fn wrong_clock_begins_no_new_period() {
    let world = World::new();
    let theirs = MemoryClock::new(START);
    let store = MemoryStore::with_clock("default", theirs.clone()).unwrap();
    let node_at = async |ahead_ms: u64| {
        let clock = Arc::new(ManualClock::new(START.saturating_add(ahead_ms)));
        let platform = Platform { clock: Arc::clone(&clock) as _, ..world.platform() };
        let store = Arc::new(store.handle("default").unwrap());
        (Node::open(store, NodeSettings::default(), platform).await.unwrap(), clock)
    };
    let (right, _) = node_at(0).await;
    let daily = r#"{"kind":"segment","serial":{"date":"yyyyMMdd","width":4}}"#;
    right.define("bills", &spec(daily)).await.unwrap();
    let right_bills = right.source("bills").await.unwrap();
    let (wrong, clock) = node_at(DAY_MS).await;
    let wrong_bills = wrong.source("bills").await.unwrap();
    let refused = serials(&world, &wrong_bills, 1).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::ClockAhead { .. }), "{refused}");
    assert_eq!(serials(&world, &right_bills, 1).await.unwrap(), ["202606010001"]);
    // With the right time, it is accepted.
    clock.step_back_ms(DAY_MS);
    let mut now = Vec::new();
    for _ in 0..60 {
        now = serials(&world, &wrong_bills, 1).await.unwrap_or_default();
        if !now.is_empty() {
            break;
        }
        world.pass(500).await;
    }
    assert!(now[0].starts_with("20260601"), "{now:?}");
}

/// Recoveries reject such a number; a program, or an earlier version, may have set it.
#[tokio::test]
async fn source_at_a_number_in_no_period_tells_what_to_do() {
    let world = World::new();
    let daily = r#"{"kind":"segment","serial":{"prefix":"S","date":"yyyyMMdd","width":6}}"#;
    let (node, _) = node_at(&world, START).await;
    node.define("bills", &spec(daily)).await.unwrap();
    let segments = vec![("bills".to_owned(), Mark::new(20_261_129_000_005))];
    let forward = FastForward { segments, values_only: true, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    let (later, _) = node_at(&world, START).await;
    let source = later.source("bills").await.unwrap();
    let error = serials(&world, &source, 1).await.unwrap_err();
    assert_eq!(error.kind().code(), "exhausted", "{error}");
    assert!(error.message().contains("--segment SOURCE=SERIAL"), "{error}");
}
