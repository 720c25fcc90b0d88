use super::*;
use crate::model::history::History;

/// The count of earlier recoveries decides where counters continue, and was lost.
#[tokio::test]
async fn counters_continue_above_the_number_if_journals_are_lost() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let backup = store.backup();
    let section = async || {
        let ground = store.ground().await.unwrap();
        ground.of("sections", 7).1.get()
    };
    let mut counted = 5_000_u64;
    for round in 1..=3 {
        store.restore(backup.clone());
        let stopped = Reports::of_stopped(&store).await.unwrap();
        let found = look_with(&store, stopped, &[], &["a"]).await.unwrap();
        let unsaid = found.unsaid(&RecoveryRequest::default()).unwrap();
        assert!(unsaid.contains("--counters-above"), "{unsaid}");
        let request = RecoveryRequest { counters_above: Some(counted), ..no_counters() };
        assert_eq!(found.unsaid(&request), None);
        store.fast_forward(&found.plan(&request).unwrap()).await.unwrap();
        let next = section().await;
        assert!(next > counted, "{round}: {next} after {counted}");
        assert_eq!(next, round << 40, "and by one leap alone");
        counted = next + 3_000;
    }
}

/// A plain recovery needs no number, and moves counters by one leap.
#[tokio::test]
async fn only_lost_journals_need_a_number_of_counters() {
    let store = MemoryStore::new("recovery").unwrap();
    let found = store.identity().await.unwrap();
    let asks = |recovery: &Recovery| {
        let unsaid = recovery.unsaid(&RecoveryRequest::default());
        unsaid.is_some_and(|unsaid| unsaid.contains("--counters-above"))
    };
    let stopped = async |read: &[&Record], without: &[&str]| {
        let stopped = Reports::of_stopped(&store).await.unwrap();
        look_with(&store, stopped, read, without).await.unwrap()
    };
    let read = Record { id: "a".into(), store: found.id.clone(), ..Record::default() };
    assert!(asks(&stopped(&[], &[]).await), "nothing is known of a new store");
    assert!(asks(&stopped(&[&Record::default()], &[]).await), "an empty directory knows nothing");
    assert!(!asks(&stopped(&[&read], &[]).await));
    let copy = Inspected { record: read.clone(), is_perhaps_old: true };
    let reports = Reports::of_stopped(&store).await.unwrap();
    let found = look_at(&store, reports, vec![copy], &[]).await.unwrap();
    assert!(asks(&found), "its server may have seen another recovery since");
    let complete = RecoveryRequest { journals_are_complete: true, ..RecoveryRequest::default() };
    assert_eq!(found.unsaid(&complete), None);
    assert!(!asks(&look(&store, &[], &[]).await.unwrap()), "its servers run, and it lacks nothing");
    doubted(&store, 0).await;
    assert!(!asks(&look(&store, &[], &[]).await.unwrap()));
    store.report(&info("b"), None).await.unwrap();
    assert!(asks(&look(&store, &[], &["b"]).await.unwrap()), "it may know of another recovery");
    // One that an earlier recovery has set aside does not know of that one.
    let aside = |id: &str| Record { id: id.into(), ..read.clone() };
    let found = stopped(&[], &[]).await.with_set_aside(vec![aside("a"), aside("b")]);
    assert!(asks(&found));
    let plan =
        found.plan(&RecoveryRequest { counters_above: Some((1 << 59) + 1), ..no_counters() });
    assert_eq!(plan.unwrap_err().kind().code(), "invalid");
}

/// It may be part of a restored doubt, and know nothing of the recoveries since.
#[tokio::test]
async fn report_without_a_journal_tells_no_number_of_recoveries() {
    let store = MemoryStore::new("recovery").unwrap();
    doubt_without_report(&store).await;
    let known = Known { recoveries: 1, ..Known::default() };
    store.report(&info(""), Some(&known)).await.unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    let unsaid = found.unsaid(&RecoveryRequest::default()).unwrap();
    assert!(unsaid.contains("--counters-above"), "{unsaid}");
    store.report(&info("a"), Some(&known)).await.unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    assert_eq!(found.unsaid(&RecoveryRequest::default()), None);
}

