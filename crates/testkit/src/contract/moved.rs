//! Verbs of handles under which an operator moved the store forward.

use std::sync::Arc;

use snowmint_coord::FastForward;

use super::case::{Case, cases};
use super::joined_holder::{JoinedHolder, is_believed, known_facts_do_not_reach_another_store};

cases!(
    every_verb_is_refused_once_the_store_has_another_identity,
    every_verb_works_after_a_fast_forward,
);

/// An operator may fence off all processes that knew the store, at any time.
async fn every_verb_is_refused_once_the_store_has_another_identity(case: Case) {
    let mut holder = JoinedHolder::new(Arc::clone(&case.another().await.store)).await;
    holder.use_all().await;
    let forward = FastForward { new_identity: true, ..FastForward::default() };
    let before = case.store.fast_forward(&forward).await.unwrap();
    for round in 0..2 {
        for (verb, call) in holder.every_verb() {
            let refused = call.await.expect_err(verb);
            assert_eq!(refused.kind().code(), "store_mismatch", "{verb} {round}: {refused}");
        }
        known_facts_do_not_reach_another_store(&holder.store).await;
    }
    assert_eq!(case.store.identity().await.unwrap(), before, "it was written");
}

/// A handle that has seen the whole store continues, whatever count of writes an operator names.
async fn every_verb_works_after_a_fast_forward(case: Case) {
    let mut holder = JoinedHolder::new(Arc::clone(&case.another().await.store)).await;
    holder.use_all().await;
    for more in [0, 1_000] {
        let writes_at_least = holder.store.identity().await.unwrap().writes.saturating_add(more);
        let writes_at_least = if more == 0 { 1 } else { writes_at_least };
        let forward = FastForward { writes_at_least, ..FastForward::default() };
        case.store.fast_forward(&forward).await.unwrap();
        for (verb, call) in holder.every_verb() {
            is_believed(verb, call.await);
        }
    }
}
