use std::collections::BTreeSet;
use std::sync::Arc;

use super::case::{Case, TASKS, TTL_LONG_MS, cases, code, later, pool};
use snowmint_coord::pool::NEVER_ROWS_KEPT;
use snowmint_coord::{ErrorKind, Mark, Pool, Preference, Retry, Reuse, Term};

cases![
    first_claims_get_the_smallest_numbers,
    a_live_slot_is_never_shared,
    an_expired_presence_frees_its_slot_and_is_fenced,
    a_released_slot_goes_to_the_next_with_its_mark_as_floor,
    every_change_of_hands_raises_the_term_by_one,
    the_owner_gets_its_last_number_back,
    two_lives_of_one_owner_have_two_numbers,
    exact_preference_gets_its_number_or_an_error,
    full_pool_error_has_limit_holders_and_time,
    a_mark_ahead_is_passed_over,
    repeated_claim_returns_the_first_leases,
    only_members_may_claim,
    a_superseded_member_makes_room_at_once,
    groups_are_claimed_whole,
    many_numbers_in_one_claim,
    numbers_that_are_never_reused,
    a_pool_without_reuse_ends,
    a_pool_keeps_its_shape,
    bad_claims_are_refused,
    requests_after_their_sender_left_change_nothing,
    sixteen_claimers_get_sixteen_numbers,
    last_of_a_thousand_numbers_are_claimed_at_once,
    sixteen_claimers_of_one_number_get_it_once,
    sixteen_fresh_numbers_are_distinct,
];

async fn first_claims_get_the_smallest_numbers(case: Case) {
    let member = case.member("orders").await;
    for slot in 0..3 {
        let lease = case.claim(&member, &pool(1024)).await;
        assert_eq!((lease.slot, lease.term), (slot, Term::new(1)));
        assert_eq!((lease.floor, lease.mark), (Mark::ZERO, Mark::ZERO));
        assert_eq!(lease.pool, "workers");
    }
}

async fn a_live_slot_is_never_shared(case: Case) {
    let one = case.member("orders").await;
    let namesake = case.member("orders").await;
    let held = case.claim(&one, &pool(4)).await;
    for preference in [Preference::LastOfOwner, Preference::Any] {
        let other = case.try_claim(&namesake, &pool(4), preference).await.unwrap();
        assert_ne!(other.slot, held.slot);
    }
    case.extend(&held, held.mark, Mark::new(9)).await.unwrap();
}

async fn an_expired_presence_frees_its_slot_and_is_fenced(case: Case) {
    let gone = case.member("orders").await;
    let next = case.member("bills").await;
    let lost = case.claim(&gone, &pool(1)).await;
    let mark = Mark::from(case.now().await);
    case.extend(&lost, lost.mark, mark).await.unwrap();
    assert_eq!(code(case.try_claim(&next, &pool(1), Preference::Any).await), "pool_full");
    case.expire(&gone).await;
    let claimed = case.claim(&next, &pool(1)).await;
    assert_eq!((claimed.slot, claimed.floor, claimed.mark), (lost.slot, mark, mark));
    // The paused member wakes up, and even renews: its slot is lost.
    case.renew(&gone, TTL_LONG_MS).await;
    let refused = case.extend(&lost, mark, later(mark, 10)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "fenced", "{refused}");
    let terms = format!("term {}, newest {};", lost.term.get(), claimed.term.get());
    assert!(refused.message().contains(&terms), "{refused}");
    assert_eq!(code(case.release(&lost, mark).await), "fenced");
    case.extend(&claimed, mark, later(mark, 10)).await.unwrap();
}

async fn a_released_slot_goes_to_the_next_with_its_mark_as_floor(case: Case) {
    let one = case.member("orders").await;
    let two = case.member("bills").await;
    let lease = case.claim(&one, &pool(1)).await;
    case.extend(&lease, lease.mark, Mark::new(1000)).await.unwrap();
    case.release(&lease, Mark::new(400)).await.unwrap();
    let next = case.claim(&two, &pool(1)).await;
    assert_eq!((next.floor, next.mark), (Mark::new(400), Mark::new(400)));
}

