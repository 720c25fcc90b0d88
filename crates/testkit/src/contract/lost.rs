//! Verbs of a handle after its store became another one: a moved address, a mixed-up volume, a
//! recreated database. Every verb is rejected, whatever it depends on, and the other store stays
//! unchanged.

use std::sync::Arc;

use snowmint_coord::Store;

use super::joined_holder::{JoinedHolder, five_of, known_facts_do_not_reach_another_store};

/// Tests two stores that were created alike: their contents have the same numbers, so that only the
/// identity distinguishes them.
///
/// `store` is a handle on one of them, `other` on the other; `swap` puts the other in the place of
/// the first.
///
/// # Panics
/// When a verb is not rejected, or does something.
pub async fn every_verb_is_refused_by_another_store(
    store: Arc<dyn Store>,
    other: Arc<dyn Store>,
    swap: impl AsyncFnOnce(),
    other_writes_more: bool,
) {
    let mut ours = JoinedHolder::new(store).await;
    let mut theirs = JoinedHolder::new(other).await;
    // The same order gives rows the same versions, which a handle may cache.
    for holder in [&mut ours, &mut theirs] {
        holder.use_all().await;
    }
    let (busier, quieter) = if other_writes_more { (&theirs, &ours) } else { (&ours, &theirs) };
    let enough = quieter.writes().await + 20;
    while busier.writes().await < enough {
        busier.store.reserve(&five_of(&busier.other_source)).await.unwrap();
    }
    swap().await;
    let before = theirs.store.identity().await.unwrap();
    for round in 0..2 {
        for (verb, call) in ours.every_verb() {
            let refused = call.await.expect_err(verb);
            assert_eq!(refused.kind().code(), "store_mismatch", "{verb}, round {round}: {refused}");
        }
        known_facts_do_not_reach_another_store(&ours.store).await;
    }
    assert_eq!(theirs.store.identity().await.unwrap(), before, "the other store was written");
    // The handle of the other store continues.
    theirs.use_all().await;
    ours.store.close().await.unwrap();
    theirs.store.close().await.unwrap();
}
