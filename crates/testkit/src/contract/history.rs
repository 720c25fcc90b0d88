//! History of a store: whether it has all that a process has seen, and the steps if it lacks some.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::{
    BootTimer, Doubt, Evidence, Exclude, FastForward, History, JournalInfo, Known, Mark, Proof,
    Recalled, Store, StoreIdentity, Timer as _,
};

use super::case::{Case, cases, code, pool, reached};
use super::joined_holder::{JoinedHolder, READS, doubt, five_of, is_behind_servers, is_believed};

cases!(
    seen_state_of_a_store_is_recalled,
    each_handle_that_writes_leaves_one_start,
    a_store_in_doubt_refuses_every_verb_that_writes,
    a_store_that_has_all_that_was_seen_is_not_put_in_doubt,
    every_verb_reports_a_recovered_loss_once,
    reports_are_kept_until_the_store_is_moved_forward,
    fast_forward_recovers_only_its_namespace,
    recovery_of_another_namespace_excuses_no_loss,
    raised_values_excuse_no_loss,
    each_namespace_with_a_row_is_put_in_doubt,
);

async fn seen_state_of_a_store_is_recalled(case: Case) {
    let source = case.define("orders").await;
    let other = case.another().await;
    let mut seen = vec![case.store.identity().await.unwrap()];
    for _ in 0..3 {
        case.reserve(&source, 1).await.unwrap();
        seen.push(case.store.identity().await.unwrap());
        other.reserve(&source, 1).await.unwrap();
        seen.push(other.store.identity().await.unwrap());
        // Another process.
        let third = case.another().await;
        third.reserve(&source, 1).await.unwrap();
        seen.push(third.store.identity().await.unwrap());
    }
    let nothing = StoreIdentity { id: String::new(), writes: 0 };
    for seen in seen.iter().chain([&nothing]) {
        let recalled = reached(|| case.store.recall("it", seen)).await.unwrap();
        assert_eq!(recalled, Recalled::Same, "{seen:?}");
    }
    let [first, .., last] = seen.as_slice() else { panic!("{seen:?}") };
    let lost = |start: &str, writes| {
        let history = History { start: start.into(), ..History::of(&last.id) };
        StoreIdentity { id: history.to_string(), writes }
    };
    // An unknown start; a start before the newest, with a count from after the newest; and a count
    // that was never reached.
    let unknown = lost("0123456789abcdef", first.writes);
    let before = lost(&History::of(&seen[seen.len() - 2].id).start, last.writes);
    let more = StoreIdentity { writes: last.writes + 1_000_000, ..last.clone() };
    for seen in [&unknown, &before, &more] {
        assert_eq!(code(case.store.recall("it", seen).await), "store_rolled_back", "{seen:?}");
    }
    let another = StoreIdentity { id: "0123".into(), writes: 0 };
    assert_eq!(code(case.store.recall("it", &another).await), "store_mismatch");

    // A process that saw lost writes learns of the recovery; the others continue.
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    let after = case.another().await;
    for seen in [&unknown, &before] {
        let recalled = reached(|| after.store.recall("it", seen)).await.unwrap();
        assert_eq!(recalled, Recalled::Recovered, "{seen:?}");
    }
    let recalled = reached(|| after.store.recall("it", last)).await.unwrap();
    assert_eq!(recalled, Recalled::Same);
}

/// A join first: a busy machine keeps no handle out of touch by chance.
async fn each_handle_that_writes_leaves_one_start(case: Case) {
    case.member("a").await;
    let source = case.define("orders").await;
    let first = case.store.identity().await.unwrap();
    let reader = case.another().await;
    reader.store.get("orders").await.unwrap();
    case.reserve(&source, 1).await.unwrap();
    assert_eq!(case.store.identity().await.unwrap().id, first.id, "who reads leaves nothing");
    reader.member("b").await;
    let second = case.store.identity().await.unwrap();
    assert!(second.id != first.id && second.store() == first.store(), "{first:?} {second:?}");
    for _ in 0..3 {
        reader.reserve(&source, 1).await.unwrap();
        case.reserve(&source, 1).await.unwrap();
    }
    assert_eq!(case.store.identity().await.unwrap().id, second.id);
    assert_eq!(reader.store.seen().unwrap().id, second.id);
}

