use super::case::{Case, cases, code, definition, later, pool};
use snowmint_coord::{ClockOf, FastForward, Mark, Pool, Preference, Reuse, SourceState};

cases![
    the_clock_is_as_declared,
    the_identity_is_the_stores,
    every_change_is_counted_and_nothing_else,
    namespaces_do_not_touch,
    fast_forward_moves_marks_and_never_back,
    fast_forward_covers_slots_without_a_row,
    fast_forward_moves_numbers_and_never_back,
    fast_forward_keeps_numbers_of_missing_sources,
    fast_forward_of_no_name_changes_nothing,
    accepted_lead_applies_to_all_until_revoked,
    a_closed_handle_refuses,
];

async fn the_clock_is_as_declared(case: Case) {
    let has_clock = case.store.now().await.unwrap().is_some();
    assert_eq!(has_clock, case.store.capabilities().clock == ClockOf::Store);
}

async fn the_identity_is_the_stores(case: Case) {
    let one = case.store.identity().await.unwrap();
    assert!(!one.id.is_empty());
    assert_eq!(case.another().await.store.identity().await.unwrap().id, one.id);
}

async fn every_change_is_counted_and_nothing_else(case: Case) {
    let mut writes = case.writes().await;
    let mut rose = async |what: &str, changes: u64| {
        let after = case.writes().await;
        assert_eq!(after > writes, changes > 0, "{what}: from {writes} to {after}");
        writes = after;
    };
    let member = case.member("orders").await;
    rose("join", 1).await;
    let presence = case.presence(1, 60_000).await;
    case.store.renew(member.incarnation, presence, case.now().await).await.unwrap();
    rose("renew", 1).await;
    let lease = case.claim(&member, &pool(4)).await;
    rose("claim", 1).await;
    case.extend(&lease, lease.mark, Mark::new(9)).await.unwrap();
    rose("extend", 1).await;
    case.extend(&lease, lease.mark, Mark::new(9)).await.unwrap_err();
    rose("a refused extend", 0).await;
    case.release(&lease, Mark::new(9)).await.unwrap();
    rose("release", 1).await;
    let source = case.define("orders").await;
    rose("define", 1).await;
    case.reserve(&source, 5).await.unwrap();
    rose("reserve", 1).await;
    case.reserve(&source, 0).await.unwrap_err();
    rose("a refused reserve", 0).await;
    case.store.set_state("orders", SourceState::Disabled).await.unwrap();
    rose("disable", 1).await;
    case.forward(&FastForward::default()).await.unwrap();
    rose("fast forward", 1).await;
    case.store.members(case.now().await).await.unwrap();
    case.store.workers(case.now().await).await.unwrap();
    case.store.list().await.unwrap();
    case.store.get("orders").await.unwrap();
    rose("reading", 0).await;
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    rose("leave", 1).await;
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    rose("leaving again", 0).await;
}

async fn namespaces_do_not_touch(case: Case) {
    let other = case.other_namespace().await;
    let here = case.member("orders").await;
    assert_eq!(other.store.members(other.now().await).await.unwrap(), []);
    let there = other.member("orders").await;
    let first = case.claim(&here, &pool(4)).await;
    let second = other.claim(&there, &pool(8)).await;
    assert_eq!((first.slot, second.slot), (0, 0));
    case.extend(&first, first.mark, Mark::new(50)).await.unwrap();
    assert_eq!(other.store.workers(other.now().await).await.unwrap()[0].mark, Mark::ZERO);
    case.store.leave(here.incarnation, case.now().await).await.unwrap();
    other.extend(&second, second.mark, Mark::new(60)).await.unwrap();
    case.define("orders").await;
    assert_eq!(other.store.list().await.unwrap().definitions, []);
    let moved = FastForward { marks_at_least: Mark::new(1000), ..FastForward::default() };
    case.forward(&moved).await.unwrap();
    other.extend(&second, Mark::new(60), Mark::new(70)).await.unwrap();
}

fn marks_at_least(mark: Mark) -> FastForward {
    FastForward { marks_at_least: mark, ..FastForward::default() }
}

async fn fast_forward_moves_marks_and_never_back(case: Case) {
    let member = case.member("orders").await;
    let low = case.claim(&member, &pool(4)).await;
    let high = case.claim(&member, &pool(4)).await;
    case.extend(&low, low.mark, Mark::new(100)).await.unwrap();
    case.extend(&high, high.mark, Mark::new(5000)).await.unwrap();
    for (to, expected_low) in [(1000, 1000), (500, 1000), (0, 1000)] {
        case.forward(&marks_at_least(Mark::new(to))).await.unwrap();
        let rows = case.store.workers(case.now().await).await.unwrap();
        assert_eq!(rows[0].mark, Mark::new(expected_low));
        assert_eq!(rows[1].mark, Mark::new(5000));
    }
    let too_far = marks_at_least(later(Mark::MAX, 1));
    assert_eq!(code(case.forward(&too_far).await), "invalid");
}

