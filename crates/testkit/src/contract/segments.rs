use super::case::{Case, TASKS, cases, code, definition, reached};
use snowmint_coord::segment::{NUMBER_MAX, NumberInterval};
use snowmint_coord::{
    Bounds, Definition, ErrorKind, FastForward, GiveBack, Mark, Result, Segment, SourceState,
};

cases![
    numbers_start_at_one_and_follow_each_other,
    sources_count_on_their_own,
    only_defined_and_enabled_sources_count,
    a_changed_definition_is_noticed,
    an_unused_end_goes_back_once,
    an_older_end_does_not_go_back,
    only_an_end_goes_back,
    numbers_end_with_an_error,
    numbers_within_a_range_begin_with_it_and_end_before_its_end,
    a_length_of_zero_is_refused,
    thirty_two_reservers_get_distinct_numbers_without_gaps,
    giving_back_and_reserving_at_once_repeat_nothing,
];

async fn give_back(case: &Case, source: &str, first: u64, segment: &Segment) -> Result<u64> {
    let (last, version) = (segment.last, segment.version);
    let give_back = GiveBack { source: source.into(), first, last, version };
    reached(|| case.store.give_back(&give_back)).await
}

async fn numbers_start_at_one_and_follow_each_other(case: Case) {
    let source = case.define("orders").await;
    let mut expected = 1;
    let mut version = 0;
    for length in [1, 10, 1000] {
        let segment = case.another().await.reserve(&source, length).await.unwrap();
        assert_eq!((segment.first, segment.last), (expected, expected + length - 1));
        assert!(segment.version > version);
        assert_eq!(segment.catalog_version, source.version);
        assert_eq!(segment.writes, case.writes().await);
        expected += length;
        version = segment.version;
    }
    assert_eq!(case.store.get("orders").await.unwrap().segment.mark, Mark::new(expected));
}

async fn sources_count_on_their_own(case: Case) {
    let orders = case.define("orders").await;
    let bills = case.define("bills").await;
    assert_eq!(case.reserve(&orders, 10).await.unwrap().last, 10);
    assert_eq!(case.reserve(&bills, 3).await.unwrap().first, 1);
    let other = case.other_namespace().await;
    let namesake = other.define("orders").await;
    assert_eq!(other.reserve(&namesake, 1).await.unwrap().first, 1);
}

async fn only_defined_and_enabled_sources_count(case: Case) {
    let nothing = Definition { name: "nothing".into(), ..case.define("orders").await };
    assert_eq!(code(case.reserve(&nothing, 1).await), "not_found");
    let disabled = case.store.set_state("orders", SourceState::Disabled).await.unwrap();
    assert_eq!(code(case.reserve(&disabled, 1).await), "disabled");
    let enabled = case.store.set_state("orders", SourceState::Enabled).await.unwrap();
    assert_eq!(case.reserve(&enabled, 1).await.unwrap().first, 1);
    let deleted = case.store.set_state("orders", SourceState::Deleted).await.unwrap();
    assert_eq!(code(case.reserve(&deleted, 1).await), "not_found");
}

async fn a_changed_definition_is_noticed(case: Case) {
    let source = case.define("orders").await;
    let altered = case.store.alter(&definition("orders", "b"), None).await.unwrap();
    assert_eq!(code(case.reserve(&source, 1).await), "conflict");
    case.define("another").await;
    assert_eq!(case.reserve(&altered, 1).await.unwrap().first, 1, "others may change");
}

async fn an_unused_end_goes_back_once(case: Case) {
    let source = case.define("orders").await;
    let segment = case.reserve(&source, 10).await.unwrap();
    let version = give_back(&case, "orders", 4, &segment).await.unwrap();
    assert!(version > segment.version);
    assert_eq!(code(give_back(&case, "orders", 4, &segment).await), "mark_moved");
    let next = case.reserve(&source, 5).await.unwrap();
    assert_eq!((next.first, next.last), (4, 8));
    assert!(next.version > version);
    give_back(&case, "orders", 4, &next).await.unwrap();
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 4, "a whole segment can go back");
}

async fn an_older_end_does_not_go_back(case: Case) {
    let source = case.define("orders").await;
    let older = case.reserve(&source, 10).await.unwrap();
    let newer = case.reserve(&source, 10).await.unwrap();
    assert_eq!(code(give_back(&case, "orders", 5, &older).await), "mark_moved");
    give_back(&case, "orders", 11, &newer).await.unwrap();
    // The mark equals the end of the older segment, but the version has changed.
    assert_eq!(code(give_back(&case, "orders", 5, &older).await), "mark_moved");
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 11);
}

