//! The store's door: what comes through it is done, by the store or by one with a planted bug, and
//! written down.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::pool::Ground;
use snowmint_coord::{
    Avoid, Catalog, ClaimRequest, Definition, Doubt, Extend, Extended, FastForward, GiveBack,
    Incarnation, JournalInfo, Known, Lease, LetGo, Mark, Member, MemberInfo, MemberStatus,
    MemoryStore, NewDefinition, Presence, Recalled, Release, Reserve, Restripe, Result, Segment,
    SlotInfo, SourceState, Standing, Store, StoreIdentity, Take, Taken,
};
use snowmint_core::UnixMillis;

use super::planted::{self, Bug};
use super::truth::Truth;
use crate::history::{Party, Right};

/// The store as one party enters it.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) store: Arc<MemoryStore>,
    pub(super) truth: Truth,
    pub(super) party: Party,
    pub(super) bug: Option<Bug>,
}

fn slot(pool: &str, slot: u64) -> Right {
    Right::Slot(pool.to_owned(), slot)
}

#[async_trait]
impl Store for Door {
    snowmint_coord::as_inner!(store);

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.store.now().await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.store.identity().await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.store.recall(who, seen).await
    }

    async fn doubt(&self, doubt: &Doubt, id: &str) -> Result<()> {
        self.store.doubt(doubt, id).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.store.report(journal, known).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.store.standing().await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.join(member, presence, now).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.renew(member, presence, now).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.store.announce(member, status).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        planted::leave(&self.store, self.bug, &self.truth, self.party).await;
        self.store.leave(member, now).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.store.members(now).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let leases = planted::claim(&self.store, self.bug, request, now).await?;
        for lease in &leases {
            self.truth.moved(&slot(&lease.pool, lease.slot)).await;
        }
        Ok(leases)
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let mut answers = match self.bug {
            None => self.store.extend(items, now).await?,
            Some(_) => {
                let mut answers = Vec::new();
                for item in items {
                    answers.push(planted::extend(&self.store, self.bug, item, now).await);
                }
                answers
            }
        };
        for (item, answer) in items.iter().zip(&mut answers) {
            if let Ok(extended) = answer {
                let right = slot(&item.pool, item.slot);
                self.truth.moved(&right).await;
                let to = extended.mark.get();
                self.truth.granted(right, item.from.get(), to, self.party).await;
            }
        }
        Ok(answers)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        planted::release(&self.store, self.bug, release, now).await?;
        self.truth.moved(&slot(&release.pool, release.slot)).await;
        Ok(())
    }

    async fn take(&self, take: &Take, now: UnixMillis) -> Result<Taken> {
        planted::take(&self.store, self.bug, take, now).await
    }

    async fn let_go(&self, let_go: &LetGo, now: UnixMillis) -> Result<()> {
        self.store.let_go(let_go, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.store.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let segment = self.store.reserve(reserve).await?;
        let right = Right::Numbers(reserve.source.clone());
        self.truth.granted(right, segment.first, segment.last + 1, self.party).await;
        Ok(segment)
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let version = self.store.give_back(back).await?;
        self.truth.moved(&Right::Numbers(back.source.clone())).await;
        Ok(version)
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.store.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.store.alter(new, if_version).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.store.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.store.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        planted::get(&self.store, self.bug, name).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.store.list().await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.store.fast_forward(forward).await
    }

    async fn avoid(&self, avoid: &Avoid, now: UnixMillis) -> Result<()> {
        self.store.avoid(avoid, now).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.store.accept_lead(until).await
    }

    async fn ground(&self) -> Result<Ground> {
        self.store.ground().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