async fn every_change_of_hands_raises_the_term_by_one(case: Case) {
    let member = case.member("orders").await;
    for round in 0..5 {
        let lease = case.claim(&member, &pool(1)).await;
        assert_eq!(lease.term, Term::new(2 * round + 1));
        case.extend(&lease, lease.mark, later(lease.mark, 1)).await.unwrap();
        case.release(&lease, later(lease.mark, 1)).await.unwrap();
        let seen = &case.store.workers(case.now().await).await.unwrap()[0];
        assert_eq!(seen.term, Term::new(2 * round + 2));
    }
}

async fn the_owner_gets_its_last_number_back(case: Case) {
    let first = case.member("first").await;
    case.claim(&first, &pool(8)).await;
    let orders = case.member("orders").await;
    let held = case.claim(&orders, &pool(8)).await;
    case.store.leave(orders.incarnation, case.now().await).await.unwrap();
    let other = case.member("other").await;
    assert_ne!(case.claim(&other, &pool(8)).await.slot, held.slot, "never used comes first");
    let again = case.member("orders").await;
    let back = case.try_claim(&again, &pool(8), Preference::LastOfOwner).await.unwrap();
    assert_eq!(back.slot, held.slot);
}

async fn two_lives_of_one_owner_have_two_numbers(case: Case) {
    let (one, two) = (case.member("orders").await, case.member("orders").await);
    let first = case.try_claim(&one, &pool(8), Preference::LastOfOwner).await.unwrap();
    let second =
        case.another().await.try_claim(&two, &pool(8), Preference::LastOfOwner).await.unwrap();
    assert_ne!(first.slot, second.slot);
    case.extend(&first, first.mark, Mark::new(7)).await.unwrap();
    case.extend(&second, second.mark, Mark::new(7)).await.unwrap();
}

async fn exact_preference_gets_its_number_or_an_error(case: Case) {
    let one = case.member("orders").await;
    let two = case.member("bills").await;
    let lease = case.try_claim(&one, &pool(8), Preference::Exactly(5)).await.unwrap();
    assert_eq!(lease.slot, 5);
    let refused = case.try_claim(&two, &pool(8), Preference::Exactly(5)).await.unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::PoolFull(full) if full.only == Some(5)),
        "{refused:?}"
    );
    assert_eq!(code(case.try_claim(&two, &pool(8), Preference::Exactly(8)).await), "invalid");
}

async fn full_pool_error_has_limit_holders_and_time(case: Case) {
    let one = case.member("orders").await;
    let two = case.member("bills").await;
    case.claim(&one, &pool(2)).await;
    case.claim(&two, &pool(2)).await;
    let writes = case.writes().await;
    let refused = case.try_claim(&two, &pool(2), Preference::Any).await.unwrap_err();
    let ErrorKind::PoolFull(full) = refused.kind() else { panic!("{refused:?}") };
    assert_eq!((full.pool.as_str(), full.groups, full.held), ("workers", 2, 2));
    assert_eq!((full.marked_ahead, full.only), (0, None));
    let holders: Vec<_> = full.holders.iter().map(|holder| holder.owner.as_str()).collect();
    assert_eq!(holders, ["orders", "bills"]);
    assert_eq!(full.holders[0].incarnation, one.incarnation);
    let wait_ms = full.usable_in_ms.unwrap();
    assert!(wait_ms > 0 && wait_ms <= TTL_LONG_MS, "{wait_ms}");
    assert_eq!(refused.retry(), Retry::AfterMs(wait_ms));
    assert_eq!(case.writes().await, writes, "a rejected claim changes nothing");
    // The wait ends with the presence, and no sooner. A machine that stands still for this long may
    // skip the error.
    let ttl_ms = 2_000;
    case.renew(&one, ttl_ms).await;
    let refused = case.try_claim(&two, &pool(2), Preference::Any).await;
    assert!(refused.is_err() || !case.goes_by_callers(), "{refused:?}");
    let slot = match refused {
        Ok(late) => late.slot,
        Err(refused) => {
            let Retry::AfterMs(wait_ms) = refused.retry() else { panic!("{refused:?}") };
            assert!(wait_ms > 0 && wait_ms <= ttl_ms, "{wait_ms}");
            case.pass_ms(wait_ms).await;
            case.claim(&two, &pool(2)).await.slot
        }
    };
    assert_eq!(slot, 0);
}

