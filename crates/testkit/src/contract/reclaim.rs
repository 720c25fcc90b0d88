//! Marks far ahead of the clock, which an operator lowers.

use super::case::{Case, TASKS, cases, code, later, pool, reached, stand_back};
use snowmint_coord::{
    Acquire, Exclude, FastForward, Lease, Mark, Member, Pool, Preference, Reclaim, Reclaimed,
    Result, Reuse, SlotInfo, Term,
};

cases![
    a_mark_never_falls_but_by_a_reclaim,
    holder_of_a_reclaimed_slot_is_fenced,
    the_next_holder_begins_where_the_mark_fell_to,
    a_mark_that_is_not_far_ahead_is_not_reclaimed,
    reclaim_respects_recovered_and_known_marks,
    live_holder_blocks_reclaim_unless_included,
    a_slot_that_changed_hands_since_is_not_reclaimed,
    a_slot_that_is_kept_away_for_ever_is_not_reclaimed,
    a_slot_kept_away_until_a_time_is_not_reclaimed,
    only_worker_numbers_that_are_used_again_are_reclaimed,
    more_slots_are_reclaimed_than_one_step_can_write,
    of_sixteen_reclaims_one_lowers_the_mark,
    concurrent_holder_never_moves_a_reclaimed_mark,
];

/// Farthest lead of nodes that keep the rules, in milliseconds: longer than any case.
const REACH_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 86_400_000;

fn reclaim(pool: &Pool, slots: &[(u64, Term)]) -> Reclaim {
    Reclaim {
        pool: pool.name.clone(),
        slots: slots.to_vec(),
        reach_ms: REACH_MS,
        marks_at_least: Mark::ZERO,
        from_live: false,
    }
}

async fn send(case: &Case, reclaim: &Reclaim) -> Result<Vec<Reclaimed>> {
    let now = case.now().await;
    reached(|| case.store.reclaim(reclaim, now)).await
}

async fn slot(case: &Case, slot: u64) -> SlotInfo {
    let slots = case.store.workers(case.now().await).await.unwrap();
    slots.into_iter().find(|info| info.slot == slot).unwrap()
}

/// Returns a member with a lease that has moved its mark a year ahead of the clock.
async fn far_ahead(case: &Case, pool: &Pool) -> (Member, Lease) {
    let member = case.member("theirs").await;
    let lease = case.claim(&member, pool).await;
    let far = later(Mark::from(case.now().await), YEAR_MS);
    case.extend(&lease, lease.mark, far).await.unwrap();
    (member, Lease { mark: far, ..lease })
}

/// Returns the lease of the same member, after its presence expired.
async fn left_far_ahead(case: &Case, pool: &Pool) -> Lease {
    let (member, lease) = far_ahead(case, pool).await;
    case.expire(&member).await;
    lease
}

async fn a_mark_never_falls_but_by_a_reclaim(case: Case) {
    let pool = pool(1);
    let lease = left_far_ahead(&case, &pool).await;
    let before = Mark::from(case.now().await);
    let reclaimed = send(&case, &reclaim(&pool, &[(0, lease.term)])).await.unwrap();
    let after = Mark::from(case.now().await);
    let [Reclaimed { slot: 0, from, to, term }] = reclaimed[..] else { panic!("{reclaimed:?}") };
    assert_eq!((from, term), (lease.mark, lease.term.next()));
    assert!(later(before, REACH_MS) <= to && to <= later(after, REACH_MS), "{to} is not in reach");
    let info = slot(&case, 0).await;
    assert_eq!((info.mark, info.term, info.holder), (to, term, None));
    // No other verb lowers it.
    assert_eq!(code(case.extend(&lease, lease.mark, later(lease.mark, 1)).await), "fenced");
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    assert_eq!(slot(&case, 0).await.mark, to);
}

async fn holder_of_a_reclaimed_slot_is_fenced(case: Case) {
    let pool = pool(1);
    let lease = left_far_ahead(&case, &pool).await;
    send(&case, &reclaim(&pool, &[(0, lease.term)])).await.unwrap();
    let to = slot(&case, 0).await.mark;
    for from in [lease.mark, to] {
        assert_eq!(code(case.extend(&lease, from, later(lease.mark, 1)).await), "fenced");
    }
    for mark in [lease.floor, later(to, 1), lease.mark] {
        assert_eq!(code(case.release(&lease, mark).await), "fenced");
    }
    // A release to exactly this mark counts as an applied release, and does nothing.
    let before = (slot(&case, 0).await, case.writes().await);
    case.release(&lease, to).await.unwrap();
    assert_eq!((slot(&case, 0).await, case.writes().await), before);
    assert_eq!(before.0.mark, to);
}

