use std::collections::BTreeMap;

use super::case::{Case, TASKS, TTL_LONG_MS, cases, code, extend, later, pool};
use snowmint_coord::{
    Acquire, Acquired, BootTimer, Mark, Member, Pool, Preference, Relinquish, Result, Reuse,
    StalledMember, Term, Timer as _, random,
};

cases![
    exclusive_slot_has_one_holder_until_relinquished,
    an_expired_presence_frees_no_exclusive_slot,
    a_member_that_left_leaves_its_ordered_slots,
    a_silent_holder_is_replaced_and_renews_no_more,
    a_renewal_saves_an_ordered_slot,
    older_renewal_reverts_nothing,
    rejoined_member_acquires_its_earlier_slots,
    repeated_acquire_returns_the_same_and_another_reacquires,
    the_mark_of_an_ordered_slot_stays_where_it_is,
    acquire_can_open_a_window_at_once,
    senseless_acquire_is_rejected,
    sixteen_takers_of_the_same_slots_share_none,
    joining_member_keeps_slots_acquired_meanwhile,
    thousand_slots_are_acquired_at_once,
    slots_of_a_member_are_written_in_short_steps,
];

fn sections(slots: u64) -> Pool {
    Pool { name: "sections".into(), slots, group: 1, reuse: Reuse::Ordered }
}

pub(super) fn wanting(member: &Member, slots: impl IntoIterator<Item = u64>) -> Acquire {
    Acquire {
        pool: sections(2000),
        member: member.incarnation,
        owner: member.owner.clone(),
        slots: slots.into_iter().collect(),
        stalled: Vec::new(),
        supersedes: None,
        length: 0,
        request: random::request().unwrap(),
    }
}

pub(super) async fn acquire(case: &Case, acquire: &Acquire) -> Result<Acquired> {
    case.store.acquire(acquire, case.now().await).await
}

/// Relinquishes slots by their current terms.
async fn relinquish(case: &Case, member: &Member, slots: &[u64]) {
    let rows = case.store.workers(case.now().await).await.unwrap();
    let term_now =
        |slot: u64| rows.iter().find(|row| row.slot == slot).map_or(Term::new(1), |row| row.term);
    let by_term = slots.iter().map(|slot| (*slot, term_now(*slot))).collect();
    relinquish_by(case, member, by_term).await;
}

async fn relinquish_by(case: &Case, member: &Member, slots: Vec<(u64, Term)>) {
    let relinquish = Relinquish { pool: "sections".into(), member: member.incarnation, slots };
    case.store.relinquish(&relinquish, case.now().await).await.unwrap();
}

async fn exclusive_slot_has_one_holder_until_relinquished(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    let first = acquire(&case, &wanting(&a, [3, 7])).await.unwrap();
    let slots: Vec<_> = first.leases.iter().map(|lease| (lease.slot, lease.term.get())).collect();
    assert_eq!((slots, first.held), (vec![(3, 1), (7, 1)], vec![]));
    let second = acquire(&case, &wanting(&b, [7, 8])).await.unwrap();
    assert_eq!(second.leases[0].slot, 8);
    assert_eq!(second.held, [(7, a.incarnation)]);
    relinquish(&case, &b, &[7]).await;
    assert_eq!(acquire(&case, &wanting(&b, [7])).await.unwrap().held, [(7, a.incarnation)]);
    relinquish(&case, &a, &[7, 8, 9]).await;
    let third = acquire(&case, &wanting(&b, [7, 3])).await.unwrap();
    assert_eq!((third.leases[0].slot, third.leases[0].term.get()), (7, 3));
    assert_eq!(third.held, [(3, a.incarnation)]);
    // A late relinquish, after the slot was acquired again, has no effect.
    let reacquired = acquire(&case, &wanting(&a, [3])).await.unwrap().leases.remove(0);
    relinquish_by(&case, &a, vec![(3, Term::new(1))]).await;
    assert_eq!(acquire(&case, &wanting(&b, [3])).await.unwrap().held, [(3, a.incarnation)]);
    relinquish_by(&case, &a, vec![(3, reacquired.term)]).await;
    assert_eq!(acquire(&case, &wanting(&b, [3])).await.unwrap().leases[0].slot, 3);
    let a_again = acquire(&case, &wanting(&a, [8])).await.unwrap();
    assert_eq!(a_again.held, [(8, b.incarnation)], "a slot of another member stays");
}

