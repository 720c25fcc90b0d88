use super::case::{Case, TASKS, cases, code, extend, later, pool};
use snowmint_coord::{
    ErrorKind, Extend, FastForward, Lease, Mark, Preference, Release, Retry, Term,
};

cases![
    unheld_slot_is_extended_by_its_newest_term,
    a_mark_moves_and_is_seen,
    a_mark_moves_only_from_exactly_where_it_is,
    only_the_newest_term_moves_a_mark,
    lease_newer_than_the_store_shows_a_rollback,
    a_repeat_is_recognised,
    a_mark_never_falls,
    the_limit_ahead_is_kept_to_the_millisecond,
    batch_returns_a_result_for_each_item,
    an_unknown_slot_is_refused,
    extend_returns_the_catalog_version,
    the_highest_mark_is_63_bits,
    a_release_lowers_to_the_floor_and_no_further,
    a_release_is_recognised_until_the_next_claim,
    release_from_a_known_mark_fails_when_it_moved,
    member_cannot_move_or_release_slots_of_others,
    of_sixteen_extends_from_one_mark_one_wins,
    sixteen_holders_move_their_marks_at_once,
    extend_and_release_never_both_win,
    raised_mark_fences_windows_that_began_below,
];

/// Models an external lease: the mark is the lease, and a client with the newest term moves it.
async fn unheld_slot_is_extended_by_its_newest_term(case: Case) {
    let (lender, other) = (case.member("lender").await, case.member("other").await);
    let lease = case.claim(&lender, &pool(1)).await;
    let now = Mark::from(case.now().await);
    let ahead = later(now, 600_000);
    case.extend(&lease, lease.mark, ahead).await.unwrap();
    case.release(&lease, ahead).await.unwrap();
    let kept = Lease { term: lease.term.next(), holder: None, ..lease.clone() };
    let refused = |claim| assert_eq!(code(claim), "pool_full");
    refused(case.try_claim(&other, &pool(1), Preference::Any).await);
    case.extend(&kept, ahead, later(ahead, 1)).await.unwrap();
    assert_eq!(code(case.extend(&lease, later(ahead, 1), later(ahead, 2)).await), "fenced");
    assert_eq!(code(case.extend(&kept, ahead, later(ahead, 2)).await), "mark_moved");
    // The owner label stays, whichever members live.
    case.store.leave(lender.incarnation, case.now().await).await.unwrap();
    let slot = case.store.workers(case.now().await).await.unwrap().remove(0);
    assert_eq!((slot.owner.as_str(), slot.holder, slot.term), ("lender", None, kept.term));
    refused(case.try_claim(&other, &pool(1), Preference::Any).await);
    case.release(&kept, now).await.unwrap();
    assert_eq!(case.claim(&other, &pool(1)).await.floor, now);
}

async fn held(case: &Case) -> Lease {
    let member = case.member("orders").await;
    case.claim(&member, &pool(64)).await
}

async fn mark_of(case: &Case, lease: &Lease) -> Mark {
    let rows = case.store.workers(case.now().await).await.unwrap();
    rows.iter().find(|row| row.slot == lease.slot && row.pool == lease.pool).unwrap().mark
}

async fn a_mark_moves_and_is_seen(case: Case) {
    let lease = held(&case).await;
    let mut mark = lease.mark;
    for _ in 0..3 {
        let moved = case.extend(&lease, mark, later(mark, 1000)).await.unwrap();
        mark = later(mark, 1000);
        assert_eq!(moved.mark, mark);
        assert_eq!(moved.writes, case.writes().await);
        assert_eq!(mark_of(&case.another().await, &lease).await, mark);
    }
}

async fn a_mark_moves_only_from_exactly_where_it_is(case: Case) {
    let lease = held(&case).await;
    case.extend(&lease, lease.mark, Mark::new(100)).await.unwrap();
    let writes = case.writes().await;
    for from in [0, 99] {
        let refused = case.extend(&lease, Mark::new(from), Mark::new(200)).await.unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::MarkMoved { expected, found }
                if expected.get() == from && found.get() == 100),
            "{refused:?}"
        );
        assert_eq!(refused.retry(), Retry::Never);
    }
    // Under one term a mark only rises, so a holder that saw a higher one saw what is lost.
    let refused = case.extend(&lease, Mark::new(101), Mark::new(200)).await.unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::StoreRolledBack { seen: 101, found: 100, .. }),
        "{refused:?}"
    );
    assert_eq!(mark_of(&case, &lease).await, Mark::new(100));
    assert_eq!(case.writes().await, writes);
}