async fn a_mark_ahead_is_passed_over(case: Case) {
    let crashed = case.member("orders").await;
    let lost = case.claim(&crashed, &pool(2)).await;
    let ahead = later(Mark::from(case.now().await), 60_000);
    case.extend(&lost, lost.mark, ahead).await.unwrap();
    case.expire(&crashed).await;
    let again = case.member("orders").await;
    let other = case.try_claim(&again, &pool(2), Preference::LastOfOwner).await.unwrap();
    assert_eq!(other.slot, 1, "its last number cannot mint yet");
    let mut patient = case.wanting(&again, &pool(2), Preference::LastOfOwner).await;
    let refused = case.send(&patient).await.unwrap_err();
    let ErrorKind::PoolFull(full) = refused.kind() else { panic!("{refused:?}") };
    assert_eq!((full.held, full.marked_ahead), (1, 1));
    patient.mark_at_most = Mark::new(ahead.get() - 1);
    assert_eq!(code(case.send(&patient).await), "pool_full");
    patient.mark_at_most = ahead;
    let claimed = case.send(&patient).await.unwrap();
    assert_eq!((claimed[0].slot, claimed[0].floor), (0, ahead));
}

async fn repeated_claim_returns_the_first_leases(case: Case) {
    let member = case.member("orders").await;
    let mut request = case.wanting(&member, &pool(8), Preference::Any).await;
    let first = case.send(&request).await.unwrap();
    let writes = case.writes().await;
    assert_eq!(case.another().await.send(&request).await.unwrap(), first);
    assert_eq!(case.writes().await, writes, "nothing to write");
    let mut other = request.clone();
    other.request += 1;
    assert_ne!(case.send(&other).await.unwrap()[0].slot, first[0].slot);
    case.release(&first[0], first[0].mark).await.unwrap();
    let given_up = case.store.workers(case.now().await).await.unwrap();
    // The request has come twice, or late: its sender has moved on, and would hold a number without
    // knowing it.
    assert_eq!(code(case.another().await.send(&request).await), "fenced");
    assert_eq!(case.store.workers(case.now().await).await.unwrap(), given_up);
    request.request += 2;
    assert_eq!(case.send(&request).await.unwrap()[0].slot, 2, "as a new request");
}

async fn only_members_may_claim(case: Case) {
    let member = case.member("orders").await;
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    assert_eq!(code(case.try_claim(&member, &pool(8), Preference::Any).await), "not_found");
    assert_eq!(case.store.workers(case.now().await).await.unwrap(), []);
}

async fn a_superseded_member_makes_room_at_once(case: Case) {
    let dead = case.member("orders").await;
    let lost = case.claim(&dead, &pool(1)).await;
    case.extend(&lost, lost.mark, Mark::new(77)).await.unwrap();
    let heir = case.member("orders").await;
    let mut request = case.wanting(&heir, &pool(1), Preference::LastOfOwner).await;
    assert_eq!(code(case.send(&request).await), "pool_full");
    request.supersedes = Some(dead.incarnation);
    let lease = &case.send(&request).await.unwrap()[0];
    assert_eq!((lease.term, lease.floor), (lost.term.next(), Mark::new(77)));
    let fenced = case.extend(&lost, Mark::new(77), Mark::new(78)).await;
    assert_eq!(code(fenced), "fenced");
}

