//! State after a process is killed: dropped without an end, its clock set to anything, and opened
//! again on the same store.

use std::collections::HashSet;
use std::path::PathBuf;

use snowmint_core::Clock;

use super::*;
use crate::error::ErrorKind;
use crate::journal::{DataDir, inspect};
use crate::model::history::{Recalled, StoreIdentity, StoredHistory, recall};
use crate::model::pool::Reuse;
use crate::platform::random;
use crate::sources::Source;

const YEAR_MS: u64 = 31_556_952_000;

/// Directory that is removed after the test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        let number = random::number().unwrap();
        Self(std::env::temp_dir().join(format!("snowmint-node-{number:x}")))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings(dir: Option<&Scratch>) -> NodeSettings {
    NodeSettings {
        owner: "shop-1".into(),
        data_dir: dir.map(|dir| dir.0.clone()),
        ..NodeSettings::default()
    }
}

async fn open(world: &World, dir: Option<&Scratch>, source: &str) -> Result<(Node, Source)> {
    let node = Node::open(world.handle(), settings(dir), world.platform()).await?;
    node.define("orders", &SourceSpec::from_json(source).unwrap()).await?;
    let source = in_time(world, node.source("orders")).await?;
    Ok((node, source))
}

/// Waits for a future that needs time to pass.
pub(super) async fn in_time<T>(world: &World, what: impl Future<Output = T>) -> T {
    tokio::pin!(what);
    for _ in 0..200_000 {
        tokio::select! {
            biased;
            done = &mut what => return done,
            () = settle() => {
                world.clock.advance_ms(5);
                world.timer.advance_ms(5);
            }
        }
    }
    panic!("it never comes")
}

/// Mints as much as possible within a bound, letting time pass.
pub(super) async fn mint_some(
    world: &World,
    source: &Source,
    seen: &mut HashSet<u64>,
    what: &str,
) -> usize {
    let mut made = 0;
    for _ in 0..300 {
        for _ in 0..50 {
            match source.try_mint() {
                Ok(id) => {
                    assert!(seen.insert(id), "{what}: {id} was minted twice");
                    made += 1;
                }
                Err(_) => break,
            }
        }
        if made >= 200 {
            break;
        }
        world.clock.advance_ms(7);
        world.timer.advance_ms(7);
        settle().await;
    }
    made
}

/// Runs several lives of one process: each is killed, and the clock is set back before the next.
async fn killed_and_set_back(journal: bool, back_ms: u64, source: &str) {
    let world = World::new();
    let dir = Scratch::new();
    let dir = journal.then_some(&dir);
    let mut seen = HashSet::new();
    for life in 0..4 {
        let what = format!("journal {journal}, {back_ms} ms back, life {life}, {source}");
        let (node, source) =
            open(&world, dir, source).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let made = mint_some(&world, &source, &mut seen, &what).await;
        assert!(made >= 200, "{what}: only {made} IDs");
        drop((node, source));
        settle().await;
        world.clock.step_back_ms(back_ms);
        world.timer.advance_ms(1);
    }
}

// Years back lie before the default epoch, so these layouts begin earlier.
macro_rules! set_back {
    ($($name:ident: $ms:expr,)*) => {$(
        #[tokio::test]
        async fn $name() {
            for journal in [false, true] {
                for source in [
                    r#"{"epoch":"1980-01-01T00:00:00Z"}"#,
                    r#"{"epoch":"1980-01-01T00:00:00Z","on_rollback":"borrow"}"#,
                    r#"{"epoch":"1980-01-01T00:00:00Z","on_rollback":"ring"}"#,
                ] {
                    killed_and_set_back(journal, $ms, source).await;
                }
            }
        }
    )*};
}

set_back! {
    killed_with_a_clock_that_is_right_never_repeats: 0,
    killed_and_set_back_by_1_ms_never_repeats: 1,
    killed_and_set_back_by_100_ms_never_repeats: 100,
    killed_and_set_back_by_1_s_never_repeats: 1_000,
    killed_and_set_back_by_10_s_never_repeats: 10_000,
    killed_and_set_back_by_1_min_never_repeats: 60_000,
    killed_and_set_back_by_1_h_never_repeats: 3_600_000,
    killed_and_set_back_by_1_day_never_repeats: 86_400_000,
    killed_and_set_back_by_10_weeks_never_repeats: 6_048_000_000,
    killed_and_set_back_by_10_years_never_repeats: 10 * YEAR_MS,
}

