//! Assignment of leases and generators to sources.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::lease::{
    ActiveLease, GeneratorGroup, GroupKey, LeaseKey, OTHERS_SLOTS_MAX, group_key, place,
};
use super::state::Driver;
use crate::error::{Error, Result, chain};
use crate::machine::WindowPolicy;
use crate::model::catalog::{Catalog, SourceState};
use crate::model::pool::Pool;
use crate::node::command::node_closed;
use crate::platform::waiters::Waiters;
use crate::sources::{Defined, SourceInner};
use crate::spec::{MinterPlan, Order, Plan, SnowflakePlan};

impl Driver {
    pub(super) fn attach(&mut self, source: &Arc<SourceInner>, reply: oneshot::Sender<Result<()>>) {
        let defined = source.defined.load_full();
        let plan = match &defined.plan {
            Plan::Snowflake(plan) if plan.order == Order::Local && needs_number(&defined) => plan,
            // Other sources get what they need when a caller mints.
            _ => {
                let _ = reply.send(Ok(()));
                return;
            }
        };
        let (lease, group) = match self.assign_lease(source, plan) {
            Ok(assigned) => assigned,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        self.keep_sources();
        let Some(held) = self.leases.get_mut(&lease) else { return };
        if let Some(refused) = held.refused() {
            // The claim is retried at its own interval, however many callers wait.
            let _ = reply.send(Err(refused.clone()));
        } else if let Some(group) = held.groups.get_mut(&group) {
            group.waiters.add(reply);
        }
    }

    /// Finds or creates the lease and the generator of a source.
    fn assign_lease(
        &mut self,
        source: &Arc<SourceInner>,
        plan: &SnowflakePlan,
    ) -> Result<(LeaseKey, GroupKey)> {
        let settings = self.core.settings.clone();
        let is_own = self.core.is_own(&source.name);
        let (key, pool) = place(&source.name, plan, settings.reuse, is_own);
        let group_key = group_key(&source.name, plan);
        let rivals = match settings.worker {
            Some(worker) => self.rivals(source, &key, worker)?,
            None => Vec::new(),
        };
        self.check_slots(source, &key, &pool)?;
        let config = settings.made(plan);
        let waiters = self.leave_leases(source, &group_key, Some(&key));
        rivals.iter().for_each(|rival| self.evict(rival));
        let unit_ms = u64::from(plan.layout.unit_ms());
        let known = self.leases.get(&key);
        let unit_ms = unit_ms.max(known.map_or(1, ActiveLease::unit_ms_max));
        let mut window_policy = WindowPolicy::new(
            settings.window_ms,
            unit_ms,
            config.lead_max_ms(),
            settings.clock_skew_max_ms,
            self.journal_writer.is_kept(),
        )
        .idle_after(settings.idle_after_ms, unit_ms);
        if let Some(held) = known {
            window_policy.ahead_max_ms =
                window_policy.ahead_max_ms.max(held.window_policy().ahead_max_ms);
        }
        let held = match self.leases.entry(key.clone()) {
            std::collections::btree_map::Entry::Occupied(held) => held.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(ActiveLease::new(pool, window_policy)?)
            }
        };
        held.set_window_policy(window_policy);
        let mut is_changed = false;
        if let Some(group) = held.groups.get(&group_key)
            && group.config != config
        {
            held.replace(&group_key, config);
            is_changed = true;
        }
        let group =
            held.groups.entry(group_key.clone()).or_insert_with(|| GeneratorGroup::new(config));
        if !group.sources.iter().any(|known| Arc::ptr_eq(known, source)) {
            group.sources.push(Arc::clone(source));
            is_changed = true;
        }
        group.waiters.add_all(waiters);
        group.serve();
        if is_changed {
            held.machine.hurry();
        }
        held.make_generators(&self.core.ctx)?;
        Ok((key, group_key))
    }

    /// Returns the other leases of a pool with one worker number for this node, `worker`. They give
    /// way if they serve this source alone, which then needs another lease. For an own source they
    /// also give way if they serve no other own source: no definition at run time keeps a source of
    /// the configuration from its number.
    fn rivals(&self, source: &SourceInner, key: &LeaseKey, worker: u64) -> Result<Vec<LeaseKey>> {
        let core = &self.core;
        let is_own = core.is_own(&source.name);
        let stays = |name: &str| name != source.name && (!is_own || core.is_own(name));
        let mut rivals = Vec::new();
        for (rival, held) in &self.leases {
            if rival.pool != key.pool || rival == key {
                continue;
            }
            if held.serves(stays) {
                return Err(needs_two(&source.name, &key.pool, worker));
            }
            rivals.push(rival.clone());
        }
        Ok(rivals)
    }

