//! Two steps by which a node gets the right to mint: join and claim. Each is a series of store
//! calls, without state of its own.

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::compare;
use super::settings::{AfterCrash, NodeSettings};
use super::store_knowledge::StoreKnowledge;
use crate::error::{Error, ErrorKind, Result, Verb, chain};
use crate::ids::{Incarnation, Mark, Term};
use crate::journal::JournalLease;
use crate::machine::{Granted, PresenceMachine};
use crate::model::catalog::Catalog;
use crate::model::history::{Recalled, StoreIdentity};
use crate::model::lease::{Extend, Lease, Release, slot_label};
use crate::model::member::Member;
use crate::model::pool::{ClaimRequest, Pool, Preference};
use crate::platform::random;
use crate::sources::NodeContext;

/// Largest distance of a journal's mark ahead of the clock at which minting may resume from it: its
/// own lead and a bit.
pub(super) const JOURNAL_LEAD_MS_MAX: u64 = 1_000;

/// Member that has just joined.
#[derive(Debug)]
pub(super) struct NewMember {
    pub(super) member: Member,
    pub(super) identity: StoreIdentity,
    /// Comparison of the store with what was seen of it.
    pub(super) recalled: Recalled,
    /// Catalog of a recovered store; definitions of the lost history no longer count.
    pub(super) catalog: Option<Catalog>,
    /// Time at which the join was sent: the store may have begun to count then.
    pub(super) joined_at: ElapsedMillis,
    /// Value for [`StoreFingerprint::ground`].
    pub(super) ground: Option<Term>,
    /// Number of doubts about the store before it was called.
    pub(super) doubts_raised: u64,
}

/// Checks clock and store, and joins as a new member. The earlier member does not leave first: its
/// slots are claimed in its place, one term after it, which proves that no other member held them
/// in between.
pub(super) async fn join_store(
    ctx: &NodeContext,
    settings: &NodeSettings,
    knowledge: &StoreKnowledge,
    before: Option<Incarnation>,
) -> Result<NewMember> {
    let doubts_raised = ctx.doubts.raised();
    // A store that was rolled back is put in doubt at once.
    let first = knowledge.recall(ctx, settings).await?;
    // This check may wait for other members, so the store is compared again after it.
    compare::before_joining(ctx, settings, before).await?;
    // The handle reports a recovery of the store only once.
    let recalled = match (first, knowledge.recall(ctx, settings).await?) {
        // A loss that only an end of a source or a right has shown is not in the history.
        (Recalled::Same, Recalled::Same) if ctx.doubts.rolled_back().is_none() => Recalled::Same,
        _ => Recalled::Recovered,
    };
    let identity = ctx.store_call(Verb::Identity, ctx.store.identity()).await?;
    let catalog = match recalled {
        Recalled::Recovered => Some(ctx.store_call(Verb::List, ctx.store.list()).await?),
        Recalled::Same => None,
    };
    let mut ground = None;
    if ctx.store.owner_client().is_none() {
        let found = ctx.store_call(Verb::Ground, ctx.store.ground()).await?;
        ground = Some(found.term);
        if let Some(error) =
            ctx.doubts.rolled_back().filter(|_| knowledge.fingerprint.ground == ground)
        {
            return Err(knowledge.doubts(ctx, settings, error).await);
        }
        if let Some(journal) = knowledge.journal(ctx, settings) {
            ctx.store_call(Verb::Report, ctx.store.report(&journal, None)).await?;
        }
    }
    let wall = ctx.clock.unix_ms();
    let member = Member {
        incarnation: random::incarnation()?,
        owner: settings.owner.clone(),
        host: settings.host.clone(),
        process: std::process::id(),
        // Section owners must not count a member that owns no sections.
        address: ctx
            .store
            .owner_client()
            .map_or_else(|| settings.address.clone(), |_| String::new()),
    };
    let joined_at = ctx.timer.elapsed();
    let presence = PresenceMachine::joining(settings.presence_ttl_ms, wall);
    ctx.store_call(Verb::Join, ctx.store.join(&member, presence, wall)).await?;
    Ok(NewMember { member, identity, recalled, catalog, joined_at, ground, doubts_raised })
}

