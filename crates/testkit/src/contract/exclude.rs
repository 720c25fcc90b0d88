//! Excluded slots.

use super::case::{Case, cases, code, later, pool};
use snowmint_coord::{Exclude, Mark, Pool, Preference, Result, Reuse, SlotInfo};

cases![
    excluded_slot_is_never_claimed,
    repeated_exclude_changes_nothing,
    slot_of_a_live_member_is_not_excluded,
    expired_holder_of_an_excluded_slot_is_rejected,
    slot_excluded_until_a_time_is_minted_from_above_it,
    pool_without_reuse_continues_above_excluded_slots,
    all_slots_of_a_group_are_excluded,
    more_slots_are_excluded_than_one_step_can_write,
    senseless_exclude_is_rejected,
];

fn exclude(pool: &Pool, slots: &[u64], until: Mark) -> Exclude {
    Exclude { pool: pool.clone(), slots: slots.to_vec(), until, label: "theirs".into() }
}

async fn send(case: &Case, exclude: &Exclude) -> Result<()> {
    case.store.exclude(exclude, case.now().await).await
}

async fn slot(case: &Case, slot: u64) -> SlotInfo {
    let slots = case.store.workers(case.now().await).await.unwrap();
    slots.into_iter().find(|info| info.slot == slot).unwrap()
}

async fn excluded_slot_is_never_claimed(case: Case) {
    let pool = pool(4);
    send(&case, &exclude(&pool, &[0, 2, 3], Mark::MAX)).await.unwrap();
    let member = case.member("orders").await;
    assert_eq!(case.claim(&member, &pool).await.slot, 1);
    let theirs = case.member("theirs").await;
    for preference in [Preference::Any, Preference::LastOfOwner, Preference::Exactly(2)] {
        assert_eq!(
            code(case.try_claim(&theirs, &pool, preference).await),
            "pool_full",
            "{preference:?}"
        );
    }
    // The slot stays excluded under any lead that an operator accepts, and at any later time.
    case.store.accept_lead(Mark::MAX).await.unwrap();
    let mut request = case.wanting(&theirs, &pool, Preference::Any).await;
    request.mark_at_most = Mark::MAX;
    assert_eq!(code(case.send(&request).await), "pool_full");
    let info = slot(&case, 2).await;
    assert!(info.is_excluded() && !info.live && info.holder.is_none(), "{info:?}");
    assert_eq!((info.owner.as_str(), info.mark), ("theirs", Mark::MAX));
    assert!(!slot(&case, 1).await.is_excluded());
}

async fn repeated_exclude_changes_nothing(case: Case) {
    let pool = pool(4);
    send(&case, &exclude(&pool, &[1, 2], Mark::MAX)).await.unwrap();
    let (before, writes) = (slot(&case, 1).await, case.writes().await);
    for until in [Mark::MAX, Mark::new(7), Mark::ZERO] {
        send(&case, &exclude(&pool, &[1, 2], until)).await.unwrap();
    }
    assert_eq!((slot(&case, 1).await, case.writes().await), (before, writes));
    send(&case, &exclude(&pool, &[2, 3], Mark::MAX)).await.unwrap();
    assert!(slot(&case, 3).await.is_excluded() && case.writes().await > writes);
}

async fn slot_of_a_live_member_is_not_excluded(case: Case) {
    let (pool, member) = (pool(4), case.member("orders").await);
    let lease = case.claim(&member, &pool).await;
    let refused = send(&case, &exclude(&pool, &[lease.slot], Mark::MAX)).await;
    assert_eq!(code(refused), "conflict");
    case.extend(&lease, lease.mark, later(Mark::from(case.now().await), 50)).await.unwrap();
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    send(&case, &exclude(&pool, &[lease.slot], Mark::MAX)).await.unwrap();
    assert!(slot(&case, lease.slot).await.is_excluded());
}

