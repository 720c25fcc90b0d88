use super::*;

#[tokio::test]
async fn missing_known_journal_blocks_recovery() {
    let store = MemoryStore::new("recovery").unwrap();
    let found = store.identity().await.unwrap();
    let doubt = Doubt { evidence: "a member".into(), seen: found.writes + 1, found: found.writes };
    store.doubt(&doubt, &lost_by(&found)).await.unwrap();
    store.report(&info("a"), Some(&Known::default())).await.unwrap();
    store.report(&info("b"), None).await.unwrap();

    let read = Record { id: "c".into(), journals: vec![info("d")], ..Record::default() };
    let unsaid = async |read: &[&Record], without: &[&str]| {
        look(&store, read, without).await.unwrap().unsaid(&no_counters())
    };
    assert!(unsaid(&[], &[]).await.is_some());
    assert_eq!(unsaid(&[], &["b"]).await, None);
    assert!(unsaid(&[&read], &["b"]).await.is_some(), "that one knows another");
    assert_eq!(unsaid(&[&read], &["b", "d"]).await, None);
    let b = Record { id: "b".into(), ..Record::default() };
    assert_eq!(unsaid(&[&b], &[]).await, None);
    assert!(look(&store, &[], &["absent"]).await.is_err());
    assert!(look(&store, &[], &[]).await.unwrap().doubt().is_some());
}

#[tokio::test]
async fn journal_that_is_read_counts_like_a_report() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let end = |source: &str, end| (source.to_owned(), Mark::new(end));
    let reported = Known { ends: [("numbers".to_owned(), 40)].into(), ..Known::default() };
    store.report(&info("a"), Some(&reported)).await.unwrap();
    store.report(&info("b"), None).await.unwrap();
    let read = Record {
        id: "b".into(),
        // The store knows the first of these.
        journals: vec![info("a"), info("c")],
        segments: [end("numbers", 30), end("bills", 60)].into(),
        ..Record::default()
    };
    let found = look(&store, &[&read], &["c"]).await.unwrap();
    let states = found.journals().map(|(journal, state)| (&*journal.id, state));
    let expected =
        [("a", JournalState::Reported), ("b", JournalState::Read), ("c", JournalState::LeftOut)];
    assert!(states.eq(expected));
    assert_eq!(found.unsaid(&no_counters()), None);
    let plan = found.plan(&RecoveryRequest::default()).unwrap();
    assert_eq!(plan.segments, [end("bills", 60), end("numbers", 40)]);
}

/// An old state lists a journal that an earlier recovery has set aside; its own list is older.
#[tokio::test]
async fn journal_that_was_set_aside_is_not_missing() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.report(&info("b"), None).await.unwrap();
    let aside = |id: &str, end| Record {
        id: id.into(),
        journals: vec![info("long-gone")],
        segments: [(id.to_owned(), Mark::new(end))].into(),
        ..Record::default()
    };
    let found = look(&store, &[], &[]).await.unwrap();
    assert!(found.unsaid(&no_counters()).is_some());
    // The journal "other" is one of another store.
    let found = found.with_set_aside(vec![aside("b", 60), aside("other", 70)]);
    assert_eq!(found.unsaid(&no_counters()), None);
    let plan = found.plan(&RecoveryRequest::default()).unwrap();
    assert_eq!(plan.segments, [("b".to_owned(), Mark::new(60))]);
    assert_eq!(plan.forget_journals, ["b"]);
}

/// The store has lost the join of a journal that only another names, and not that of the rest.
#[tokio::test]
async fn journal_named_by_another_is_only_heard_of_if_new() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.report(&info("b"), None).await.unwrap();
    let (id, journals) = ("c".into(), vec![info("b"), info("d")]);
    let read = Record { id, journals, ..Record::default() };
    let found = look(&store, &[&read], &[]).await.unwrap();
    let state = |id: &str| found.journals().find(|(journal, _)| journal.id == id).unwrap().1;
    assert_eq!((state("b"), state("d")), (JournalState::Missing, JournalState::HeardOf));
}

/// Forgotten, they would not be missed by a later recovery.
#[tokio::test]
async fn a_store_that_is_not_in_doubt_forgets_no_journal() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let segments = vec![("numbers".to_owned(), Mark::new(77).into())];
    let values = RecoveryRequest { segments, ..RecoveryRequest::default() };
    let found = look(&store, &[], &["a"]).await.unwrap();
    let refused = found.plan(&values).unwrap_err();
    assert!(refused.to_string().contains("cannot be left out"), "{refused}");
    // A repeated command has nothing to do.
    assert!(found.plan(&RecoveryRequest::default()).unwrap().forget_journals.is_empty());
    let aside = Record { id: "a".into(), ..Record::default() };
    let found = look(&store, &[], &[]).await.unwrap().with_set_aside(vec![aside]);
    let plan = found.plan(&values).unwrap();
    assert!(plan.forget_journals.is_empty());
    store.fast_forward(&plan).await.unwrap();
    assert_eq!(store.standing().await.unwrap().journals.len(), 1);
}