/// Arguments of a claim, and this process's knowledge about slots.
#[derive(Clone, Debug)]
pub(super) struct ClaimArgs {
    pub(super) pool: Pool,
    pub(super) member: Member,
    /// Earlier member that has certainly stopped minting.
    pub(super) supersedes: Option<Incarnation>,
    /// Knowledge of a journal, or of this process itself, about slots of this pool: no ID at or
    /// above these marks has left the process.
    pub(super) past: Vec<JournalLease>,
    pub(super) request: u64,
    /// Releases that the store has not acknowledged yet. One of them may arrive at any time, so
    /// nothing is minted from its lease, although the store may grant it again to a repeated claim.
    pub(super) pending_releases: Vec<Release>,
}

impl ClaimArgs {
    fn has_pending_release(&self, leases: &[Lease]) -> bool {
        let is_of = |release: &Release, lease: &Lease| {
            (&release.pool, release.slot, release.term) == (&lease.pool, lease.slot, lease.term)
        };
        leases.iter().any(|lease| self.pending_releases.iter().any(|release| is_of(release, lease)))
    }

    /// Returns whether a release of this worker number is pending.
    fn is_releasing(&self, worker: u64) -> bool {
        let group_size = u64::from(self.pool.group.max(1));
        let is_its = |release: &Release| {
            release.pool == self.pool.name && release.slot / group_size == worker
        };
        self.pending_releases.iter().any(is_its)
    }

    /// Returns what this process knows of a slot, if no other member has had it since.
    fn known(&self, lease: &Lease) -> Option<&JournalLease> {
        self.past.iter().find(|known| {
            known.pool == lease.pool && known.slot == lease.slot && known.term.next() == lease.term
        })
    }

