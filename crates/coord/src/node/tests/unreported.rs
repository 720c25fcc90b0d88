//! Store that was recovered without the report of a process, which continues, or whose values were
//! raised.

use std::collections::HashSet;

use snowmint_core::Rfc3339;
use tokio::sync::Notify;

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, for_program, joined, taken, wanted};
use super::restored::{open, settings};
use super::*;
use crate::journal::{DataDir, inspect};
use crate::model::stripe::Stripe;

/// Stripe of deployment 5 of 16.
const FIVE_OF_16: NewStripe = NewStripe { offset: 5, increment: 16, first: None, if_version: None };
const TWO_OF_16: NewStripe = NewStripe { offset: 2, ..FIVE_OF_16 };

/// The version number of a lost definition is used again, for another definition.
#[tokio::test]
async fn client_stripes_follow_the_definition_with_their_version() {
    let (world, dir) = (World::new(), Scratch::new());
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    node.alter("bills", &spec(&FIXED.replace("100", "200")), None).await.unwrap();
    let lost = node.restripe("bills", FIVE_OF_16).await.unwrap();
    let request = wanted(&world, 500).await;
    in_time(&world, for_program(&node, &request)).await.unwrap();

    world.store.restore(backup);
    // The operator knows how far the source's numbers had come, and not its definitions.
    let segments = vec![("bills".into(), Mark::new(100_000))];
    let forward = FastForward { segments, writes_at_least: 10_000, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    in_time(&world, async {
        while node.core().ctx.doubts.recoveries() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let again = node.restripe("bills", TWO_OF_16).await.unwrap();
    assert_eq!(again.version, lost.version);
    let request = wanted(&world, 10).await;
    let taken = in_time(&world, for_program(&node, &request)).await.unwrap();
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let stored = world.handle().get("bills").await.unwrap();
    let free = Stripe::of_text(&stored.spec).unwrap().free_from(taken.last + 1);
    let record = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record;
    assert_eq!(record.ids["bills"], free);
}

/// A recovery without a journal may lie above its marks or not: its process finds out when it comes
/// back.
#[tokio::test]
async fn node_missing_in_a_recovery_continues_when_passed() {
    // Marks that the operator named, for workers and for numbers, and the options that the error
    // names.
    for (marks, numbers_at, refused) in [
        (u64::MAX, 1_000, None),
        (u64::MAX, 30, Some(["bills=51"].as_slice())),
        (1, 1_000, Some(["--mark"].as_slice())),
        (1, 30, Some(["bills=51", "--mark"].as_slice())),
    ] {
        let (world, dir) = (World::new(), Scratch::new());
        let node = open(&world, Some(&dir)).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        node.define("orders", &spec("{}")).await.unwrap();
        let backup = world.store.backup();
        let orders = in_time(&world, node.source("orders")).await.unwrap();
        let mut ids = numbers(in_time(&world, orders.mint(10, None, 5_000)).await.unwrap());
        ids.extend(drawn(&world, &node, 50).await);
        in_time(&world, node.close()).await.unwrap();
        drop((node, orders));
        settle().await;
        let lost = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.known();
        assert_eq!(lost.ends["bills"], 51);
        world.store.restore(backup);
        let forward = FastForward {
            marks_at_least: Mark::new(lost.mark).min(Mark::new(marks)),
            segments: vec![("bills".into(), Mark::new(numbers_at))],
            writes_at_least: 10_000,
            ..FastForward::default()
        };
        world.handle().fast_forward(&forward).await.unwrap();

        let store = world.faulty();
        let held = Arc::clone(&store.faults.held);
        let back = Node::open(Arc::new(store), settings(Some(&dir)), world.platform());
        let back = back.await.unwrap();
        let Some(named) = refused else {
            joined(&world, &back).await;
            // Until the clock has reached the marks.
            world.pass(60_000).await;
            let orders = in_time(&world, back.source("orders")).await.unwrap();
            ids.extend(numbers(in_time(&world, orders.mint(10, None, 5_000)).await.unwrap()));
            ids.extend(drawn(&world, &back, 50).await);
            let count = ids.len();
            assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), count);
            in_time(&world, back.close()).await.unwrap();
            continue;
        };
        world.pass(30_000).await;
        assert_eq!(back.incarnation(), None, "it went on");
        let reasons = back.readiness().reasons;
        let reason = reasons.iter().find(|reason| reason.code == "store_rolled_back").unwrap();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        // The reason stays while the node tries to join again.
        let resume = Arc::new(Notify::new());
        *held.lock().unwrap() = Some(("recall", Arc::clone(&resume)));
        in_time(&world, async {
            while held.lock().unwrap().is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        world.pass(1_000).await;
        assert_eq!(back.readiness().reasons, reasons);
        resume.notify_one();
        let (forward, options) = named_move(&reason.message);
        assert!(named.iter().all(|name| options.contains(name)), "{options}");
        assert_eq!(options.matches("--").count(), named.len(), "{options}");
        // It does not report that it knows more: the other nodes continue.
        assert_eq!(world.handle().standing().await.unwrap().doubt, None);
        assert!(taken(&world, 1).await.first >= numbers_at);
        // All obstacles are named at once.
        world.handle().fast_forward(&forward).await.unwrap();
        joined(&world, &back).await;
        ids.extend(drawn(&world, &back, 50).await);
        let count = ids.len();
        assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), count);
        in_time(&world, back.close()).await.unwrap();
    }
}

/// Nothing is lost, and no operator has to do anything.
#[tokio::test]
async fn raised_values_are_not_reported_as_a_rollback() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node = Node::open(Arc::new(store), settings(None), world.platform()).await.unwrap();
    joined(&world, &node).await;
    let resume = Arc::new(Notify::new());
    *held.lock().unwrap() = Some(("join", Arc::clone(&resume)));
    let raised = FastForward { same_server: true, values_only: true, ..FastForward::default() };
    world.handle().fast_forward(&raised).await.unwrap();
    in_time(&world, async {
        while held.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.pass(1_000).await;
    let reasons = node.readiness().summary();
    assert!(reasons.starts_with("an operator has moved the store forward ("), "{reasons}");
    assert!(!reasons.contains("rolled back") && !reasons.contains("snowmint worker"), "{reasons}");
    resume.notify_one();
    joined(&world, &node).await;
    in_time(&world, node.close()).await.unwrap();
}

/// Returns the move of the command that a reason names, and the options of that command.
fn named_move(reason: &str) -> (FastForward, &str) {
    let (_, options) = reason.split_once("run snowmint worker recover ").expect(reason);
    let mut forward = FastForward { values_only: true, ..FastForward::default() };
    let mut words = options.split(' ');
    while let Some(option) = words.next() {
        let value = words.next().unwrap();
        if option == "--mark" {
            let Rfc3339(mark) = value.parse().unwrap();
            forward.marks_at_least = Mark::from(mark);
        } else {
            assert_eq!(option, "--segment", "{options}");
            let (name, next) = value.split_once('=').unwrap();
            forward.segments.push((name.to_owned(), Mark::new(next.parse().unwrap())));
        }
    }
    (forward, options)
}
