//! The verbs. Each states whether it may be retried after its response was lost, as the trait does:
//! here, or in the table of methods.

use std::future;
use std::sync::Arc;

use snowmint_coord::store::StoreConnector;
use snowmint_coord::{
    Acquire, Acquired, Bounds, BoxFuture, Capabilities, ClaimRequest, Definition, Error, Extend,
    Extended, FastForward, Incarnation, Lease, Member, MemberInfo, NewDefinition, OwnerClient,
    Presence, Reserve, Result, Segment, SlotInfo, Store, StoreCall, StoreIdentity, StoreReply,
    TimeReference, Verb,
};
use snowmint_core::UnixMillis;
use snowmint_store_rpc::{AT_MOST_ONCE, IDEMPOTENT, Joined, SendsRequests, StoreRequest, send};
use snowmint_wire::grpc::store as proto;

use super::RemoteStore;
use super::ask::ask;
use super::clock::ServerClock;
use crate::owners::RemoteOwnerClient;

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
        use StoreCall as C;
        use StoreReply as R;
        match call {
            // The servers report for themselves.
            C::Report { .. } => boxed(future::ready(Ok(())), R::Report),
            C::Now {} => boxed(self.send_now(), R::Now),
            C::Identity {} => boxed(self.send_identity(), R::Identity),
            C::Join { member, presence, now } => {
                boxed(self.send_join(member, presence, now), R::Join)
            }
            C::Renew { member, presence, now } => {
                boxed(self.send_renew(member, presence, now), R::Renew)
            }
            C::Members { now } => boxed(self.send_members(now), R::Members),
            C::Claim { request, now } => boxed(self.send_claim(request, now), R::Claim),
            C::Extend { items, now } => boxed(self.send_extend(items, now), R::Extend),
            C::Acquire { acquire, now } => boxed(self.send_acquire(acquire, now), R::Acquire),
            C::Workers { now } => boxed(self.send_workers(now), R::Workers),
            C::Reserve { reserve } => boxed(self.send_reserve(reserve), R::Reserve),
            C::Alter { new, if_version } => boxed(self.send_alter(new, if_version), R::Alter),
            C::FastForward { forward } => boxed(self.send_fast_forward(forward), R::FastForward),
            call => send(self, call),
        }
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.servers.close();
            Ok(())
        })
    }
}

/// Verbs with more to them than their request and its reply.
impl RemoteStore {
    async fn send_now(&self) -> Result<Option<UnixMillis>> {
        Ok(self.ask::<proto::NowRequest>(IDEMPOTENT, ()).await?.store)
    }

    async fn send_identity(&self) -> Result<StoreIdentity> {
        let identity = self.ask::<proto::IdentityRequest>(IDEMPOTENT, ()).await?;
        self.observe(Some(identity.clone())).await?;
        Ok(identity)
    }

    async fn send_join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let call = (member.clone(), presence, now);
        let Joined { known_as, seen } = self.ask::<proto::JoinRequest>(IDEMPOTENT, call).await?;
        self.aliases.joined(member.incarnation, known_as);
        self.observe(seen).await
    }

    async fn send_renew(
        &self,
        member: Incarnation,
        presence: Presence,
        now: UnixMillis,
    ) -> Result<()> {
        let call = (member, presence, now);
        let Joined { seen, .. } = self.ask::<proto::RenewRequest>(IDEMPOTENT, call).await?;
        self.observe(seen).await
    }

    async fn send_members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let mut members = self.ask::<proto::MembersRequest>(IDEMPOTENT, now).await?;
        for MemberInfo { member, .. } in &mut members {
            member.incarnation = self.aliases.own(member.incarnation);
        }
        Ok(members)
    }

    async fn send_claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let is_recognised = request.request != 0;
        let call = (request.clone(), now);
        let leases = self.ask::<proto::ClaimRequest>(is_recognised, call).await?;
        Ok(held_by(request.member, leases))
    }

    async fn send_extend(
        &self,
        items: &[Extend],
        now: UnixMillis,
    ) -> Result<Vec<Result<Extended>>> {
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

    async fn send_acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        let is_recognised = acquire.request != 0;
        let call = (acquire.clone(), now);
        let Acquired { leases, mut held } =
            self.ask::<proto::AcquireRequest>(is_recognised, call).await?;
        for (_, member) in &mut held {
            *member = self.aliases.own(*member);
        }
        Ok(Acquired { leases: held_by(acquire.member, leases), held })
    }

    async fn send_workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let mut slots = self.ask::<proto::WorkersRequest>(IDEMPOTENT, now).await?;
        for SlotInfo { holder, .. } in &mut slots {
            *holder = holder.map(|holder| self.aliases.own(holder));
        }
        Ok(slots)
    }

    /// Reserves once: a repeat would take other numbers and leave a gap, so retries are left to the
    /// caller.
    async fn send_reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let segment = self.ask::<proto::ReserveRequest>(AT_MOST_ONCE, reserve.clone()).await?;
        if matches!(reserve.within, Some(Bounds::Now(_))) && segment.at.is_none() {
            let message = "server does not support sources with mint = store; update the server";
            return Err(Error::unsupported(message).with_verb(Verb::Reserve));
        }
        Ok(segment)
    }

    async fn send_alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let again = if if_version.is_some() { AT_MOST_ONCE } else { IDEMPOTENT };
        self.ask::<proto::AlterRequest>(again, (new.clone(), if_version)).await
    }

    /// Raises values, with marks at most a day ahead of the clock: servers reject later ones. They
    /// make no recovery for a program.
    async fn send_fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
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
}

impl SendsRequests for RemoteStore {
    async fn ask<Q: StoreRequest>(&self, again: bool, call: Q::Call) -> Result<Q::Reply> {
        ask::<Q>(&self.servers, again, call).await
    }
}

fn boxed<'a, T: 'a>(
    sent: impl Future<Output = Result<T>> + Send + 'a,
    reply: fn(T) -> StoreReply,
) -> BoxFuture<'a, Result<StoreReply>> {
    Box::pin(async move { sent.await.map(reply) })
}

/// Names the member that called as the holder of what it was given.
fn held_by(member: Incarnation, mut leases: Vec<Lease>) -> Vec<Lease> {
    for lease in &mut leases {
        lease.holder = Some(member);
    }
    leases
}
