use super::*;

/// Everything issued after the first recovery is lost with it.
#[tokio::test]
async fn second_restore_of_a_backup_moves_further() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let backup = store.backup();
    doubted(&store, 0).await;
    let first = recovered(&store).await.unwrap();
    store.restore(backup);
    doubted(&store, 1).await;
    assert!(recovered(&store).await.unwrap() > first);
}

/// The second restored state does not have the first recovery, and the next recovery gets another
/// number.
#[tokio::test]
async fn lost_recovery_is_detected_after_the_next_one() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let backup = store.backup();
    doubted(&store, 0).await;
    recovered(&store).await.unwrap();
    let seen = store.identity().await.unwrap();
    store.restore(backup);
    doubted(&store, 1).await;
    recovered(&store).await.unwrap();
    let after = store.handle("recovery").unwrap();
    assert_eq!(after.recall("a member", &seen).await.unwrap(), Recalled::Recovered);
}

/// The journal of `a` has seen numbers that its report in the backup does not have.
#[tokio::test]
async fn reports_that_a_restore_brought_back_do_not_count() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let backup = store.backup();
    recovered(&store).await.unwrap();
    store.restore(backup);
    let timer = ManualTimer::new(0);
    let repeated = async || {
        let reports = Reports::repeated(&store, &timer);
        tokio::pin!(reports);
        let reports = loop {
            tokio::select! {
                biased;
                reports = &mut reports => break reports.unwrap(),
                () = tokio::task::yield_now() => timer.advance_ms(200),
            }
        };
        look_with(&store, reports, &[], &[]).await.unwrap()
    };
    let unsaid = repeated().await.unsaid(&no_counters()).unwrap();
    assert!(unsaid.contains("1 journals do not report"), "{unsaid}");
    let plan = repeated().await.plan(&RecoveryRequest::default()).unwrap();
    assert!(
        plan.planned_on.is_some_and(|state| state.missing().count() == 0),
        "as the store has it"
    );

    // Its process runs now.
    let known = Known { ends: [("numbers".to_owned(), 9_000)].into(), ..Known::default() };
    let again = JournalInfo { seen_at_ms: 9, ..info("a") };
    let before = store.standing().await.unwrap();
    store.report(&again, Some(&known)).await.unwrap();
    let reports = Reports::between(&before, store.standing().await.unwrap());
    let found = look_with(&store, reports, &[], &[]).await.unwrap();
    assert_eq!(found.unsaid(&no_counters()), None);
    let plan = found.plan(&RecoveryRequest::default()).unwrap();
    assert_eq!(plan.segments, [("numbers".to_owned(), Mark::new(9_000))]);
    // While no server runs, only journals that are read count.
    let stopped = Reports::of_stopped(&store).await.unwrap();
    assert!(look_with(&store, stopped, &[], &[]).await.unwrap().unsaid(&no_counters()).is_some());
}

/// A later look at another doubt shows nothing about the reports of the former.
#[tokio::test]
async fn reports_of_another_doubt_are_no_repetition() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let before = store.standing().await.unwrap();
    let mut after = before.clone();
    after.journals[0].reports += 1;
    let counts = |after: &Standing| {
        let reports = Reports::between(&before, after.clone());
        reports.counted.missing().count() == 0
    };
    assert!(counts(&after));
    after.doubt = Some(Doubt { evidence: "another".into(), seen: 2, found: 1 });
    assert!(!counts(&after));
}

/// The address may lead to another store meanwhile, which has a report of the same journal.
#[tokio::test]
async fn report_in_another_store_is_no_repetition() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let before = store.standing().await.unwrap();
    let mut after = before.clone();
    after.journals[0].reports += 1;
    after.id = format!("other{}", after.id);
    let reports = Reports::between(&before, after);
    assert_eq!(reports.counted.missing().count(), 1);
}

/// The doubt was recovered and another began while a recovery waited: it waits for the reports to
/// this one.
#[tokio::test]
async fn reports_to_a_later_doubt_are_awaited() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let timer = ManualTimer::new(0);
    let repeated = Reports::repeated(&store, &timer);
    tokio::pin!(repeated);
    let pass = async || {
        timer.advance_ms(200);
        tokio::task::yield_now().await;
    };
    let begin = async |evidence: &str| {
        recovered(&store).await.unwrap();
        let found = store.identity().await.unwrap();
        let doubt = Doubt { evidence: evidence.into(), seen: 2, found: 1 };
        store.doubt(&doubt, &lost_by(&found)).await.unwrap();
        store.report(&info("a"), Some(&Known::default())).await.unwrap();
    };
    let mut looks = 0;
    let reports = loop {
        tokio::select! {
            biased;
            reports = &mut repeated => break reports.unwrap(),
            () = pass() => looks += 1,
        }
        match looks {
            3 => begin("another").await,
            // Its process repeats the report.
            6 => store.report(&info("a"), Some(&Known::default())).await.unwrap(),
            _ => {}
        }
        assert!(looks < 40, "the repeated report does not count");
    };
    assert!(looks >= 6, "{looks}: it was not repeated yet");
    assert_eq!(reports.counted.missing().count(), 0);
}

/// A later join shows no report; nor does a process of an earlier version, which drops all counts.
#[tokio::test]
async fn only_a_report_counts_as_repeated() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let before = store.standing().await.unwrap();
    let counts = |reports, later_ms| {
        let mut after = before.clone();
        after.journals[0].reports = reports;
        after.journals[0].seen_at_ms += later_ms;
        Reports::between(&before, after).counted.missing().count() == 0
    };
    assert!(counts(2, 0), "its clock stands still");
    assert!(!counts(1, 5), "it joined again");
    assert!(!counts(0, 0), "another process dropped the count");
    assert!(counts(0, 5), "its own process does not count");
}