/// The journal knows both numbers; two leases that both ask for the first of them must not cost the
/// second.
#[tokio::test]
async fn two_leases_of_one_pool_keep_their_numbers_over_a_crash() {
    let (world, dir) = (World::new(), Scratch::new());
    let mut before = None;
    for life in 0..4 {
        let (node, plain) = open(&world, Some(&dir), "{}").await.unwrap();
        for name in ["one", "other"] {
            node.define(name, &spec(r#"{"on_rollback":"borrow"}"#)).await.unwrap();
        }
        let both = async { tokio::join!(node.source("one"), node.source("other")) };
        let (one, other) = in_time(&world, both).await;
        let mut seen = HashSet::new();
        for source in [&plain, &one.unwrap(), &other.unwrap()] {
            mint_some(&world, source, &mut seen, "of one pool").await;
        }
        let slots = node.workers().await.unwrap();
        let numbers: Vec<_> = slots.iter().map(|slot| slot.slot).collect();
        assert_eq!(*before.get_or_insert_with(|| numbers.clone()), numbers, "life {life}");
        drop((node, plain));
        settle().await;
        // Each life's journal leads the clock by half a second.
        world.clock.advance_ms(1_000);
        world.timer.advance_ms(1_000);
    }
}

#[tokio::test]
async fn clock_values_outlive_the_process() {
    let source = r#"{"layout":"clock-sequence"}"#;
    for back_ms in [0, 1, 1_000, 60_000] {
        for journal in [false, true] {
            killed_and_set_back(journal, back_ms, source).await;
        }
    }
}

#[tokio::test]
async fn journal_resumes_the_number_after_a_kill() {
    let world = World::new();
    let dir = Scratch::new();
    let mut seen = HashSet::new();
    for life in 0..5 {
        let (node, source) = open(&world, Some(&dir), "{}").await.unwrap();
        let made = mint_some(&world, &source, &mut seen, "journal").await;
        assert!(made >= 200, "life {life}: {made}");
        let workers = node.workers().await.unwrap();
        assert_eq!(workers.len(), 1, "life {life}: the same number each time");
        let taken = source.stats().taken_until.unwrap();
        assert!(taken.since(world.clock.unix_ms()) <= 1_000, "life {life}: far ahead");
        drop((node, source));
        settle().await;
        // Longer than the journal's lead: a process that is killed more often leads a bit more each
        // time.
        world.clock.advance_ms(600);
    }
}

#[tokio::test]
async fn without_a_journal_a_killed_process_takes_another_number() {
    let world = World::new();
    let mut seen = HashSet::new();
    for life in 1..=5 {
        let (node, source) = open(&world, None, "{}").await.unwrap();
        mint_some(&world, &source, &mut seen, "no journal").await;
        assert_eq!(node.workers().await.unwrap().len(), life);
        drop((node, source));
        settle().await;
    }
}

#[tokio::test]
async fn after_crash_refuse_does_not_mint_and_wait_waits() {
    for (after_crash, minted_at_once) in [
        (AfterCrash::Refuse, None),
        (AfterCrash::Wait, Some(false)),
        (AfterCrash::Lead { max_ms: 60_000 }, Some(true)),
    ] {
        let world = World::new();
        let mut seen = HashSet::new();
        let brief = NodeSettings { presence_ttl_ms: 3_000, ..settings(None) };
        let node = Node::open(world.handle(), brief.clone(), world.platform()).await.unwrap();
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let source = in_time(&world, node.source("orders")).await.unwrap();
        mint_some(&world, &source, &mut seen, "first life").await;
        drop((node, source));
        // The presence expires, and the mark is still far ahead.
        world.pass(4_000).await;
        let again = NodeSettings { after_crash, ..brief };
        let node = Node::open(world.handle(), again, world.platform()).await.unwrap();
        let source = in_time(&world, node.source("orders")).await;
        let Some(at_once) = minted_at_once else {
            let error = source.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::ClockBehind { .. }), "{error}");
            continue;
        };
        let source = source.unwrap();
        let minted = in_time(&world, source.mint(1, None, 100)).await;
        assert_eq!(minted.is_ok(), at_once, "{after_crash:?}: {minted:?}");
        assert_eq!(node.workers().await.unwrap().len(), 1, "the same number");
        world.pass(31_000).await;
        assert!(seen.insert(source.try_mint().unwrap()), "{after_crash:?}");
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused() {
    let world = World::new();
    let dir = Scratch::new();
    let (_node, _source) = open(&world, Some(&dir), "{}").await.unwrap();
    let second = Node::open(world.handle(), settings(Some(&dir)), world.platform()).await;
    assert!(matches!(second.unwrap_err().kind(), ErrorKind::Locked));
}

#[tokio::test]
async fn copied_data_is_refused() {
    let world = World::new();
    let (dir, copy) = (Scratch::new(), Scratch::new());
    let (node, source) = open(&world, Some(&dir), "{}").await.unwrap();
    source.try_mint().unwrap();
    drop((node, source));
    settle().await;
    std::fs::create_dir(&copy.0).unwrap();
    for file in std::fs::read_dir(&dir.0).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.0.join(file.file_name())).unwrap();
    }
    let second = Node::open(world.handle(), settings(Some(&copy)), world.platform()).await;
    let error = second.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::JournalRefused), "{error}");
}

