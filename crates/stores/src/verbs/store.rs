//! The store trait, verb by verb.

use async_trait::async_trait;
use snowmint_coord::{
    Capabilities, Catalog, ClaimRequest, Definition, Extend, Extended, FastForward, GiveBack,
    Incarnation, Lease, Member, MemberInfo, NewDefinition, Presence, Release, Reserve, Result,
    Segment, SlotInfo, SourceState, Store, StoreIdentity, random,
};
use snowmint_core::UnixMillis;

use super::members::{Join, Leave, Members, Renew};
use super::slots::{Claim, Extends, Forward, Releases, Workers};
use super::sources::{Change, Changed, Get, GivesBack, List, Reserves};
use super::{Access, Backend, Kept, Rows, Step, Verb};

struct Identity;

#[async_trait]
impl Verb for Identity {
    type Answer = StoreIdentity;
    const OP: &'static str = "identity";
    const ACCESS: Access = Access::Read;

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, StoreIdentity> {
        Ok((rows.identity().clone(), false))
    }
}

struct Now;

#[async_trait]
impl Verb for Now {
    type Answer = Option<UnixMillis>;
    const OP: &'static str = "now";
    const ACCESS: Access = Access::Read;

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Option<UnixMillis>> {
        Ok((rows.clock(), false))
    }
}

#[async_trait]
impl<B: Backend> Store for Kept<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn namespace(&self) -> &str {
        self.backend.namespace()
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.run(Now).await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.run(Identity).await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.run(Join { member, presence, now }).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.run(Renew { member, presence, now }).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.run(Leave { member, now }).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.run(Members { now }).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        self.run(Claim { request, now }).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        self.run(Extends { items, now }).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.run(Releases { release, now }).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.run(Workers { now }).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.run(Reserves { reserve }).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.run(GivesBack { back }).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.run(Change { name: &new.name, change: Changed::Define(new) }).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.run(Change { name: &new.name, change: Changed::Alter(new, if_version) }).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.run(Change { name, change: Changed::State(state) }).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.run(Get { name }).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.run(List).await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.run(Forward { forward, new_id: random::incarnation()?.to_string() }).await
    }

    async fn close(&self) -> Result<()> {
        self.backend.close().await
    }
}
