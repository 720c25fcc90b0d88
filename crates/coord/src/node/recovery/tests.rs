use snowmint_core::Layout;

use super::plan::{Going, plan};
use super::*;
use crate::ids::Term;
use crate::journal::{Inspected, JournalLease, Record};
use crate::model::catalog::NewDefinition;
use crate::model::history::{JournalInfo, Recalled, StoreIdentity};
use crate::platform::timer::ManualTimer;
use crate::store::memory::{MemoryClock, MemoryStore};

#[test]
fn recovery_plan_exceeds_everything_known() {
    let reached = UnixMillis::new(1_000_000);
    let lease = |mark| JournalLease {
        pool: "workers-10".into(),
        slot: 0,
        term: Term::new(1),
        mark: Mark::new(mark),
        released: false,
        granted: Mark::ZERO,
    };
    let journal = Record {
        store: "store.4.start".into(),
        writes: 7,
        catalog: 11,
        leases: vec![lease(5), lease(9_000_000)],
        segments: [("a".to_owned(), Mark::new(50))].into(),
        ..Record::default()
    };
    let named = [("a".to_owned(), Mark::new(40)), ("b".to_owned(), Mark::new(3))];
    let forward = plan(&journal.known(), None, &named, &Going::default(), reached);
    assert_eq!(forward.marks_at_least, Mark::new(9_000_000));
    assert_eq!(forward.writes_at_least, 7);
    assert_eq!((forward.recoveries_at_least, forward.catalog_at_least), (4, 11));
    assert_eq!(forward.segments, [("a".into(), Mark::new(50)), ("b".into(), Mark::new(3))]);
    let bare = plan(&Known::default(), None, &[], &Going::default(), reached);
    assert_eq!(bare.marks_at_least, Mark::from(reached));
    let late = Some(UnixMillis::new(u64::MAX >> 1));
    let named = plan(&Known::default(), late, &[], &Going::default(), reached);
    assert_eq!(named.marks_at_least, Mark::new(u64::MAX >> 1));
}

/// The ID bounds more than the number if the source was restriped after the restored state.
#[test]
fn recovery_uses_the_current_stripe() {
    let stripe = |offset, increment, lowest, first_at| {
        Stripe::new(offset, increment, lowest, first_at).unwrap()
    };
    let next = |now: Option<Stripe>, end, ids: Option<u64>| {
        let named = |number| ("bills".to_owned(), number);
        let known = Known {
            ends: [named(end)].into(),
            ids: ids.into_iter().map(named).collect(),
            ..Known::default()
        };
        let stripes = now.into_iter().map(|stripe| ("bills".to_owned(), stripe)).collect();
        let going = Going { stripes, ..Going::default() };
        plan(&known, None, &[], &going, UnixMillis::ZERO).segments[0].1.get()
    };
    // Plain numbers up to 101, then stripe 5 of 16.
    let lost = stripe(5, 16, 101, 101);
    let ids = Some(lost.free_from(1_101));
    assert_eq!(ids, Some(16_086));
    assert_eq!(next(Some(lost), 1_101, ids), 1_101, "nothing of it is lost");
    assert_eq!(next(Some(Stripe::ALL), 1_101, ids), 16_086);
    assert_eq!(next(Some(stripe(2, 4, 1, 1)), 1_101, ids), 4_022, "which is 16,086");
    assert_eq!(next(None, 1_101, ids), 16_086, "by whatever stripe it is defined again");
    // The reports of journals of earlier versions have no IDs.
    assert_eq!(next(Some(Stripe::ALL), 1_101, None), 1_101);
    assert_eq!(next(Some(lost), 1_101, None), 1_101);
    assert_eq!(next(Some(stripe(1, 1, 1, 900)), 1_101, None), 2_000);
    let top = Mark::MAX.get();
    assert_eq!(next(Some(stripe(1, 1, 1, top - 1)), top, Some(top)), top);
}

#[test]
fn store_minted_source_passes_the_same_time() {
    let layout = Layout::REDIS;
    let reached = layout.epoch().saturating_add(5_000);
    let going = Going { minting: vec![("orders".to_owned(), layout)], ..Going::default() };
    let forward = plan(&Known::default(), None, &[], &going, reached);
    assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(5_001 << 10))]);
    let late = Some(UnixMillis::new(u64::MAX >> 1));
    let forward = plan(&Known::default(), late, &[], &going, reached);
    let last = layout.tick_max().get() << 10;
    assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(last))], "and no further");
}