async fn only_an_end_goes_back(case: Case) {
    let source = case.define("orders").await;
    case.reserve(&source, 5).await.unwrap();
    let segment = case.reserve(&source, 5).await.unwrap();
    assert_eq!(code(give_back(&case, "orders", 5, &segment).await), "invalid");
    assert_eq!(code(give_back(&case, "orders", 11, &segment).await), "invalid");
    let short = Segment { last: 9, ..segment };
    assert_eq!(code(give_back(&case, "orders", 8, &short).await), "mark_moved");
    let long = Segment { last: u64::MAX, ..segment };
    assert_eq!(code(give_back(&case, "orders", 8, &long).await), "mark_moved");
    assert_eq!(code(give_back(&case, "nothing", 8, &segment).await), "not_found");
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 11);
}

async fn numbers_end_with_an_error(case: Case) {
    let source = case.define("orders").await;
    let near_the_end = FastForward {
        segments: vec![("orders".into(), Mark::new(NUMBER_MAX - 1))],
        ..FastForward::default()
    };
    case.forward(&near_the_end).await.unwrap();
    for length in [3, u64::MAX] {
        let spent = case.reserve(&source, length).await.unwrap_err();
        assert_eq!(spent.kind().code(), "exhausted", "{spent}");
        assert!(spent.message().contains(&format!("maximum {NUMBER_MAX}")), "{spent}");
    }
    let last = case.reserve(&source, 2).await.unwrap();
    assert_eq!((last.first, last.last), (NUMBER_MAX - 1, NUMBER_MAX));
    assert_eq!(code(case.reserve(&source, 1).await), "exhausted");
}

async fn numbers_within_a_range_begin_with_it_and_end_before_its_end(case: Case) {
    let source = case.define("orders").await;
    let within = |first, end| Some(Bounds::Range(NumberInterval { first, end }));
    for (length, range, expected) in [
        (5, within(101, 200), (101, 105)),
        (90, within(101, 200), (106, 195)),
        (90, within(101, 200), (196, 199)),
        (3, within(201, 300), (201, 203)),
    ] {
        let segment = case.another().await.reserve_within(&source, length, range).await.unwrap();
        assert_eq!((segment.first, segment.last), expected);
    }
    let late = case.reserve_within(&source, 1, within(101, 200)).await.unwrap_err();
    assert!(
        matches!(late.kind(), ErrorKind::MarkMoved { expected, found }
            if (expected.get(), found.get()) == (200, 204)),
        "{late:?}"
    );
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 204, "the others continue");
    let jumped = case.reserve_within(&source, 9, within(301, 400)).await.unwrap();
    give_back(&case, "orders", 303, &jumped).await.unwrap();
    let next = case.reserve_within(&source, 1, within(301, 400)).await.unwrap();
    assert_eq!(next.first, 303);
}

async fn a_length_of_zero_is_refused(case: Case) {
    let source = case.define("orders").await;
    assert_eq!(code(case.reserve(&source, 0).await), "invalid");
}

async fn thirty_two_reservers_get_distinct_numbers_without_gaps(case: Case) {
    let source = case.define("orders").await;
    let segments = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                let ten = async || {
                    let mut segments = Vec::new();
                    for _ in 0..10 {
                        segments.push(case.reserve(&source, 1 + number).await.unwrap());
                    }
                    segments
                };
                let (mut segments, more) = tokio::join!(ten(), ten());
                segments.extend(more);
                segments
            }
        })
        .await;
    let mut segments: Vec<Segment> = segments.into_iter().flatten().collect();
    segments.sort_by_key(|segment| segment.first);
    let mut expected = 1;
    for segment in &segments {
        assert_eq!(segment.first, expected);
        expected = segment.last + 1;
    }
    assert_eq!(expected - 1, 2 * 10 * (1..=TASKS).sum::<u64>());
}

async fn giving_back_and_reserving_at_once_repeat_nothing(case: Case) {
    let source = case.define("orders").await;
    let used = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                let mut used = Vec::new();
                for _ in 0..10 {
                    let segment = case.reserve(&source, 4).await.unwrap();
                    if number % 2 == 0 {
                        used.extend(segment.first..=segment.last);
                    } else {
                        // Uses one number, and gives the others back if the store accepts them.
                        used.push(segment.first);
                        match give_back(&case, "orders", segment.first + 1, &segment).await {
                            Ok(_) => {}
                            refused => assert_eq!(code(refused), "mark_moved"),
                        }
                    }
                }
                used
            }
        })
        .await;
    let mut used: Vec<u64> = used.into_iter().flatten().collect();
    used.sort_unstable();
    assert!(used.windows(2).all(|pair| pair[0] < pair[1]), "a number was used twice");
}
