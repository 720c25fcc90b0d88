//! Lease in a running node: the machine, and the generators that mint from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_core::{Rfc3339, UnixMillis, Window};

use super::reason::Reason;
use super::saved::is_away;
use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::journal::JournalLease;
use crate::machine::{LeaseMachine, Now, Position, WindowMachine, WindowPolicy};
use crate::model::lease::Release;
use crate::model::pool::{Pool, Reuse, pool_of};
use crate::platform::random;
use crate::platform::waiters::Waiters;
use crate::sources::{GeneratorConfig, GeneratorSet, NodeContext, SlotWindow, SourceInner};
use crate::spec::{SnowflakePlan, Unique};

/// Limit on the slots of a node's leases that serve no own source. A journal has room for some
/// hundreds of leases, and each definition of a source decides how many clock values a worker has.
pub(super) const OTHERS_SLOTS_MAX: u32 = 128;

/// Key of the lease that a source mints from: one for each pool, and separate ones for sources that
/// would push the mark of others ahead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaseKey {
    pub(super) pool: String,
    users: LeaseUsers,
}

/// Sources that mint from one lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeaseUsers {
    /// All sources that push no mark ahead.
    Level,
    /// Sources that push it, and share the namespace's generator.
    Namespace,
    /// An own source that pushes it.
    Own(String),
    /// All other sources that push it. If each took a number of the pool at each server, those that
    /// one token defines could leave no number to own sources of other servers.
    Others,
}

/// Key of a generator: a source's own, or the one that the namespace's sources share.
pub(super) type GroupKey = Option<String>;

pub(super) fn group_key(name: &str, plan: &SnowflakePlan) -> GroupKey {
    (plan.unique == Unique::Source).then(|| name.into())
}

/// Returns the lease key and the pool of a source.
pub(super) fn place(
    name: &str,
    plan: &SnowflakePlan,
    reuse: Reuse,
    is_own: bool,
) -> (LeaseKey, Pool) {
    let users = match group_key(name, plan) {
        _ if !plan.rollback_plan.pushes_marks() => LeaseUsers::Level,
        None => LeaseUsers::Namespace,
        Some(name) if is_own => LeaseUsers::Own(name),
        Some(_) => LeaseUsers::Others,
    };
    let pool = pool_of(&plan.layout, reuse);
    (LeaseKey { pool: pool.name.clone(), users }, pool)
}

/// One generator and the sources that mint from it.
#[derive(Debug)]
pub(super) struct GeneratorGroup {
    pub(super) config: GeneratorConfig,
    pub(super) generators: Option<Arc<GeneratorSet>>,
    pub(super) sources: Vec<Arc<SourceInner>>,
    /// End of what earlier generators of this group have taken, for each slot of the lease.
    ends: Vec<UnixMillis>,
    pub(super) waiters: Waiters<Result<()>>,
}

impl GeneratorGroup {
    pub(super) fn new(config: GeneratorConfig) -> Self {
        Self {
            config,
            generators: None,
            sources: Vec::new(),
            ends: Vec::new(),
            waiters: Waiters::default(),
        }
    }

    fn unit_ms(&self) -> u64 {
        self.config.layout.unit_ms().into()
    }

    fn close(&mut self) -> Vec<UnixMillis> {
        if let Some(generators) = self.generators.take() {
            let ends = generators.close();
            self.ends.resize(self.ends.len().max(ends.len()), UnixMillis::ZERO);
            for (known, end) in self.ends.iter_mut().zip(ends) {
                *known = (*known).max(end);
            }
        }
        self.ends.clone()
    }

    pub(super) fn suspend(&self, reason: &Error) {
        for source in &self.sources {
            if let Some(backing) = source.backing.as_snowflake() {
                backing.suspend(reason.clone());
            }
        }
    }

    /// Gives the generator to sources that joined the group since.
    pub(super) fn serve(&self) {
        let Some(generators) = &self.generators else { return };
        for source in &self.sources {
            if let Some(backing) = source.backing.as_snowflake() {
                backing.serve(Arc::clone(generators));
            }
        }
    }
}

/// Lease and everything that mints from it.
#[derive(Debug)]
pub(super) struct ActiveLease {
    pub(super) pool: Pool,
    pub(super) machine: LeaseMachine,
    /// Windows of an earlier process, minted from until the machine holds slots.
    pub(super) offline: Vec<WindowMachine>,
    pub(super) groups: BTreeMap<GroupKey, GeneratorGroup>,
    /// Positions of the slots, over all generators, at the last poll.
    pub(super) seen: Vec<Position>,
    window_policy: WindowPolicy,
    /// Milliseconds by which the slots led the clock when they were claimed, if that was accepted.
    lead_ms: u64,
}

impl ActiveLease {
    pub(super) fn new(pool: Pool, window_policy: WindowPolicy) -> Result<Self> {
        let machine = LeaseMachine::new(window_policy, random::number()?);
        Ok(Self {
            pool,
            machine,
            offline: Vec::new(),
            groups: BTreeMap::new(),
            seen: Vec::new(),
            window_policy,
            lead_ms: 0,
        })
    }