/// A request by an operator who knows that no counter has counted.
fn no_counters() -> RecoveryRequest {
    RecoveryRequest { counters_above: Some(0), ..RecoveryRequest::default() }
}

fn info(id: &str) -> JournalInfo {
    let (owner, host) = ("shop".to_owned(), "here".to_owned());
    JournalInfo {
        id: id.into(),
        owner,
        host,
        seen_at_ms: 0,
        has_reported: false,
        is_heard_of: false,
        reports: 0,
        far_mark: 0,
    }
}

const NOW: UnixMillis = UnixMillis::new(1_790_000_000_000);

/// Looks at a store, all of whose reports are repeated.
async fn look(store: &MemoryStore, read: &[&Record], without: &[&str]) -> Result<Recovery> {
    let stored = store.standing().await?;
    let before = Standing { journals: Vec::new(), ..stored.clone() };
    look_with(store, Reports::between(&before, stored), read, without).await
}

async fn look_with(
    store: &MemoryStore,
    reports: Reports,
    read: &[&Record],
    without: &[&str],
) -> Result<Recovery> {
    let read = read.iter().map(|record| (*record).clone().into()).collect();
    look_at(store, reports, read, without).await
}

async fn look_at(
    store: &MemoryStore,
    reports: Reports,
    read: Vec<Inspected>,
    without: &[&str],
) -> Result<Recovery> {
    let without: Vec<_> = without.iter().map(|id| (*id).to_owned()).collect();
    let settings = NodeSettings { builtin: true, ..NodeSettings::default() };
    let sources = BTreeMap::new();
    let configured = Configured { sources: &sources, settings: &settings, namespace: "recovery" };
    Recovery::look(Some(store), reports, read, &without, configured, NOW).await
}

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

/// The store's clock and the operator's: nodes may have minted up to the later one.
#[tokio::test]
async fn marks_pass_the_later_of_both_clocks() {
    for offset_ms in [-1_000_i64, 1_000] {
        let theirs = UnixMillis::new(NOW.get().saturating_add_signed(offset_ms));
        let clock = MemoryClock::new(theirs);
        let store = MemoryStore::with_clock("recovery", clock).unwrap();
        doubted(&store, 0).await;
        let found = look(&store, &[], &[]).await.unwrap();
        assert_eq!(found.now(), NOW.max(theirs));
        let plan = found.plan(&RecoveryRequest::default()).unwrap();
        assert_eq!(plan.marks_at_least, Mark::from(found.now().saturating_add(found.reach_ms())));
    }
}

/// The definition in the store is in force, and turns the same numbers into other IDs.
#[tokio::test]
async fn configured_stripe_does_not_replace_that_of_the_store() {
    let store = MemoryStore::new("recovery").unwrap();
    let spec = r#"{"kind":"segment","offset":5,"increment":16}"#.to_owned();
    let (name, identity) = ("bills".to_owned(), "{}".to_owned());
    let new = NewDefinition { name: name.clone(), spec, identity, enabled: None };
    store.define(&new).await.unwrap();
    doubted(&store, 0).await;
    let known = |name: &str| Known {
        ends: [(name.to_owned(), 100)].into(),
        ids: [(name.to_owned(), 16_000)].into(),
        ..Known::default()
    };
    for name in ["bills", "orders"] {
        store.report(&info("a"), Some(&known(name))).await.unwrap();
    }
    let spec = SourceSpec::from_stored(r#"{"kind":"segment","offset":2,"increment":4}"#).unwrap();
    let sources = BTreeMap::from(["bills", "orders"].map(|name| (name.to_owned(), spec.clone())));
    let settings = NodeSettings::default();
    let configured = Configured { sources: &sources, settings: &settings, namespace: "recovery" };
    let stored = store.standing().await.unwrap();
    let reports = Reports::between(&Standing::default(), stored);
    let found = Recovery::look(Some(&store), reports, Vec::new(), &[], configured, NOW).await;
    let plan = found.unwrap().plan(&RecoveryRequest::default()).unwrap();
    let next = |offset, increment| {
        Mark::new(Stripe::new(offset, increment, 1, 1).unwrap().number_from(16_000))
    };
    assert_eq!(plan.segments, [("bills".into(), next(5, 16)), ("orders".into(), next(2, 4))]);
}

#[tokio::test]
async fn recovery_plan_rejects_operator_mistakes() {
    let store = MemoryStore::new("recovery").unwrap();
    let recovery = look(&store, &[], &[]).await.unwrap();
    let day = Some(NOW.saturating_add(DAY_MS));
    let later = Some(NOW.saturating_add(DAY_MS + 1));
    let at = |mark, far_ahead| RecoveryRequest { mark, far_ahead, ..RecoveryRequest::default() };
    assert!(recovery.plan(&at(day, false)).is_ok());
    assert!(recovery.plan(&at(later, false)).is_err());
    assert!(recovery.plan(&at(later, true)).is_ok());

    let named = |name: &str| RecoveryRequest {
        segments: vec![(name.to_owned(), Mark::new(9).into())],
        ..RecoveryRequest::default()
    };
    assert!(recovery.plan(&named("numbers")).is_ok(), "a start defines it");
    let refused = recovery.plan(&named("nubmers")).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::NotFound), "{refused}");
}