async fn an_expired_presence_frees_no_exclusive_slot(case: Case) {
    let a = case.member("a").await;
    let b = case.another().await.member("b").await;
    acquire(&case, &wanting(&a, [0])).await.unwrap();
    case.expire(&a).await;
    let refused = acquire(&case, &wanting(&b, [0])).await.unwrap();
    assert_eq!(refused.held, [(0, a.incarnation)], "the store's clock has no say");
}

async fn a_member_that_left_leaves_its_ordered_slots(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    acquire(&case, &wanting(&a, [0, 1])).await.unwrap();
    case.store.leave(a.incarnation, case.now().await).await.unwrap();
    assert_eq!(acquire(&case, &wanting(&b, [0, 1])).await.unwrap().leases.len(), 2);
}

async fn a_silent_holder_is_replaced_and_renews_no_more(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    let held = acquire(&case, &wanting(&a, [4, 5])).await.unwrap().leases;
    let watched = vec![StalledMember { member: a.incarnation, renewals: 0 }];
    let won = acquire(&case, &Acquire { stalled: watched, ..wanting(&b, [4]) }).await.unwrap();
    assert_eq!((won.leases[0].slot, won.leases[0].term), (4, held[0].term.next()));
    let presence = case.presence(1, TTL_LONG_MS).await;
    let renewed = case.store.renew(a.incarnation, presence, case.now().await).await;
    assert_eq!(code(renewed), "not_found");
    let moved = case.extend_item(extend(&held[0], held[0].mark, later(held[0].mark, 5))).await;
    assert_eq!(code(moved), "fenced");
    // Its other slots are free for all members.
    assert_eq!(acquire(&case, &wanting(&b, [5])).await.unwrap().leases.len(), 1);
}

async fn a_renewal_saves_an_ordered_slot(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    acquire(&case, &wanting(&a, [4])).await.unwrap();
    let presence = case.presence(1, TTL_LONG_MS).await;
    case.store.renew(a.incarnation, presence, case.now().await).await.unwrap();
    let watched = vec![StalledMember { member: a.incarnation, renewals: 0 }];
    let refused = acquire(&case, &Acquire { stalled: watched, ..wanting(&b, [4]) }).await.unwrap();
    assert_eq!(refused.held, [(4, a.incarnation)]);
    let presence = case.presence(2, TTL_LONG_MS).await;
    case.store.renew(a.incarnation, presence, case.now().await).await.unwrap();
}

/// A member that saw the first of them long ago would take this one for stalled.
async fn older_renewal_reverts_nothing(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    acquire(&case, &wanting(&a, [4])).await.unwrap();
    let renew = async |renewals| {
        let presence = case.presence(renewals, TTL_LONG_MS).await;
        case.store.renew(a.incarnation, presence, case.now().await).await.unwrap();
    };
    renew(1).await;
    renew(2).await;
    renew(1).await;
    let joining = case.presence(0, TTL_LONG_MS).await;
    for late in ["a renewal", "a join"] {
        if late == "a join" {
            case.store.join(&a, joining, case.now().await).await.unwrap();
        }
        for renewals in [0, 1] {
            let watched = vec![StalledMember { member: a.incarnation, renewals }];
            let refused =
                acquire(&case, &Acquire { stalled: watched, ..wanting(&b, [4]) }).await.unwrap();
            assert_eq!(refused.held, [(4, a.incarnation)], "{late} after a later renewal");
        }
    }
    renew(3).await;
    let watched = vec![StalledMember { member: a.incarnation, renewals: 3 }];
    assert_eq!(
        acquire(&case, &Acquire { stalled: watched, ..wanting(&b, [4]) })
            .await
            .unwrap()
            .leases
            .len(),
        1
    );
}

async fn rejoined_member_acquires_its_earlier_slots(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("a").await);
    acquire(&case, &wanting(&a, [4])).await.unwrap();
    let same_name = acquire(&case, &wanting(&b, [4])).await.unwrap();
    assert_eq!(same_name.held, [(4, a.incarnation)], "a name proves nothing");
    let supersedes = Some(a.incarnation);
    let again = acquire(&case, &Acquire { supersedes, ..wanting(&b, [4]) }).await.unwrap();
    assert_eq!(again.leases[0].term.get(), 2);
}