    pub(super) const fn window_policy(&self) -> WindowPolicy {
        self.window_policy
    }

    pub(super) fn set_window_policy(&mut self, window_policy: WindowPolicy) {
        self.window_policy = window_policy;
        let ahead_max_ms = window_policy.ahead_max_ms.saturating_add(self.lead_ms);
        self.machine.set_window_policy(WindowPolicy { ahead_max_ms, ..window_policy });
        self.offline
            .iter_mut()
            .for_each(|window| window.set_window_policy(window_policy.offline()));
    }

    /// Returns the windows that are minted from, in the order of the claim.
    pub(super) fn windows(&self) -> &[WindowMachine] {
        if self.offline.is_empty() { self.machine.windows() } else { &self.offline }
    }

    /// Records that a caller wants to mint and found the window spent.
    pub(super) fn note_demand(&mut self, now: Now) {
        self.machine.note_demand(now);
        self.offline.iter_mut().for_each(|window| window.note_demand(now));
    }

    /// Accepts that the slots just claimed lead the clock: windows and generators continue from
    /// there. Returns the lead in milliseconds.
    pub(super) fn lead(&mut self, wall: UnixMillis) -> u64 {
        let leads = self.machine.windows().iter().map(|window| window.floor().since(wall));
        self.lead_ms = leads.min().unwrap_or(0);
        self.set_window_policy(self.window_policy);
        self.lead_ms
    }

