//! The verbs. Each states whether it may be retried after its response was lost, as the trait does.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::beside::StorePlace;
use snowmint_coord::pool::Ground;
use snowmint_coord::{
    Avoid, Bounds, Capabilities, Catalog, ClaimRequest, ClockWitness, Definition, Doubt, Error,
    ErrorKind, Evidence, Extend, Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known,
    Lease, LetGo, Mark, Member, MemberInfo, MemberStatus, NewDefinition, Owners, Presence,
    Recalled, Reclaim, Reclaimed, Release, Reserve, Restripe, Result, Segment, SlotInfo,
    SourceState, Standing, Store, StoreIdentity, Take, Taken,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as said;

use super::clock::ServerClock;
use super::{RemoteStore, Verb, read, write};
use crate::owners::Asking;

/// A repeat has the same effect.
const FREELY: bool = true;
/// A repeat would return another result.
const ONCE: bool = false;

/// Returns the error for a verb that only the store's own URL offers.
fn untold(op: &'static str) -> Error {
    let what =
        "a store that is reached through servers neither tells nor does this: name its own URL";
    Error::new(op, ErrorKind::Unsupported { what: what.into() })
}

macro_rules! verb {
    ($op:literal, $method:literal) => {
        Verb { op: $op, path: concat!("/snowmint.store.v1.Store/", $method) }
    };
}

#[async_trait]
impl Store for RemoteStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn cautions(&self) -> Vec<String> {
        self.cautions.clone()
    }

    fn group_max(&self) -> u32 {
        self.group_max
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        Some(Arc::new(Asking::new(Arc::clone(&self.servers))))
    }

    fn beside(&self, name: &str) -> Option<Arc<dyn StorePlace>> {
        self.place_beside(name)
    }

    fn clock_witness(&self) -> Option<Arc<dyn ClockWitness>> {
        Some(Arc::new(ServerClock::new(Arc::clone(&self.servers))))
    }

    /// Returns what servers have reported: a count belongs to the identity reported with it.
    fn seen(&self) -> Option<StoreIdentity> {
        self.seen.get()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.servers.remember(&seen.id);
        if !seen.id.is_empty() {
            self.seen.saw(seen.clone());
        }
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        let answer: said::NowResponse =
            self.ask(verb!("now", "Now"), FREELY, said::NowRequest {}).await?;
        Ok(answer.store.map(UnixMillis::new))
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        let verb = verb!("identity", "Identity");
        let answer = self.ask(verb, FREELY, said::IdentityRequest {}).await?;
        let identity = read::identity(verb.op, answer)?;
        self.seen.saw(identity.clone());
        Ok(identity)
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        let message = write::recall(who, seen);
        let answer = self.ask(verb!("recall", "Recall"), FREELY, message).await?;
        Ok(read::recalled(&answer))
    }

    async fn doubt(&self, _: &Doubt, _: &Evidence) -> Result<()> {
        Err(untold("doubt"))
    }

    /// Does nothing: the servers report for themselves.
    async fn report(&self, _: &JournalInfo, _: Option<&Known>) -> Result<()> {
        Ok(())
    }

    async fn standing(&self) -> Result<Standing> {
        Err(untold("standing"))
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let verb = verb!("join", "Join");
        let answer = self.ask(verb, FREELY, write::join(member, presence, now)).await?;
        self.seen.hear(&answer);
        self.names.joined(member.incarnation, read::known_as(verb.op, answer)?);
        Ok(())
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let message = write::renew(member, presence, now);
        let answer = self.ask(verb!("renew", "Renew"), FREELY, message).await?;
        self.seen.hear(&answer);
        Ok(())
    }

    async fn announce(&self, _: Incarnation, _: &MemberStatus) -> Result<()> {
        Err(untold("announce"))
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        let message = said::LeaveRequest { member: member.to_string(), now: now.get() };
        self.ask(verb!("leave", "Leave"), FREELY, message).await.map(read::done)
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let verb = verb!("members", "Members");
        let message = said::MembersRequest { now: now.get() };
        let mut members = read::members(verb.op, self.ask(verb, FREELY, message).await?)?;
        for MemberInfo { member, .. } in &mut members {
            member.incarnation = self.names.own(member.incarnation);
        }
        Ok(members)
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let is_recognised = request.request != 0;
        let message = write::claim(request, now);
        let answer = self.ask(verb!("claim", "Claim"), is_recognised, message).await;
        answer.map(|answer| read::claimed(answer, request.member))
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let are_recognised = items.iter().all(|item| item.request != 0);
        let verb = verb!("extend", "Extend");
        let answer = self.ask(verb, are_recognised, write::extend(items, now)).await?;
        let answers = read::extended(verb.op, answer);
        if answers.len() != items.len() {
            let (what, items) = (answers.len(), items.len());
            let what = format!("the server answered {what} of {items} items");
            return Err(Error::internal(verb.op, what));
        }
        Ok(answers)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let message = write::release(release, now);
        self.ask(verb!("release", "Release"), FREELY, message).await.map(read::done)
    }

    async fn take(&self, take: &Take, now: UnixMillis) -> Result<Taken> {
        let is_recognised = take.request != 0;
        let verb = verb!("take", "Take");
        let answer = self.ask(verb, is_recognised, write::take(take, now)).await?;
        let mut taken = read::taken(verb.op, answer, take.member)?;
        for (_, member) in &mut taken.held {
            *member = self.names.own(*member);
        }
        Ok(taken)
    }

    async fn let_go(&self, let_go: &LetGo, now: UnixMillis) -> Result<()> {
        let message = write::let_go(let_go, now);
        self.ask(verb!("let go", "LetGo"), FREELY, message).await.map(read::done)
    }

    async fn avoid(&self, avoid: &Avoid, now: UnixMillis) -> Result<()> {
        let message = write::avoid(avoid, now);
        self.ask(verb!("avoid", "Avoid"), FREELY, message).await.map(read::done)
    }

    async fn reclaim(&self, _: &Reclaim, _: UnixMillis) -> Result<Vec<Reclaimed>> {
        Err(untold("reclaim"))
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let verb = verb!("workers", "Workers");
        let message = said::WorkersRequest { now: now.get() };
        let mut slots = read::slots(verb.op, self.ask(verb, FREELY, message).await?)?;
        for SlotInfo { holder, .. } in &mut slots {
            *holder = holder.map(|holder| self.names.own(holder));
        }
        Ok(slots)
    }

    /// Reserves once: a repeat would take other numbers and leave a gap, so retries are left to the
    /// caller.
    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let message = write::reserve(reserve);
        let answer = self.ask(verb!("reserve", "Reserve"), ONCE, message).await?;
        let segment = read::segment(&answer);
        if matches!(reserve.within, Some(Bounds::Now(_))) && segment.at.is_none() {
            let what =
                "the server is older than sources that the store mints (mint = store)".into();
            return Err(Error::new("reserve", ErrorKind::Unsupported { what }));
        }
        Ok(segment)
    }

    /// Gives back once: a repeat of an applied call is rejected, so its result would be wrong.
    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let GiveBack { source, first, last, version } = back.clone();
        let message = said::GiveBackRequest { source, first, last, version };
        let answer: said::GiveBackResponse =
            self.ask(verb!("give back", "GiveBack"), ONCE, message).await?;
        Ok(answer.version)
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        let verb = verb!("define", "Define");
        let message = said::DefineRequest { new: Some(write::definition(new)) };
        read::defined(verb.op, self.ask(verb, FREELY, message).await?)
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let verb = verb!("alter", "Alter");
        let again = if if_version.is_some() { ONCE } else { FREELY };
        let message = said::AlterRequest { new: Some(write::definition(new)), if_version };
        read::defined(verb.op, self.ask(verb, again, message).await?)
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        let verb = verb!("restripe", "Restripe");
        let message = said::RestripeRequest {
            new: Some(write::definition(&restripe.new)),
            if_version: restripe.if_version,
            mark: restripe.mark.get(),
        };
        read::defined(verb.op, self.ask(verb, ONCE, message).await?)
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        let verb = verb!("set state", "SetState");
        let message = write::state(name, state);
        read::defined(verb.op, self.ask(verb, FREELY, message).await?)
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        let verb = verb!("get", "Get");
        let message = said::GetRequest { name: name.to_owned() };
        read::defined(verb.op, self.ask(verb, FREELY, message).await?)
    }

    async fn list(&self) -> Result<Catalog> {
        let verb = verb!("list", "List");
        read::catalog(verb.op, self.ask(verb, FREELY, said::ListRequest {}).await?)
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let verb = verb!("fast forward", "FastForward");
        let message = write::fast_forward(forward);
        let identity = read::identity(verb.op, self.ask(verb, FREELY, message).await?)?;
        self.servers.is_now(&identity.id);
        Ok(identity)
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        let message = said::AcceptLeadRequest { until: until.get() };
        self.ask(verb!("accept lead", "AcceptLead"), FREELY, message).await.map(read::done)
    }

    /// Fails: only operators use it, and they call the store itself.
    async fn ground(&self) -> Result<Ground> {
        Err(untold("ground"))
    }

    async fn close(&self) -> Result<()> {
        self.servers.close();
        Ok(())
    }
}
