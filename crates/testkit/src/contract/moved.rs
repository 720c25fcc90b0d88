//! Recovery of a store, and verbs of handles under which it was recovered.

use std::sync::Arc;

use snowmint_coord::{Acquire, FastForward, Mark, Preference};

use super::case::{Case, cases, code, definition, pool};
use super::exclusive::{acquire, wanting};
use super::joined_holder::{JoinedHolder, is_believed, known_facts_do_not_reach_another_store};

cases!(
    every_verb_is_refused_once_the_store_has_another_identity,
    every_verb_works_after_a_fast_forward,
    fast_forward_fences_all_holders,
    fast_forward_moves_the_identity,
    fast_forward_by_too_many_recoveries_changes_nothing,
    fast_forward_moves_counters_beyond_lost_results,
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

async fn fast_forward_fences_all_holders(case: Case) {
    let member = case.member("orders").await;
    let lease = case.claim(&member, &pool(4)).await;
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    assert_eq!(code(case.extend(&lease, lease.mark, Mark::new(9)).await), "fenced");
    assert_eq!(code(case.release(&lease, lease.mark).await), "fenced");
    let exactly = Preference::Exactly(lease.slot);
    let again = case.try_claim(&member, &pool(4), exactly).await.unwrap();
    assert!(again.term.get() > lease.term.get() + 1_000_000, "above any term of a lost state");
    let fresh = case.claim(&member, &pool(4)).await;
    assert!(fresh.term.get() > 1_000_000, "that of unused numbers too");
}

async fn fast_forward_moves_the_identity(case: Case) {
    let before = case.store.identity().await.unwrap();
    let far = before.writes + 1000;
    case.store.define(&definition("orders", "a")).await.unwrap();
    let defined = case.store.list().await.unwrap().version;
    let forward = FastForward {
        writes_at_least: far,
        catalog_at_least: defined + 5,
        ..FastForward::default()
    };
    let after = case.store.fast_forward(&forward).await.unwrap();
    let moved = case.store.list().await.unwrap();
    assert_eq!(moved.version, defined + 6, "no version that was lost comes again");
    assert_eq!(moved.definitions[0].version, defined);
    assert!(after.store() == before.store() && after.writes > far);
    assert_eq!(case.another().await.store.identity().await.unwrap(), after);
    let back = FastForward { writes_at_least: 1, new_identity: true, ..FastForward::default() };
    let recovered = case.store.fast_forward(&back).await.unwrap();
    assert_eq!(case.store.list().await.unwrap().version, defined + 7, "nor of a state after it");
    assert!(recovered.store() != before.store() && recovered.writes > after.writes);
    assert_eq!(case.another().await.store.identity().await.unwrap(), recovered);
}

async fn fast_forward_by_too_many_recoveries_changes_nothing(case: Case) {
    let before = case.store.identity().await.unwrap();
    for recoveries_at_least in [(1 << 20) + 1, 1 << 31, u64::MAX] {
        let forward = FastForward { recoveries_at_least, ..FastForward::default() };
        let refused = case.store.fast_forward(&forward).await;
        assert_eq!(code(refused), "invalid", "{recoveries_at_least}");
    }
    assert_eq!(case.store.identity().await.unwrap(), before);
}

/// Numbers of counters may be far above any time, for example imported ones. A restored state shows
/// only that there were more.
async fn fast_forward_moves_counters_beyond_lost_results(case: Case) {
    const FAR: u64 = 5_000_000_000_000_000;
    const LEAP: u64 = 1 << 40;
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    let acquired = acquire(&case, &Acquire { length: FAR, ..wanting(&a, [3]) }).await.unwrap();
    assert_eq!(acquired.leases[0].mark, Mark::new(FAR));
    // A time above the leap, which means nothing to a counter.
    let marks_at_least = Mark::from(case.now().await);
    assert!(marks_at_least > Mark::new(LEAP), "{marks_at_least}");
    let forward = FastForward { marks_at_least, ..FastForward::default() };
    case.store.fast_forward(&forward).await.unwrap();
    let reacquired = acquire(&case, &wanting(&b, [3, 4])).await.unwrap();
    let floors: Vec<u64> = reacquired.leases.iter().map(|lease| lease.floor.get()).collect();
    assert_eq!(floors, [FAR + LEAP, LEAP], "and as far for one without an earlier holder");
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    let again = acquire(&case, &wanting(&b, [4, 5])).await.unwrap();
    let floors: Vec<u64> = again.leases.iter().map(|lease| lease.floor.get()).collect();
    assert_eq!(floors, [2 * LEAP, 2 * LEAP]);
    // Earlier recoveries count, too, even when they were lost.
    let forward = FastForward { recoveries_at_least: 7, ..FastForward::default() };
    case.store.fast_forward(&forward).await.unwrap();
    let late = acquire(&case, &wanting(&b, [5, 6])).await.unwrap();
    let floors: Vec<u64> = late.leases.iter().map(|lease| lease.floor.get()).collect();
    assert_eq!(floors, [8 * LEAP, 8 * LEAP]);
}