/// Returns evidence of one more write than the store has.
fn lost_by(found: &StoreIdentity) -> Evidence {
    let seen = StoreIdentity { writes: found.writes + 1, ..found.clone() };
    Evidence { id: found.id.clone(), seen, ends: BTreeMap::new(), other_server: false }
}

/// Puts a store in doubt, with a report that it was recovered `recoveries` times.
async fn doubted(store: &MemoryStore, recoveries: u64) {
    let found = store.identity().await.unwrap();
    let doubt = Doubt { evidence: "a member".into(), seen: found.writes + 1, found: found.writes };
    store.doubt(&doubt, &lost_by(&found)).await.unwrap();
    store.report(&info("a"), Some(&Known { recoveries, ..Known::default() })).await.unwrap();
}

async fn recovered(store: &MemoryStore) -> Result<Term> {
    let forward = look(store, &[], &[]).await?.plan(&RecoveryRequest::default())?;
    store.fast_forward(&forward).await?;
    Ok(store.ground().await?.term)
}

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

/// A running server has all that it knows in the store, so only the named source moves.
#[tokio::test]
async fn a_store_that_is_not_in_doubt_moves_to_the_named_values_alone() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    assert_eq!(found.unsaid(&no_counters()), None);
    assert_eq!(found.journals().next().unwrap().1, JournalState::NotAsked);
    let segments = vec![("numbers".to_owned(), Mark::new(77).into())];
    let request = RecoveryRequest { segments, ..RecoveryRequest::default() };
    let plan = found.plan(&request).unwrap();
    assert_eq!(plan.marks_at_least, Mark::ZERO);
    assert_eq!(plan.segments, [("numbers".to_owned(), Mark::new(77))]);
    assert_eq!((plan.raised_marks(), plan.raised_writes()), (None, None));
    store.fast_forward(&plan).await.unwrap();
    assert_eq!(store.ground().await.unwrap().mark, Mark::ZERO);
    assert_eq!(store.get("numbers").await.unwrap_err().kind().code(), "not_found");
    // With its servers stopped, the store may be a new one in the place of a lost one.
    let stopped = Reports::of_stopped(&store).await.unwrap();
    let found = look_with(&store, stopped, &[], &[]).await.unwrap();
    assert!(found.unsaid(&no_counters()).is_some());
    assert!(found.plan(&request).unwrap().marks_at_least > Mark::ZERO);
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

/// Its servers cannot report to this server until it was accepted.
#[tokio::test]
async fn a_store_in_doubt_on_another_server_needs_it_to_be_accepted() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.take_over(store.backup());
    let refused = Reports::repeated(&store, &ManualTimer::new(0)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert!(refused.to_string().contains("--other-server"), "{refused}");
    let seen = store.identity().await.unwrap();
    let refused = store.recall("a member", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
}

/// Only an operator who has stopped all servers knows that none uses the former server.
#[tokio::test]
async fn only_a_recovery_of_stopped_servers_accepts_a_replica() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    store.take_over(store.backup());
    let running = look(&store, &[], &[]).await.unwrap();
    let refused = store.fast_forward(&running.plan(&RecoveryRequest::default()).unwrap()).await;
    assert_eq!(refused.unwrap_err().kind().code(), "store_mismatch");
    let stopped = Reports::of_stopped(&store).await.unwrap();
    let stopped = look_with(&store, stopped, &[], &["a"]).await.unwrap();
    store.fast_forward(&stopped.plan(&RecoveryRequest::default()).unwrap()).await.unwrap();
    store.accept_lead(Mark::new(7)).await.unwrap();
}