async fn the_next_holder_begins_where_the_mark_fell_to(case: Case) {
    let pool = pool(1);
    let lease = left_far_ahead(&case, &pool).await;
    let next = case.member("ours").await;
    assert_eq!(code(case.try_claim(&next, &pool, Preference::Any).await), "pool_full");
    let to = send(&case, &reclaim(&pool, &[(0, lease.term)])).await.unwrap().remove(0).to;
    // The clock has to reach the mark first.
    assert_eq!(code(case.try_claim(&next, &pool, Preference::Any).await), "pool_full");
    let mut request = case.wanting(&next, &pool, Preference::Any).await;
    request.mark_at_most = to;
    let obtained = case.send(&request).await.unwrap().remove(0);
    assert_eq!((obtained.floor, obtained.mark), (to, to));
    assert!(obtained.term > lease.term.next(), "{obtained:?}");
    assert_eq!(code(case.release(&obtained, Mark::new(to.get() - 1)).await), "invalid");
}

async fn a_mark_that_is_not_far_ahead_is_not_reclaimed(case: Case) {
    let pool = pool(1);
    let member = case.member("ours").await;
    let lease = case.claim(&member, &pool).await;
    let near = later(Mark::from(case.now().await), REACH_MS / 2);
    case.extend(&lease, lease.mark, near).await.unwrap();
    let (info, writes) = (slot(&case, 0).await, case.writes().await);
    assert!(send(&case, &reclaim(&pool, &[(0, lease.term)])).await.unwrap().is_empty());
    assert_eq!((slot(&case, 0).await, case.writes().await), (info, writes));
    let lease = Lease { mark: near, ..lease };
    case.extend(&lease, near, later(near, 1)).await.unwrap();
}

async fn reclaim_respects_recovered_and_known_marks(case: Case) {
    let pool = pool(1);
    let now = Mark::from(case.now().await);
    let recovered = later(now, YEAR_MS / 4);
    let forward = FastForward { marks_at_least: recovered, ..FastForward::default() };
    case.store.fast_forward(&forward).await.unwrap();
    let member = case.member("theirs").await;
    let mut request = case.wanting(&member, &pool, Preference::Any).await;
    request.mark_at_most = recovered;
    let lease = case.send(&request).await.unwrap().remove(0);
    let far = later(now, YEAR_MS);
    case.extend(&lease, lease.mark, far).await.unwrap();
    case.expire(&member).await;
    let known = later(now, YEAR_MS / 2);
    let more = Reclaim { marks_at_least: known, ..reclaim(&pool, &[(0, lease.term)]) };
    assert_eq!(send(&case, &more).await.unwrap()[0].to, known);
    let lowest = reclaim(&pool, &[(0, lease.term.next())]);
    assert_eq!(send(&case, &lowest).await.unwrap()[0].to, recovered);
    assert!(send(&case, &lowest).await.unwrap().is_empty());
}

async fn live_holder_blocks_reclaim_unless_included(case: Case) {
    let pool = pool(1);
    let (_, lease) = far_ahead(&case, &pool).await;
    let reclaim_request = reclaim(&pool, &[(0, lease.term)]);
    assert_eq!(code(send(&case, &reclaim_request).await), "conflict");
    assert_eq!(slot(&case, 0).await.mark, lease.mark);
    send(&case, &Reclaim { from_live: true, ..reclaim_request }).await.unwrap();
    assert_eq!(code(case.extend(&lease, lease.mark, later(lease.mark, 1)).await), "fenced");
}

async fn a_slot_that_changed_hands_since_is_not_reclaimed(case: Case) {
    let pool = pool(2);
    let (first, other) = (left_far_ahead(&case, &pool).await, left_far_ahead(&case, &pool).await);
    let slots = [(first.slot, first.term), (other.slot, other.term.next())];
    // All of them or none.
    assert_eq!(code(send(&case, &reclaim(&pool, &slots)).await), "conflict");
    for lease in [first, other] {
        assert_eq!(slot(&case, lease.slot).await.mark, lease.mark);
    }
}

async fn a_slot_that_is_kept_away_for_ever_is_not_reclaimed(case: Case) {
    let pool = pool(4);
    let exclude =
        Exclude { pool: pool.clone(), slots: vec![2], until: Mark::MAX, label: "theirs".into() };
    case.store.exclude(&exclude, case.now().await).await.unwrap();
    let before = slot(&case, 2).await;
    let reclaim_request = Reclaim { from_live: true, ..reclaim(&pool, &[(2, before.term)]) };
    assert_eq!(code(send(&case, &reclaim_request).await), "conflict");
    assert_eq!(slot(&case, 2).await, before);
    for (slots, wanted) in [([3, 0], "not_found"), ([4, 0], "invalid"), ([2, 2], "invalid")] {
        let slots = slots.map(|slot| (slot, Term::ZERO));
        assert_eq!(code(send(&case, &reclaim(&pool, &slots)).await), wanted, "{slots:?}");
    }
}