async fn only_the_newest_term_moves_a_mark(case: Case) {
    let lease = held(&case).await;
    case.release(&lease, lease.mark).await.unwrap();
    assert_eq!(code(case.extend(&lease, lease.mark, Mark::new(5)).await), "fenced");
    let older = Lease { term: Term::ZERO, ..lease };
    assert_eq!(code(case.extend(&older, older.mark, Mark::new(5)).await), "fenced");
}

async fn lease_newer_than_the_store_shows_a_rollback(case: Case) {
    let lease = held(&case).await;
    let newer = Lease { term: lease.term.next(), ..lease.clone() };
    assert_eq!(code(case.extend(&newer, lease.mark, Mark::new(5)).await), "store_rolled_back");
    assert_eq!(code(case.release(&newer, lease.mark).await), "store_rolled_back");
}

async fn a_repeat_is_recognised(case: Case) {
    let lease = held(&case).await;
    let item = extend(&lease, lease.mark, Mark::new(100));
    case.extend_item(item.clone()).await.unwrap();
    let writes = case.writes().await;
    let again = case.another().await.extend_item(item.clone()).await.unwrap();
    assert_eq!((again.mark, again.writes), (Mark::new(100), writes));
    assert_eq!(case.writes().await, writes, "nothing to write");
    let stranger = Extend { request: item.request + 1, ..item.clone() };
    assert_eq!(code(case.extend_item(stranger).await), "mark_moved");
    case.extend(&lease, Mark::new(100), Mark::new(200)).await.unwrap();
    assert_eq!(code(case.extend_item(item).await), "mark_moved", "too late to repeat");
}

async fn a_mark_never_falls(case: Case) {
    let lease = held(&case).await;
    case.extend(&lease, lease.mark, Mark::new(100)).await.unwrap();
    for to in [0, 99, 100] {
        assert_eq!(code(case.extend(&lease, Mark::new(100), Mark::new(to)).await), "invalid");
    }
}

async fn the_limit_ahead_is_kept_to_the_millisecond(case: Case) {
    let lease = held(&case).await;
    // A store with its own clock moves on during the call: stay a minute clear of the limit.
    let slack_ms = if case.goes_by_callers() { 0 } else { 60_000 };
    let now = Mark::from(case.now().await);
    let item =
        |to, limit_ms| Extend { ahead_max_ms: Some(limit_ms), ..extend(&lease, lease.mark, to) };
    let limit_ms = 120_000;
    let refused = case.extend_item(item(later(now, limit_ms + slack_ms + 1), limit_ms)).await;
    let refused = refused.unwrap_err();
    let ErrorKind::ClockAhead { ahead_ms, limit_ms: limit } = refused.kind() else {
        panic!("{refused:?}")
    };
    assert!(*limit == limit_ms && *ahead_ms > limit_ms);
    let years_ahead = later(now, 10 * 365 * 86_400_000);
    assert_eq!(code(case.extend_item(item(years_ahead, limit_ms)).await), "clock_ahead");
    assert_eq!(mark_of(&case, &lease).await, lease.mark);
    case.extend_item(item(later(now, limit_ms), limit_ms)).await.unwrap();
}

async fn batch_returns_a_result_for_each_item(case: Case) {
    let member = case.member("orders").await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(case.claim(&member, &pool(64)).await);
    }
    case.release(&leases[1], leases[1].mark).await.unwrap();
    let mut items: Vec<Extend> =
        leases.iter().map(|lease| extend(lease, lease.mark, Mark::new(70))).collect();
    items.push(extend(&leases[0], Mark::new(70), Mark::new(90)));
    let writes = case.writes().await;
    let results = case.store.extend(&items, case.now().await).await.unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(results[0].as_ref().unwrap().mark, Mark::new(70));
    assert_eq!(results[1].as_ref().unwrap_err().kind().code(), "fenced");
    assert_eq!(results[2].as_ref().unwrap().mark, Mark::new(70));
    assert_eq!(results[3].as_ref().unwrap().mark, Mark::new(90), "items act in order");
    assert!(case.writes().await > writes);
    assert_eq!(case.store.extend(&[], case.now().await).await.unwrap().len(), 0);
}

async fn an_unknown_slot_is_refused(case: Case) {
    let lease = held(&case).await;
    let unused = Lease { slot: 40, ..lease.clone() };
    let in_unknown_pool = Lease { pool: "nowhere".into(), ..lease };
    for unknown in [unused, in_unknown_pool] {
        assert_eq!(code(case.extend(&unknown, Mark::ZERO, Mark::new(5)).await), "not_found");
        assert_eq!(code(case.release(&unknown, Mark::ZERO).await), "not_found");
    }
}

