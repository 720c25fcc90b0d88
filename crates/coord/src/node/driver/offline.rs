//! Offline minting: the store is not reached yet, and the settings allow it.

use snowmint_core::Rfc3339;

use super::super::lease::LeaseKey;
use super::super::offline::unminted_rest;
use super::super::saved::{is_away, own_first};
use super::state::{Driver, Stage};
use crate::error::{Error, chain};
use crate::machine::{Granted, Now, WindowAction};

impl Driver {
    /// Records demand on all windows when a caller found one spent: none is idle any more.
    pub(super) fn note_demand(&mut self, now: Now) {
        if self.core.ctx.take_spent() {
            self.leases.values_mut().for_each(|held| held.note_demand(now));
        }
    }

    /// Resumes offline minting from the windows in the journal while the store is unavailable.
    pub(super) fn resume_offline(&mut self, now: Now) {
        let away = match &self.stage {
            Stage::Out { error: Some(error), .. } => is_away(error),
            _ => false,
        };
        if !away || !self.core.settings.start_without_store {
            return;
        }
        let worker = self.core.settings.worker;
        let holder = self.journal_writer.past_member();
        for held in self.leases.values_mut() {
            if held.is_unused() || !held.windows().is_empty() {
                continue;
            }
            let rest = unminted_rest(&self.past, &held.pool, worker, now.wall);
            if rest.is_empty() {
                continue;
            }
            let begun = held.resume_offline(&rest, holder);
            let begun = begun.and_then(|()| held.make_generators(&self.core.ctx));
            if let Err(error) = begun {
                tracing::error!(error = %chain(&error), "failed to start generators");
                continue;
            }
            self.past.retain(|past| !rest.contains(past));
            let until = Rfc3339(held.offline_until().unwrap_or_default());
            let (pool, slot) = (&held.pool.name, rest.first().map(|lease| lease.slot));
            tracing::warn!(
                %pool, slot, %until, allowed_by = "worker.start_without_store",
                "minting offline in the rest of the window; the store does not respond"
            );
        }
    }

    /// Keeps the journal ahead of what is minted offline.
    pub(super) fn poll_offline(&mut self, now: Now) {
        for held in self.leases.values_mut().filter(|held| held.is_offline()) {
            for generators in held.groups.values().filter_map(|group| group.generators.as_ref()) {
                generators.check_clock();
            }
            for (index, action) in held.poll_offline(now) {
                match action {
                    WindowAction::Journal(_) => self.journal_writer.want(),
                    WindowAction::Open(until) => held.open(index, until),
                    WindowAction::Extend(_) | WindowAction::Shut(_) => {}
                }
            }
        }
    }

    /// Ends offline minting when the store responds and rejects this node: the store's state is not
    /// the one that granted the windows.
    pub(super) fn end_offline(&mut self, reason: &Error) {
        if is_away(reason) {
            return;
        }
        let mut leases = std::mem::take(&mut self.leases);
        for held in leases.values_mut().filter(|held| held.is_offline()) {
            tracing::error!(pool = %held.pool.name, error = %chain(reason), "the store rejects this node; offline minting ends");
            // Nothing is released: this may not be the store that granted it.
            drop(self.close_lease(held, reason));
            if let Err(error) = held.restart() {
                tracing::error!(error = %chain(&error), "failed to get random numbers for a claim");
            }
        }
        self.leases = leases;
        self.journal_writer.want();
    }

    /// Ends offline minting for a lease after slots were claimed for it.
    pub(super) fn end_offline_with(&mut self, key: &LeaseKey, granted: &mut [Granted]) {
        let Some(held) = self.leases.get_mut(key).filter(|held| held.is_offline()) else { return };
        let known = held.end_offline_with(granted);
        let kept = granted.iter().any(|new| known.iter().any(|old| old.slot == new.lease.slot));
        tracing::warn!(pool = %key.pool, kept, "store reached; offline minting ends");
        self.remember(known);
    }

    /// Keeps the definitions of the sources that could be minted from offline in the journal: of own
    /// sources first, whatever the names and the number of others.
    pub(super) fn keep_sources(&mut self) {
        if !self.core.settings.start_without_store {
            return;
        }
        let groups = self.leases.values().flat_map(|held| held.groups.values());
        let sources = groups.flat_map(|group| &group.sources);
        let sources = own_first(sources, |source| self.core.is_own(source));
        self.journal_writer.keep_sources(sources);
    }
}
