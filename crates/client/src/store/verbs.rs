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
use snowmint_wire::grpc::store as proto;

use super::ask::Method;
use super::clock::ServerClock;
use super::{RemoteStore, read, write};
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

/// Returns a verb, and the method that calls it.
macro_rules! method {
    ($verb:ident, $method:literal) => {
        Method { verb: Verb::$verb, path: concat!("/snowmint.store.v1.Store/", $method) }
    };
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
        let response: proto::NowResponse =
            self.ask(method!(Now, "Now"), IDEMPOTENT, proto::NowRequest {}).await?;
        Ok(response.store.map(UnixMillis::new))
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        let method = method!(Identity, "Identity");
        let response = self.ask(method, IDEMPOTENT, proto::IdentityRequest {}).await?;
        let identity = read::identity(response)?;
        let StoreIdentity { id, writes } = identity.clone();
        self.observe(Some(proto::Identity { id, writes })).await?;
        Ok(identity)
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        let message = write::recall(who, seen);
        let response = self.ask(method!(Recall, "Recall"), IDEMPOTENT, message).await?;
        Ok(read::recalled(&response))
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
        let method = method!(Join, "Join");
        let message = write::join(member, presence, now);
        let mut response: proto::DoneResponse = self.ask(method, IDEMPOTENT, message).await?;
        let seen = response.seen.take();
        self.aliases.joined(member.incarnation, read::known_as(response)?);
        self.observe(seen).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let message = write::renew(member, presence, now);
        let response: proto::DoneResponse =
            self.ask(method!(Renew, "Renew"), IDEMPOTENT, message).await?;
        self.observe(response.seen).await
    }

    async fn announce(&self, _: Incarnation, _: &MemberStatus) -> Result<()> {
        Err(untold(Verb::Announce))
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        let message = proto::LeaveRequest { member: member.to_string(), now: now.get() };
        self.ask(method!(Leave, "Leave"), IDEMPOTENT, message).await.map(read::done)
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let method = method!(Members, "Members");
        let message = proto::MembersRequest { now: now.get() };
        let mut members = read::members(self.ask(method, IDEMPOTENT, message).await?)?;
        for MemberInfo { member, .. } in &mut members {
            member.incarnation = self.aliases.own(member.incarnation);
        }
        Ok(members)
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let is_recognised = request.request != 0;
        let message = write::claim(request, now);
        let response = self.ask(method!(Claim, "Claim"), is_recognised, message).await;
        response.map(|response| read::claimed(response, request.member))
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let are_recognised = items.iter().all(|item| item.request != 0);
        let method = method!(Extend, "Extend");
        let response = self.ask(method, are_recognised, write::extend(items, now)).await?;
        let results = read::extended(response);
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
        let message = write::release(release, now);
        self.ask(method!(Release, "Release"), IDEMPOTENT, message).await.map(read::done)
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        let is_recognised = acquire.request != 0;
        let method = method!(Acquire, "Acquire");
        let response = self.ask(method, is_recognised, write::acquire(acquire, now)).await?;
        let mut acquired = read::acquired(response, acquire.member)?;
        for (_, member) in &mut acquired.held {
            *member = self.aliases.own(*member);
        }
        Ok(acquired)
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        let message = write::relinquish(relinquish, now);
        self.ask(method!(Relinquish, "Relinquish"), IDEMPOTENT, message).await.map(read::done)
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        let message = write::exclude(exclude, now);
        self.ask(method!(Exclude, "Exclude"), IDEMPOTENT, message).await.map(read::done)
    }

    async fn reclaim(&self, _: &Reclaim, _: UnixMillis) -> Result<Vec<Reclaimed>> {
        Err(untold(Verb::Reclaim))
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let method = method!(Workers, "Workers");
        let message = proto::WorkersRequest { now: now.get() };
        let mut slots = read::slots(self.ask(method, IDEMPOTENT, message).await?)?;
        for SlotInfo { holder, .. } in &mut slots {
            *holder = holder.map(|holder| self.aliases.own(holder));
        }
        Ok(slots)
    }

    /// Reserves once: a repeat would take other numbers and leave a gap, so retries are left to the
    /// caller.
    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let message = write::reserve(reserve);
        let response = self.ask(method!(Reserve, "Reserve"), AT_MOST_ONCE, message).await?;
        let segment = read::segment(&response);
        if matches!(reserve.within, Some(Bounds::Now(_))) && segment.at.is_none() {
            let message = "server does not support sources with mint = store; update the server";
            return Err(Error::unsupported(message).with_verb(Verb::Reserve));
        }
        Ok(segment)
    }

    /// Gives back once: a repeat of an applied call is rejected, so its result would be wrong.
    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let GiveBack { source, first, last, version } = back.clone();
        let message = proto::GiveBackRequest { source, first, last, version };
        let response: proto::GiveBackResponse =
            self.ask(method!(GiveBack, "GiveBack"), AT_MOST_ONCE, message).await?;
        Ok(response.version)
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        let method = method!(Define, "Define");
        let message = proto::DefineRequest { new: Some(write::definition(new)) };
        read::defined(self.ask(method, IDEMPOTENT, message).await?)
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let method = method!(Alter, "Alter");
        let again = if if_version.is_some() { AT_MOST_ONCE } else { IDEMPOTENT };
        let message = proto::AlterRequest { new: Some(write::definition(new)), if_version };
        read::defined(self.ask(method, again, message).await?)
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        let method = method!(Restripe, "Restripe");
        let message = proto::RestripeRequest {
            new: Some(write::definition(&restripe.new)),
            if_version: restripe.if_version,
            mark: restripe.mark.get(),
        };
        read::defined(self.ask(method, AT_MOST_ONCE, message).await?)
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        let method = method!(SetState, "SetState");
        let message = write::state(name, state);
        read::defined(self.ask(method, IDEMPOTENT, message).await?)
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        let method = method!(Get, "Get");
        let message = proto::GetRequest { name: name.to_owned() };
        read::defined(self.ask(method, IDEMPOTENT, message).await?)
    }

    async fn list(&self) -> Result<Catalog> {
        let method = method!(List, "List");
        read::catalog(self.ask(method, IDEMPOTENT, proto::ListRequest {}).await?)
    }

    /// Moves the store, with marks at most a day ahead of the clock: servers reject later ones.
    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let method = method!(FastForward, "FastForward");
        let message = write::fast_forward(forward);
        let identity = read::identity(self.ask(method, IDEMPOTENT, message).await?)?;
        self.servers.is_now(&identity.id);
        self.seen.replace(identity.clone());
        Ok(identity)
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        let message = proto::AcceptLeadRequest { until: until.get() };
        self.ask(method!(AcceptLead, "AcceptLead"), IDEMPOTENT, message).await.map(read::done)
    }

    /// Fails: only operators use it, and they call the store itself.
    async fn ground(&self) -> Result<SlotDefaults> {
        Err(untold(Verb::Ground))
    }
}