async fn groups_are_claimed_whole(case: Case) {
    let pool =
        Pool { name: "workers-2-clock-2".into(), slots: 16, group: 4, reuse: Reuse::Recycle };
    let member = case.member("orders").await;
    let request = case.wanting(&member, &pool, Preference::Any).await;
    let first = case.send(&request).await.unwrap();
    assert_eq!(first.iter().map(|lease| lease.slot).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(case.send(&request).await.unwrap(), first);
    let second = case.send(&case.wanting(&member, &pool, Preference::Any).await).await.unwrap();
    assert_eq!(second[0].slot, 4);
    case.extend(&first[2], Mark::ZERO, Mark::new(50)).await.unwrap();
    for lease in &first {
        let mark = if lease.slot == 2 { Mark::new(50) } else { Mark::ZERO };
        case.release(lease, mark).await.unwrap();
    }
    let exactly = case.wanting(&member, &pool, Preference::Exactly(0)).await;
    let again = case.send(&exactly).await.unwrap();
    assert_eq!((again[2].floor, again[3].floor), (Mark::new(50), Mark::ZERO));
    let uneven = Pool { name: "uneven".into(), slots: 6, ..pool };
    let refused = case.send(&case.wanting(&member, &uneven, Preference::Any).await).await;
    assert_eq!(code(refused), "invalid");
}

async fn many_numbers_in_one_claim(case: Case) {
    let member = case.member("orders").await;
    let mut request = case.wanting(&member, &pool(100), Preference::Any).await;
    request.count = 60;
    let slots = |leases: Vec<snowmint_coord::Lease>| -> Vec<u64> {
        leases.into_iter().map(|lease| lease.slot).collect()
    };
    assert_eq!(slots(case.send(&request).await.unwrap()), (0..60).collect::<Vec<_>>());
    request.request += 1;
    assert_eq!(slots(case.send(&request).await.unwrap()), (60..100).collect::<Vec<_>>());
    request.request += 1;
    assert_eq!(code(case.send(&request).await), "pool_full");
}

async fn numbers_that_are_never_reused(case: Case) {
    let pool =
        Pool { name: "workers-22-never".into(), slots: 1 << 22, group: 1, reuse: Reuse::Never };
    let member = case.member("orders").await;
    let total = u64::try_from(NEVER_ROWS_KEPT).unwrap() + 20;
    for number in 0..total {
        let lease = case.try_claim(&member, &pool, Preference::LastOfOwner).await.unwrap();
        assert_eq!((lease.slot, lease.term), (number, Term::new(1)));
        if number != 3 {
            case.release(&lease, lease.mark).await.unwrap();
        }
    }
    let remembered = case.store.workers(case.now().await).await.unwrap();
    assert!(remembered.len() <= NEVER_ROWS_KEPT + 2, "rows are bounded: {}", remembered.len());
    assert!(remembered.iter().any(|info| info.slot == 3 && info.live), "a held row is kept");
    assert_eq!(code(case.try_claim(&member, &pool, Preference::Exactly(0)).await), "invalid");
}

async fn a_pool_without_reuse_ends(case: Case) {
    let pool = Pool { name: "few".into(), slots: 2, group: 1, reuse: Reuse::Never };
    let member = case.member("orders").await;
    for _ in 0..2 {
        let lease = case.claim(&member, &pool).await;
        case.release(&lease, lease.mark).await.unwrap();
    }
    let spent = case.try_claim(&member, &pool, Preference::Any).await.unwrap_err();
    assert_eq!(spent.kind().code(), "exhausted", "{spent}");
    assert!(spent.message().contains("all its 2 numbers"), "{spent}");
    assert_eq!(spent.retry(), Retry::Never);
}

async fn a_pool_keeps_its_shape(case: Case) {
    let member = case.member("orders").await;
    case.claim(&member, &pool(4)).await;
    for other in [pool(8), Pool { group: 2, ..pool(4) }, Pool { reuse: Reuse::Never, ..pool(4) }] {
        assert_eq!(code(case.try_claim(&member, &other, Preference::Any).await), "conflict");
    }
}

async fn bad_claims_are_refused(case: Case) {
    let member = case.member("orders").await;
    let good = case.wanting(&member, &pool(4), Preference::Any).await;
    for name in ["", "a/b", "a b", &"x".repeat(64)] {
        let mut bad = good.clone();
        bad.pool.name = name.into();
        assert_eq!(code(case.send(&bad).await), "invalid", "{name}");
    }
    let mut bad = good.clone();
    bad.pool.slots = 0;
    assert_eq!(code(case.send(&bad).await), "invalid");
    bad.pool.slots = u64::MAX;
    assert_eq!(code(case.send(&bad).await), "invalid");
    for (count, expected) in [(0, "invalid"), (u32::MAX, "limit_exceeded")] {
        let bad = snowmint_coord::ClaimRequest { count, ..good.clone() };
        assert_eq!(code(case.send(&bad).await), expected);
    }
    // Its slot would look excluded once it is released.
    let bad = snowmint_coord::ClaimRequest { request: 0, ..good };
    assert_eq!(code(case.send(&bad).await), "invalid");
    assert_eq!(case.store.workers(case.now().await).await.unwrap(), []);
}

async fn requests_after_their_sender_left_change_nothing(case: Case) {
    let member = case.member("orders").await;
    let claim = case.wanting(&member, &pool(8), Preference::Any).await;
    let lease = case.send(&claim).await.unwrap().remove(0);
    case.extend(&lease, lease.mark, Mark::new(7)).await.unwrap();
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    let left = case.store.workers(case.now().await).await.unwrap();

    let late = case.another().await;
    let presence = late.presence(9, TTL_LONG_MS).await;
    let now = late.now().await;
    assert_eq!(code(late.store.renew(member.incarnation, presence, now).await), "not_found");
    assert_eq!(code(late.send(&claim).await), "not_found");
    assert_eq!(code(late.extend(&lease, Mark::new(7), Mark::new(9)).await), "fenced");
    assert_eq!(code(late.release(&lease, Mark::new(3)).await), "fenced");
    assert_eq!(late.store.workers(late.now().await).await.unwrap(), left);
}

async fn sixteen_claimers_get_sixteen_numbers(case: Case) {
    let leases = case
        .contend(|case, number| async move {
            let member = case.member(&format!("owner-{number}")).await;
            case.claim(&member, &pool(TASKS)).await
        })
        .await;
    let slots: BTreeSet<u64> = leases.iter().map(|lease| lease.slot).collect();
    assert_eq!(slots, (0..TASKS).collect());
    let late = case.member("late").await;
    assert_eq!(code(case.try_claim(&late, &pool(TASKS), Preference::Any).await), "pool_full");
}

/// Worker numbers of a usual pool.
const NUMBERS: u64 = 1024;
/// Numbers that are claimed at once, after the others: each claim reads all rows of the pool.
const LAST: u64 = 128;

async fn last_of_a_thousand_numbers_are_claimed_at_once(case: Case) {
    let pool = pool(NUMBERS);
    for number in 1..NUMBERS / LAST {
        let member = case.member(&format!("holder-{number}")).await;
        let mut request = case.wanting(&member, &pool, Preference::Any).await;
        request.count = LAST.try_into().unwrap();
        assert_eq!(case.send(&request).await.unwrap().len() as u64, LAST);
    }
    let mut members = Vec::new();
    for number in 0..LAST {
        members.push(case.member(&format!("owner-{number}")).await);
    }
    let members = Arc::new(members);
    let slots = case
        .contend(|case, task| {
            let (members, pool) = (Arc::clone(&members), pool.clone());
            async move {
                let mut claims = Vec::new();
                for member in members
                    .iter()
                    .skip(usize::try_from(task).unwrap())
                    .step_by(usize::try_from(TASKS).unwrap())
                {
                    let (case, member, pool) = (case.clone(), member.clone(), pool.clone());
                    claims.push(tokio::spawn(async move { case.claim(&member, &pool).await.slot }));
                }
                let mut slots = Vec::new();
                for claim in claims {
                    slots.push(claim.await.unwrap());
                }
                slots
            }
        })
        .await;
    let mut slots: Vec<u64> = slots.into_iter().flatten().collect();
    slots.sort_unstable();
    assert_eq!(slots, (NUMBERS - LAST..NUMBERS).collect::<Vec<_>>());
    let late = case.member("late").await;
    assert_eq!(code(case.try_claim(&late, &pool, Preference::Any).await), "pool_full");
}

async fn sixteen_claimers_of_one_number_get_it_once(case: Case) {
    let results = case
        .contend(|case, _| async move {
            let member = case.member("orders").await;
            case.try_claim(&member, &pool(4), Preference::Exactly(2)).await
        })
        .await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1);
    assert!(results.into_iter().filter(Result::is_err).all(|result| code(result) == "pool_full"));
}

async fn sixteen_fresh_numbers_are_distinct(case: Case) {
    let pool = Pool { name: "never".into(), slots: 1000, group: 1, reuse: Reuse::Never };
    let numbers = case
        .contend(|case, _| {
            let pool = pool.clone();
            async move {
                let member = case.member("orders").await;
                let mut numbers = Vec::new();
                for _ in 0..5 {
                    numbers.push(case.claim(&member, &pool).await.slot);
                }
                numbers
            }
        })
        .await;
    let distinct: BTreeSet<u64> = numbers.into_iter().flatten().collect();
    assert_eq!(distinct, (0..5 * TASKS).collect());
}
