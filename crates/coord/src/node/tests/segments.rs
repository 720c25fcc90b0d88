//! Segment sources of a node over the memory store.

use std::sync::Mutex;

use async_trait::async_trait;
use tokio::sync::watch;

use super::*;
use crate::model::ticks::NumberInterval;
use crate::sources::NumberStats;
use crate::store::upstream::Upstream;

fn stats(source: &Source) -> NumberStats {
    source.stats().numbers.unwrap()
}

/// Returns the next number that the store will hand out.
pub(super) async fn mark(world: &World, name: &str) -> u64 {
    world.handle().get(name).await.unwrap().segment.mark.get()
}

#[tokio::test]
async fn fixed_step_moves_the_mark_by_its_size() {
    let world = World::new();
    let node = world.open().await;
    let fixed = r#"{"kind":"segment","step":{"rule":"fixed","size":40}}"#;
    node.define("bills", &spec(fixed)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let mut expected = 1;
    for _ in 0..100 {
        let ids = drawn(&world, &source, 3).await;
        assert_eq!(ids, (expected..expected + 3).collect::<Vec<_>>());
        expected += 3;
        world.pass(1_000).await;
        assert_eq!((mark(&world, "bills").await - 1) % 40, 0);
        assert!(mark(&world, "bills").await < expected + 80, "fetched when it is needed");
    }
}

#[tokio::test]
async fn an_altered_step_counts_from_the_next_fetch_on() {
    let world = World::new();
    let node = world.open().await;
    let fixed =
        |size| spec(&format!(r#"{{"kind":"segment","step":{{"rule":"fixed","size":{size}}}}}"#));
    node.define("bills", &fixed(10)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    drawn(&world, &source, 1).await;
    settle().await;
    assert_eq!(mark(&world, "bills").await, 11);
    node.alter("bills", &fixed(5_000), None).await.unwrap();
    drawn(&world, &source, 10).await;
    settle().await;
    assert_eq!(mark(&world, "bills").await, 5_011);
}

/// Numbers that were given back are not waste; numbers that other nodes' reserves kept from going
/// back are.
#[tokio::test]
async fn waste_is_counted() {
    let world = World::new();
    let (one, other) = (world.open().await, world.open().await);
    let fixed = spec(r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#);
    one.define("bills", &fixed).await.unwrap();
    let (here, there) = (one.source("bills").await.unwrap(), other.source("bills").await.unwrap());
    drawn(&world, &here, 10).await;
    settle().await;
    let now = |stats: NumberStats| (stats.prefetched, stats.fetched, stats.lost);
    assert_eq!(now(stats(&here)), (90, 100, 0));
    drawn(&world, &there, 10).await;
    settle().await;
    one.close().await.unwrap();
    other.close().await.unwrap();
    assert_eq!(now(stats(&here)), (0, 100, 90));
    assert_eq!(now(stats(&there)), (0, 10, 0));
    assert_eq!(mark(&world, "bills").await, 111);
}

#[tokio::test]
async fn prefetch_after_a_burst_never_exceeds_consumption() {
    let world = World::new();
    let node = world.open().await;
    node.define("bills", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    for _ in 0..40 {
        drawn(&world, &source, 500).await;
        world.timer.advance_ms(1);
        settle().await;
        let NumberStats { prefetched, fetched, lost, .. } = stats(&source);
        // Twice the size of a request is needed in any case.
        assert!(
            prefetched <= Ord::max(fetched / 2, 1_000) && lost == 0,
            "{prefetched} of {fetched}"
        );
    }
}

/// Numbers of another system, which can stand still.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) flows: watch::Sender<bool>,
    /// Sizes of the allocations.
    drawn: Mutex<Vec<u64>>,
}

impl Tap {
    pub(super) fn open() -> Arc<Self> {
        Arc::new(Self { flows: watch::Sender::new(true), drawn: Mutex::default() })
    }
}

#[async_trait]
impl Upstream for Tap {
    async fn allocate(&self, _: &str, length: u64) -> Result<NumberInterval> {
        self.flows.subscribe().wait_for(|flows| *flows).await.unwrap();
        let mut drawn = self.drawn.lock().unwrap();
        let first = drawn.iter().sum::<u64>() + 1;
        drawn.push(length);
        Ok(NumberInterval { first, end: first + length })
    }
}

#[tokio::test]
async fn standstill_does_not_count_as_idle() {
    const BATCH: u32 = 500;
    let world = World::new();
    let tap = Tap::open();
    let upstreams = [("old".into(), Arc::clone(&tap) as Arc<dyn Upstream>)].into();
    let node = world.open_with(NodeSettings { upstreams, ..NodeSettings::default() }).await;
    node.define("bills", &spec(r#"{"kind":"segment","upstream":"old:bills"}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    for _ in 0..300 {
        drawn(&world, &source, BATCH).await;
        world.pass(100).await;
    }
    let steady = *tap.drawn.lock().unwrap().last().unwrap();
    assert!(steady > 20_000, "{steady}");
    // No more numbers arrive, and after the prefetched ones all callers wait.
    tap.flows.send_replace(false);
    while stats(&source).prefetched >= BATCH.into() {
        drawn(&world, &source, BATCH).await;
        world.pass(100).await;
    }
    let before = tap.drawn.lock().unwrap().len();
    let waits = source.mint(BATCH, None, 60_000);
    tokio::pin!(waits);
    for _ in 0..200 {
        tokio::select! {
            biased;
            result = &mut waits => panic!("{result:?}"),
            () = world.pass(100) => {}
        }
    }
    tap.flows.send_replace(true);
    while_time_passes(&world, waits).await;
    let first = tap.drawn.lock().unwrap()[before];
    assert!(first >= steady / 2, "{first} after a standstill, {steady} before");
    // Unwanted numbers are not prefetched: the next caller fetches only enough for itself.
    while stats(&source).prefetched >= BATCH.into() {
        drawn(&world, &source, BATCH).await;
    }
    world.pass(600_000).await;
    for _ in 0..20 {
        drawn(&world, &source, 1).await;
        world.pass(60_000).await;
    }
    assert!(stats(&source).prefetched < steady, "after a burst it comes down again");
}

/// Returns the result of a call that may have to wait, while time passes.
async fn while_time_passes<T>(world: &World, call: impl Future<Output = Result<T>>) -> T {
    tokio::pin!(call);
    for _ in 0..10_000 {
        tokio::select! {
            biased;
            result = &mut call => return result.unwrap(),
            () = world.pass(5) => {}
        }
    }
    panic!("no result within 50 s");
}

pub(super) async fn drawn(world: &World, source: &Source, count: u32) -> Vec<u64> {
    numbers(while_time_passes(world, source.mint(count, None, 40_000)).await)
}

fn stripe(offset: u64, increment: u64) -> NewStripe {
    NewStripe { offset, increment, first: None, if_version: None }
}

/// All operations of a handle, by both nodes of a store, while its stripe changes again and again.
#[tokio::test]
async fn numbers_are_unique_and_rise_over_every_change_of_stripe() {
    let world = World::new();
    let (one, other) = (world.open().await, world.open().await);
    one.define("bills", &spec(r#"{"kind":"segment","step":{"min":7}}"#)).await.unwrap();
    let (here, there) = (one.source("bills").await.unwrap(), other.source("bills").await.unwrap());
    let numbers_there = there.numbers().unwrap();
    let mut lane = numbers_there.lane(5);
    let mut seen = HashSet::new();
    let mut last = [0; 2];
    for (round, (offset, increment)) in
        [(1, 1), (2, 3), (2, 2), (16, 16), (1, 16), (1, 1), (3, 7)].into_iter().enumerate()
    {
        let changed = one.restripe("bills", stripe(offset, increment)).await.unwrap();
        let first = changed.next.unwrap();
        for turn in 0..30_u64 {
            let mut taken = [Vec::new(), Vec::new()];
            taken[0] = drawn(&world, &here, 9).await;
            let row = while_time_passes(&world, here.reserve_range(4, 40_000)).await;
            assert_eq!((row.increment, row.last), (increment, row.first + 3 * increment));
            for index in 0..4 {
                assert!(seen.insert(row.first + index * increment), "{round}");
            }
            taken[1] = drawn(&world, &there, 11).await;
            taken[1].extend(numbers_there.try_next());
            // The lane holds other numbers, below these.
            for _ in 0..3 {
                if let Ok(id) = lane.try_next() {
                    assert!(seen.insert(id), "{round}");
                }
            }
            for (taken, last) in taken.iter().zip(&mut last) {
                for id in taken {
                    assert!(*id > *last && seen.insert(*id), "{round}: {id} after {last}");
                    *last = *id;
                }
            }
            assert!(taken[0].iter().all(|id| *id >= first && id % increment == offset % increment));
            world.pass(100 + turn * 50).await;
        }
        assert!(last[1] >= first && last[1] % increment == offset % increment, "the other follows");
        let shown = here.decode(&last[0].to_string(), None).unwrap();
        assert_eq!(shown, Decoded::Number { id: last[0] });
    }
    let lost = stats(&here).lost;
    assert!(lost > 0 && lost < 500, "{lost}: what was prefetched is lost");
    let end = mark(&world, "bills").await;
    one.close().await.unwrap();
    other.close().await.unwrap();
    assert!(mark(&world, "bills").await < end, "the last stripe's end goes back");
}

#[tokio::test]
async fn new_stripe_continues_at_the_old_ones_end() {
    let world = World::new();
    let node = world.open().await;
    let fixed = r#"{"kind":"segment","offset":2,"increment":2,"step":{"rule":"fixed","size":10}}"#;
    node.define("bills", &spec(fixed)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    assert_eq!(drawn(&world, &source, 3).await, [2, 4, 6]);
    settle().await;
    // Ten numbers were promised, up to 20.
    let info = node.definition("bills").await.unwrap();
    assert_eq!(info.next, Some(22));
    for (wanted, word) in [
        (NewStripe { first: Some(20), ..stripe(1, 3) }, "the end of issued numbers"),
        (stripe(4, 3), "offset"),
        (stripe(0, 3), "offset"),
        (stripe(1, 0), "increment"),
    ] {
        let refused = node.restripe("bills", wanted).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Invalid), "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let stale = NewStripe { if_version: Some(info.version - 1), ..stripe(1, 3) };
    let refused = node.restripe("bills", stale).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Conflict), "{refused}");
    assert_eq!(node.definition("bills").await.unwrap(), info, "nothing has changed");

    let changed =
        node.restripe("bills", NewStripe { first: Some(22), ..stripe(1, 3) }).await.unwrap();
    assert_eq!(
        (changed.next, changed.spec.first, changed.spec.first_at),
        (Some(22), Some(22), Some(11))
    );
    assert_eq!(drawn(&world, &source, 3).await, [22, 25, 28]);
    // A newly opened node reads the same.
    let other = world.open().await;
    let there = other.source("bills").await.unwrap();
    assert_eq!(drawn(&world, &there, 1).await, [52]);
    node.define("orders", &SourceSpec::default()).await.unwrap();
    assert!(node.restripe("orders", stripe(1, 2)).await.is_err(), "no segment source");
    assert!(node.restripe("absent", stripe(1, 2)).await.is_err());
}

#[tokio::test]
async fn source_with_an_end_stops_there_until_it_is_raised() {
    let world = World::new();
    let node = world.open().await;
    let ends = |until: &str| {
        spec(&format!(r#"{{"kind":"segment","offset":2,"increment":3,"until":{until}}}"#))
    };
    node.define("bills", &ends("null")).await.unwrap();
    let source = node.source("bills").await.unwrap();
    node.alter("bills", &ends("13"), None).await.unwrap();
    assert_eq!(drawn(&world, &source, 4).await, [2, 5, 8, 11]);
    let refused = source.try_mint().unwrap_err();
    settle().await;
    let later = source.try_mint().unwrap_err();
    for refused in [refused, later] {
        assert!(
            matches!(refused.retry(), crate::Retry::AfterMs(_) | crate::Retry::Now),
            "{refused}"
        );
    }
    assert!(source.try_mint().unwrap_err().to_string().contains("below 13"));
    let first = NewStripe { first: Some(13), ..stripe(1, 4) };
    node.restripe("bills", first).await.unwrap();
    assert_eq!(drawn(&world, &source, 2).await, [13, 17]);
    assert_eq!(node.definition("bills").await.unwrap().spec.until, None);
}

/// The end must be true: the reader of it may begin there.
#[tokio::test]
async fn source_end_below_issued_numbers_is_rejected() {
    let world = World::new();
    let node = world.open().await;
    let ends = |until: &str| {
        spec(&format!(
            r#"{{"kind":"segment","step":{{"rule":"fixed","size":10}},"until":{until}}}"#
        ))
    };
    node.define("bills", &ends("null")).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let before = drawn(&world, &source, 25).await;
    settle().await;
    let next = mark(&world, "bills").await;
    for until in [5, 25, next - 1] {
        let refused = node.alter("bills", &ends(&until.to_string()), None).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Invalid), "{refused}");
        assert!(refused.to_string().contains(&format!("use {next} or more")), "{refused}");
    }
    node.alter("bills", &ends(&next.to_string()), None).await.unwrap();
    let first = |first| NewStripe { first: Some(first), ..stripe(1, 1) };
    assert!(node.restripe("bills", first(25)).await.is_err());
    node.restripe("bills", first(next)).await.unwrap();
    let after = drawn(&world, &source, 10).await;
    assert!(after[0] == next && next > before[24], "{after:?} after {before:?}");
}

/// The store's mark shows exactly what was handed out: the first number of the next stripe is
/// compared with it.
#[tokio::test]
async fn source_with_an_end_reserves_nothing_beyond() {
    let world = World::new();
    let node = world.open().await;
    let ends = |until: &str| {
        spec(&format!(
            r#"{{"kind":"segment","offset":2,"increment":3,"step":{{"rule":"fixed","size":10}},"until":{until}}}"#
        ))
    };
    node.define("bills", &ends("100")).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let all: Vec<u64> = (2..100).step_by(3).collect();
    assert_eq!(drawn(&world, &source, 33).await, all);
    assert!(source.try_mint().is_err());
    settle().await;
    let last = u64::try_from(all.len()).unwrap();
    assert_eq!(mark(&world, "bills").await, last + 1);
    let writes = world.handle().identity().await.unwrap().writes;
    let refused = source.reserve_range(3, 1_000).await.unwrap_err();
    assert!(refused.to_string().contains("below 100"), "{refused}");
    assert_eq!(world.handle().identity().await.unwrap().writes, writes);

    // As after a restore to a time when the source had an end, which was removed later.
    let segments = vec![("bills".into(), Mark::new(last + 500))];
    let forward = FastForward { segments, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    // The node learns of it in the result of the next call, and joins again.
    drop(node.definition("bills").await);
    world.pass(5_000).await;
    let first = |first| NewStripe { first: Some(first), ..stripe(1, 3) };
    let refused = node.restripe("bills", first(100)).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Invalid), "{refused}");
    assert!(refused.to_string().contains("the end of issued numbers"), "{refused}");
    node.restripe("bills", stripe(1, 3)).await.unwrap();
    assert!(drawn(&world, &source, 1).await[0] > 3 * (last + 499));
}

/// A range with fewer numbers than requested is an error.
#[tokio::test]
async fn range_beyond_the_source_end_is_rejected() {
    let world = World::new();
    let node = world.open().await;
    node.define("bills", &spec(r#"{"kind":"segment","until":21}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let row = source.reserve_range(15, 1_000).await.unwrap();
    assert_eq!((row.first, row.last), (1, 15));
    assert!(source.reserve_range(6, 1_000).await.is_err(), "five are left");
}

#[tokio::test]
async fn rows_of_a_segment_source_follow_one_another() {
    let world = World::new();
    let node = world.open().await;
    let odd = spec(r#"{"kind":"segment","offset":1,"increment":3,"first":7}"#);
    node.define("numbers", &odd).await.unwrap();
    let source = node.source("numbers").await.unwrap();
    let row = source.reserve_range(10, 1_000).await.unwrap();
    assert_eq!((row.first, row.last, row.increment), (7, 34, 3));
    let next = source.reserve_range(1, 1_000).await.unwrap();
    assert_eq!((next.first, next.last), (37, 37));
    assert!(source.reserve_range(0, 1_000).await.is_err());
}

#[tokio::test]
async fn a_closed_segment_source_gives_its_tail_back() {
    let world = World::new();
    let mut expected = 1;
    for _ in 0..3 {
        let node = world.open().await;
        node.define("numbers", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
        let source = node.source("numbers").await.unwrap();
        let ids = numbers(source.mint(10, None, 1_000).await.unwrap());
        assert_eq!(ids, (expected..expected + 10).collect::<Vec<_>>(), "no gap");
        expected += 10;
        settle().await;
        node.close().await.unwrap();
    }
}
