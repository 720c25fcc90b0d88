//! The verbs. Each states whether it may be retried after its response was lost, as the trait does.

use std::sync::Arc;

use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{
    Acquire, Acquired, Bounds, BoxFuture, Capabilities, Catalog, ClaimRequest, Definition, Doubt,
    Error, Evidence, Exclude, Extend, Extended, FastForward, GiveBack, Incarnation, JournalInfo,
    Known, Lease, Mark, Member, MemberInfo, MemberStatus, NewDefinition, OwnerClient, Presence,
    Recalled, Reclaim, Reclaimed, Release, Relinquish, Reserve, Restripe, Result, Segment,
    SlotInfo, SourceState, Standing, Store, StoreCall, StoreIdentity, StoreReply, StoreVerbs,
    TimeReference, Verb,
};
use snowmint_core::UnixMillis;
use snowmint_store_rpc::Joined;
use snowmint_wire::grpc::store as proto;

use super::RemoteStore;
use super::clock::ServerClock;
use crate::owners::RemoteOwnerClient;

/// A repeat has the same effect.
const IDEMPOTENT: bool = true;
/// A repeat would return another result.
const AT_MOST_ONCE: bool = false;

/// Returns the error for a verb that only the store's own URL offers.
fn untold(verb: Verb) -> Error {
    let message = format!("verb {verb} is not available through servers; use the store's own URL");
    Error::unsupported(message).with_verb(verb)
}

impl Store for RemoteStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn group_max(&self) -> u32 {
        self.group_max
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        Some(Arc::new(RemoteOwnerClient::new(Arc::clone(&self.servers))))
    }

    fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        self.secondary_connector(name)
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        Some(Arc::new(ServerClock::new(Arc::clone(&self.servers))))
    }

    /// Returns what servers have reported and the store still had when it was reported: a count
    /// belongs to the identity reported with it.
    fn seen(&self) -> Option<StoreIdentity> {
        self.seen.get()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.servers.remember(&seen.id);
        self.seen.remember(seen);
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        self.dispatch(call)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.servers.close();
            Ok(())
        })
    }
}

impl StoreVerbs for RemoteStore {
    async fn now(&self) -> Result<Option<UnixMillis>> {
        Ok(self.ask::<proto::NowRequest>(IDEMPOTENT, ()).await?.store)
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        let identity = self.ask::<proto::IdentityRequest>(IDEMPOTENT, ()).await?;
        self.observe(Some(identity.clone())).await?;
        Ok(identity)
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.ask::<proto::RecallRequest>(IDEMPOTENT, (who.to_owned(), seen.clone())).await
    }

    async fn doubt(&self, _: &Doubt, _: &Evidence) -> Result<()> {
        Err(untold(Verb::Doubt))
    }

    /// Does nothing: the servers report for themselves.
    async fn report(&self, _: &JournalInfo, _: Option<&Known>) -> Result<()> {
        Ok(())
    }

    async fn standing(&self) -> Result<Standing> {
        Err(untold(Verb::Standing))
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let call = (member.clone(), presence, now);
        let Joined { known_as, seen } = self.ask::<proto::JoinRequest>(IDEMPOTENT, call).await?;
        self.aliases.joined(member.incarnation, known_as);
        self.observe(seen).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let call = (member, presence, now);
        let Joined { seen, .. } = self.ask::<proto::RenewRequest>(IDEMPOTENT, call).await?;
        self.observe(seen).await
    }

