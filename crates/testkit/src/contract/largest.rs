//! Steps with as many rows as a store writes at once. Each is the first that its handle writes, so
//! it also leaves a start.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::{
    Acquire, ClaimRequest, Doubt, Evidence, Extend, FastForward, Incarnation, JournalInfo, Known,
    Mark, Member, Pool, Preference, Presence, Proof, Reuse, StalledMember, Store, StoreIdentity,
};
use snowmint_core::UnixMillis;

use super::case::{extend, later, reached};

const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);
/// Time at which the members of two days before may be forgotten.
const LATER: UnixMillis = UnixMillis::new(1_700_172_800_000);
const HOLDER: Incarnation = Incarnation::new(1);

/// Tests the largest steps of a store that uses its callers' clocks and limits its
/// [`group_max`](Store::group_max). `open` returns a new handle.
///
/// # Panics
/// When a step is rejected, or does less than it should.
pub async fn largest_steps_are_carried_out(open: impl AsyncFn() -> Arc<dyn Store>) {
    let store = open().await;
    let most = store.group_max();
    let half = u64::from(most / 2);

    for number in 0..most {
        join(&store, Incarnation::new(1_000 + u128::from(number)), NOW).await;
    }
    join(&open().await, HOLDER, LATER).await;
    assert_eq!(members(&store).await, 1, "the others are forgotten in one step");

    let leases = claim_and_extend(&open, most).await;
    assert_eq!(leases, usize::try_from(most).unwrap());
    let fresh = open().await;
    reached(|| fresh.leave(HOLDER, LATER)).await.unwrap();

    join(&store, HOLDER, LATER).await;
    acquire_from_stalled(&store, &open().await, half).await;
    assert_eq!(members(&store).await, 1, "the stalled members are removed in one step");

    put_in_doubt(&store).await;
    // Together with the slots these are two full steps.
    let sources = u64::from(most) - half;
    let segments = (0..sources).map(|number| (format!("source-{number}"), Mark::new(5))).collect();
    let fresh = open().await;
    let planned_on = Some(reached(|| fresh.standing()).await.unwrap());
    let forward = FastForward { segments, planned_on, ..FastForward::default() };
    reached(|| fresh.fast_forward(&forward)).await.unwrap();
    assert_eq!(reached(|| fresh.standing()).await.unwrap().doubt, None);
    let slots = reached(|| fresh.workers(LATER)).await.unwrap();
    assert_eq!(slots.len(), leases + usize::try_from(half).unwrap());
}

async fn join(store: &Arc<dyn Store>, incarnation: Incarnation, now: UnixMillis) {
    let (owner, host, address) = (String::new(), String::new(), String::new());
    let member = Member { incarnation, owner, host, process: 1, address };
    let presence = Presence { sample: now, renewals: 0, ttl_ms: 10_000 };
    reached(|| store.join(&member, presence, now)).await.unwrap();
}

async fn members(store: &Arc<dyn Store>) -> usize {
    reached(|| store.members(LATER)).await.unwrap().len()
}

/// Claims `count` slots in one step, and extends them in another. Returns how many there are.
async fn claim_and_extend(open: &impl AsyncFn() -> Arc<dyn Store>, count: u32) -> usize {
    let (name, slots) = ("workers".to_owned(), u64::from(count));
    let claim = ClaimRequest {
        pool: Pool { name, slots, group: 1, reuse: Reuse::Recycle },
        member: HOLDER,
        owner: String::new(),
        count,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    };
    let fresh = open().await;
    let leases = reached(|| fresh.claim(&claim, LATER)).await.unwrap();
    let items: Vec<Extend> =
        leases.iter().map(|lease| extend(lease, lease.mark, later(lease.mark, 1_000))).collect();
    let fresh = open().await;
    for extended in reached(|| fresh.extend(&items, LATER)).await.unwrap() {
        extended.unwrap();
    }
    leases.len()
}

/// Lets `count` members join by `store`, and acquires as many slots by `fresh`, in the step that
/// removes these members.
async fn acquire_from_stalled(store: &Arc<dyn Store>, fresh: &Arc<dyn Store>, count: u64) {
    let stalled = |number: u64| StalledMember {
        member: Incarnation::new(100_000 + u128::from(number)),
        renewals: 0,
    };
    let stalled: Vec<StalledMember> = (0..count).map(stalled).collect();
    for member in &stalled {
        join(store, member.member, LATER).await;
    }
    let acquire = Acquire {
        pool: Pool { name: "sections".into(), slots: count, group: 1, reuse: Reuse::Ordered },
        member: HOLDER,
        owner: String::new(),
        slots: (0..count).collect(),
        stalled,
        supersedes: None,
        length: 10,
        request: 2,
    };
    let acquired = reached(|| fresh.acquire(&acquire, LATER)).await.unwrap();
    assert_eq!(acquired.leases.len(), acquire.slots.len());
}

/// Leaves every note that a recovery removes or rewrites.
async fn put_in_doubt(store: &Arc<dyn Store>) {
    let found = reached(|| store.identity()).await.unwrap();
    let seen = StoreIdentity { writes: found.writes + 1_000_000, ..found.clone() };
    let evidence = Evidence { id: found.id, seen, ends: BTreeMap::new(), proof: Proof::Comparison };
    let doubt = Doubt { evidence: "a journal".into(), seen: 9_000, found: 7 };
    reached(|| store.doubt(&doubt, &evidence)).await.unwrap();
    let journal = JournalInfo { id: "ours".into(), ..JournalInfo::default() };
    let known = Known { mark: 8, ..Known::default() };
    reached(|| store.report(&journal, Some(&known))).await.unwrap();
    assert_eq!(reached(|| store.standing()).await.unwrap().doubt, Some(doubt));
}