/// Nothing lowers marks again, so one journal's clock must not end minting for years.
#[tokio::test]
async fn mark_far_ahead_moves_a_store_only_by_an_operators_word() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let far = NOW.get() + 5 * 365 * 86_400_000;
    let near = NOW.get() + 600_000;
    let is_far = JournalInfo { far_mark: far, ..info("far") };
    store.report(&is_far, Some(&Known { mark: far, ..Known::default() })).await.unwrap();
    let read = Record { id: "near".into(), mark: Mark::new(near), ..Record::default() };
    let found = look(&store, &[&read], &[]).await.unwrap();
    let time = Rfc3339(UnixMillis::new(far)).to_string();
    let unsaid = found.unsaid(&no_counters()).unwrap();
    for part in ["journal far of shop on here", &time, "--far-ahead", "--no-ids-ahead"] {
        assert!(unsaid.contains(part), "{part}: {unsaid}");
    }
    let texts: Vec<_> =
        found.journals().map(|(journal, state)| found.state_text(journal, state)).collect();
    assert_eq!(texts, ["reported".to_owned(), format!("reported, worker mark {time}")]);

    // The word was for another value.
    let another = RecoveryRequest { far_ahead: true, ..no_counters() };
    assert!(found.unsaid(&another).unwrap().contains(&time));
    let mark = Some(UnixMillis::new(far));
    let accepted = RecoveryRequest { mark, ..another };
    assert_eq!(found.unsaid(&accepted), None);
    assert_eq!(found.plan(&accepted).unwrap().marks_at_least, Mark::new(far));
    let left_out = RecoveryRequest { no_ids_ahead: true, ..no_counters() };
    let unnamed = found.plan(&left_out).unwrap_err();
    assert!(unnamed.to_string().contains("(--mark TIME"), "{unnamed}");
    let mark_of = |mark| {
        let left_out = RecoveryRequest { mark: Some(UnixMillis::new(mark)), ..left_out.clone() };
        assert_eq!(found.unsaid(&left_out), None);
        found.plan(&left_out).unwrap().marks_at_least.get()
    };
    assert_eq!(mark_of(NOW.get()), near, "marks that were read count if they are near");
    // The near marks among reports are unknown.
    assert_eq!(mark_of(near + 7_200_000), near + 7_200_000);
    let away = Record { mark: Mark::new(far), ..Record::default() };
    let leaves_out = |record: &Record| found.leaves_out(record, &left_out);
    assert!(leaves_out(&away) && !leaves_out(&read) && !found.leaves_out(&away, &no_counters()));

    // A journal that was read, or a report of an earlier version.
    let away = Record { id: "away".into(), ..away };
    let names = async |read: &[&Record], name: &str| {
        let unsaid = look(&store, read, &[]).await.unwrap().unsaid(&no_counters()).unwrap();
        assert!(unsaid.contains(name), "{unsaid}");
    };
    names(&[&away], "journal \"away\" that was read").await;
    recovered(&store).await.unwrap();
    doubted(&store, 0).await;
    let known = Known { mark: far, ..Known::default() };
    store.report(&info("far"), Some(&known)).await.unwrap();
    names(&[], "a report that names no journal").await;
    // A store that lacks nothing is not moved there.
    recovered(&store).await.unwrap();
    assert_eq!(look(&store, &[&away], &[]).await.unwrap().unsaid(&no_counters()), None);
}

/// The highest number that counters can pass leaves room for later recoveries.
#[tokio::test]
async fn recovery_follows_one_that_passed_the_highest_number() {
    let store = MemoryStore::new("recovery").unwrap();
    for request in
        [RecoveryRequest { counters_above: Some(1 << 59), ..no_counters() }, no_counters()]
    {
        // Its journals know of all recoveries.
        let recoveries = History::of(&store.identity().await.unwrap().id).recoveries;
        doubted(&store, recoveries).await;
        let found = look(&store, &[], &[]).await.unwrap();
        store.fast_forward(&found.plan(&request).unwrap()).await.unwrap();
    }
}

/// Their words mean nothing there, and the audit trail would have them.
#[tokio::test]
async fn store_that_is_not_in_doubt_needs_no_word() {
    let store = MemoryStore::new("recovery").unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    let mark = Some(NOW);
    let words = [
        RecoveryRequest { mark, no_ids_ahead: true, ..RecoveryRequest::default() },
        RecoveryRequest { mark, counters_above: Some(7), ..RecoveryRequest::default() },
    ];
    for request in words {
        let refused = found.plan(&request).unwrap_err();
        assert!(refused.to_string().contains("the store is not in doubt"), "{refused}");
    }
}
