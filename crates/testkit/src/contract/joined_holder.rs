//! Process that has joined a store, with a request for each verb, and checks of their results after
//! the store has changed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use snowmint_coord::{
    Acquire, Acquired, ClaimRequest, ClockOf, Definition, Doubt, Evidence, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known, Lease, Mark, Member,
    MemberStatus, Pool, Preference, Presence, Proof, Reclaim, Release, Relinquish, Reserve,
    Restripe, Result, Reuse, Segment, Serves, SourceState, Store, Verb,
};
use snowmint_core::UnixMillis;

use super::case::{definition, extend, reached};

/// Time before every server's clock, so that no mark leads.
const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);
const MEMBER: Incarnation = Incarnation::new(7);
const NUMBERS: &str = "orders";
/// Source of other processes.
const OTHER_SOURCE: &str = "bills";

/// Verbs that only the store's own URL offers.
const UNAVAILABLE_THROUGH_SERVERS: [&str; 3] = ["announce", "reclaim", "ground"];

/// Verbs of a recovery, which [`known_facts_do_not_reach_another_store`] and the cases of histories
/// call, and the clock that some stores lack.
const CALLED_ELSEWHERE: [Verb; 6] =
    [Verb::Recall, Verb::Report, Verb::Standing, Verb::Doubt, Verb::FastForward, Verb::Now];

/// Verbs that change nothing.
pub(super) const READS: [&str; 7] =
    ["identity", "members", "workers", "get", "list", "ground", "now"];

type VerbCall<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A process that has joined, with a worker number, a section, and a source of numbers.
pub(super) struct JoinedHolder {
    pub(super) store: Arc<dyn Store>,
    lease: Lease,
    section: Lease,
    segment: Segment,
    numbers: Definition,
    pub(super) other_source: Definition,
}

fn workers() -> Pool {
    Pool { name: "workers".into(), slots: 16, group: 1, reuse: Reuse::Recycle }
}

fn sections() -> Pool {
    Pool { name: "sections".into(), slots: 16, group: 1, reuse: Reuse::Ordered }
}

fn member() -> Member {
    let (owner, host, address) = (String::new(), "h".into(), String::new());
    Member { incarnation: MEMBER, owner, host, process: 1, address }
}

const fn presence(renewals: u64) -> Presence {
    Presence { sample: NOW, renewals, ttl_ms: 600_000 }
}

/// Returns a move that is no recovery.
fn raised() -> FastForward {
    FastForward { same_server: true, values_only: true, ..FastForward::default() }
}

fn status() -> MemberStatus {
    MemberStatus { revision: 1, serves: Serves::Nothing, unreachable: Vec::new() }
}

