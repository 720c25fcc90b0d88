//! Store that was recovered without the report of a process, which continues.

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, for_program, joined, wanted};
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
    let record = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap();
    assert_eq!(record.ids["bills"], free);
}
