//! Common parts of the cases: one namespace, a clock, and helpers for the usual steps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_coord::{
    BootTimer, Bounds, ClaimRequest, ClockOf, Definition, Error, ErrorKind, Extend, Extended,
    FastForward, Lease, Mark, Member, NewDefinition, Pool, Preference, Presence, Release, Reserve,
    Result, Reuse, Segment, Store, StoreIdentity, Timer as _, random,
};
use snowmint_core::UnixMillis;

/// TTL that is far longer than any case.
pub(super) const TTL_LONG_MS: u64 = 600_000;
/// TTL that is short enough to expire before any check: for cases that let it.
const TTL_BRIEF_MS: u64 = 100;
/// Start of the case's own clock, before the clock of any server. Nothing else in a case depends on
/// the real clock.
const START_MS: u64 = 1_700_000_000_000;
/// Number of tasks that contend in the cases on atomicity.
pub(super) const TASKS: u64 = 16;
/// Attempts at a store that cannot be reached.
const TRIES: u32 = 20;
/// Maximum of doublings, which makes the wait about a second.
const STAND_BACK_DOUBLINGS_MAX: u32 = 10;

/// Constructor of handles on the store under test.
#[async_trait]
pub trait Factory: Send + Sync + 'static {
    /// Returns the store's name in the report.
    fn name(&self) -> String;

    /// Opens a new handle on a namespace. All handles see the same store.
    async fn open(&self, namespace: &str) -> Arc<dyn Store>;

    /// Moves the store's own clock forward by `ms` milliseconds. Stores that use their callers'
    /// clocks have nothing to do.
    async fn pass_ms(&self, ms: u64);
}

pub(super) type CaseFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
pub(super) type CaseFn = fn(Case) -> CaseFuture;

/// Names the functions of a module as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(super) const CASES: &[(&str, super::case::CaseFn)] =
            &[$((stringify!($name), |case| Box::pin($name(case)))),*];
    };
}
pub(super) use cases;

/// Namespace and clock of one case.
#[derive(Clone)]
pub struct Case {
    factory: Arc<dyn Factory>,
    namespace: String,
    caller_ms: Arc<AtomicU64>,
    /// Handle on the namespace.
    pub store: Arc<dyn Store>,
    /// All handles, open while the case runs: closing one may end the presence of its members.
    handles: Arc<Mutex<Vec<Arc<dyn Store>>>>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Case {
    pub(super) async fn open(factory: Arc<dyn Factory>, namespace: String) -> Self {
        let store = factory.open(&namespace).await;
        let caller_ms = Arc::new(AtomicU64::new(START_MS));
        Self { factory, namespace, caller_ms, store, handles: Arc::default() }
    }

    /// Opens another handle on the same namespace.
    pub(super) async fn another(&self) -> Self {
        let store = self.factory.open(&self.namespace).await;
        self.handles.lock().unwrap().push(Arc::clone(&store));
        Self { store, ..self.clone() }
    }

    /// Opens a handle on another namespace of the same store.
    pub(super) async fn other_namespace(&self) -> Self {
        let namespace = format!("{}-b", self.namespace);
        let store = self.factory.open(&namespace).await;
        Self { store, namespace, ..self.clone() }
    }

    /// Opens a handle on yet another namespace.
    pub(super) async fn numbered_namespace(&self, number: u64) -> Self {
        let namespace = format!("{}-{number}", self.namespace);
        let store = self.factory.open(&namespace).await;
        Self { store, namespace, ..self.clone() }
    }

    /// Moves the store forward: by a recovery, or, since servers make none for a program, by values
    /// alone.
    pub(super) async fn forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let values_only = self.is_behind_servers();
        self.store.fast_forward(&FastForward { values_only, ..forward.clone() }).await
    }

    /// Returns whether the store is reached through servers.
    pub(super) fn is_behind_servers(&self) -> bool {
        self.store.owner_client().is_some()
    }

    /// Returns the time that the store uses.
    pub(super) async fn now(&self) -> UnixMillis {
        match reached(|| self.store.now()).await.unwrap() {
            Some(time) => time,
            None => UnixMillis::new(self.caller_ms.load(Ordering::SeqCst)),
        }
    }

    pub(super) fn goes_by_callers(&self) -> bool {
        self.store.capabilities().clock == ClockOf::Caller
    }

    pub(super) async fn pass_ms(&self, ms: u64) {
        self.caller_ms.fetch_add(ms, Ordering::SeqCst);
        self.factory.pass_ms(ms).await;
    }

    pub(super) async fn presence(&self, renewals: u64, ttl_ms: u64) -> Presence {
        Presence { sample: self.now().await, renewals, ttl_ms }
    }

    /// Returns a new member that has joined.
    pub(super) async fn member(&self, owner: &str) -> Member {
        let member = Member {
            incarnation: random::incarnation().unwrap(),
            owner: owner.into(),
            host: "host-1".into(),
            process: 4711,
            address: "here:7701".into(),
        };
        let presence = self.presence(0, TTL_LONG_MS).await;
        let now = self.now().await;
        reached(|| self.store.join(&member, presence, now)).await.unwrap();
        member
    }

    /// Lets a member's presence expire after one more, brief renewal. Steps that need the member
    /// live come before.
    pub(super) async fn expire(&self, member: &Member) {
        self.renew(member, TTL_BRIEF_MS).await;
        self.pass_ms(TTL_BRIEF_MS).await;
    }