    async fn announce(&self, _: Incarnation, _: &MemberStatus) -> Result<()> {
        Err(untold(Verb::Announce))
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.ask::<proto::LeaveRequest>(IDEMPOTENT, (member, now)).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let mut members = self.ask::<proto::MembersRequest>(IDEMPOTENT, now).await?;
        for MemberInfo { member, .. } in &mut members {
            member.incarnation = self.aliases.own(member.incarnation);
        }
        Ok(members)
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let is_recognised = request.request != 0;
        let call = (request.clone(), now);
        let leases = self.ask::<proto::ClaimRequest>(is_recognised, call).await?;
        Ok(held_by(request.member, leases))
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let are_recognised = items.iter().all(|item| item.request != 0);
        let call = (items.to_vec(), now);
        let results = self.ask::<proto::ExtendRequest>(are_recognised, call).await?;
        if results.len() != items.len() {
            let message = format!(
                "internal error: server returned {} results, expected {}; please report it",
                results.len(),
                items.len()
            );
            return Err(Error::internal(message).with_verb(Verb::Extend));
        }
        Ok(results)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.ask::<proto::ReleaseRequest>(IDEMPOTENT, (release.clone(), now)).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        let is_recognised = acquire.request != 0;
        let call = (acquire.clone(), now);
        let Acquired { leases, mut held } =
            self.ask::<proto::AcquireRequest>(is_recognised, call).await?;
        for (_, member) in &mut held {
            *member = self.aliases.own(*member);
        }
        Ok(Acquired { leases: held_by(acquire.member, leases), held })
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.ask::<proto::RelinquishRequest>(IDEMPOTENT, (relinquish.clone(), now)).await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.ask::<proto::ExcludeRequest>(IDEMPOTENT, (exclude.clone(), now)).await
    }

    async fn reclaim(&self, _: &Reclaim, _: UnixMillis) -> Result<Vec<Reclaimed>> {
        Err(untold(Verb::Reclaim))
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let mut slots = self.ask::<proto::WorkersRequest>(IDEMPOTENT, now).await?;
        for SlotInfo { holder, .. } in &mut slots {
            *holder = holder.map(|holder| self.aliases.own(holder));
        }
        Ok(slots)
    }

    /// Reserves once: a repeat would take other numbers and leave a gap, so retries are left to the
    /// caller.
    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let segment = self.ask::<proto::ReserveRequest>(AT_MOST_ONCE, reserve.clone()).await?;
        if matches!(reserve.within, Some(Bounds::Now(_))) && segment.at.is_none() {
            let message = "server does not support sources with mint = store; update the server";
            return Err(Error::unsupported(message).with_verb(Verb::Reserve));
        }
        Ok(segment)
    }

    /// Gives back once: a repeat of an applied call is rejected, so its result would be wrong.
    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.ask::<proto::GiveBackRequest>(AT_MOST_ONCE, back.clone()).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.ask::<proto::DefineRequest>(IDEMPOTENT, new.clone()).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let again = if if_version.is_some() { AT_MOST_ONCE } else { IDEMPOTENT };
        self.ask::<proto::AlterRequest>(again, (new.clone(), if_version)).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.ask::<proto::RestripeRequest>(AT_MOST_ONCE, restripe.clone()).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.ask::<proto::SetStateRequest>(IDEMPOTENT, (name.to_owned(), state)).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.ask::<proto::GetRequest>(IDEMPOTENT, name.to_owned()).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.ask::<proto::ListRequest>(IDEMPOTENT, ()).await
    }

    /// Raises values, with marks at most a day ahead of the clock: servers reject later ones. They
    /// make no recovery for a program.
    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        if !forward.values_only {
            return Err(Error::unsupported(
                "servers recover their store only by their call for it; run snowmint worker \
                 recover --server URL",
            ));
        }
        let call = forward.clone();
        let identity = self.ask::<proto::FastForwardRequest>(IDEMPOTENT, call).await?;
        self.observe(Some(identity.clone())).await?;
        Ok(identity)
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.ask::<proto::AcceptLeadRequest>(IDEMPOTENT, until).await
    }

    /// Fails: only operators use it, and they call the store itself.
    async fn ground(&self) -> Result<SlotDefaults> {
        Err(untold(Verb::Ground))
    }
}

/// Names the member that called as the holder of what it was given.
fn held_by(member: Incarnation, mut leases: Vec<Lease>) -> Vec<Lease> {
    for lease in &mut leases {
        lease.holder = Some(member);
    }
    leases
}
