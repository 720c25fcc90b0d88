mod confirmed;
mod copies;
mod journals;
mod other_server;
mod reports;

use snowmint_core::Layout;

use super::plan::{Going, plan};
use super::*;
use crate::ids::Term;
use crate::journal::{Inspected, JournalLease, Record};
use crate::model::catalog::NewDefinition;
use crate::model::history::{JournalInfo, Proof, Recalled, StoreIdentity};
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
    Evidence { id: found.id.clone(), seen, ends: BTreeMap::new(), proof: Proof::Comparison }
}

async fn doubt_without_report(store: &MemoryStore) {
    let found = store.identity().await.unwrap();
    let doubt = Doubt { evidence: "a member".into(), seen: found.writes + 1, found: found.writes };
    store.doubt(&doubt, &lost_by(&found)).await.unwrap();
}

/// Puts a store in doubt, with a report that it was recovered `recoveries` times.
async fn doubted(store: &MemoryStore, recoveries: u64) {
    doubt_without_report(store).await;
    store.report(&info("a"), Some(&Known { recoveries, ..Known::default() })).await.unwrap();
}

async fn recovered(store: &MemoryStore) -> Result<Term> {
    let forward = look(store, &[], &[]).await?.plan(&RecoveryRequest::default())?;
    store.fast_forward(&forward).await?;
    Ok(store.ground().await?.term)
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