/// Returns evidence against the store's present state, by a process that has seen more.
async fn evidence(store: &Arc<dyn Store>) -> Evidence {
    let found = reached(|| store.identity()).await.unwrap();
    let seen = StoreIdentity { writes: found.writes + 1_000_000, ..found.clone() };
    Evidence { id: found.id, seen, ends: BTreeMap::new(), proof: Proof::Comparison }
}

async fn doubted(case: &Case) {
    case.store.doubt(&doubt(), &evidence(&case.store).await).await.unwrap();
}

/// Covers an address that led to another store when it was checked, and then back.
async fn a_store_that_has_all_that_was_seen_is_not_put_in_doubt(case: Case) {
    let source = case.define("orders").await;
    let end = case.reserve(&source, 5).await.unwrap().last + 1;
    let seen = case.store.identity().await.unwrap();
    let fresh = case.another().await;
    let shows = |seen: &StoreIdentity, end| {
        let ends = [("orders".to_owned(), end)].into();
        Evidence { id: seen.id.clone(), seen: seen.clone(), ends, proof: Proof::Comparison }
    };
    fresh.store.doubt(&doubt(), &shows(&seen, end)).await.unwrap();
    assert_eq!(fresh.store.standing().await.unwrap().doubt, None);
    case.reserve(&source, 1).await.unwrap();
    fresh.store.doubt(&doubt(), &shows(&seen, end + 2)).await.unwrap();
    assert_eq!(fresh.store.standing().await.unwrap().doubt, Some(doubt()));
}

async fn a_store_in_doubt_refuses_every_verb_that_writes(case: Case) {
    let mut holder = JoinedHolder::new(Arc::clone(&case.another().await.store)).await;
    holder.use_all().await;
    let found = evidence(&case.store).await;
    // Evidence of another history says nothing about this one.
    let unrelated = Evidence { id: format!("{}f", found.id), ..found.clone() };
    case.store.doubt(&doubt(), &unrelated).await.unwrap();
    holder.use_all().await;
    case.store.doubt(&doubt(), &found).await.unwrap();
    let before = case.store.identity().await.unwrap();
    // Repeated or other evidence changes nothing.
    let again = evidence(&case.store).await;
    case.store.doubt(&Doubt { seen: 1, ..doubt() }, &again).await.unwrap();
    for round in 0..2 {
        for (verb, call) in holder.every_verb() {
            if READS.contains(&verb) {
                call.await.expect(verb);
                continue;
            }
            let refused = call.await.expect_err(verb);
            assert_eq!(refused.kind().code(), "store_rolled_back", "{verb} {round}: {refused}");
            assert!(refused.to_string().contains("journal of a peer"), "{refused}");
        }
    }
    assert_eq!(case.store.identity().await.unwrap(), before, "it was written");
    let fresh = case.another().await;
    assert_eq!(code(fresh.store.recall("it", &before).await), "store_rolled_back");
    assert_eq!(
        code(fresh.store.define(&super::case::definition("new", "a")).await),
        "store_rolled_back"
    );
    let standing = fresh.store.standing().await.unwrap();
    assert_eq!(standing.doubt, Some(doubt()));

    fresh.store.fast_forward(&FastForward::default()).await.unwrap();
    assert_eq!(fresh.store.standing().await.unwrap().doubt, None);
    let source = fresh.store.get("orders").await.unwrap();
    case.reserve(&source, 1).await.unwrap();
    fresh.reserve(&source, 1).await.unwrap();
}

/// A handle that has seen more than the store has must learn of the loss before anything else is
/// done; then it continues.
async fn every_verb_reports_a_recovered_loss_once(case: Case) {
    let mut holder = JoinedHolder::new(Arc::clone(&case.another().await.store)).await;
    holder.use_all().await;
    for more in [0, 1_000] {
        for index in 0..holder.every_verb().len() {
            let found = case.store.identity().await.unwrap();
            let seen = StoreIdentity { writes: found.writes + 100, ..found };
            let writes_at_least = if more == 0 { 1 } else { seen.writes + more };
            let forward = FastForward { writes_at_least, ..FastForward::default() };
            case.store.fast_forward(&forward).await.unwrap();
            let handle = case.another().await.store;
            handle.remember(&seen);
            let holder = holder.over(handle);
            let (verb, call) = holder.every_verb().swap_remove(index);
            assert_eq!(code(call.await), "store_rolled_back", "{verb}");
            let (verb, call) = holder.every_verb().swap_remove(index);
            is_believed(verb, call.await);
        }
    }
}