    /// Starts again for a new member. The generators are closed.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.lead_ms = 0;
        self.machine = LeaseMachine::new(self.window_policy, random::number()?);
        self.forget_ends();
        Ok(())
    }

    /// Forgets what generators have taken: it says nothing about the next slots.
    pub(super) fn forget_ends(&mut self) {
        self.groups.values_mut().for_each(|group| group.ends.clear());
    }

    /// Reads the positions of the slots, over all generators.
    pub(super) fn see(&mut self) {
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        seen.resize(self.windows().len(), Position::default());
        for generators in self.groups.values().filter_map(|group| group.generators.as_ref()) {
            generators.each_position(|index, one| {
                let Some(all) = seen.get_mut(index) else { return };
                all.taken_until = all.taken_until.max(one.taken_until);
                all.wanted |= one.wanted;
            });
            // A held clock advances while nothing is minted.
            if let (Some(first), Some(held)) = (seen.first_mut(), generators.held_at()) {
                first.held |= held > first.taken_until;
                first.taken_until = first.taken_until.max(held);
            }
        }
        self.seen = seen;
    }

    /// Moves the journal marks for a write that happens anyway.
    pub(super) fn journal(&mut self, now: Now) {
        self.machine.journal(now, &self.seen);
        for (window, position) in self.offline.iter_mut().zip(&self.seen) {
            window.journal(now, *position);
        }
    }

    /// Makes the missing generators, if the lease is held.
    pub(super) fn make_generators(&mut self, ctx: &NodeContext) -> Result<()> {
        let windows = if self.offline.is_empty() { self.machine.windows() } else { &self.offline };
        if windows.is_empty() {
            return Ok(());
        }
        let group_size = u64::from(self.pool.group.max(1));
        let needed =
            |group: &&mut GeneratorGroup| group.generators.is_none() && !group.sources.is_empty();
        for group in self.groups.values_mut().filter(needed) {
            let ends = std::mem::take(&mut group.ends);
            let slots: Vec<_> = windows
                .iter()
                .enumerate()
                .map(|(index, window)| {
                    let slot = window.lease().slot;
                    let end = ends.get(index).copied().unwrap_or_default();
                    SlotWindow {
                        worker: slot / group_size,
                        clock_value: slot % group_size,
                        window: Window::new(window.floor().max(end), window.open_until()),
                    }
                })
                .collect();
            group.ends = ends;
            let (clock, observer) = (Arc::clone(&ctx.clock), Arc::clone(&ctx.observer));
            let config = group.config.leading_by(self.lead_ms);
            let generators =
                GeneratorSet::new(&config, &slots, clock, observer, random::number()?)?;
            group.generators = Some(Arc::new(generators));
            group.serve();
        }
        Ok(())
    }

    /// Opens a window further, after the store and the journal granted it.
    pub(super) fn open(&self, index: usize, until: UnixMillis) {
        for generators in self.groups.values().filter_map(|group| group.generators.as_ref()) {
            generators.extend_to(index, until);
        }
    }

    /// Gives the sources the end of what the store has granted.
    pub(super) fn publish_granted(&self) {
        let windows = self.windows().iter().zip(&self.seen);
        let marks = windows.filter(|(_, at)| at.wanted).map(|(window, _)| window.mark());
        let until = marks.max().map(|mark| mark.unix_millis()).unwrap_or_default();
        for source in self.groups.values().flat_map(|group| &group.sources) {
            if let Some(backing) = source.backing.as_snowflake() {
                backing.granted_until(until);
            }
        }
    }

    /// Returns whether no source mints from it.
    pub(super) fn is_unused(&self) -> bool {
        self.groups.values().all(|group| group.sources.is_empty())
    }

    /// Returns whether one of these sources mints from it.
    pub(super) fn serves(&self, is_one: impl Fn(&str) -> bool) -> bool {
        let mut sources = self.groups.values().flat_map(|group| &group.sources);
        sources.any(|source| is_one(&source.name))
    }

    /// Closes a group's generator, so that another can follow it.
    pub(super) fn replace(&mut self, key: &GroupKey, config: GeneratorConfig) {
        if let Some(group) = self.groups.get_mut(key) {
            group.close();
            group.config = config;
        }
    }

    /// Closes a group's generator once no source needs it. Remembers what it has taken. Returns its
    /// waiters.
    pub(super) fn close_if_unused(&mut self, key: &GroupKey) -> Option<Waiters<Result<()>>> {
        let group = self.groups.get_mut(key).filter(|group| group.sources.is_empty())?;
        group.close();
        Some(std::mem::take(&mut group.waiters))
    }

    /// Closes all generators for good. Returns what is known of each slot from here on, and the
    /// releases that give the slots up.
    pub(super) fn close(&mut self, reason: &Error) -> (Vec<JournalLease>, Vec<Release>) {
        let ends = self.close_groups(reason);
        let known = self.known(&ends);
        let mut releases = self.machine.close(&ends);
        let offline = std::mem::take(&mut self.offline).into_iter().zip(ends);
        releases.extend(offline.map(|(mut window, end)| window.close(end)));
        (known, releases)
    }

    /// Closes all generators for good. Returns the end of what they have taken, for each slot.
    pub(super) fn close_groups(&mut self, reason: &Error) -> Vec<UnixMillis> {
        let mut ends = vec![UnixMillis::ZERO; self.windows().len()];
        for group in self.groups.values_mut() {
            // First no new calls begin; then the calls in progress count as taken.
            group.suspend(reason);
            for (all, end) in ends.iter_mut().zip(group.close()) {
                *all = (*all).max(end);
            }
        }
        ends
    }

    /// Returns what is known of the slots from here on, once their generators are closed.
    pub(super) fn known(&self, ends: &[UnixMillis]) -> Vec<JournalLease> {
        let known = |(window, end): (&WindowMachine, &UnixMillis)| {
            let lease = window.lease();
            JournalLease {
                pool: lease.pool.clone(),
                slot: lease.slot,
                term: lease.term,
                // Nothing is minted beyond the open window, however ticks round.
                mark: Mark::from((*end).min(window.open_until().max(lease.floor.unix_millis()))),
                released: true,
                granted: window.mark(),
            }
        };
        self.windows().iter().zip(ends).map(known).collect()
    }

    /// Returns the store's reason for granting no worker number.
    pub(super) fn refused(&self) -> Option<&Error> {
        let refused = self.machine.claim_error().filter(|_| self.windows().is_empty());
        refused.filter(|error| !is_away(error))
    }

    /// Returns the reason why the lease cannot be minted from for `margin_ms`, if any.
    pub(super) fn not_ready(&self, now: Now, margin_ms: u64) -> Option<Reason> {
        if self.is_unused() {
            return None;
        }
        let windows = self.windows();
        if windows.is_empty() {
            let error = self.machine.claim_error();
            let code = error.map_or("not_claimed", |error| error.kind().code());
            let reason = error.map_or("not claimed yet".into(), Error::message);
            let message = format!("no worker number of pool {}: {reason}", self.pool.name);
            return Some(Reason::new(code, message).with_detail_of(error));
        }
        // With clock values, one that can be minted from is enough.
        if windows.iter().any(|window| window.has_margin(now, margin_ms)) {
            return None;
        }
        let until = windows.iter().map(|window| window.open_until()).max().unwrap_or_default();
        let error = windows.iter().find_map(|window| window.extend_error());
        let code = error.map_or("window_spent", |error| error.kind().code());
        let reason = error.map(|error| format!(": {}", error.message())).unwrap_or_default();
        let pool = &self.pool.name;
        let message = match until {
            // Claimed, and not granted yet.
            UnixMillis::ZERO => format!("the window of pool {pool} is not open yet{reason}"),
            until => format!("the window of pool {pool} ends at {}{reason}", Rfc3339(until)),
        };
        Some(Reason::new(code, message).with_detail_of(error))
    }

    /// Returns the longest tick.
    pub(super) fn unit_ms_max(&self) -> u64 {
        self.groups.values().map(GeneratorGroup::unit_ms).max().unwrap_or(1)
    }

    /// Returns the longest tick of these sources; none if none of them mints from it.
    pub(super) fn unit_ms_max_of(&self, is_one: impl Fn(&str) -> bool) -> Option<u64> {
        let serves = |group: &&GeneratorGroup| group.sources.iter().any(|it| is_one(&it.name));
        self.groups.values().filter(serves).map(GeneratorGroup::unit_ms).max()
    }
}
