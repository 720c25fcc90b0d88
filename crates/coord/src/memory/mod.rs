//! The memory store: the reference for all others, for tests, and for IDs that need not outlive the
//! process.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | no |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! With [`MemoryStore::with_clock`] it goes by a clock of its own, which tests move by hand.

mod clock;
#[cfg(test)]
mod faults;
mod space;
mod world;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use crate::avoid::Avoid;
use crate::beside::StorePlace;
use crate::capability::{Capabilities, ClockOf, PresenceBy};
use crate::catalog::{
    Catalog, Definition, NewDefinition, Restripe, SourceState, check_name, decide_alter,
    decide_define, decide_restripe, decide_state, existing,
};
use crate::clock_witness::ClockWitness;
use crate::error::{Error, ErrorKind, Result};
use crate::history::{Doubt, History, JournalInfo, Known, Recalled, Standing, Starts, recall};
use crate::lease::{ClaimRequest, Extend, Extended, Lease, Mark, Release, SlotRow, check_mark};
use crate::member::{self, Incarnation, Member, MemberInfo, MemberStatus, Presence};
use crate::ordered::{LetGo, Take, Taken};
use crate::owners::Owners;
use crate::pool::Ground;
use crate::random;
use crate::segment::{GiveBack, Reserve, Segment};
use crate::slot::SlotInfo;
use crate::store::{FastForward, Store, StoreIdentity};
pub use clock::MemoryClock;
#[cfg(test)]
pub(crate) use faults::Faults;
use space::Space;
pub use world::MemoryBackup;
use world::{IN_DOUBT, Line, World};

/// A handle on one namespace of a store in memory. The store lives as long as a handle on it.
pub struct MemoryStore {
    world: Arc<Mutex<World>>,
    namespace: String,
    clock: Option<MemoryClock>,
    closed: AtomicBool,
    /// It has left a start.
    started: AtomicBool,
    /// As in [`Store::seen`].
    seen: Mutex<Option<StoreIdentity>>,
    /// What goes wrong with this handle, and with no other.
    #[cfg(test)]
    pub(crate) faults: Faults,
}

/// What a verb answers inside the atomic step, and whether it changed anything.
type Step<T> = Result<(T, bool), ErrorKind>;

impl MemoryStore {
    /// What it can do; with a clock of its own, `clock` is [`ClockOf::Store`].
    pub const CAPABILITIES: Capabilities = Capabilities {
        clock: ClockOf::Caller,
        durable_on_reply: false,
        safe_over_failover: false,
        presence: PresenceBy::Record,
    };

    /// A new, empty store that goes by its callers' clocks.
    ///
    /// # Errors
    /// `Invalid` for a bad namespace; `Unavailable` without randomness for its identity.
    pub fn new(namespace: &str) -> Result<Self> {
        Self::open(namespace, None)
    }

