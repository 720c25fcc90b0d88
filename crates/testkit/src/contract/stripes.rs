//! The one way in which a source's identity changes.

use super::case::{Case, TASKS, code};
use super::cases;
use snowmint_coord::segment::NUMBER_MAX;
use snowmint_coord::{Definition, GiveBack, Mark, NewDefinition, Restripe, Result, SourceState};

cases![
    a_restripe_changes_the_identity_and_sets_the_mark,
    a_restripe_by_an_older_version_is_refused,
    a_restripe_below_the_mark_is_refused,
    a_restripe_of_nothing_is_refused,
    what_was_reserved_before_a_restripe_does_not_go_back,
    restriping_while_others_reserve_parts_their_numbers,
];

fn striped(name: &str, increment: u64) -> NewDefinition {
    let identity = format!(r#"{{"increment":{increment},"kind":"segment"}}"#);
    NewDefinition { name: name.into(), spec: identity.clone(), identity }
}

async fn restripe(case: &Case, of: &Definition, increment: u64, mark: u64) -> Result<Definition> {
    let new = striped(&of.name, increment);
    case.store.restripe(&Restripe { new, if_version: of.version, mark: Mark::new(mark) }).await
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

async fn what_was_reserved_before_a_restripe_does_not_go_back(case: Case) {
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

/// Everything that was reserved by the old definition lies below the new one's first number.
async fn restriping_while_others_reserve_parts_their_numbers(case: Case) {
    let source = case.define("orders").await;
    let taken = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                if number == 0 {
                    // Further and further ahead, until the others do not overtake it.
                    for ahead in (0..20).map(|tries| 1 << tries) {
                        let mark = case.store.get("orders").await.unwrap().segment.mark.get();
                        match restripe(&case, &source, 2, mark + ahead).await {
                            Ok(new) => return (new.segment.mark.get(), u64::MAX),
                            refused => assert_eq!(code(refused), "mark_moved"),
                        }
                    }
                    panic!("overtaken for a million numbers");
                }
                let mut last = 0;
                loop {
                    // A store that never makes anybody wait must not keep the first from its turn.
                    tokio::task::yield_now().await;
                    match case.reserve(&source, 2).await {
                        Ok(segment) => last = segment.last,
                        refused => {
                            assert_eq!(code(refused), "conflict");
                            return (0, last);
                        }
                    }
                }
            }
        })
        .await;
    assert_eq!(u64::try_from(taken.len()).unwrap(), TASKS);
    let mark = taken.iter().map(|(mark, _)| *mark).max().unwrap();
    let last = taken.iter().filter(|(mark, _)| *mark == 0).map(|(_, last)| *last).max().unwrap();
    assert!(mark > last, "{mark} after {last}");
    let new = case.store.get("orders").await.unwrap();
    assert_eq!(case.reserve(&new, 1).await.unwrap().first, mark);
}