fn claim() -> ClaimRequest {
    ClaimRequest {
        pool: workers(),
        member: MEMBER,
        owner: String::new(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    }
}

fn acquire(slots: &[u64]) -> Acquire {
    Acquire {
        pool: sections(),
        member: MEMBER,
        owner: String::new(),
        slots: slots.to_vec(),
        stalled: Vec::new(),
        supersedes: None,
        length: 10,
        request: 2,
    }
}

impl JoinedHolder {
    pub(super) async fn new(store: Arc<dyn Store>) -> Self {
        let (member, claim, acquire) = (member(), claim(), acquire(&[3]));
        reached(|| store.join(&member, presence(0), NOW)).await.unwrap();
        let lease = reached(|| store.claim(&claim, NOW)).await.unwrap().remove(0);
        let Acquired { mut leases, .. } = reached(|| store.acquire(&acquire, NOW)).await.unwrap();
        let define = async |name: &str| {
            let new = definition(name, "a");
            reached(|| store.define(&new)).await.unwrap()
        };
        let (numbers, other_source) = (define(NUMBERS).await, define(OTHER_SOURCE).await);
        let segment = store.reserve(&five_of(&numbers)).await.unwrap();
        Self { lease, section: leases.remove(0), segment, numbers, other_source, store }
    }

    /// Returns the same process over another handle.
    pub(super) fn over(&self, store: Arc<dyn Store>) -> Self {
        let Self { lease, section, numbers, other_source, .. } = self;
        let (lease, section, segment) = (lease.clone(), section.clone(), self.segment);
        Self {
            lease,
            section,
            segment,
            numbers: numbers.clone(),
            other_source: other_source.clone(),
            store,
        }
    }

    pub(super) async fn writes(&self) -> u64 {
        self.store.identity().await.unwrap().writes
    }

    fn extending(&self, ahead: u64) -> Extend {
        let from = self.lease.mark;
        extend(&self.lease, from, Mark::new(from.get() + ahead))
    }

    /// Sends one extend, which counts only when it is granted as a whole.
    async fn extend(&self, item: Extend) -> Result<Extended> {
        let items = [item];
        reached(|| async { self.store.extend(&items, NOW).await?.remove(0) }).await
    }

    /// Makes the routine calls of a process, so that the handle caches what it can.
    pub(super) async fn use_all(&mut self) {
        self.reserve().await;
        for _ in 0..3 {
            self.lease.mark = self.extend(self.extending(1_000)).await.unwrap().mark;
        }
        self.reserve().await;
        reached(|| self.store.renew(MEMBER, presence(1), NOW)).await.unwrap();
        self.lease.mark = self.extend(self.extending(1_000)).await.unwrap().mark;
    }

    pub(super) async fn reserve(&mut self) {
        self.segment = self.store.reserve(&five_of(&self.numbers)).await.unwrap();
    }

    /// Returns every verb of the handle except the operator's recovery, each with a request that a
    /// store like ours would grant.
    pub(super) fn every_verb(&self) -> Vec<(&'static str, VerbCall<'_>)> {
        let store = &self.store;
        let exclude =
            || Exclude { pool: workers(), slots: vec![9], until: Mark::MAX, label: "x".into() };
        let reclaim = || {
            let (slots, marks_at_least) = (vec![(self.lease.slot, self.lease.term)], Mark::ZERO);
            Reclaim { pool: workers().name, slots, reach_ms: 0, marks_at_least, from_live: true }
        };
        let release = || Release { mark: self.lease.mark, ..self.lease.unused() };
        let relinquish = || {
            let slots = vec![(self.section.slot, self.section.term)];
            Relinquish { pool: sections().name, member: MEMBER, slots }
        };
        let (first, last, version) = (self.segment.last, self.segment.last, self.segment.version);
        let back = move || GiveBack { source: NUMBERS.into(), first, last, version };
        let restripe = || {
            let (new, if_version) = (definition(NUMBERS, "c"), self.numbers.version);
            Restripe { new, if_version, mark: Mark::new(1_000) }
        };
        macro_rules! verbs {
            ($($verb:literal => $call:expr,)*) => {
                vec![$(($verb, verb_call(move || async move { $call.await.map(drop) }))),*]
            };
        }
        let mut verbs = verbs![
            "extend" => self.extend(self.extending(1_000)),
            "reserve" => store.reserve(&five_of(&self.numbers)),
            "reserve" => store.reserve(&five_of(&self.numbers)),
            "renew" => store.renew(MEMBER, presence(2), NOW),
            "extend" => self.extend(self.extending(1_000)),
            "renew as before" => store.renew(MEMBER, presence(1), NOW),
            "announce" => store.announce(MEMBER, &status()),
            "identity" => store.identity(),
            "join" => store.join(&member(), presence(0), NOW),
            "members" => store.members(NOW),
            "claim" => store.claim(&ClaimRequest { request: 9, ..claim() }, NOW),
            "claim as before" => store.claim(&claim(), NOW),
            "acquire" => store.acquire(&acquire(&[4]), NOW),
            "acquire as before" => store.acquire(&acquire(&[3]), NOW),
            "relinquish" => store.relinquish(&relinquish(), NOW),
            "exclude" => store.exclude(&exclude(), NOW),
            "reclaim" => store.reclaim(&reclaim(), NOW),
            "release" => store.release(&release(), NOW),
            "workers" => store.workers(NOW),
            "give_back" => store.give_back(&back()),
            "define" => store.define(&definition("new", "a")),
            "define as before" => store.define(&definition(NUMBERS, "a")),
            "alter" => store.alter(&definition(NUMBERS, "b"), None),
            "restripe" => store.restripe(&restripe()),
            "set_state" => store.set_state(NUMBERS, SourceState::Disabled),
            "get" => store.get(NUMBERS),
            "list" => store.list(),
            "accept_lead" => store.accept_lead(Mark::new(5)),
            "raise" => store.fast_forward(&raised()),
            "ground" => store.ground(),
            "leave" => store.leave(MEMBER, NOW),
        ];
        if store.capabilities().clock == ClockOf::Store {
            verbs.extend(verbs!["now" => store.now(),]);
        }
        for verb in Verb::ALL {
            let is_called = |(name, _): &(&str, _)| name.split(' ').next() == Some(verb.label());
            let is_elsewhere = CALLED_ELSEWHERE.contains(verb);
            assert!(is_elsewhere || verbs.iter().any(is_called), "{verb} is missing in every_verb");
        }
        if is_behind_servers(&**store) {
            verbs.retain(|(verb, _)| !UNAVAILABLE_THROUGH_SERVERS.contains(verb));
        }
        verbs
    }
}

/// Returns whether the handle reaches its store through servers.
pub(super) fn is_behind_servers(store: &dyn Store) -> bool {
    store.owner_client().is_some()
}

/// Checks that no result depends on the store that a handle faces.
pub(super) fn is_believed(verb: &str, result: Result<()>) {
    let code = result.err().map(|error| error.kind().code());
    assert!(!matches!(code, Some("store_rolled_back" | "store_mismatch")), "{verb}: {code:?}");
}

pub(super) fn doubt() -> Doubt {
    Doubt { evidence: "the journal of a peer".into(), seen: 9_000, found: 7 }
}

/// Checks that a handle states nothing about its present store from what it knows of a former one.
pub(super) async fn known_facts_do_not_reach_another_store(store: &Arc<dyn Store>) {
    let seen = store.seen().expect("a handle that was used has seen its store");
    let (id, ends) = (seen.id.clone(), BTreeMap::new());
    let evidence = Evidence { id, seen: seen.clone(), ends, proof: Proof::Comparison };
    let (doubt, known) = (doubt(), Known::default());
    let journal = JournalInfo { id: "ours".into(), ..JournalInfo::default() };
    let recalled = reached(|| store.recall("the journal", &seen)).await;
    let mut results = vec![("recall", recalled.map(drop))];
    // Servers report for themselves.
    if !is_behind_servers(&**store) {
        results.extend([
            ("report", reached(|| store.report(&journal, Some(&known))).await),
            ("standing", reached(|| store.standing()).await.map(drop)),
            ("doubt", reached(|| store.doubt(&doubt, &evidence)).await),
        ]);
    }
    for (verb, result) in results {
        let refused = result.expect_err(verb);
        assert_eq!(refused.kind().code(), "store_mismatch", "{verb}: {refused}");
    }
}

/// Retries until the store can be reached: the handle first finds that its connection to the former
/// store is gone.
fn verb_call<'a, F: Future<Output = Result<()>> + Send + 'a>(
    ask: impl Fn() -> F + Send + 'a,
) -> VerbCall<'a> {
    Box::pin(reached(ask))
}

pub(super) fn five_of(source: &Definition) -> Reserve {
    let (source, definition_version) = (source.name.clone(), source.version);
    Reserve { source, length: 5, definition_version, within: None }
}