async fn reports_are_kept_until_the_store_is_moved_forward(case: Case) {
    let journal = |id: &str| JournalInfo {
        id: id.into(),
        owner: "shop-1".into(),
        host: "h".into(),
        seen_at_ms: 7,
        has_reported: false,
        is_heard_of: false,
        reports: 0,
        far_mark: 0,
    };
    let known = |mark, end| Known {
        mark,
        ends: [("orders".to_owned(), end), (format!("of-{end}"), 5)].into(),
        writes: mark,
        ..Known::default()
    };
    for id in ["a", "b", "c"] {
        let journal = journal(id);
        reached(|| case.store.report(&journal, None)).await.unwrap();
    }
    // Before the store is in doubt, it keeps nothing of a journal's knowledge.
    let (early, far) = (journal("b"), known(9_999, 9_999));
    reached(|| case.store.report(&early, Some(&far))).await.unwrap();
    doubted(&case).await;
    let other = case.another().await;
    let others = Known { journals: vec![journal("d")], ..known(4, 50) };
    for (journal, known) in [(journal("a"), others), (journal("b"), known(8, 20))] {
        reached(|| other.store.report(&journal, Some(&known))).await.unwrap();
    }
    let standing = other.store.standing().await.unwrap();
    let missing: Vec<_> = standing.missing().map(|journal| journal.id.as_str()).collect();
    assert_eq!(missing, ["c", "d"]);
    assert_eq!(standing.known.mark, 8);
    assert_eq!(standing.known.ends["orders"], 50);

    let ends = standing.known.ends.iter().map(|(name, end)| (name.clone(), Mark::new(*end)));
    let forward = FastForward {
        marks_at_least: Mark::new(standing.known.mark),
        segments: ends.collect(),
        writes_at_least: standing.known.writes,
        forget_journals: vec!["c".into(), "d".into()],
        ..FastForward::default()
    };
    other.store.fast_forward(&forward).await.unwrap();
    let standing = case.store.standing().await.unwrap();
    let left: Vec<_> = standing.missing().map(|journal| journal.id.clone()).collect();
    assert_eq!(
        (left, standing.doubt, standing.known),
        (vec!["a".to_owned(), "b".to_owned()], None, Known::default())
    );
    let source = case.define("orders").await;
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 50);
    assert_eq!(case.store.ground().await.unwrap().mark, Mark::new(8));
}

/// All namespaces that share an identity are in doubt, and each waits for its own reports.
async fn fast_forward_recovers_only_its_namespace(case: Case) {
    let other = case.other_namespace().await;
    let (here, there) = (case.define("orders").await, other.define("orders").await);
    doubted(&case).await;
    let identity = async |case: &Case| case.store.identity().await.unwrap().store();
    let shared = identity(&case).await == identity(&other).await;
    let refused = other.reserve(&there, 1).await.err().map(|error| error.kind().code());
    assert_eq!(refused, shared.then_some("store_rolled_back"));
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    case.reserve(&here, 1).await.unwrap();
    if shared {
        assert_eq!(code(other.reserve(&there, 1).await), "store_rolled_back");
        other.store.fast_forward(&FastForward::default()).await.unwrap();
    }
    other.reserve(&there, 1).await.unwrap();
}