async fn repeated_acquire_returns_the_same_and_another_reacquires(case: Case) {
    let a = case.member("a").await;
    let wanted = wanting(&a, [1, 2]);
    let first = acquire(&case, &wanted).await.unwrap();
    let writes = case.writes().await;
    assert_eq!(acquire(&case, &wanted).await.unwrap(), first);
    assert_eq!(case.writes().await, writes, "a repeat changes nothing");
    let reacquired = acquire(&case, &wanting(&a, [1])).await.unwrap();
    assert_eq!(reacquired.leases[0].term, first.leases[0].term.next());
}

async fn the_mark_of_an_ordered_slot_stays_where_it_is(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    let lease = acquire(&case, &wanting(&a, [9])).await.unwrap().leases.remove(0);
    let mark = later(lease.mark, 10_000);
    case.extend_item(extend(&lease, lease.mark, mark)).await.unwrap();
    relinquish(&case, &a, &[9]).await;
    let next = acquire(&case, &wanting(&b, [9])).await.unwrap().leases.remove(0);
    assert_eq!((next.floor, next.mark), (mark, mark));
    let late = case.extend_item(extend(&lease, mark, later(mark, 1))).await;
    assert_eq!(code(late), "fenced");
}

async fn acquire_can_open_a_window_at_once(case: Case) {
    let (a, b) = (case.member("a").await, case.another().await.member("b").await);
    let wanted = Acquire { length: 500, ..wanting(&a, [9]) };
    let lease = acquire(&case, &wanted).await.unwrap().leases.remove(0);
    assert_eq!((lease.floor, lease.mark), (Mark::ZERO, Mark::new(500)));
    let again = acquire(&case, &wanted).await.unwrap().leases;
    assert_eq!(again, std::slice::from_ref(&lease), "a repeat moves nothing");
    case.extend_item(extend(&lease, lease.mark, Mark::new(600))).await.unwrap();
    relinquish(&case, &a, &[9]).await;
    let next =
        acquire(&case, &Acquire { length: 7, ..wanting(&b, [9]) }).await.unwrap().leases.remove(0);
    assert_eq!((next.floor, next.mark), (Mark::new(600), Mark::new(607)));
}

async fn senseless_acquire_is_rejected(case: Case) {
    let a = case.member("a").await;
    let good = wanting(&a, [1]);
    assert_eq!(code(acquire(&case, &wanting(&a, [2000])).await), "invalid");
    assert_eq!(code(acquire(&case, &wanting(&a, [])).await), "invalid");
    let long = Acquire { length: u64::MAX, ..good.clone() };
    assert_eq!(code(acquire(&case, &long).await), "invalid");
    assert_eq!(code(acquire(&case, &Acquire { pool: pool(8), ..good.clone() }).await), "invalid");
    let stranger = Member { incarnation: random::incarnation().unwrap(), ..a.clone() };
    assert_eq!(code(acquire(&case, &wanting(&stranger, [1])).await), "not_found");
    acquire(&case, &good).await.unwrap();
    let other_shape = Acquire { pool: sections(1000), ..wanting(&a, [2]) };
    assert_eq!(code(acquire(&case, &other_shape).await), "conflict");
    assert_eq!(code(case.try_claim(&a, &sections(2000), Preference::Any).await), "invalid");
}

async fn sixteen_takers_of_the_same_slots_share_none(case: Case) {
    const SLOTS: u64 = 40;
    let results = case
        .contend(|case, number| async move {
            let member = case.member("counters").await;
            // From different starting slots, in several calls.
            let mut slots: Vec<u64> = (0..SLOTS).collect();
            slots.rotate_left(usize::try_from(number * 5 % SLOTS).unwrap());
            let mut leases = Vec::new();
            for some in slots.chunks(10) {
                loop {
                    match acquire(&case, &wanting(&member, some.iter().copied())).await {
                        Ok(mut acquired) => break leases.append(&mut acquired.leases),
                        Err(error) => assert_eq!(error.kind().code(), "unavailable", "{error:?}"),
                    }
                }
            }
            (member.incarnation, leases)
        })
        .await;
    assert_eq!(results.len(), usize::try_from(TASKS).unwrap());
    let mut holders = BTreeMap::new();
    for (member, leases) in results {
        for lease in leases {
            assert_eq!((lease.term.get(), lease.mark), (1, Mark::ZERO));
            assert_eq!(holders.insert(lease.slot, member), None, "slot {}", lease.slot);
        }
    }
    assert_eq!(holders.len(), usize::try_from(SLOTS).unwrap(), "none was left");
}