    /// Renews a member's presence for `ttl_ms`.
    pub(super) async fn renew(&self, member: &Member, ttl_ms: u64) {
        let presence = self.presence(1, ttl_ms).await;
        let now = self.now().await;
        reached(|| self.store.renew(member.incarnation, presence, now)).await.unwrap();
    }

    /// Returns a request for one slot of `pool`, with a new request number.
    pub(super) async fn wanting(
        &self,
        member: &Member,
        pool: &Pool,
        preference: Preference,
    ) -> ClaimRequest {
        ClaimRequest {
            pool: pool.clone(),
            member: member.incarnation,
            owner: member.owner.clone(),
            count: 1,
            preference,
            supersedes: None,
            mark_at_most: Mark::from(self.now().await),
            request: random::request().unwrap(),
        }
    }

    pub(super) async fn send(&self, request: &ClaimRequest) -> Result<Vec<Lease>> {
        let now = self.now().await;
        reached(|| self.store.claim(request, now)).await
    }

    pub(super) async fn try_claim(
        &self,
        member: &Member,
        pool: &Pool,
        preference: Preference,
    ) -> Result<Lease> {
        let leases = self.send(&self.wanting(member, pool, preference).await).await?;
        assert_eq!(leases.len(), 1);
        Ok(leases.into_iter().next().unwrap())
    }

    pub(super) async fn claim(&self, member: &Member, pool: &Pool) -> Lease {
        self.try_claim(member, pool, Preference::Any).await.unwrap()
    }

    /// Sends one extend.
    pub(super) async fn extend_item(&self, item: Extend) -> Result<Extended> {
        let (items, now) = ([item], self.now().await);
        let mut per_item = reached(|| self.store.extend(&items, now)).await?;
        assert_eq!(per_item.len(), 1);
        per_item.remove(0)
    }

    pub(super) async fn extend(&self, lease: &Lease, from: Mark, to: Mark) -> Result<Extended> {
        self.extend_item(extend(lease, from, to)).await
    }

    pub(super) async fn release(&self, lease: &Lease, mark: Mark) -> Result<()> {
        self.send_release(&Release { mark, ..lease.unused() }).await
    }

    pub(super) async fn send_release(&self, release: &Release) -> Result<()> {
        let now = self.now().await;
        reached(|| self.store.release(release, now)).await
    }

    pub(super) async fn define(&self, name: &str) -> Definition {
        let new = definition(name, "a");
        reached(|| self.store.define(&new)).await.unwrap()
    }

    pub(super) async fn reserve(&self, source: &Definition, length: u64) -> Result<Segment> {
        self.reserve_within(source, length, None).await
    }

    pub(super) async fn reserve_within(
        &self,
        source: &Definition,
        length: u64,
        within: Option<Bounds>,
    ) -> Result<Segment> {
        let (name, definition_version) = (source.name.clone(), source.version);
        let reserve = Reserve { source: name, length, definition_version, within };
        reached(|| self.store.reserve(&reserve)).await
    }

    pub(super) async fn writes(&self) -> u64 {
        self.store.identity().await.unwrap().writes
    }

    /// Runs `work` in [`TASKS`] tasks at once, each with its own handle.
    pub(super) async fn contend<T, F, Work>(&self, work: Work) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
        Work: Fn(Self, u64) -> F,
    {
        let start = Arc::new(tokio::sync::Barrier::new(usize::try_from(TASKS).unwrap()));
        let mut tasks = Vec::new();
        for number in 0..TASKS {
            let work = work(self.another().await, number);
            let start = Arc::clone(&start);
            tasks.push(tokio::spawn(async move {
                start.wait().await;
                work.await
            }));
        }
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        results
    }
}

/// Retries while the store cannot be reached, as a node does: many tasks wait for their turn, and a
/// busy disk makes it long. The store must recognise repeats of applied calls.
pub(super) async fn reached<T, F: Future<Output = Result<T>>>(ask: impl Fn() -> F) -> Result<T> {
    for _ in 1..TRIES {
        match ask().await {
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable) => {}
            outcome => return outcome,
        }
    }
    ask().await
}

/// Lets other tasks run, longer each time. A step that reads much loses to one that reads little
/// and restarts often, the more often the slower the store is.
pub(super) async fn stand_back(turns: u32) {
    BootTimer.sleep_ms((1 << turns.min(STAND_BACK_DOUBLINGS_MAX)) - 1).await;
}

pub(super) fn extend(lease: &Lease, from: Mark, to: Mark) -> Extend {
    Extend {
        pool: lease.pool.clone(),
        slot: lease.slot,
        term: lease.term,
        holder: lease.holder,
        from,
        to,
        request: random::request().unwrap(),
        ahead_max_ms: None,
    }
}

pub(super) fn pool(slots: u64) -> Pool {
    Pool { name: "workers".into(), slots, group: 1, reuse: Reuse::Recycle }
}

/// Returns a definition that has `extra` in its specification, and not in its identity.
pub(super) fn definition(name: &str, extra: &str) -> NewDefinition {
    NewDefinition {
        name: name.into(),
        spec: format!(r#"{{"extra":"{extra}","kind":"segment"}}"#),
        identity: r#"{"kind":"segment"}"#.into(),
        enabled: None,
    }
}

/// Returns the code of an error.
#[track_caller]
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("an error").kind().code()
}

pub(super) fn later(mark: Mark, by: u64) -> Mark {
    Mark::new(mark.get() + by)
}