/// A namespace in use, and one whose rows the store has all lost. The recovery of another collected
/// nothing of what their processes know.
async fn recovery_of_another_namespace_excuses_no_loss(case: Case) {
    let (used, lost) = (case.other_namespace().await, case.numbered_namespace(1).await);
    let source = used.define("orders").await;
    for other in [&used, &lost] {
        let found = other.store.identity().await.unwrap();
        let seen = StoreIdentity { writes: found.writes + 1_000_000, ..found };
        case.store.fast_forward(&FastForward::default()).await.unwrap();
        assert_eq!(code(other.store.recall("it", &seen).await), "store_rolled_back");
        let id = other.store.identity().await.unwrap().id;
        let evidence =
            Evidence { id, seen: seen.clone(), ends: BTreeMap::new(), proof: Proof::Comparison };
        other.store.doubt(&doubt(), &evidence).await.unwrap();
        let newcomer = other.another().await.store;
        let defined = newcomer.define(&super::case::definition("new", "a")).await;
        assert_eq!(code(defined), "store_rolled_back");
        other.store.fast_forward(&FastForward::default()).await.unwrap();
        assert_eq!(other.store.recall("it", &seen).await.unwrap(), Recalled::Recovered);
    }
    // All namespaces that share the identity were in doubt.
    case.store.fast_forward(&FastForward::default()).await.unwrap();
    used.store.fast_forward(&FastForward::default()).await.unwrap();
    used.reserve(&source, 1).await.unwrap();
}

/// Values of a store are raised before any process has found that it lacks something. A process
/// that knows more, and returns later, still puts it in doubt.
async fn raised_values_excuse_no_loss(case: Case) {
    let source = case.define("orders").await;
    case.reserve(&source, 1).await.unwrap();
    let before = case.store.identity().await.unwrap();
    let lost = StoreIdentity { writes: before.writes + 1_000_000, ..before.clone() };
    let raised = FastForward {
        marks_at_least: Mark::new(70),
        segments: vec![("orders".to_owned(), Mark::new(500))],
        same_server: true,
        values_only: true,
        ..FastForward::default()
    };
    let other = case.another().await;
    other.store.fast_forward(&raised).await.unwrap();
    assert_eq!(case.store.recall("it", &before).await.unwrap(), Recalled::Same);
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, 500);
    assert_eq!(other.reserve(&source, 1).await.unwrap().first, 501);
    assert!(case.store.ground().await.unwrap().mark >= Mark::new(70));
    assert_eq!(code(other.store.recall("it", &lost).await), "store_rolled_back");
    let id = other.store.identity().await.unwrap().id;
    let evidence =
        Evidence { id, seen: lost.clone(), ends: BTreeMap::new(), proof: Proof::Comparison };
    other.store.doubt(&doubt(), &evidence).await.unwrap();
    assert_eq!(code(case.reserve(&source, 1).await), "store_rolled_back");
    // Values end no doubt.
    assert_eq!(code(case.another().await.store.fast_forward(&raised).await), "store_rolled_back");
    other.store.fast_forward(&FastForward::default()).await.unwrap();
    assert_eq!(other.store.recall("it", &lost).await.unwrap(), Recalled::Recovered);
}

/// A namespace may have excluded worker numbers alone, or a journal alone.
async fn each_namespace_with_a_row_is_put_in_doubt(case: Case) {
    let others = [case.numbered_namespace(1).await, case.numbered_namespace(2).await];
    let exclude =
        Exclude { pool: pool(4), slots: vec![1], until: Mark::MAX, label: "theirs".into() };
    others[0].store.exclude(&exclude, others[0].now().await).await.unwrap();
    let journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
    others[1].store.report(&journal, None).await.unwrap();
    doubted(&case).await;
    let identity = async |case: &Case| case.store.identity().await.unwrap().store();
    let standing = async |case: &Case| case.store.standing().await.unwrap();
    let is_shared = identity(&case).await == identity(&others[0]).await;
    for other in &others {
        assert_eq!(standing(other).await.doubt.is_some(), is_shared);
        // It names others whether it is in doubt itself or not.
        for _ in 0..2 {
            assert_eq!(!standing(&case).await.others_in_doubt.is_empty(), is_shared);
            case.store.fast_forward(&FastForward::default()).await.unwrap();
        }
        other.store.fast_forward(&FastForward::default()).await.unwrap();
        assert_eq!(standing(other).await.doubt, None);
    }
}

/// Milliseconds without a step after which a handle without members leaves a new start.
const OUT_OF_TOUCH_MS: u64 = 5_100;