/// A member that joined after another had listed the members is not taken for gone.
async fn joining_member_keeps_slots_acquired_meanwhile(case: Case) {
    const SLOTS: u64 = 300;
    let results = case
        .contend(|case, number| async move {
            BootTimer.sleep_ms(2 * number).await;
            let member = case.member("counters").await;
            // The first member gets to the slots of the others last.
            let slots = if number == 0 { 0..SLOTS } else { SLOTS - number..SLOTS - number + 1 };
            loop {
                match acquire(&case, &wanting(&member, slots.clone())).await {
                    Ok(acquired) => break (member.incarnation, acquired.leases),
                    Err(error) => assert_eq!(error.kind().code(), "unavailable", "{error:?}"),
                }
            }
        })
        .await;
    let mut holders = BTreeMap::new();
    for (member, leases) in results {
        for lease in leases {
            assert_eq!(lease.term.get(), 1, "slot {} was had by another", lease.slot);
            assert_eq!(holders.insert(lease.slot, member), None, "slot {}", lease.slot);
        }
    }
    assert_eq!(holders.len(), usize::try_from(SLOTS).unwrap(), "none was left");
}

async fn thousand_slots_are_acquired_at_once(case: Case) {
    let a = case.member("a").await;
    let wanted = wanting(&a, 0..1000);
    let acquired = acquire(&case, &wanted).await.unwrap();
    assert_eq!(acquired.leases.len(), 1000);
    let extends: Vec<_> =
        acquired.leases.iter().map(|lease| extend(lease, lease.mark, Mark::new(10))).collect();
    let moved = case.store.extend(&extends, case.now().await).await.unwrap();
    assert!(moved.iter().all(Result::is_ok));
    let slots: Vec<u64> = (0..1000).collect();
    relinquish(&case, &a, &slots).await;
    let b = case.another().await.member("b").await;
    let next = acquire(&case, &wanting(&b, [0, 999])).await.unwrap();
    assert!(next.leases.iter().all(|lease| lease.mark == Mark::new(10)));
}

/// Other callers wait for a step, so its length must not follow the number of slots.
async fn slots_of_a_member_are_written_in_short_steps(case: Case) {
    const SLOTS: u64 = 1_200;
    const STEPS_MIN: u64 = 3;
    let a = case.member("a").await;
    let before = case.writes().await;
    let acquired = acquire(&case, &wanting(&a, 0..SLOTS)).await.unwrap();
    let by_term = acquired.leases.iter().map(|lease| (lease.slot, lease.term)).collect();
    let acquired_at = case.writes().await;
    let extends: Vec<_> =
        acquired.leases.iter().map(|lease| extend(lease, lease.mark, Mark::new(10))).collect();
    case.store.extend(&extends, case.now().await).await.unwrap();
    let extended_at = case.writes().await;
    relinquish_by(&case, &a, by_term).await;
    let relinquished_at = case.writes().await;
    acquire(&case, &wanting(&a, 0..SLOTS)).await.unwrap();
    let again_at = case.writes().await;
    case.store.leave(a.incarnation, case.now().await).await.unwrap();
    let steps = [
        ("acquire", acquired_at - before),
        ("extend", extended_at - acquired_at),
        ("relinquish", relinquished_at - extended_at),
        ("leave", case.writes().await - again_at),
    ];
    for (verb, steps) in steps {
        assert!(steps >= STEPS_MIN, "{verb} of {SLOTS} slots took {steps} steps");
    }
    let b = case.another().await.member("b").await;
    let next = acquire(&case, &wanting(&b, 0..SLOTS)).await.unwrap();
    assert_eq!(next.leases.len(), acquired.leases.len(), "all were given up");
}