    /// Rejects leases that begin below what the store had granted: it lost an extend.
    fn check_kept(&self, ctx: &NodeContext, recoveries: u64, leases: &[Lease]) -> Result<()> {
        for lease in leases {
            let granted =
                self.known(lease).map_or(Mark::ZERO, |known| known.mark.max(known.granted));
            if lease.floor < granted {
                let evidence = format!("mark of {}", slot_label(&lease.pool, lease.slot));
                let error = Error::contradiction(evidence, granted.get(), lease.floor.get());
                ctx.doubt_since(recoveries, &error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Resumes a slot at the journal's mark, if no other member has had it since.
    fn resume(&self, lease: &Lease) -> Granted {
        let floor = self.known(lease).map_or(lease.floor, |known| known.mark);
        Granted { lease: lease.clone(), floor: floor.unix_millis() }
    }
}

/// Leftovers of a claim, whatever its result.
#[derive(Debug, Default)]
pub(super) struct ClaimLeftovers {
    /// Releases of slots that were claimed and are not wanted, as far as the store has not
    /// acknowledged them.
    pub(super) pending_releases: Vec<Release>,
    /// Whether a request was sent with a result that was not used: should the network deliver the
    /// request again, the store may grant a slot that no lease tracks.
    pub(super) refused: bool,
}

/// Claims the slots of one group. Gives up slots that were claimed and are not wanted.
pub(super) async fn claim(
    ctx: &NodeContext,
    settings: &NodeSettings,
    claim: &ClaimArgs,
    left: &mut ClaimLeftovers,
) -> Result<Vec<Granted>> {
    let wall = ctx.clock.unix_ms();
    if settings.worker.is_some_and(|worker| claim.is_releasing(worker)) {
        return Err(unreleased());
    }
    if let Some(granted) = claim_again(ctx, settings, claim, left, wall).await? {
        return Ok(granted);
    }
    let owner = claim.member.owner.clone();
    let preference = match settings.worker {
        Some(worker) => Preference::Configured(worker),
        None if owner.is_empty() => Preference::Any,
        None => Preference::LastOfOwner,
    };
    let mark_at_most = match settings.after_crash {
        AfterCrash::OtherWorker => Mark::from(wall),
        AfterCrash::Lead { max_ms } => Mark::from(wall.saturating_add(max_ms)),
        AfterCrash::Wait | AfterCrash::Refuse => Mark::MAX,
    };
    // A configured worker number is waited for: there is no other.
    let mark_at_most = if settings.worker.is_some() { Mark::MAX } else { mark_at_most };
    let request = ClaimRequest {
        pool: claim.pool.clone(),
        member: claim.member.incarnation,
        owner,
        count: 1,
        preference,
        supersedes: claim.supersedes,
        mark_at_most,
        request: claim.request,
    };
    let recoveries = ctx.doubts.recoveries();
    let leases = ctx.store_call(Verb::Claim, ctx.store.claim(&request, wall)).await?;
    claim.check_kept(ctx, recoveries, &leases)?;
    let ahead_ms = leases.iter().map(|lease| lease.mark.unix_millis().since(wall)).min();
    if settings.after_crash == AfterCrash::Refuse
        && let Some(ahead_ms @ 1..) = ahead_ms
    {
        give_up(ctx, &leases, left, wall).await;
        let message = format!(
            "clock is {ahead_ms} ms behind the mark that a crash left (after_crash = refuse); \
             wait, correct the clock or choose another worker.after_crash"
        );
        return Err(Error::clock_behind(ahead_ms, 0, message));
    }
    if claim.has_pending_release(&leases) {
        return Err(unreleased());
    }
    let grant = |lease: Lease| Granted { floor: lease.floor.unix_millis(), lease };
    Ok(leases.into_iter().map(grant).collect())
}

fn unreleased() -> Error {
    Error::unavailable("release of the claimed number is not acknowledged; retry")
}

/// Claims slots that a journal knows, to resume at its finer marks. Returns none when it knows
/// none, or when another member has had them since.
async fn claim_again(
    ctx: &NodeContext,
    settings: &NodeSettings,
    claim: &ClaimArgs,
    left: &mut ClaimLeftovers,
    wall: UnixMillis,
) -> Result<Option<Vec<Granted>>> {
    let soon = Mark::from(wall.saturating_add(JOURNAL_LEAD_MS_MAX));
    let group_size = u64::from(claim.pool.group.max(1));
    let known = claim.past.iter().filter(|known| known.mark <= soon);
    let mut groups: Vec<_> = known.map(|known| known.slot / group_size).collect();
    groups.dedup();
    groups.retain(|group| settings.worker.is_none_or(|worker| worker == *group));
    // Another lease of this node may claim one of them at this moment.
    for group in groups {
        let known = claim_known(ctx, claim, group, wall).await?;
        let Some(leases) = known else {
            left.refused = true;
            continue;
        };
        let granted: Vec<_> = leases.iter().map(|lease| claim.resume(lease)).collect();
        if granted.iter().any(|granted| granted.floor <= soon.unix_millis())
            && !claim.has_pending_release(&leases)
        {
            return Ok(Some(granted));
        }
        give_up(ctx, &leases, left, wall).await;
    }
    Ok(None)
}

/// Claims one group and no other; returns none when it cannot be claimed.
async fn claim_known(
    ctx: &NodeContext,
    claim: &ClaimArgs,
    group: u64,
    wall: UnixMillis,
) -> Result<Option<Vec<Lease>>> {
    let request = ClaimRequest {
        pool: claim.pool.clone(),
        member: claim.member.incarnation,
        owner: claim.member.owner.clone(),
        count: 1,
        preference: Preference::Exactly(group),
        supersedes: claim.supersedes,
        // The store's mark lies ahead; the journal's mark counts, once the term is known.
        mark_at_most: Mark::MAX,
        // Each claim has a different request number, also from the one that may follow them.
        request: claim.request ^ (1 << 62) ^ group,
    };
    let recoveries = ctx.doubts.recoveries();
    match ctx.store_call(Verb::Claim, ctx.store.claim(&request, wall)).await {
        Ok(leases) => claim.check_kept(ctx, recoveries, &leases).map(|()| Some(leases)),
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable) => Err(error),
        Err(error) => {
            tracing::debug!(pool = %claim.pool.name, group, error = %chain(&error), "failed to claim the former slot");
            Ok(None)
        }
    }
}

/// Gives slots back unchanged.
async fn give_up(ctx: &NodeContext, leases: &[Lease], left: &mut ClaimLeftovers, wall: UnixMillis) {
    left.refused = true;
    for lease in leases {
        let release = lease.unused();
        if !release_once(ctx, &release, wall).await {
            left.pending_releases.push(release);
        }
    }
}

/// Returns whether the store has responded: then the slot is free, or another member has it
/// already.
pub(super) async fn release_once(ctx: &NodeContext, release: &Release, wall: UnixMillis) -> bool {
    let result = ctx.store_call(Verb::Release, ctx.store.release(release, wall)).await;
    match result.as_ref().map_err(Error::kind) {
        Ok(()) | Err(ErrorKind::Fenced) => true,
        Err(ErrorKind::Unavailable) => false,
        Err(_) => {
            let error = result.err().map(|error| chain(&error).to_string());
            tracing::warn!(pool = %release.pool, slot = release.slot, error, "failed to release a worker number; this node holds it until it ends");
            true
        }
    }
}

/// Leaked slot: held for this node in the store, and tracked by no lease.
#[derive(Clone, Debug)]
pub(super) struct LeakedSlot {
    /// Slot as the store has it.
    pub(super) seen: Release,
    /// Request number by which the store recognises this node's move of the mark. It stays the
    /// same: from then on a release may be in flight, so nothing may be minted from the slot until
    /// the store confirms the release.
    request: u64,
}

impl LeakedSlot {
    pub(super) fn new(seen: Release) -> Result<Self> {
        Ok(Self { seen, request: random::request()? })
    }
}

/// Gives up a leaked slot. Returns whether the store has responded.
///
/// Its mark first moves by one, from where it was seen. If a process mints from the slot after all,
/// such as a copy of this process's memory, then either this call does nothing, or that process has
/// ended before the mark is final.
pub(super) async fn release_leaked(
    ctx: &NodeContext,
    leaked: &LeakedSlot,
    wall: UnixMillis,
) -> bool {
    let Release { pool, slot, term, holder, mark: from, .. } = leaked.seen.clone();
    let (to, request) = (Mark::new(from.get().saturating_add(1)), leaked.request);
    let extend = Extend { pool, slot, term, holder, from, to, request, ahead_max_ms: None };
    match ctx.extend(&[extend], wall).await.as_deref() {
        Ok([Ok(_)]) => {
            let release = Release { mark: to, ..leaked.seen.clone() };
            release_once(ctx, &release, wall).await
        }
        // Another member has it, or it will be found again.
        Ok([Err(error)]) => !matches!(error.kind(), ErrorKind::Unavailable),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::collections::BTreeMap;

    use super::super::store_knowledge::StoreFingerprint;
    use super::super::tests::{START, World};
    use super::*;
    use crate::ids::Term;
    use crate::model::catalog::NewDefinition;
    use crate::model::fast_forward::FastForward;
    use crate::model::history::Known;
    use crate::model::pool::Reuse;
    use crate::store::Store;

    fn ctx(world: &World, store: Arc<dyn Store>) -> NodeContext {
        let parts = world.platform();
        let runtime = tokio::runtime::Handle::current();
        NodeContext::new(store, parts.timer, parts.clock, parts.observer, runtime, 1_000, true)
            .unwrap()
    }

    /// The handle in use reports a recovery of its store only once, and the node must learn of it.
    #[tokio::test]
    async fn recovery_notice_of_a_handle_survives_the_join() {
        let world = World::new();
        let store = world.handle();
        let new = NewDefinition {
            name: "bills".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let backup = world.store.backup();
        let (ctx, settings) = (ctx(&world, Arc::clone(&store)), NodeSettings::default());
        let knowledge = StoreKnowledge {
            fingerprint: StoreFingerprint {
                who: "this process".into(),
                ..StoreFingerprint::default()
            },
            known: Known::default(),
            ends: BTreeMap::new(),
            journal: None,
            is_whole: true,
        };
        store.define(&new).await.unwrap();
        let new_member = join_store(&ctx, &settings, &knowledge, None).await.unwrap();
        assert_eq!((new_member.recalled, new_member.catalog), (Recalled::Same, None));
        world.store.restore(backup);
        world.handle().fast_forward(&FastForward::default()).await.unwrap();
        let new_member = join_store(&ctx, &settings, &knowledge, None).await.unwrap();
        assert_eq!(new_member.recalled, Recalled::Recovered);
        assert!(new_member.catalog.unwrap().definitions.is_empty());
    }

    /// No other process had the slot in between.
    #[tokio::test]
    async fn claim_below_what_the_store_had_granted_raises_doubt() {
        let world = World::new();
        let (soon, later) = (START.saturating_add(500), START.saturating_add(60_000));
        for (mark, granted, worker) in [
            (soon, UnixMillis::ZERO, None),
            (UnixMillis::ZERO, soon, None),
            (later, later, Some(0)),
            (later, later, None),
        ] {
            let store = world.handle();
            let ctx = ctx(&world, Arc::clone(&store));
            let settings = NodeSettings { worker, ..NodeSettings::default() };
            let incarnation = random::incarnation().unwrap();
            let member = Member {
                incarnation,
                owner: String::new(),
                host: String::new(),
                process: 1,
                address: String::new(),
            };
            store.join(&member, PresenceMachine::joining(10_000, START), START).await.unwrap();
            let pool =
                Pool { name: incarnation.to_string(), slots: 1, group: 1, reuse: Reuse::Recycle };
            let known = JournalLease {
                pool: pool.name.clone(),
                slot: 0,
                term: Term::ZERO,
                mark: Mark::from(mark),
                released: false,
                granted: Mark::from(granted),
            };
            let (past, pending_releases) = (vec![known], Vec::new());
            let args =
                ClaimArgs { pool, member, supersedes: None, past, request: 1, pending_releases };
            let mut left = ClaimLeftovers::default();
            let refused = claim(&ctx, &settings, &args, &mut left).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
            assert!(ctx.doubts.contradiction().is_some());
        }
    }

    /// The journal of the claiming process knows slot 0. The process has claimed it again, and
    /// given it up at once because its mark lay ahead. The release is in flight, and the claim is
    /// repeated.
    #[tokio::test]
    async fn lease_with_pending_release_is_not_minted_from() {
        let world = World::new();
        let store = world.handle();
        let ctx = ctx(&world, Arc::clone(&store));
        let owner = String::from("shop-1");
        let settings = NodeSettings { owner: owner.clone(), ..NodeSettings::default() };
        let incarnation = Incarnation::new(1);
        let member =
            Member { incarnation, owner, host: "here".into(), process: 1, address: String::new() };
        store.join(&member, PresenceMachine::joining(10_000, START), START).await.unwrap();
        let pool = Pool { name: "workers".into(), slots: 2, group: 1, reuse: Reuse::Recycle };
        let known = JournalLease {
            pool: pool.name.clone(),
            slot: 0,
            term: Term::new(7),
            mark: Mark::from(START),
            released: true,
            granted: Mark::ZERO,
        };
        let mut first = ClaimArgs {
            pool,
            member,
            supersedes: None,
            past: vec![known],
            request: 5,
            pending_releases: Vec::new(),
        };
        let mut left = ClaimLeftovers::default();
        let granted = claim(&ctx, &settings, &first, &mut left).await.unwrap();
        let again = claim(&ctx, &settings, &first, &mut left).await.unwrap();
        assert_eq!(granted, again, "the repeated claim has the same result");
        assert!(left.pending_releases.is_empty());
        let lease = &granted[0].lease;
        assert_eq!(lease.slot, 0);
        first.pending_releases.push(lease.unused());
        let other = claim(&ctx, &settings, &first, &mut left).await.unwrap();
        assert!(other[0].lease.slot != lease.slot || other[0].lease.term > lease.term, "{other:?}");
        // The store has acknowledged the release meanwhile.
        assert!(left.pending_releases.is_empty());

        // Without a journal, the repeated claim itself gets the earlier result.
        let lease = &other[0].lease;
        first.past.clear();
        first.pending_releases = vec![lease.unused()];
        let error = claim(&ctx, &settings, &first, &mut left).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unavailable), "{error}");
        assert!(release_once(&ctx, &first.pending_releases[0], START).await);
        assert!(release_once(&ctx, &first.pending_releases[0], START).await, "twice is once");
        first.pending_releases.clear();
        let error = claim(&ctx, &settings, &first, &mut left).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Fenced), "{error}");
        first.request = 6;
        let after = claim(&ctx, &settings, &first, &mut left).await.unwrap();
        assert!(after[0].lease.slot != lease.slot || after[0].lease.term > lease.term, "{after:?}");
    }
}
