//! The only change of a source's identity, and the end that a stripe must get before it.

use super::case::{Case, TASKS, cases, code, reached, stand_back};
use snowmint_coord::segment::{NUMBER_MAX, NumberInterval};
use snowmint_coord::{
    Bounds, Definition, FastForward, GiveBack, Mark, NewDefinition, Restripe, Result, SourceSpec,
    SourceState,
};

cases![
    a_restripe_changes_the_identity_and_sets_the_mark,
    a_restripe_by_an_older_version_is_refused,
    a_restripe_below_the_mark_is_refused,
    a_restripe_of_nothing_is_refused,
    numbers_reserved_before_a_restripe_are_not_returned,
    restriping_while_others_reserve_parts_their_numbers,
    stripe_below_issued_numbers_is_rejected,
    end_below_issued_numbers_is_rejected,
    outgrown_end_of_a_restored_store_starts_no_stripe,
    end_set_during_reserves_lies_above_all_results,
];

/// Returns a segment source with these keys, as servers write it.
fn of(name: &str, keys: &str) -> NewDefinition {
    let spec = SourceSpec::from_json(&format!(r#"{{{keys},"kind":"segment"}}"#)).unwrap();
    NewDefinition::of(name, &spec).unwrap()
}

fn striped(name: &str, increment: u64) -> NewDefinition {
    of(name, &format!(r#""increment":{increment}"#))
}

/// Returns a source of the odd numbers, with these further keys.
fn odd(name: &str, keys: &str) -> NewDefinition {
    of(name, &format!(r#"{keys}"increment":2,"offset":1"#))
}

/// Reserves the numbers up to 19: ten of them.
async fn ten_odd(case: &Case) -> Definition {
    let source = case.store.define(&odd("orders", "")).await.unwrap();
    case.reserve(&source, 10).await.unwrap();
    source
}

async fn restripe(case: &Case, of: &Definition, increment: u64, mark: u64) -> Result<Definition> {
    let new = striped(&of.name, increment);
    let restripe = Restripe { new, if_version: of.version, mark: Mark::new(mark) };
    reached(|| case.store.restripe(&restripe)).await
}

async fn mark_of(case: &Case) -> u64 {
    reached(|| case.store.get("orders")).await.unwrap().segment.mark.get()
}

async fn a_restripe_changes_the_identity_and_sets_the_mark(case: Case) {
    let source = case.define("orders").await;
    case.reserve(&source, 10).await.unwrap();
    let writes = case.writes().await;
    let new = restripe(&case, &source, 2, 11).await.unwrap();
    assert_eq!((new.spec, new.identity), {
        let new = striped("orders", 2);
        (new.spec, new.identity)
    });
    assert!(new.version > source.version && case.writes().await > writes);
    assert_eq!((new.state, new.segment.mark), (SourceState::Enabled, Mark::new(11)));
    assert_eq!(code(case.reserve(&source, 1).await), "conflict", "the old stripe has ended");
    let new = case.another().await.store.get("orders").await.unwrap();
    assert_eq!(case.reserve(&new, 1).await.unwrap().first, 11);
    let further = restripe(&case, &new, 3, 500).await.unwrap();
    assert_eq!(case.reserve(&further, 1).await.unwrap().first, 500);
    let altered = case.store.alter(&striped("orders", 2), None).await;
    assert_eq!(code(altered), "conflict", "an alter still changes no identity");
}

async fn a_restripe_by_an_older_version_is_refused(case: Case) {
    let source = case.define("orders").await;
    restripe(&case, &source, 2, 1).await.unwrap();
    assert_eq!(code(restripe(&case, &source, 3, 1).await), "conflict");
    assert_eq!(case.store.get("orders").await.unwrap().identity, striped("orders", 2).identity);
}

async fn a_restripe_below_the_mark_is_refused(case: Case) {
    let source = case.define("orders").await;
    case.reserve(&source, 10).await.unwrap();
    assert_eq!(code(restripe(&case, &source, 2, 10).await), "mark_moved");
    assert_eq!(code(restripe(&case, &source, 2, NUMBER_MAX + 2).await), "invalid");
    assert_eq!(case.store.get("orders").await.unwrap().version, source.version);
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 11, "nothing has changed");
}

async fn a_restripe_of_nothing_is_refused(case: Case) {
    let source = case.define("orders").await;
    let nothing = Definition { name: "nothing".into(), ..source.clone() };
    assert_eq!(code(restripe(&case, &nothing, 2, 1).await), "not_found");
    let deleted = case.store.set_state("orders", SourceState::Deleted).await.unwrap();
    assert_eq!(code(restripe(&case, &deleted, 2, 1).await), "not_found");
    let bad = Definition { name: "a/b".into(), ..source };
    assert_eq!(code(restripe(&case, &bad, 2, 1).await), "invalid");
}

async fn numbers_reserved_before_a_restripe_are_not_returned(case: Case) {
    let source = case.define("orders").await;
    let segment = case.reserve(&source, 10).await.unwrap();
    restripe(&case, &source, 2, 11).await.unwrap();
    let back = GiveBack {
        source: "orders".into(),
        first: 5,
        last: segment.last,
        version: segment.version,
    };
    assert_eq!(code(case.store.give_back(&back).await), "mark_moved");
}

/// Every number reserved under the old definition lies below the new one's first number.
async fn restriping_while_others_reserve_parts_their_numbers(case: Case) {
    let source = case.define("orders").await;
    let reserved = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                if number == 0 {
                    // Further and further ahead, until the other tasks do not overtake it.
                    for ahead in (0..20).map(|attempts| 1 << attempts) {
                        let mark = mark_of(&case).await;
                        match restripe(&case, &source, 2, mark + ahead).await {
                            Ok(new) => return (new.segment.mark.get(), u64::MAX),
                            refused => assert_eq!(code(refused), "mark_moved"),
                        }
                    }
                    panic!("overtaken for a million numbers");
                }
                let mut last = 0;
                for turns in 0.. {
                    stand_back(turns).await;
                    match case.reserve(&source, 2).await {
                        Ok(segment) => last = segment.last,
                        refused => {
                            assert_eq!(code(refused), "conflict");
                            break;
                        }
                    }
                }
                (0, last)
            }
        })
        .await;
    assert_eq!(u64::try_from(reserved.len()).unwrap(), TASKS);
    let mark = reserved.iter().map(|(mark, _)| *mark).max().unwrap();
    let last = reserved.iter().filter(|(mark, _)| *mark == 0).map(|(_, last)| *last).max().unwrap();
    assert!(mark > last, "{mark} after {last}");
    let new = case.store.get("orders").await.unwrap();
    assert_eq!(case.reserve(&new, 1).await.unwrap().first, mark);
}

async fn stripe_below_issued_numbers_is_rejected(case: Case) {
    let source = ten_odd(&case).await;
    let from = |first: u64, mark: u64| Restripe {
        new: of("orders", &format!(r#""first":{first},"first_at":{mark}"#)),
        if_version: source.version,
        mark: Mark::new(mark),
    };
    for (first, mark) in [(1, 11), (19, 11), (20, 12), (21, 12)] {
        assert_eq!(
            code(case.store.restripe(&from(first, mark)).await),
            "invalid",
            "{first} {mark}"
        );
    }
    assert_eq!(case.store.get("orders").await.unwrap().version, source.version);
    case.store.restripe(&from(20, 11)).await.unwrap();
}

async fn end_below_issued_numbers_is_rejected(case: Case) {
    let source = ten_odd(&case).await;
    let writes = case.writes().await;
    for until in [1, 5, 18, 19] {
        let ends = odd("orders", &format!(r#""until":{until},"#));
        let refused = case.store.alter(&ends, None).await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid", "{until}");
        assert!(refused.to_string().contains("use 20 or more"), "{refused}");
    }
    assert_eq!((case.store.get("orders").await.unwrap().version, case.writes().await), {
        (source.version, writes)
    });
    let ends = |until: u64| odd("orders", &format!(r#""until":{until},"#));
    let ended = case.store.alter(&ends(20), None).await.unwrap();
    let below = Some(Bounds::Range(NumberInterval { first: 1, end: 11 }));
    assert_eq!(code(case.reserve_within(&ended, 1, below).await), "mark_moved");
    case.store.alter(&odd("orders", r#""text":"hex","until":20,"#), None).await.unwrap();
    // A deleted source returns with its numbers.
    case.store.set_state("orders", SourceState::Deleted).await.unwrap();
    assert_eq!(code(case.store.define(&ends(19)).await), "invalid");
    case.store.define(&ends(20)).await.unwrap();
    case.store.define(&odd("bills", r#""until":1,"#)).await.expect("no caller has any number");
}

/// The source got the end 40, and later lost it; the backup lacks the second change.
async fn outgrown_end_of_a_restored_store_starts_no_stripe(case: Case) {
    ten_odd(&case).await;
    let ends = |keys: &str| odd("orders", &format!(r#"{keys}"until":40,"#));
    case.store.alter(&ends(""), None).await.unwrap();
    let segments = vec![("orders".into(), Mark::new(101))];
    let forward = FastForward { segments, ..FastForward::default() };
    case.forward(&forward).await.unwrap();
    let observed = case.store.get("orders").await.unwrap();
    assert_eq!(code(restripe(&case, &observed, 1, 21).await), "mark_moved");
    let new = of("orders", r#""first":40,"first_at":101"#);
    let first = Restripe { new, if_version: observed.version, mark: Mark::new(101) };
    assert_eq!(code(case.store.restripe(&first).await), "invalid");
    assert_eq!(code(case.store.alter(&ends(r#""text":"hex","#), None).await), "invalid");
    case.store.alter(&odd("orders", r#""until":200,"#), None).await.unwrap();
}

/// Once a source has an end, all numbers that were reserved lie below it.
async fn end_set_during_reserves_lies_above_all_results(case: Case) {
    let source = case.store.define(&odd("orders", "")).await.unwrap();
    let reserved = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                if number == 0 {
                    for ahead in (0..20).map(|attempts| 1 << attempts) {
                        let mark = mark_of(&case).await;
                        let until = 2 * (mark + ahead);
                        let ends = odd("orders", &format!(r#""until":{until},"#));
                        match reached(|| case.store.alter(&ends, Some(source.version))).await {
                            Ok(_) => return (until, 0),
                            refused => assert_eq!(code(refused), "invalid"),
                        }
                    }
                    panic!("overtaken for a million numbers");
                }
                let mut last = 0;
                for turns in 0.. {
                    stand_back(turns).await;
                    match case.reserve(&source, 2).await {
                        Ok(segment) => last = 2 * segment.last - 1,
                        refused => {
                            assert_eq!(code(refused), "conflict");
                            break;
                        }
                    }
                }
                (0, last)
            }
        })
        .await;
    let (until, last) =
        reserved.iter().fold((0, 0), |(until, last), one| (until.max(one.0), last.max(one.1)));
    assert!(last < until, "{last} was handed out, and the end is {until}");
}