async fn extend_returns_the_catalog_version(case: Case) {
    let lease = held(&case).await;
    let before = case.extend(&lease, lease.mark, Mark::new(10)).await.unwrap();
    let defined = case.define("orders").await;
    let after = case.extend(&lease, Mark::new(10), Mark::new(20)).await.unwrap();
    assert!(after.catalog_version > before.catalog_version);
    assert_eq!(after.catalog_version, defined.version);
    // The version also covers a change by another handle, which does not know of this extend.
    let defined = case.another().await.define("bills").await;
    let after = case.extend(&lease, Mark::new(20), Mark::new(30)).await.unwrap();
    assert_eq!(after.catalog_version, defined.version);
}

async fn the_highest_mark_is_63_bits(case: Case) {
    let lease = held(&case).await;
    for to in [later(Mark::MAX, 1), Mark::new(u64::MAX)] {
        assert_eq!(code(case.extend(&lease, lease.mark, to).await), "invalid");
    }
    let moved = case.extend(&lease, lease.mark, Mark::MAX).await.unwrap();
    assert_eq!(moved.mark, Mark::MAX);
    assert_eq!(mark_of(&case, &lease).await, Mark::MAX);
}

async fn a_release_lowers_to_the_floor_and_no_further(case: Case) {
    let lease = held(&case).await;
    case.extend(&lease, lease.mark, Mark::new(100)).await.unwrap();
    case.release(&lease, Mark::new(60)).await.unwrap();
    let member = case.member("bills").await;
    let exactly = Preference::Exactly(lease.slot);
    let next = case.try_claim(&member, &pool(64), exactly).await.unwrap();
    case.extend(&next, next.mark, Mark::new(100)).await.unwrap();
    for mark in [0, 59, 101] {
        assert_eq!(code(case.release(&next, Mark::new(mark)).await), "invalid", "{mark}");
    }
    assert_eq!(mark_of(&case, &next).await, Mark::new(100));
    case.release(&next, Mark::new(60)).await.unwrap();
    assert_eq!(mark_of(&case, &next).await, Mark::new(60));
}

async fn a_release_is_recognised_until_the_next_claim(case: Case) {
    let lease = held(&case).await;
    case.extend(&lease, lease.mark, Mark::new(100)).await.unwrap();
    case.release(&lease, Mark::new(60)).await.unwrap();
    let writes = case.writes().await;
    case.release(&lease, Mark::new(60)).await.unwrap();
    assert_eq!(case.writes().await, writes);
    assert_eq!(code(case.release(&lease, Mark::new(61)).await), "fenced");
    let member = case.member("bills").await;
    let exactly = Preference::Exactly(lease.slot);
    case.try_claim(&member, &pool(64), exactly).await.unwrap();
    assert_eq!(code(case.release(&lease, Mark::new(60)).await), "fenced");
}

async fn release_from_a_known_mark_fails_when_it_moved(case: Case) {
    let lease = held(&case).await;
    let (seen, moved) = (Mark::new(100), Mark::new(160));
    case.extend(&lease, lease.mark, seen).await.unwrap();
    let sent = Release { mark: Mark::new(60), from: Some(seen), ..lease.unused() };
    case.extend(&lease, seen, moved).await.unwrap();
    let writes = case.writes().await;
    assert_eq!(code(case.send_release(&sent).await), "mark_moved");
    assert_eq!((mark_of(&case, &lease).await, case.writes().await), (moved, writes));
    let sent = Release { from: Some(moved), ..sent };
    case.send_release(&sent).await.unwrap();
    let writes = case.writes().await;
    case.send_release(&sent).await.unwrap();
    assert_eq!((mark_of(&case, &lease).await, case.writes().await), (sent.mark, writes));
}