async fn a_slot_kept_away_until_a_time_is_not_reclaimed(case: Case) {
    let pool = pool(4);
    let until = later(Mark::from(case.now().await), YEAR_MS);
    // One that nothing ever claimed, and one whose holder is gone.
    let lease = case.claim(&case.member("theirs").await, &pool).await;
    case.release(&lease, lease.mark).await.unwrap();
    let slots = [lease.slot, 3];
    assert_ne!(lease.slot, 3);
    let exclude =
        Exclude { pool: pool.clone(), slots: slots.to_vec(), until, label: "theirs".into() };
    case.store.exclude(&exclude, case.now().await).await.unwrap();
    // A recovery changes nothing about it.
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    for number in slots {
        let before = slot(&case, number).await;
        assert_eq!(before.mark, until);
        let reclaim_request =
            Reclaim { from_live: true, ..reclaim(&pool, &[(number, before.term)]) };
        assert_eq!(code(send(&case, &reclaim_request).await), "conflict", "{number}");
        assert_eq!(slot(&case, number).await, before);
    }
}

async fn only_worker_numbers_that_are_used_again_are_reclaimed(case: Case) {
    let member = case.member("theirs").await;
    let never = Pool { name: "never".into(), reuse: Reuse::Never, ..pool(4) };
    let lease = case.claim(&member, &never).await;
    assert_eq!(code(send(&case, &reclaim(&never, &[(0, lease.term)])).await), "invalid");
    let ordered = Pool { name: "ordered".into(), reuse: Reuse::Ordered, ..pool(4) };
    let acquire = Acquire {
        pool: ordered.clone(),
        member: member.incarnation,
        owner: String::new(),
        slots: vec![0],
        stalled: Vec::new(),
        supersedes: None,
        length: 10,
        request: 1,
    };
    let obtained = case.store.acquire(&acquire, case.now().await).await.unwrap().leases.remove(0);
    let external = Pool { name: "lent-2-orders".into(), ..pool(4) };
    let lease = case.claim(&member, &external).await;
    for (pool, term) in [(&ordered, obtained.term), (&external, lease.term)] {
        assert_eq!(code(send(&case, &reclaim(pool, &[(0, term)])).await), "invalid", "{pool:?}");
    }
    let nowhere = Pool { name: "nowhere".into(), ..pool(4) };
    assert_eq!(code(send(&case, &reclaim(&nowhere, &[(0, Term::ZERO)])).await), "not_found");
}

async fn more_slots_are_reclaimed_than_one_step_can_write(case: Case) {
    const COUNT: u32 = 200;
    let (pool, member) = (pool(COUNT.into()), case.member("theirs").await);
    let mut request = case.wanting(&member, &pool, Preference::Any).await;
    request.count = COUNT;
    let leases = case.send(&request).await.unwrap();
    let far = later(Mark::from(case.now().await), YEAR_MS);
    for lease in &leases {
        case.extend(lease, lease.mark, far).await.unwrap();
    }
    case.expire(&member).await;
    let slots: Vec<_> = leases.iter().map(|lease| (lease.slot, lease.term)).collect();
    let reclaimed = send(&case, &reclaim(&pool, &slots)).await.unwrap();
    assert_eq!(reclaimed.len(), leases.len());
    let slots = case.store.workers(case.now().await).await.unwrap();
    assert!(slots.len() == leases.len() && slots.iter().all(|info| info.mark < far));
}

async fn of_sixteen_reclaims_one_lowers_the_mark(case: Case) {
    let pool = pool(1);
    let lease = left_far_ahead(&case, &pool).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let (case, reclaim) = (case.another().await, reclaim(&pool, &[(0, lease.term)]));
        tasks.spawn(async move { send(&case, &reclaim).await.map_or(0, |done| done.len()) });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 1);
    assert_eq!(slot(&case, 0).await.term, lease.term.next());
}

async fn concurrent_holder_never_moves_a_reclaimed_mark(case: Case) {
    let pool = pool(1);
    let (_, lease) = far_ahead(&case, &pool).await;
    let holder = case.another().await;
    let (reclaim_request, mut held) = (reclaim(&pool, &[(0, lease.term)]), lease.clone());
    let moving = tokio::spawn(async move {
        let mut turns = 0;
        loop {
            stand_back(turns).await;
            turns += 1;
            let to = later(held.mark, 1);
            match holder.extend(&held, held.mark, to).await {
                Ok(extended) => held.mark = extended.mark,
                Err(error) => return error.kind().code(),
            }
        }
    });
    let reclaim_request = Reclaim { from_live: true, ..reclaim_request };
    let reclaimed = send(&case, &reclaim_request).await.unwrap();
    assert_eq!(moving.await.unwrap(), "fenced");
    assert_eq!(slot(&case, 0).await.mark, reclaimed[0].to);
}