/// Writes between a backup and its restore, and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostWrites {
    /// The handle has written much since the backup.
    Much,
    /// The same, and another process then writes more than was lost.
    MuchAndMoreFollows,
    /// The same, but the other process had written before the backup, and was out of touch since.
    MuchAndAnEarlierProcessFollows,
    /// The handle has written once, so its next write raises the count to that of the lost state.
    OneWrite,
}

impl LostWrites {
    /// All cases.
    pub const ALL: [Self; 4] = [
        Self::Much,
        Self::MuchAndMoreFollows,
        Self::MuchAndAnEarlierProcessFollows,
        Self::OneWrite,
    ];
}

/// Tests a store that is restored under a handle of it. `back_up` copies it, `restore` restores
/// the copy, and `open` then returns a handle of the store's own URL.
///
/// # Panics
/// When a verb is not rejected, or the state that was seen is taken for the present one.
pub async fn every_verb_is_refused_by_an_older_state(
    store: Arc<dyn Store>,
    open: impl AsyncFnOnce() -> Arc<dyn Store>,
    back_up: impl AsyncFnOnce(),
    restore: impl AsyncFnOnce(),
    lost: LostWrites,
) {
    let is_behind_servers = is_behind_servers(&*store);
    let mut holder = JoinedHolder::new(store).await;
    if lost == LostWrites::OneWrite {
        holder.use_all().await;
    }
    let earlier = lost == LostWrites::MuchAndAnEarlierProcessFollows;
    let (mut open, mut other) = (Some(open), None);
    if earlier && let Some(open) = open.take() {
        let opened = open().await;
        opened.reserve(&five_of(&holder.other_source)).await.unwrap();
        other = Some(opened);
    }
    back_up().await;
    reached(|| holder.store.identity()).await.unwrap();
    if lost == LostWrites::OneWrite {
        holder.reserve().await;
    } else {
        holder.use_all().await;
    }
    let seen = holder.store.identity().await.unwrap();
    restore().await;
    if let Some(open) = open {
        other = Some(open().await);
    }
    let fresh = other.unwrap();
    if earlier {
        BootTimer.sleep_ms(OUT_OF_TOUCH_MS).await;
    }
    if earlier || lost == LostWrites::MuchAndMoreFollows {
        let source = reached(|| fresh.get("bills")).await.unwrap();
        let reserve = five_of(&source);
        while fresh.identity().await.unwrap().writes <= seen.writes {
            fresh.reserve(&reserve).await.unwrap();
        }
    }
    assert_eq!(code(reached(|| fresh.recall("the journal", &seen)).await), "store_rolled_back");
    for round in 0..2 {
        for (verb, call) in holder.every_verb() {
            let refused = call.await.expect_err(verb);
            assert_eq!(refused.kind().code(), "store_rolled_back", "{verb} {round}: {refused}");
        }
    }
    let remembers = holder.store.seen();
    // The handle alone may know of the loss. Servers put their store in doubt themselves.
    let (id, ends) = (fresh.identity().await.unwrap().id, BTreeMap::new());
    let evidence = Evidence { id, seen: seen.clone(), ends, proof: Proof::Comparison };
    let reporter = if is_behind_servers { &fresh } else { &holder.store };
    reporter.doubt(&doubt(), &evidence).await.unwrap();
    assert!(fresh.standing().await.unwrap().doubt.is_some(), "{lost:?}");
    // While the store is in doubt, an operator may read what is left, and do no more.
    for (verb, call) in holder.every_verb() {
        let outcome = call.await;
        if READS.contains(&verb) {
            outcome.expect(verb);
        } else {
            assert_eq!(code(outcome), "store_rolled_back", "{verb}");
        }
    }
    assert_eq!(holder.store.seen(), remembers, "it has forgotten what is missing");
    // Reports count as writes, and a long doubt has many. A handle that missed the recovery learns
    // of it all the same.
    let mut journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
    while fresh.identity().await.unwrap().writes <= seen.writes {
        journal.seen_at_ms += 1;
        fresh.report(&journal, None).await.unwrap();
    }
    fresh.fast_forward(&FastForward::default()).await.unwrap();
    let recalled = fresh.recall("the journal", &seen).await.unwrap();
    assert_eq!(recalled, Recalled::Recovered, "after a long doubt");
    holder.store.close().await.unwrap();
    fresh.close().await.unwrap();
}
