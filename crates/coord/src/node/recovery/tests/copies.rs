use super::*;

/// Looks at a store with the journals `a`, which reports, and `b`, of which files are read: a copy
/// with the end 60 of its source, and the last file if it is `whole`.
async fn look_with_copy(runs: bool, id: &str, whole: bool) -> Recovery {
    let store = MemoryStore::new("recovery").unwrap();
    for (name, kind) in [("bills", "segment"), ("orders", "snowflake"), ("seats", "counter")] {
        let (name, spec) = (name.to_owned(), format!(r#"{{"kind":"{kind}"}}"#));
        let new = NewDefinition { name, spec, identity: "{}".to_owned(), enabled: None };
        store.define(&new).await.unwrap();
    }
    doubted(&store, 0).await;
    store.report(&info("a"), Some(&Known::default())).await.unwrap();
    store.report(&info("b"), None).await.unwrap();
    let known = |end| Record {
        id: id.into(),
        segments: [("invoices".to_owned(), Mark::new(end))].into(),
        ..Record::default()
    };
    let copy = Inspected { record: known(60), is_perhaps_old: true };
    let read = [copy].into_iter().chain(whole.then(|| known(90).into())).collect();
    let stored = store.standing().await.unwrap();
    let before = Standing { journals: Vec::new(), ..stored.clone() };
    let reports = match runs {
        true => Reports::between(&before, stored),
        false => Reports::of_stopped(&store).await.unwrap(),
    };
    look_at(&store, reports, read, &[]).await.unwrap()
}

#[tokio::test]
async fn old_copy_of_a_journal_needs_the_word_of_an_operator() {
    let found = look_with_copy(true, "b", false).await;
    let states = found.journals().map(|(_, state)| state.to_string());
    assert!(states.eq(["reported", "read here, perhaps an old copy"]));
    let unsaid = found.unsaid(&no_counters()).unwrap();
    for name in ["bills", "invoices", "numbers"] {
        assert!(unsaid.contains(&format!("--segment {name}=id:ID")), "{name}: {unsaid}");
    }
    for other in ["orders", "seats", "default", "counters"] {
        assert!(!unsaid.contains(&format!("--segment {other}=")), "{other}: {unsaid}");
    }
    let named = |names: &[&str]| RecoveryRequest {
        segments: names.iter().map(|name| ((*name).to_owned(), Mark::new(5).into())).collect(),
        ..no_counters()
    };
    let unsaid = found.unsaid(&named(&["bills", "invoices"])).unwrap();
    assert!(unsaid.contains("(--segment numbers=id:ID;"));
    assert_eq!(found.unsaid(&named(&["bills", "invoices", "numbers"])), None);
    let complete = RecoveryRequest { journals_are_complete: true, ..RecoveryRequest::default() };
    assert_eq!(found.unsaid(&complete), None);
    // What the copy has counts in either case.
    let plan = found.plan(&complete).unwrap();
    assert_eq!(plan.segments, [("invoices".to_owned(), Mark::new(60))]);
}

#[tokio::test]
async fn copy_needs_no_word_if_the_newest_state_is_known() {
    let reported = look_with_copy(true, "a", false).await;
    assert!(reported.unvouched(&no_counters()).is_none());
    let both = look_with_copy(true, "b", true).await;
    assert_eq!(both.unsaid(&no_counters()), None);
    assert!(both.journals().any(|(_, state)| state == JournalState::Read));
    // The reports of stopped servers prove nothing.
    let stopped = look_with_copy(false, "a", false).await;
    assert!(stopped.unvouched(&no_counters()).is_some());
}
