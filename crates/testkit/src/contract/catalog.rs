use super::case::{Case, cases, code, definition};
use snowmint_coord::catalog::SPEC_BYTES_MAX;
use snowmint_coord::{Mark, NewDefinition, SourceState};

cases![
    definition_is_equal_for_all_handles,
    defining_the_same_again_changes_nothing,
    another_definition_is_a_conflict_that_shows_both,
    the_identity_never_changes,
    altering_changes_the_rest,
    alter_can_require_an_unchanged_version,
    a_source_can_be_disabled_and_enabled,
    a_definition_and_its_state_are_one_step,
    a_deleted_source_leaves_its_mark_and_identity,
    the_list_is_by_name_and_has_the_version,
    bad_names_and_texts_are_refused,
    sixteen_definers_agree,
    of_sixteen_alterations_of_one_version_one_wins,
];

fn of_another_kind(name: &str) -> NewDefinition {
    NewDefinition { identity: r#"{"kind":"snowflake"}"#.into(), ..definition(name, "a") }
}

async fn definition_is_equal_for_all_handles(case: Case) {
    assert_eq!(code(case.store.get("orders").await), "not_found");
    let new = definition("orders", "a");
    let defined = case.store.define(&new).await.unwrap();
    assert_eq!((&defined.name, &defined.spec), (&new.name, &new.spec));
    assert_eq!((&defined.identity, defined.state), (&new.identity, SourceState::Enabled));
    assert_eq!(defined.segment.mark, Mark::new(1));
    let other = case.another().await;
    assert_eq!(other.store.get("orders").await.unwrap(), defined);
    assert_eq!(code(case.other_namespace().await.store.get("orders").await), "not_found");
}

async fn defining_the_same_again_changes_nothing(case: Case) {
    let defined = case.define("orders").await;
    let writes = case.writes().await;
    assert_eq!(case.another().await.define("orders").await, defined);
    assert_eq!(case.writes().await, writes);
    let disabled = case.store.set_state("orders", SourceState::Disabled).await.unwrap();
    assert_eq!(case.define("orders").await, disabled, "and enables nothing");
}

async fn another_definition_is_a_conflict_that_shows_both(case: Case) {
    case.define("orders").await;
    let other = definition("orders", "b");
    let refused = case.store.define(&other).await.unwrap_err();
    assert_eq!(refused.kind().code(), "conflict", "{refused}");
    let both = r#"defined with extra = "a", requested extra = "b""#;
    assert!(refused.message().contains(both), "{refused}");
}

async fn the_identity_never_changes(case: Case) {
    let defined = case.define("orders").await;
    let refused = case.store.define(&of_another_kind("orders")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "conflict", "{refused}");
    let both = r#"has kind = "segment", requested kind = "snowflake""#;
    assert!(refused.message().contains(both), "{refused}");
    assert_eq!(code(case.store.alter(&of_another_kind("orders"), None).await), "conflict");
    assert_eq!(case.store.get("orders").await.unwrap(), defined);
}

async fn altering_changes_the_rest(case: Case) {
    let defined = case.define("orders").await;
    case.reserve(&defined, 7).await.unwrap();
    let altered = case.store.alter(&definition("orders", "b"), None).await.unwrap();
    assert_eq!(altered.spec, definition("orders", "b").spec);
    assert!(altered.version > defined.version);
    assert_eq!(altered.segment.mark, Mark::new(8), "numbers stay");
    let again = case.store.alter(&definition("orders", "b"), None).await.unwrap();
    assert_eq!(again, altered, "the same again changes nothing");
    assert_eq!(code(case.store.alter(&definition("bills", "b"), None).await), "not_found");
}

async fn alter_can_require_an_unchanged_version(case: Case) {
    let defined = case.define("orders").await;
    let version = Some(defined.version);
    case.store.alter(&definition("orders", "b"), version).await.unwrap();
    let late = case.store.alter(&definition("orders", "c"), version).await;
    assert_eq!(code(late), "conflict");
    assert_eq!(case.store.get("orders").await.unwrap().spec, definition("orders", "b").spec);
}

async fn a_source_can_be_disabled_and_enabled(case: Case) {
    let defined = case.define("orders").await;
    let disabled = case.store.set_state("orders", SourceState::Disabled).await.unwrap();
    assert_eq!(disabled.state, SourceState::Disabled);
    assert!(disabled.version > defined.version);
    let twice = case.store.set_state("orders", SourceState::Disabled).await.unwrap();
    assert_eq!(twice, disabled);
    let altered = case.store.alter(&definition("orders", "b"), None).await.unwrap();
    assert_eq!(altered.state, SourceState::Disabled, "altering enables nothing");
    let enabled = case.store.set_state("orders", SourceState::Enabled).await.unwrap();
    assert_eq!(enabled.state, SourceState::Enabled);
    assert_eq!(code(case.store.set_state("bills", SourceState::Enabled).await), "not_found");
}

async fn a_definition_and_its_state_are_one_step(case: Case) {
    let stated = |enabled: bool, extra: &str| NewDefinition {
        enabled: Some(enabled),
        ..definition("orders", extra)
    };
    let off = case.store.define(&stated(false, "a")).await.unwrap();
    assert_eq!(off.state, SourceState::Disabled);
    for again in [stated(false, "a"), stated(true, "a"), definition("orders", "a")] {
        assert_eq!(case.store.define(&again).await.unwrap(), off, "and enables nothing");
    }
    let on = case.store.alter(&stated(true, "b"), Some(off.version)).await.unwrap();
    assert_eq!((on.state, on.version), (SourceState::Enabled, off.version + 1));
    assert_eq!(on.spec, definition("orders", "b").spec);
    assert_eq!(case.store.alter(&stated(true, "b"), None).await.unwrap(), on, "nothing changes");
    // Only the state changes.
    let off = case.store.alter(&stated(false, "b"), Some(on.version)).await.unwrap();
    assert_eq!((off.state, off.version), (SourceState::Disabled, on.version + 1));
    assert_eq!(code(case.store.alter(&stated(true, "b"), Some(on.version)).await), "conflict");
    assert_eq!(case.store.get("orders").await.unwrap(), off);
    let on = case.store.alter(&stated(true, "b"), None).await.unwrap();
    let off = case.store.define(&stated(false, "b")).await.unwrap();
    assert_eq!((off.state, off.version), (SourceState::Disabled, on.version + 1));
}

async fn a_deleted_source_leaves_its_mark_and_identity(case: Case) {
    let defined = case.define("orders").await;
    case.reserve(&defined, 7).await.unwrap();
    let deleted = case.store.set_state("orders", SourceState::Deleted).await.unwrap();
    assert_eq!((deleted.state, deleted.segment.mark), (SourceState::Deleted, Mark::new(8)));
    assert_eq!(case.store.set_state("orders", SourceState::Deleted).await.unwrap(), deleted);
    assert_eq!(code(case.store.get("orders").await), "not_found");
    assert_eq!(case.store.list().await.unwrap().definitions, [deleted]);
    for state in [SourceState::Enabled, SourceState::Disabled] {
        assert_eq!(code(case.store.set_state("orders", state).await), "not_found");
    }
    assert_eq!(code(case.store.alter(&definition("orders", "b"), None).await), "not_found");
    assert_eq!(code(case.store.define(&of_another_kind("orders")).await), "conflict");
    let recreated = case.store.define(&definition("orders", "b")).await.unwrap();
    assert_eq!((recreated.state, recreated.segment.mark), (SourceState::Enabled, Mark::new(8)));
    assert_eq!(case.reserve(&recreated, 1).await.unwrap().first, 8);
}

async fn the_list_is_by_name_and_has_the_version(case: Case) {
    let empty = case.store.list().await.unwrap();
    assert_eq!(empty.definitions, []);
    let mut version = empty.version;
    for name in ["b", "c", "a"] {
        let defined = case.define(name).await;
        let list = case.another().await.store.list().await.unwrap();
        assert!(list.version > version);
        assert_eq!(list.version, defined.version);
        version = list.version;
    }
    let list = case.store.list().await.unwrap();
    let names: Vec<_> = list.definitions.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

async fn bad_names_and_texts_are_refused(case: Case) {
    let too_long = "x".repeat(64);
    for name in ["", "a/b", "a?b", "a%b", "a b", "é", "🦀", "a\0b", too_long.as_str()] {
        assert_eq!(code(case.store.define(&definition(name, "a")).await), "invalid", "{name:?}");
    }
    case.define(&"x".repeat(63)).await;
    case.define("A-z_0.9").await;
    let bulky = NewDefinition { spec: "x".repeat(SPEC_BYTES_MAX + 1), ..definition("big", "a") };
    assert_eq!(code(case.store.define(&bulky).await), "invalid");
    let largest = NewDefinition { spec: "x".repeat(SPEC_BYTES_MAX), ..definition("big", "a") };
    assert_eq!(case.store.define(&largest).await.unwrap().spec, largest.spec);
}

async fn sixteen_definers_agree(case: Case) {
    let defined = case.contend(|case, _| async move { case.define("orders").await }).await;
    assert!(defined.iter().all(|one| *one == defined[0]));
    assert_eq!(case.store.list().await.unwrap().version, defined[0].version);
}

async fn of_sixteen_alterations_of_one_version_one_wins(case: Case) {
    let version = Some(case.define("orders").await.version);
    let results = case
        .contend(|case, number| async move {
            let new = definition("orders", &format!("changed-{number}"));
            case.store.alter(&new, version).await
        })
        .await;
    let won: Vec<_> = results.iter().flatten().collect();
    assert_eq!(won.len(), 1);
    assert_eq!(case.store.get("orders").await.unwrap(), *won[0]);
}