/// Its IDs are above its numbers only under another stripe.
#[tokio::test]
async fn unchanged_stripe_continues_with_the_next_number() {
    let store = MemoryStore::new("recovery").unwrap();
    let (name, spec) = ("bills".to_owned(), r#"{"kind":"segment","offset":5,"increment":16}"#);
    let new = NewDefinition {
        name: name.clone(),
        spec: spec.into(),
        identity: "{}".into(),
        enabled: None,
    };
    store.define(&new).await.unwrap();
    doubted(&store, 0).await;
    let free = Stripe::of_text(spec).unwrap().free_from(1_101);
    assert!(free > 16_000, "{free}");
    let known = Known {
        ends: [(name.clone(), 1_101)].into(),
        ids: [(name.clone(), free)].into(),
        ..Known::default()
    };
    store.report(&info("a"), Some(&known)).await.unwrap();
    let plan = look(&store, &[], &[]).await.unwrap().plan(&RecoveryRequest::default()).unwrap();
    assert_eq!(plan.segments, [(name, Mark::new(1_101))]);
}

#[tokio::test]
async fn outdated_plan_moves_nothing() {
    let store = MemoryStore::new("recovery").unwrap();
    doubted(&store, 0).await;
    let plan = look(&store, &[], &[]).await.unwrap().plan(&RecoveryRequest::default()).unwrap();
    // A repeated report of a journal is no change.
    let again = JournalInfo { seen_at_ms: 9, ..info("a") };
    store.report(&again, Some(&Known::default())).await.unwrap();
    let known = Known { ends: [("numbers".to_owned(), 9_000)].into(), ..Known::default() };
    store.report(&info("b"), Some(&known)).await.unwrap();
    let refused = store.fast_forward(&plan).await.unwrap_err();
    assert!(refused.to_string().contains("look again"), "{refused}");

    let plan = look(&store, &[], &[]).await.unwrap().plan(&RecoveryRequest::default()).unwrap();
    store.report(&again, Some(&Known::default())).await.unwrap();
    store.fast_forward(&plan).await.unwrap();
    assert!(store.fast_forward(&plan).await.is_err(), "another recovery was faster");
}

/// The plan of a store without a doubt has no reports.
#[tokio::test]
async fn a_doubt_that_begins_after_the_plan_is_not_ended_by_it() {
    let store = MemoryStore::new("recovery").unwrap();
    let planned = look(&store, &[], &[]).await.unwrap().plan(&RecoveryRequest::default()).unwrap();
    doubted(&store, 0).await;
    let refused = store.fast_forward(&planned).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert!(store.standing().await.unwrap().doubt.is_some());
}

/// The replica has all writes or lacks some. Of two operators, the one who looks first accepts it.
#[tokio::test]
async fn an_operator_accepts_a_server_that_took_over() {
    for loses in [false, true] {
        let store = MemoryStore::new("recovery").unwrap();
        let writer = store.handle("recovery").unwrap();
        store.report(&info("a"), None).await.unwrap();
        let mut replica = store.backup();
        writer.accept_lead(Mark::new(7)).await.unwrap();
        if !loses {
            replica = store.backup();
        }
        let seen = writer.identity().await.unwrap();
        store.take_over(replica);
        let refused = store.report(&info("a"), None).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
        assert_eq!(look(&store, &[], &[]).await.unwrap().doubt(), None);

        let before = Evidence::of_operator(store.standing().await.unwrap().id);
        accept_other_server(&store).await.unwrap();
        let after = store.standing().await.unwrap();
        assert!(after.doubt.is_some() && after.missing().count() == 1, "{after:?}");
        // A second operator has looked before, or looks now.
        let doubt = Doubt { evidence: "a member".into(), seen: 0, found: 0 };
        store.doubt(&doubt, &before).await.unwrap();
        accept_other_server(&store).await.unwrap();
        assert_eq!(store.standing().await.unwrap(), after);
        for handle in [&store, &writer] {
            let refused = handle.accept_lead(Mark::new(8)).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
        }
        assert!(look(&store, &[], &[]).await.unwrap().unsaid(&no_counters()).is_some());
        let known = Known { writes: seen.writes, ..Known::default() };
        store.report(&info("a"), Some(&known)).await.unwrap();
        recovered(&store).await.unwrap();
        let recalled = store.recall("a member", &seen).await.unwrap();
        assert_eq!(recalled == Recalled::Recovered, loses);
        store.accept_lead(Mark::new(8)).await.unwrap();
    }
}

#[tokio::test]
async fn server_that_wrote_store_is_not_accepted_again() {
    let store = MemoryStore::new("recovery").unwrap();
    store.report(&info("a"), None).await.unwrap();
    let before = (store.identity().await.unwrap(), store.standing().await.unwrap());
    accept_other_server(&store).await.unwrap();
    assert_eq!((store.identity().await.unwrap(), store.standing().await.unwrap()), before);
}

/// The handle's knowledge of its store decides, whatever an operator says.
#[tokio::test]
async fn a_server_with_another_store_is_not_accepted() {
    let (store, other) =
        (MemoryStore::new("recovery").unwrap(), MemoryStore::new("recovery").unwrap());
    let knows = store.handle("recovery").unwrap();
    knows.accept_lead(Mark::new(7)).await.unwrap();
    store.take_over(other.backup());
    let found = store.identity().await.unwrap();
    let refused = accept_other_server(&knows).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    let doubt = Doubt { evidence: "a member".into(), seen: 0, found: 0 };
    let refused = knows.doubt(&doubt, &Evidence::of_operator(found.id.clone())).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert_eq!(store.identity().await.unwrap(), found);
}

/// The former server may have been recovered, and its journals may know more by now.
#[tokio::test]
async fn reports_from_before_a_server_took_over_do_not_count() {
    let store = MemoryStore::new("recovery").unwrap();
    let known = Known { ends: [("numbers".to_owned(), 500)].into(), ..Known::default() };
    doubted(&store, 0).await;
    store.report(&info("a"), Some(&known)).await.unwrap();
    let replica = store.backup();
    recovered(&store).await.unwrap();
    store.take_over(replica);
    assert_eq!(look(&store, &[], &[]).await.unwrap().unsaid(&no_counters()), None);
    accept_other_server(&store).await.unwrap();
    let found = look(&store, &[], &[]).await.unwrap();
    assert!(found.unsaid(&no_counters()).is_some());
    assert_eq!(found.known(), Known::default());
}

/// Their reports may be as old, and only their own namespace's step can void them.
#[tokio::test]
async fn server_is_rejected_while_another_namespace_is_in_doubt() {
    let store = MemoryStore::new("recovery").unwrap();
    let other = store.handle("other").unwrap();
    other.report(&info("a"), None).await.unwrap();
    doubted(&store, 0).await;
    recovered(&store).await.unwrap();
    store.take_over(store.backup());
    let before = store.standing().await.unwrap();
    assert_eq!(before.others_in_doubt.to_string(), "other");
    let refused = accept_other_server(&store).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Conflict), "{refused}");
    for part in ["(other)", "snowmint worker fast-forward --namespace NAME"] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    assert_eq!(store.standing().await.unwrap(), before);
}

