//! Process that is killed after it handed something out, and a store that is restored to before.
//! The journal must know of the lost writes, whichever kind of source they were for.

use std::sync::atomic::Ordering;

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, for_program, joined, wanted};
use super::*;
use crate::model::external::ExternalClient;
use crate::model::pool::{ClaimRequest, Preference};
use crate::sources::Source;

/// Longest time, in milliseconds, that the journal may lack the count of a write for which no
/// caller waits for the disk.
const LATE_MS: u64 = 1_200;

/// User of a store's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taker {
    Source(&'static str),
    /// Counter with a section that was acquired before the backup.
    LargerWindow,
    Segment,
    ClientClaim,
    External,
}

use Taker::{ClientClaim, External, LargerWindow, Segment};

const COUNTER: &str = r#"{"kind":"counter"}"#;

impl Taker {
    /// Takers for which the journal counts the write before the caller has the result.
    const AT_ONCE: [Self; 7] = [
        Self::Source(COUNTER),
        Self::Source(r#"{"order":"global","layout":"twitter"}"#),
        Self::Source("{}"),
        Self::Source(r#"{"kind":"segment"}"#),
        Self::Source(r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#),
        LargerWindow,
        Segment,
    ];
    /// Takers for which the journal counts the write soon.
    const SOON: [Self; 3] =
        [Self::Source(r#"{"layout":"redis","mint":"store","worker":77}"#), ClientClaim, External];

    const fn spec(self) -> &'static str {
        match self {
            Self::Source(spec) => spec,
            LargerWindow => COUNTER,
            Segment | ClientClaim | External => FIXED,
        }
    }

    /// Prepares what the backup has.
    async fn prepare(self, world: &World, node: &Node) {
        node.define("bills", &spec(self.spec())).await.unwrap();
        if self == LargerWindow {
            let source = in_time(world, node.source("bills")).await.unwrap();
            count(world, &source, 1).await;
        }
    }

    /// Has the store hand something out, and returns at the moment at which the caller has it.
    async fn take(self, world: &World, node: &Node) {
        match self {
            Self::Source(COUNTER) => {
                let source = in_time(world, node.source("bills")).await.unwrap();
                count(world, &source, 1).await;
            }
            LargerWindow => {
                let source = in_time(world, node.source("bills")).await.unwrap();
                count(world, &source, 1_000_000).await;
            }
            Self::Source(_) => {
                let source = in_time(world, node.source("bills")).await.unwrap();
                in_time(world, source.mint(1, None, 5_000)).await.unwrap();
            }
            Segment => {
                let wanted = wanted(world, 5).await;
                in_time(world, for_program(node, &wanted)).await.unwrap();
            }
            ClientClaim => {
                let Plan::Snowflake(plan) = spec("{}").check().unwrap() else { panic!() };
                let claim = ClaimRequest {
                    pool: pool_of(&plan.layout, node.core().settings.reuse),
                    member: node.incarnation().unwrap(),
                    owner: "client".into(),
                    count: 1,
                    preference: Preference::Any,
                    supersedes: None,
                    mark_at_most: Mark::MAX,
                    request: 7,
                };
                let claimed = node.store().claim(&claim, world.clock.unix_ms());
                assert_eq!(in_time(world, claimed).await.unwrap().len(), 1);
            }
            External => {
                let client = ExternalClient { scope: "shop".into(), label: "a".into() };
                let leased = node.lease_external(&client, 1, 5_000, 1_000, &|_| false);
                in_time(world, leased).await.unwrap();
            }
        }
    }
}

/// Takes numbers of one key.
async fn count(world: &World, source: &Source, count: u64) {
    in_time(world, source.count(b"a", count, 5_000)).await.unwrap();
}

fn settings(dir: &Scratch) -> NodeSettings {
    NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() }
}

/// Checks that the next process on the directory rejects a store without what was taken.
/// `after_ms`: the time until the process ends.
async fn is_noticed(taker: Taker, after_ms: u64, closes: bool) {
    let (world, dir) = (World::new(), Scratch::new());
    let node = Node::open(world.handle(), settings(&dir), world.platform()).await.unwrap();
    joined(&world, &node).await;
    taker.prepare(&world, &node).await;
    world.pass(5_000).await;
    let backup = world.store.backup();
    taker.take(&world, &node).await;
    if closes {
        in_time(&world, node.close()).await.unwrap();
    } else {
        world.pass(after_ms).await;
    }
    drop(node);
    settle().await;
    world.store.restore(backup);
    let opened = Node::open(world.handle(), settings(&dir), world.platform()).await;
    let found = opened.map(|_| ()).map_err(|error| error.kind().code());
    assert_eq!(found, Err("store_rolled_back"), "{taker:?}, closed: {closes}");
}

#[tokio::test]
async fn journal_counts_windows_and_numbers_before_their_use() {
    for taker in Taker::AT_ONCE {
        is_noticed(taker, 0, false).await;
    }
}

#[tokio::test]
async fn journal_counts_what_callers_have_within_a_second() {
    for taker in Taker::SOON {
        is_noticed(taker, LATE_MS, false).await;
    }
}

#[tokio::test]
async fn journal_of_a_closed_node_counts_everything() {
    for taker in Taker::AT_ONCE.into_iter().chain(Taker::SOON) {
        is_noticed(taker, 0, true).await;
    }
}

/// Opens a node, and returns it with the count of writes that its disk has left.
async fn with_counted_writes(world: &World, dir: &Scratch) -> (Node, impl Fn() -> u64) {
    let disk = disk::Failing::after(1_000_000);
    let writes_left = Arc::clone(&disk.writes_left);
    let platform = Platform { disk: Arc::new(disk), ..world.platform() };
    let node = Node::open(world.handle(), settings(dir), platform).await.unwrap();
    joined(world, &node).await;
    (node, move || writes_left.load(Ordering::SeqCst))
}

/// A disk would never be idle if the journal counted renewals.
#[tokio::test]
async fn journal_is_not_written_while_nothing_is_handed_out() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, left) = with_counted_writes(&world, &dir).await;
    LargerWindow.prepare(&world, &node).await;
    world.pass(5_000).await;
    let before = left();
    for _ in 0..60 {
        // Numbers of the open window.
        let source = in_time(&world, node.source("bills")).await.unwrap();
        count(&world, &source, 1).await;
        world.pass(1_000).await;
    }
    assert_eq!(left(), before, "the journal was written");
    in_time(&world, node.close()).await.unwrap();
}

/// A mint of the store is written to the journal once a second at most.
#[tokio::test]
async fn journal_is_not_written_for_each_id_of_the_store() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, left) = with_counted_writes(&world, &dir).await;
    let by_store = Taker::SOON[0];
    by_store.prepare(&world, &node).await;
    world.pass(5_000).await;
    let before = left();
    let begun = world.timer.elapsed();
    for _ in 0..100 {
        by_store.take(&world, &node).await;
        world.pass(100).await;
    }
    let seconds = world.timer.elapsed().since(begun).div_ceil(1_000);
    let written = before - left();
    assert!((5..=2 * seconds + 2).contains(&written), "{written} writes in {seconds} s");
    in_time(&world, node.close()).await.unwrap();
}

/// Callers of a window that the journal cannot count get the reason, and the window opens once the
/// disk is back.
#[tokio::test]
async fn counter_waits_for_the_journal() {
    let (world, dir) = (World::new(), Scratch::new());
    let disk = disk::Hanging::default();
    let hangs = Arc::clone(&disk.hangs);
    let platform = Platform { disk: Arc::new(disk), ..world.platform() };
    let node = Node::open(world.handle(), settings(&dir), platform).await.unwrap();
    joined(&world, &node).await;
    LargerWindow.prepare(&world, &node).await;
    let source = in_time(&world, node.source("bills")).await.unwrap();
    hangs.send_replace(true);
    count(&world, &source, 1).await;
    let late = in_time(&world, source.count(b"a", 1_000_000, 5_000)).await.unwrap_err();
    assert!(late.to_string().contains("journal disk did not respond"), "{late}");
    hangs.send_replace(false);
    count(&world, &source, 1_000_000).await;
    in_time(&world, node.close()).await.unwrap();
}
