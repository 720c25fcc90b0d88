//! Actions of the leases: claims, extends and windows to open.

use std::sync::Arc;

use super::super::join::{self, ClaimArgs, ClaimLeftovers};
use super::super::lease::LeaseKey;
use super::state::{Completion, Driver, Stage};
use crate::error::Error;
use crate::ids::Incarnation;
use crate::machine::{LeaseAction, LeaseEvent, Now, WindowAction};
use crate::model::lease::Extend;

impl Driver {
    pub(super) fn poll_leases(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        let incarnation = member.incarnation;
        let mut extends = Vec::new();
        for (key, held) in &mut self.leases {
            for generators in held.groups.values().filter_map(|group| group.generators.as_ref()) {
                generators.check_clock();
            }
            for action in held.machine.on(now, LeaseEvent::Poll(&held.seen)) {
                match action {
                    LeaseAction::Claim { request } => {
                        let mut past = held.known_offline();
                        let others = self.past.iter().filter(|past| past.pool == held.pool.name);
                        past.extend(others.cloned());
                        let claim = ClaimArgs {
                            pool: held.pool.clone(),
                            member: member.clone(),
                            supersedes: self.before,
                            past,
                            request,
                            pending_releases: self.pending_releases.all().cloned().collect(),
                        };
                        let (core, key) = (Arc::clone(&self.core), key.clone());
                        let member = incarnation;
                        self.leaks.claim_sent();
                        self.tasks.spawn(async move {
                            let mut left = ClaimLeftovers::default();
                            let result =
                                join::claim(&core.ctx, &core.settings, &claim, &mut left).await;
                            Completion::Claimed { key, member, request, result, left }
                        });
                    }
                    LeaseAction::Window { action: WindowAction::Extend(extend), .. } => {
                        extends.push((key.clone(), extend));
                    }
                    LeaseAction::Window { action: WindowAction::Journal(_), .. } => {
                        self.journal_writer.want();
                    }
                    LeaseAction::Window { index, action: WindowAction::Open(until) } => {
                        held.open(index, until);
                    }
                    LeaseAction::Window { action: WindowAction::Shut(_), .. }
                    | LeaseAction::Granted
                    | LeaseAction::Lost(_) => {}
                }
            }
        }
        self.spawn_extends(incarnation, extends, now);
    }

    fn spawn_extends(&mut self, member: Incarnation, items: Vec<(LeaseKey, Extend)>, now: Now) {
        if items.is_empty() {
            return;
        }
        let core = Arc::clone(&self.core);
        self.tasks.spawn(async move {
            let extends: Vec<_> = items.iter().map(|(_, extend)| extend.clone()).collect();
            let mut results = match core.ctx.extend(&extends, now.wall).await {
                Ok(results) => results,
                Err(error) => vec![Err(error); items.len()],
            };
            let returned = results.len();
            let missing = || {
                Err(Error::internal(format!(
                    "internal error: store returned {returned} extend results, expected {}; \
                     please report it",
                    items.len()
                )))
            };
            results.resize_with(items.len(), missing);
            Completion::Extended { member, items, results }
        });
    }
}