#[tokio::test]
async fn a_plan_moves_no_other_store() {
    let (store, other) =
        (MemoryStore::new("recovery").unwrap(), MemoryStore::new("recovery").unwrap());
    let planned = look(&store, &[], &[]).await.unwrap().plan(&RecoveryRequest::default()).unwrap();
    // Writes between the plan and the move change nothing of it.
    store.accept_lead(Mark::new(7)).await.unwrap();
    store.fast_forward(&planned).await.unwrap();
    store.restore(other.backup());
    let found = store.identity().await.unwrap();
    assert!(store.fast_forward(&planned).await.is_err());
    assert_eq!(store.identity().await.unwrap(), found);
}

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
    assert_eq!(reported.unsaid(&no_counters()), None);
    let both = look_with_copy(true, "b", true).await;
    assert_eq!(both.unsaid(&no_counters()), None);
    assert!(both.journals().any(|(_, state)| state == JournalState::Read));
    // The reports of stopped servers prove nothing.
    let stopped = look_with_copy(false, "a", false).await;
    assert!(stopped.unvouched(&no_counters()).is_some());
}

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
        found.plan(&RecoveryRequest { counters_above: Some((1 << 60) + 1), ..no_counters() });
    assert_eq!(plan.unwrap_err().kind().code(), "invalid");
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

    let accepted = RecoveryRequest { far_ahead: true, ..no_counters() };
    assert_eq!(found.unsaid(&accepted), None);
    assert_eq!(found.plan(&accepted).unwrap().marks_at_least, Mark::new(far));
    let left_out = RecoveryRequest { no_ids_ahead: true, ..no_counters() };
    assert_eq!(found.unsaid(&left_out), None);
    assert_eq!(found.plan(&left_out).unwrap().marks_at_least, Mark::new(near), "near ones count");
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