/// Its servers mint meanwhile, so that a recovery now would come too late.
#[tokio::test]
async fn read_journal_that_knows_more_waits_for_a_doubt() {
    let store = MemoryStore::new("recovery").unwrap();
    let found = store.identity().await.unwrap();
    let read = |store: &str, writes| Record {
        id: "saved".into(),
        store: store.into(),
        writes,
        ..Record::default()
    };
    look(&store, &[&read(&found.id, found.writes)], &[]).await.unwrap();
    look(&store, &[&read("", 0)], &[]).await.unwrap();
    let cases = [
        (read(&found.id, found.writes + 5), "Start a server with its data directory"),
        (read("another", 1), "is of another store; leave it out"),
    ];
    for (more, text) in cases {
        let refused = look(&store, &[&more], &[]).await.unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
        assert!(!refused.to_string().contains("worker recover"), "{refused}");
        // While no server runs, a move past the journal is in time.
        let stopped = Reports::of_stopped(&store).await.unwrap();
        look_with(&store, stopped, &[&more], &[]).await.unwrap();
    }
    doubted(&store, 0).await;
    look(&store, &[&read(&found.id, found.writes + 5)], &[]).await.unwrap();
}

/// Its marks and numbers mean nothing here, unless this store replaces its own.
#[tokio::test]
async fn journal_of_another_store_counts_only_for_a_replaced_one() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let read = |id: &str, store: &str| Record {
        id: id.into(),
        store: store.into(),
        segments: [("numbers".to_owned(), Mark::new(70))].into(),
        ..Record::default()
    };
    let refused = look(&store, &[&read("b", "lost.2.ab")], &[]).await.unwrap_err();
    for part in ["journal \"b\"", "is of another store, lost;", "worker fast-forward"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    let found = async |read: &[&Record]| {
        let stopped = Reports::of_stopped(&store).await.unwrap();
        look_with(&store, stopped, read, &["a"]).await
    };
    let two = [&read("b", "lost.2.ab"), &read("c", "lost.1.cd"), &read("", "")];
    let replaced = found(&two).await.unwrap();
    let texts: Vec<_> =
        replaced.journals().map(|(journal, state)| replaced.state_text(journal, state)).collect();
    let other = "read here, of another store";
    assert_eq!(texts, ["left out", other, other]);
    assert_eq!(
        replaced.plan(&no_counters()).unwrap().segments,
        [("numbers".to_owned(), Mark::new(70))]
    );
    let refused = found(&[two[0], &read("d", "third")]).await.unwrap_err();
    assert!(refused.to_string().contains("are of different stores, lost and third"), "{refused}");
}

/// A recovery has left the journal out, so its history alone shows no loss. Each part of what it
/// knows must lie below the store's rows.
#[tokio::test]
async fn read_journal_that_was_left_out_is_compared_with_the_rows() {
    let store = MemoryStore::new("recovery").unwrap();
    let source = |name: &str| {
        let spec = r#"{"kind":"segment"}"#.to_owned();
        NewDefinition { name: name.into(), spec, identity: "{}".into(), enabled: None }
    };
    store.define(&source("bills")).await.unwrap();
    let before = store.identity().await.unwrap();
    doubted(&store, 0).await;
    recovered(&store).await.unwrap();
    let ground = store.ground().await.unwrap().mark;
    let left_out = |segments: u64, for_programs: u64, mark: u64| Record {
        id: "b".into(),
        store: before.id.clone(),
        writes: before.writes + 100,
        segments: [("bills".to_owned(), Mark::new(segments))].into(),
        for_programs: [("bills".to_owned(), Mark::new(for_programs))].into(),
        mark: Mark::new(mark),
        ..Record::default()
    };
    let low = left_out(0, 0, ground.get());
    look(&store, &[&low], &[]).await.unwrap();
    for (knows, named) in [
        (left_out(9, 0, 0), "--segment bills=9"),
        (left_out(0, 7, 0), "--segment bills=7"),
        (left_out(0, 0, ground.get() + 1), "--mark "),
    ] {
        let refused = look(&store, &[&knows], &[]).await.expect_err(named);
        assert!(matches!(refused.kind(), ErrorKind::Invalid), "{refused}");
        for part in ["journal \"b\" (--journal) knows more", "worker recover", named] {
            assert!(refused.to_string().contains(part), "{part}: {refused}");
        }
    }
}

/// Without a recovery, ends of sources count where they are sure: numbers that an old copy knows
/// may have been given back.
#[tokio::test]
async fn ends_of_a_journal_are_compared_with_the_same_store() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    recovered(&store).await.unwrap();
    let found = store.identity().await.unwrap();
    let segments = [("bills".to_owned(), Mark::new(9))].into();
    let record = Record { store: found.id, segments, ..Record::default() };
    for (is_sure, is_below) in [(true, true), (false, false)] {
        let by = ("the journal", &record);
        let (recalled, below) = compare_journal(&store, by, is_sure, NOW).await.unwrap();
        assert_eq!((recalled, below.is_some()), (Recalled::Same, is_below), "{below:?}");
    }
    let refused = look(&store, &[&record], &[]).await.unwrap_err();
    assert!(refused.to_string().contains("knows more than this store"), "{refused}");
}