#[tokio::test]
async fn another_store_and_an_older_state_of_the_store_are_refused() {
    let world = World::new();
    let dir = Scratch::new();
    let (node, source) = open(&world, Some(&dir), "{}").await.unwrap();
    source.try_mint().unwrap();
    node.close().await.unwrap();
    drop((node, source));
    settle().await;
    let other = World::new();
    let refused = Node::open(other.handle(), settings(Some(&dir)), other.platform()).await;
    let error = refused.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StoreMismatch), "{error}");
    assert!(error.to_string().contains("but the journal belongs to"), "{error}");
    let remembered = JournalWriter::none().fingerprint();
    let identity = |writes| StoreIdentity { id: "s".into(), writes };
    let recall =
        |found| recall(&remembered.who, &identity(10), &identity(found), &StoredHistory::default());
    assert_eq!(recall(10).unwrap(), Recalled::Same);
    let error = recall(9).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StoreRolledBack { .. }), "{error}");
    assert!(error.to_string().contains("seen by this process"), "there is no journal: {error}");
}

#[tokio::test]
async fn a_clock_that_jumps_ten_years_ahead_poisons_no_mark() {
    let world = World::new();
    let (node, source) = open(&world, None, r#"{"on_rollback":"fail"}"#).await.unwrap();
    source.try_mint().unwrap();
    world.clock.step_ahead_ms(10 * YEAR_MS);
    world.pass(60_000).await;
    assert!(source.try_mint().is_err(), "no window reaches there");
    assert!(!node.readiness().ready);
    let limit = START.saturating_add(60_000 + 31_000);
    for worker in node.workers().await.unwrap() {
        assert!(worker.mark.unix_millis() <= limit, "{} is beyond {limit}", worker.mark);
    }
    world.clock.step_back_ms(10 * YEAR_MS);
    world.pass(2_000).await;
    source.try_mint().unwrap();
    assert!(node.readiness().ready, "{:?}", node.readiness());
}

#[tokio::test]
async fn numbers_of_a_killed_process_leave_a_gap_and_never_come_twice() {
    let world = World::new();
    let dir = Scratch::new();
    let mut seen = HashSet::new();
    for _ in 0..6 {
        let (node, source) = open(&world, Some(&dir), r#"{"kind":"segment"}"#).await.unwrap();
        for _ in 0..5 {
            let values = in_time(&world, source.mint(30, None, 5_000)).await.unwrap();
            let IdBatch::Numbers(ids) = values else { panic!() };
            assert!(ids.into_iter().all(|id| seen.insert(id)));
        }
        drop((node, source));
        settle().await;
    }
}

/// A journal has no room for the numbers of thousands of lives.
#[tokio::test]
async fn never_reused_numbers_are_not_journalled() {
    let world = World::new();
    let dir = Scratch::new();
    for life in 1..=4 {
        let settings = NodeSettings { reuse: Reuse::Never, ..settings(Some(&dir)) };
        let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let source = in_time(&world, node.source("orders")).await.unwrap();
        assert!(mint_some(&world, &source, &mut HashSet::new(), "once").await > 0);
        if life % 2 == 0 {
            in_time(&world, node.close()).await.unwrap();
        }
        drop((node, source));
        settle().await;
        let leases = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.leases;
        assert!(leases.len() <= 1, "life {life}: {leases:?}");
    }
}