async fn fast_forward_covers_slots_without_a_row(case: Case) {
    let mark = Mark::from(case.now().await);
    case.forward(&marks_at_least(mark)).await.unwrap();
    case.forward(&marks_at_least(Mark::new(5))).await.unwrap();
    match case.store.ground().await {
        Ok(ground) => assert_eq!(ground.mark, mark),
        // A store behind servers.
        Err(error) => assert_eq!(error.kind().code(), "unsupported", "{error}"),
    }
    let member = case.member("orders").await;
    assert_eq!(case.claim(&member, &pool(4)).await.floor, mark);
    let never = Pool { name: "never".into(), reuse: Reuse::Never, ..pool(4) };
    assert_eq!(case.claim(&member, &never).await.floor, mark);
    let mut early = case.wanting(&member, &pool(4), Preference::Any).await;
    early.mark_at_most = Mark::new(mark.get() - 1);
    assert_eq!(code(case.send(&early).await), "pool_full");
}

async fn accepted_lead_applies_to_all_until_revoked(case: Case) {
    let now = Mark::from(case.now().await);
    let ahead = later(now, 600_000);
    case.forward(&marks_at_least(ahead)).await.unwrap();
    let member = case.member("orders").await;
    let refused = |case: Case, member| async move {
        code(case.send(&case.wanting(&member, &pool(4), Preference::Any).await).await)
    };
    assert_eq!(refused(case.clone(), member.clone()).await, "pool_full");
    case.store.accept_lead(Mark::new(ahead.get() - 1)).await.unwrap();
    assert_eq!(refused(case.clone(), member.clone()).await, "pool_full");
    case.another().await.store.accept_lead(ahead).await.unwrap();
    let lease = case.claim(&member, &pool(4)).await;
    assert_eq!((lease.floor, lease.mark), (ahead, ahead), "no mark moves");
    // Accepting a lead moves no mark: the marks of other slots stay, and so does the accepted lead.
    case.forward(&FastForward::default()).await.unwrap();
    case.claim(&member, &pool(4)).await;
    case.store.accept_lead(Mark::ZERO).await.unwrap();
    assert_eq!(refused(case.clone(), member).await, "pool_full");
    assert_eq!(code(case.store.accept_lead(later(Mark::MAX, 1)).await), "invalid");
}

async fn fast_forward_moves_numbers_and_never_back(case: Case) {
    let source = case.define("orders").await;
    let segment = case.reserve(&source, 10).await.unwrap();
    for (to, expected) in [(500, 500), (20, 501)] {
        let forward = FastForward {
            segments: vec![("orders".into(), Mark::new(to))],
            ..FastForward::default()
        };
        case.forward(&forward).await.unwrap();
        let back = snowmint_coord::GiveBack {
            source: "orders".into(),
            first: 5,
            last: segment.last,
            version: segment.version,
        };
        assert_eq!(code(case.store.give_back(&back).await), "mark_moved");
        assert_eq!(case.reserve(&source, 1).await.unwrap().first, expected);
    }
}

async fn fast_forward_keeps_numbers_of_missing_sources(case: Case) {
    for to in [70, 20] {
        let forward = FastForward {
            segments: vec![("lost".into(), Mark::new(to))],
            ..FastForward::default()
        };
        case.forward(&forward).await.unwrap();
        assert_eq!(code(case.store.get("lost").await), "not_found", "it was never defined");
    }
    let kept = case.store.list().await.unwrap().definitions;
    let [lost] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((lost.state, lost.segment.mark), (SourceState::Deleted, Mark::new(70)));
    // Whatever the source was, it continues above all numbers that any process had.
    let source = case.define("lost").await;
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 70);
    assert_eq!(code(case.store.define(&definition("lost", "other")).await), "conflict");
}

async fn fast_forward_of_no_name_changes_nothing(case: Case) {
    let member = case.member("orders").await;
    let lease = case.claim(&member, &pool(4)).await;
    case.store.define(&definition("orders", "a")).await.unwrap();
    let writes = case.writes().await;
    let forward = FastForward {
        marks_at_least: Mark::new(1000),
        segments: vec![("orders".into(), Mark::new(70)), ("no name".into(), Mark::new(70))],
        writes_at_least: writes + 1000,
        new_identity: true,
        ..FastForward::default()
    };
    assert_eq!(code(case.forward(&forward).await), "invalid");
    assert_eq!(case.writes().await, writes);
    case.extend(&lease, lease.mark, Mark::new(9)).await.unwrap();
    assert_eq!(case.store.get("orders").await.unwrap().segment.mark, Mark::new(1));
}

async fn a_closed_handle_refuses(case: Case) {
    let other = case.another().await;
    let source = case.define("orders").await;
    other.store.close().await.unwrap();
    other.store.close().await.unwrap();
    assert_eq!(code(other.reserve(&source, 1).await), "closed");
    assert_eq!(code(other.store.identity().await), "closed");
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 1, "the others continue");
}