async fn member_cannot_move_or_release_slots_of_others(case: Case) {
    let lease = held(&case).await;
    case.extend(&lease, lease.mark, Mark::new(100)).await.unwrap();
    let another = case.member("bills").await;
    let its = case.claim(&another, &pool(64)).await;
    assert_eq!([lease.holder, its.holder].map(|it| it.is_some()), [true; 2]);
    let writes = case.writes().await;
    // Alone, and together with an extend of the member's own slot.
    let with_holder = Lease { holder: its.holder, ..lease.clone() };
    assert_eq!(code(case.extend(&with_holder, Mark::new(100), Mark::new(200)).await), "fenced");
    assert_eq!(case.writes().await, writes);
    let wrong = extend(&with_holder, Mark::new(100), Mark::new(200));
    let items = [wrong, extend(&its, its.mark, later(its.mark, 5))];
    let results = case.store.extend(&items, case.now().await).await.unwrap();
    let results: Vec<_> = results.iter().map(|it| it.as_ref().map(|it| it.mark).ok()).collect();
    assert_eq!(results, [None, Some(later(its.mark, 5))]);
    for mark in [lease.floor, Mark::new(100)] {
        let sent = Release { mark, ..with_holder.unused() };
        assert_eq!(code(case.send_release(&sent).await), "fenced");
    }
    assert_eq!(mark_of(&case, &lease).await, Mark::new(100));
    // A released slot has no holder: its former holder lowers no mark by the newest term.
    case.release(&lease, Mark::new(100)).await.unwrap();
    let after = Lease { term: lease.term.next(), ..lease.clone() };
    let sent = Release { mark: lease.floor, ..after.unused() };
    assert_eq!(code(case.send_release(&sent).await), "fenced");
    assert_eq!(code(case.extend(&after, Mark::new(100), Mark::new(200)).await), "fenced");
    assert_eq!(mark_of(&case, &lease).await, Mark::new(100));
}

async fn of_sixteen_extends_from_one_mark_one_wins(case: Case) {
    let lease = held(&case).await;
    let mut mark = lease.mark;
    for _ in 0..5 {
        let results = case
            .contend(|case, number| {
                let lease = lease.clone();
                async move { case.extend(&lease, mark, later(mark, 1 + number)).await }
            })
            .await;
        let won: Vec<_> = results.iter().flatten().collect();
        assert_eq!(won.len(), 1);
        mark = won[0].mark;
        assert_eq!(mark_of(&case, &lease).await, mark);
        assert!(results.iter().filter_map(|result| result.as_ref().err()).all(
            |refused| matches!(refused.kind(), ErrorKind::MarkMoved { found, .. } if *found == mark)
        ));
    }
}

async fn sixteen_holders_move_their_marks_at_once(case: Case) {
    let before = case.writes().await;
    let leases = case
        .contend(|case, number| async move {
            let member = case.member(&format!("owner-{number}")).await;
            let lease = case.claim(&member, &pool(64)).await;
            let mut mark = lease.mark;
            for _ in 0..10 {
                mark = case.extend(&lease, mark, later(mark, 7)).await.unwrap().mark;
            }
            lease
        })
        .await;
    for lease in &leases {
        assert_eq!(mark_of(&case, lease).await, Mark::new(70));
    }
    assert!(case.writes().await >= before + 12 * TASKS, "no write is lost from the count");
}

async fn extend_and_release_never_both_win(case: Case) {
    for _ in 0..5 {
        let lease = held(&case).await;
        let results = case
            .contend(|case, number| {
                let lease = lease.clone();
                async move {
                    if number % 2 == 0 {
                        case.extend(&lease, lease.mark, later(lease.mark, 9)).await.map(|_| true)
                    } else {
                        case.release(&lease, lease.mark).await.map(|()| false)
                    }
                }
            })
            .await;
        let extended = results.iter().flatten().filter(|extended| **extended).count();
        let released = results.iter().flatten().filter(|extended| !**extended).count();
        assert!(extended <= 1 && released >= 1);
        // The release names the floor, so it may undo the extend, but nothing moves after it.
        assert_eq!(mark_of(&case, &lease).await, lease.floor);
    }
}

/// A process that was left out of a recovery minted up to the mark. So may the holder of a window
/// that reaches past it.
async fn raised_mark_fences_windows_that_began_below(case: Case) {
    let member = case.member("shop").await;
    let (below, above) = (case.claim(&member, &pool(8)).await, case.claim(&member, &pool(8)).await);
    case.extend(&below, below.mark, Mark::new(100)).await.unwrap();
    case.release(&above, above.mark).await.unwrap();
    let marks_at_least = Mark::new(70);
    let raised = FastForward {
        marks_at_least,
        values_only: true,
        same_server: true,
        ..FastForward::default()
    };
    case.another().await.store.fast_forward(&raised).await.unwrap();
    let refused = case.extend(&below, Mark::new(100), Mark::new(200)).await;
    assert_eq!(code(refused), "fenced");
    let again = case.claim(&member, &pool(8)).await;
    assert!(again.floor >= marks_at_least, "{again:?}");
    // Its whole window lies above.
    case.extend(&again, again.mark, later(again.mark, 50)).await.unwrap();
    case.another().await.store.fast_forward(&raised).await.unwrap();
    let mark = later(again.mark, 50);
    case.extend(&again, mark, later(mark, 50)).await.unwrap();
}