    /// A new, empty store that goes by `clock`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(namespace: &str, clock: MemoryClock) -> Result<Self> {
        Self::open(namespace, Some(clock))
    }

    fn open(namespace: &str, clock: Option<MemoryClock>) -> Result<Self> {
        let identity = StoreIdentity { id: random::incarnation()?.to_string(), writes: 0 };
        let line = Line { identity, starts: Starts::default() };
        let world = World { line, spaces: BTreeMap::new() };
        Self::on(Arc::new(Mutex::new(world)), namespace, clock)
    }

    /// Another handle on the same store, in the same or another namespace.
    ///
    /// # Errors
    /// `Invalid` for a bad namespace.
    pub fn handle(&self, namespace: &str) -> Result<Self> {
        Self::on(Arc::clone(&self.world), namespace, self.clock.clone())
    }

    fn on(world: Arc<Mutex<World>>, namespace: &str, clock: Option<MemoryClock>) -> Result<Self> {
        check_name("namespace", namespace).map_err(|kind| Error::new("open", kind))?;
        Ok(Self {
            world,
            namespace: namespace.into(),
            clock,
            closed: AtomicBool::new(false),
            started: AtomicBool::new(false),
            seen: Mutex::new(None),
            #[cfg(test)]
            faults: Faults::default(),
        })
    }

    /// A copy of all that the store holds, in all its namespaces.
    #[must_use]
    pub fn backup(&self) -> MemoryBackup {
        MemoryBackup(self.world.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Puts a copy in the place of all that the store holds, in all its namespaces: what tests do to
    /// see what a store that went backwards leads to.
    pub fn restore(&self, backup: MemoryBackup) {
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = backup.0;
    }

    /// What the store holds of a slot; none of one that was never claimed. For whoever watches it: what a
    /// member may know is in its verbs.
    #[must_use]
    pub fn row(&self, pool: &str, slot: u64) -> Option<SlotRow> {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.spaces.get(&self.namespace)?.row(pool, slot).cloned()
    }

    /// The time that counts, when the caller's is `now`.
    fn time(&self, now: UnixMillis) -> UnixMillis {
        self.clock.as_ref().map_or(now, MemoryClock::now)
    }

    /// One atomic step: the lock is held for all of it, and nothing in it waits.
    ///
    /// `step` decides before it writes, so that a refusal leaves everything as it was.
    fn atomic<T>(
        &self,
        op: &'static str,
        step: impl FnOnce(&mut Space, &mut Line) -> Step<T>,
    ) -> Result<T> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::new(op, ErrorKind::Closed { what: "the memory store".into() }));
        }
        #[cfg(test)]
        self.faults.before(op)?;
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let World { line, spaces } = &mut *world;
        if !spaces.contains_key(&self.namespace) {
            spaces.insert(self.namespace.clone(), Space::default());
        }
        let space = spaces
            .get_mut(&self.namespace)
            .ok_or_else(|| Error::internal(op, "the namespace vanished under the lock"))?;
        if let Some(doubt) = space.standing.doubt.clone().filter(|_| !IN_DOUBT.contains(&op)) {
            return Err(Error::new(op, doubt.refusal()));
        }
        let (answer, changed) = step(space, line).map_err(|kind| Error::new(op, kind))?;
        if changed {
            line.identity.writes += 1;
        }
        if changed && !IN_DOUBT.contains(&op) && !self.started.swap(true, Ordering::SeqCst) {
            line.begin(&History::of(&line.identity.id).started()?, line.identity.writes);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        line.show(&mut seen, op == "recall");
        drop(seen);
        #[cfg(test)]
        self.faults.after(op)?;
        Ok(answer)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

fn unchanged<T>(answer: T) -> Step<T> {
    Ok((answer, false))
}

fn changed<T>(answer: T) -> Step<T> {
    Ok((answer, true))
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        let clock = if self.clock.is_some() { ClockOf::Store } else { ClockOf::Caller };
        Capabilities { clock, ..Self::CAPABILITIES }
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn cautions(&self) -> Vec<String> {
        Vec::new()
    }

    fn group_max(&self) -> u32 {
        u32::MAX
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        None
    }

    fn beside(&self, _: &str) -> Option<Arc<dyn StorePlace>> {
        None
    }

    fn clock_witness(&self) -> Option<Arc<dyn ClockWitness>> {
        #[cfg(test)]
        if self.faults.witness.is_some() {
            return self.faults.witness.clone();
        }
        None
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        let time = self.clock.as_ref().map(MemoryClock::now);
        self.atomic("now", |_, _| unchanged(time))
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.atomic("identity", |_, line| unchanged(line.identity.clone()))
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.atomic("recall", |space, line| {
            if let Some(doubt) = space.standing.doubt.clone() {
                return Err(doubt.refusal());
            }
            unchanged(recall(who, seen, &line.identity, &line.starts)?)
        })
    }

    async fn doubt(&self, doubt: &Doubt, id: &str) -> Result<()> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner).doubt(doubt, id);
        Ok(())
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.atomic("report", |space, _| {
            space.standing.hear(journal, known);
            changed(())
        })
    }

    async fn standing(&self) -> Result<Standing> {
        self.atomic("standing", |space, line| {
            unchanged(Standing { id: line.identity.id.clone(), ..space.standing.clone() })
        })
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        self.atomic("join", |space, _| {
            member::check(member, presence)?;
            space.join(member, presence, now);
            changed(())
        })
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        self.atomic("renew", |space, _| {
            member::check_presence(presence)?;
            Ok(((), space.renew(member, presence, now)?))
        })
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.atomic("announce", |space, _| {
            status.check()?;
            Ok(((), space.announce(member, status)?))
        })
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        self.atomic("leave", |space, _| Ok(((), space.leave(member, now))))
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let now = self.time(now);
        self.atomic("members", |space, _| unchanged(space.members(now)))
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let now = self.time(now);
        self.atomic("claim", |space, _| space.claim(request, now))
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let now = self.time(now);
        self.atomic("extend", |space, line| {
            let (marks, any_moved) = space.extend(items, now);
            let writes = line.identity.writes + u64::from(any_moved);
            let catalog_version = space.catalog_version;
            let answer = |moved: Result<_, ErrorKind>| match moved {
                Ok(mark) => Ok(Extended { mark, catalog_version, writes }),
                Err(kind) => Err(Error::new("extend", kind)),
            };
            Ok((marks.into_iter().map(answer).collect(), any_moved))
        })
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        #[cfg(test)]
        self.faults.sent(release);
        self.atomic("release", |space, _| Ok(((), space.release(release, now)?)))
    }

    async fn take(&self, take: &Take, now: UnixMillis) -> Result<Taken> {
        let now = self.time(now);
        self.atomic("take", |space, _| space.take(take, now))
    }

    async fn let_go(&self, let_go: &LetGo, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        self.atomic("let_go", |space, _| Ok(((), space.let_go(let_go, now))))
    }

    async fn avoid(&self, avoid: &Avoid, now: UnixMillis) -> Result<()> {
        let now = self.time(now);
        self.atomic("avoid", |space, _| space.avoid(avoid, now))
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let now = self.time(now);
        self.atomic("workers", |space, _| unchanged(space.workers(now)))
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let clock = self.clock.as_ref().map(MemoryClock::now);
        self.atomic("reserve", |space, line| {
            let writes = line.identity.writes + 1;
            changed(space.reserve(reserve, clock, writes)?)
        })
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.atomic("give_back", |space, _| changed(space.give_back(back)?))
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.atomic("define", |space, _| {
            let step = decide_define(space.definitions.get(&new.name), new)?;
            space.apply(&new.name, step)
        })
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.atomic("alter", |space, _| {
            let step = decide_alter(space.definitions.get(&new.name), new, if_version)?;
            space.apply(&new.name, step)
        })
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.atomic("restripe", |space, _| {
            let stored = space.definitions.get(&restripe.new.name);
            changed(space.write(decide_restripe(stored, restripe)?))
        })
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.atomic("set_state", |space, _| {
            let step = decide_state(space.definitions.get(name), name, state)?;
            space.apply(name, step)
        })
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.atomic("get", |space, _| {
            unchanged(existing(space.definitions.get(name), name)?.clone())
        })
    }

    async fn list(&self) -> Result<Catalog> {
        self.atomic("list", |space, _| {
            let definitions = space.definitions.values().cloned().collect();
            unchanged(Catalog { version: space.catalog_version, definitions })
        })
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let id = random::incarnation()?.to_string();
        self.atomic("fast_forward", |space, line| {
            forward.check()?;
            space.fast_forward(forward);
            let history = History::of(&line.identity.id).recovered(forward, &id);
            line.begin(&history.map_err(|error| error.kind().clone())?, line.identity.writes + 1);
            // The write that counts for this step is added after it.
            line.identity.writes = line.identity.writes.max(forward.writes_at_least);
            let StoreIdentity { id, writes } = line.identity.clone();
            changed(StoreIdentity { id, writes: writes + 1 })
        })
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.atomic("accept_lead", |space, _| {
            check_mark(until)?;
            space.accept_lead(until);
            changed(())
        })
    }

    async fn ground(&self) -> Result<Ground> {
        self.atomic("ground", |space, _| unchanged(space.ground()))
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_show_the_capabilities() {
        assert!(MemoryStore::CAPABILITIES.shown_in(include_str!("mod.rs")));
    }
}