    /// Checks that a further lease for a source that is not the node's own leaves the journal room.
    /// A journal that cannot be written would end all minting.
    fn check_slots(&self, source: &SourceInner, key: &LeaseKey, pool: &Pool) -> Result<()> {
        let core = &self.core;
        if core.is_own(&source.name) || self.leases.contains_key(key) {
            return Ok(());
        }
        // A lease that serves this source alone ends with the new one.
        let others = self.leases.values().filter(|held| {
            held.serves(|name| name != source.name) && !held.serves(|name| core.is_own(name))
        });
        let slots = others.fold(pool.group, |slots, held| slots.saturating_add(held.pool.group));
        if slots <= OTHERS_SLOTS_MAX {
            return Ok(());
        }
        Err(Error::limit_exceeded(format!(
            "sources outside the configuration would take {slots} clock values of worker numbers \
             here with source {:?}, limit {OTHERS_SLOTS_MAX}; use fewer clock bits, or add it to \
             the configuration",
            source.name
        )))
    }

    /// Gives up a lease for another one of its pool.
    fn evict(&mut self, key: &LeaseKey) {
        let Some(mut held) = self.leases.remove(key) else { return };
        let reason = Error::unsupported(format!(
            "sources of the configuration need the worker number of pool {:?} (worker.number); set \
             worker.number = any",
            key.pool
        ));
        if !held.is_unused() {
            tracing::warn!(pool = %key.pool, "sources outside the configuration lost their worker number");
        }
        let releases = self.close_lease(&mut held, &reason);
        self.add_releases(releases);
        for group in held.groups.values_mut() {
            group.waiters.notify(&Err(reason.clone()));
        }
    }

    /// Removes a source from leases that it no longer needs: after a change of its policy it may
    /// need another one, and a disabled source needs none. Returns the waiters for generators that
    /// no source needs any more.
    fn leave_leases(
        &mut self,
        source: &Arc<SourceInner>,
        group_key: &GroupKey,
        but: Option<&LeaseKey>,
    ) -> Waiters<Result<()>> {
        let mut waiters = Waiters::default();
        for (other, held) in &mut self.leases {
            if Some(other) == but {
                continue;
            }
            if let Some(group) = held.groups.get_mut(group_key)
                && group.sources.iter().any(|known| Arc::ptr_eq(known, source))
            {
                group.sources.retain(|known| !Arc::ptr_eq(known, source));
                if let Some(waited) = held.close_if_unused(group_key) {
                    waiters.add_all(waited);
                }
            }
        }
        waiters
    }

    /// Gives up the leases that no source mints from any more.
    fn give_up_unused(&mut self) {
        let unused: Vec<_> = self
            .leases
            .iter()
            .filter(|(_, held)| held.is_unused())
            .map(|(key, _)| key.clone())
            .collect();
        for key in unused {
            let Some(mut held) = self.leases.remove(&key) else { continue };
            tracing::info!(pool = %key.pool, "releasing a worker number that no source needs");
            let releases = self.close_lease(&mut held, &node_closed());
            self.add_releases(releases);
        }
    }

    /// Reports deleted sources, which the journal may drop when others need the room.
    fn report_deleted(&self, catalog: &Catalog) {
        // A store that was rolled back lists older sources as deleted, and grants their numbers
        // again.
        if !self.journal_writer.is_kept() || self.core.ctx.is_outdated(catalog.version) {
            return;
        }
        // The list may be older than this node's knowledge: a source that was defined again since
        // keeps its place.
        let is_gone = |known: Arc<SourceInner>| known.defined.load().state == SourceState::Deleted;
        let deleted = catalog.definitions.iter().filter(|read| {
            read.state == SourceState::Deleted && self.core.known(&read.name).is_none_or(is_gone)
        });
        let deleted = deleted.map(|read| (read.name.clone(), read.version)).collect();
        self.core.ctx.journal_budget.deleted(deleted);
    }

    /// Replaces the generators of sources with changed definitions. Sources that were disabled or
    /// deleted give their worker number up, if no other source has the same.
    pub(super) fn apply_catalog(&mut self, catalog: &Catalog) {
        self.report_deleted(catalog);
        for source in self.core.known_sources() {
            let defined = source.defined.load_full();
            let Plan::Snowflake(plan) = &defined.plan else { continue };
            if plan.minter_plan != MinterPlan::Process {
                continue;
            }
            if plan.order == Order::Global {
                self.global_order.altered(&source, plan);
            } else if !needs_number(&defined) {
                let mut waiters = self.leave_leases(&source, &group_key(&source.name, plan), None);
                waiters.notify(&source.check_enabled());
            } else if let Err(error) = self.assign_lease(&source, plan) {
                tracing::error!(source = %source.name, error = %chain(&error), "failed to mint by a changed definition");
            }
        }
        self.give_up_unused();
        self.keep_sources();
    }
}

/// Returns whether callers may mint from it: otherwise nothing is claimed or kept for it.
fn needs_number(defined: &Defined) -> bool {
    defined.state == SourceState::Enabled
}

/// Returns the error for two leases with one number, which cannot be claimed twice.
fn needs_two(source: &str, pool: &str, worker: u64) -> Error {
    Error::unsupported(format!(
        "source {source:?} cannot share worker number {worker} of pool {pool:?} (worker.number): \
         on_rollback borrow and clock-sequence need a number of their own; set worker.number = any"
    ))
}