async fn expired_holder_of_an_excluded_slot_is_rejected(case: Case) {
    let (pool, member) = (pool(4), case.member("orders").await);
    let lease = case.claim(&member, &pool).await;
    case.expire(&member).await;
    send(&case, &exclude(&pool, &[lease.slot], Mark::MAX)).await.unwrap();
    let late = case.extend(&lease, lease.mark, later(Mark::from(case.now().await), 50)).await;
    assert_eq!(code(late), "fenced");
    assert_eq!(code(case.release(&lease, lease.mark).await), "fenced");
    assert!(slot(&case, lease.slot).await.is_excluded());
}

async fn slot_excluded_until_a_time_is_minted_from_above_it(case: Case) {
    let pool = pool(1);
    let until = later(Mark::from(case.now().await), 60_000);
    send(&case, &exclude(&pool, &[0], until)).await.unwrap();
    let member = case.member("orders").await;
    assert_eq!(code(case.try_claim(&member, &pool, Preference::Any).await), "pool_full");
    let mut request = case.wanting(&member, &pool, Preference::Any).await;
    request.mark_at_most = until;
    let lease = case.send(&request).await.unwrap().remove(0);
    assert_eq!((lease.floor, lease.mark), (until, until));
}

async fn pool_without_reuse_continues_above_excluded_slots(case: Case) {
    let pool = Pool { reuse: Reuse::Never, ..pool(10) };
    send(&case, &exclude(&pool, &[6], Mark::MAX)).await.unwrap();
    let member = case.member("orders").await;
    assert_eq!(case.claim(&member, &pool).await.slot, 7);
    send(&case, &exclude(&pool, &[3], Mark::MAX)).await.unwrap();
    assert_eq!(case.claim(&member, &pool).await.slot, 8);
    send(&case, &exclude(&pool, &[9], Mark::MAX)).await.unwrap();
    assert_eq!(code(case.try_claim(&member, &pool, Preference::Any).await), "exhausted");
}

async fn all_slots_of_a_group_are_excluded(case: Case) {
    let pool = Pool { group: 2, ..pool(6) };
    send(&case, &exclude(&pool, &[0, 1, 4, 5], Mark::MAX)).await.unwrap();
    let member = case.member("orders").await;
    let leases = case.send(&case.wanting(&member, &pool, Preference::Any).await).await.unwrap();
    assert_eq!(leases.iter().map(|lease| lease.slot).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(
        code(case.send(&case.wanting(&member, &pool, Preference::Any).await).await),
        "pool_full"
    );
}

async fn more_slots_are_excluded_than_one_step_can_write(case: Case) {
    let pool = pool(400);
    let slots: Vec<u64> = (0..399).collect();
    send(&case, &exclude(&pool, &slots, Mark::MAX)).await.unwrap();
    let member = case.member("orders").await;
    assert_eq!(case.claim(&member, &pool).await.slot, 399);
    assert_eq!(code(case.try_claim(&member, &pool, Preference::Any).await), "pool_full");
}

async fn senseless_exclude_is_rejected(case: Case) {
    let pool = pool(4);
    for (wrong, expected) in [
        (exclude(&pool, &[4], Mark::MAX), "invalid"),
        (exclude(&pool, &[0], later(Mark::MAX, 1)), "invalid"),
        (exclude(&Pool { reuse: Reuse::Ordered, ..pool.clone() }, &[0], Mark::MAX), "invalid"),
        (Exclude { label: "x".repeat(201), ..exclude(&pool, &[0], Mark::MAX) }, "invalid"),
        (Exclude { label: "a\u{1b}[2J".into(), ..exclude(&pool, &[0], Mark::MAX) }, "invalid"),
    ] {
        assert_eq!(code(send(&case, &wrong).await), expected, "{wrong:?}");
    }
    let member = case.member("orders").await;
    case.claim(&member, &pool).await;
    let other = Pool { slots: 8, ..pool };
    assert_eq!(code(send(&case, &exclude(&other, &[1], Mark::MAX)).await), "conflict");
}
