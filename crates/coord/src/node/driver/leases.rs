//! Actions of the leases: claims, extends and windows to open.

use std::sync::Arc;

use super::super::entry::{self, Claim, Left};
use super::super::lease::LeaseKey;
use super::{Done, Driver, Stage};
use crate::error::Error;
use crate::lease::Extend;
use crate::machine::{LeaseAction, LeaseEvent, Now, WindowAction};
use crate::member::Incarnation;

impl Driver {
    pub(super) fn look_at_leases(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        let incarnation = member.incarnation;
        let mut extends = Vec::new();
        for (key, held) in &mut self.leases {
            for minter in held.groups.values().filter_map(|group| group.minter.as_ref()) {
                minter.check_clock();
            }
            for action in held.machine.on(now, LeaseEvent::Look(&held.seen)) {
                match action {
                    LeaseAction::Claim { request } => {
                        let mut past = held.known_alone();
                        let others = self.past.iter().filter(|past| past.pool == held.pool.name);
                        past.extend(others.cloned());
                        let claim = Claim {
                            pool: held.pool.clone(),
                            member: member.clone(),
                            supersedes: self.before,
                            past,
                            request,
                            owed: self.owed.all().cloned().collect(),
                        };
                        let (core, key) = (Arc::clone(&self.core), key.clone());
                        let member = incarnation;
                        self.strays.claim_sent();
                        self.tasks.spawn(async move {
                            let mut left = Left::default();
                            let answer =
                                entry::claim(&core.around, &core.settings, &claim, &mut left).await;
                            Done::Claimed { key, member, request, answer, left }
                        });
                    }
                    LeaseAction::Window { action: WindowAction::Extend(extend), .. } => {
                        extends.push((key.clone(), extend));
                    }
                    LeaseAction::Window { action: WindowAction::Journal(_), .. } => {
                        self.keeper.want();
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
            let mut answers = match core.around.extend(&extends, now.wall).await {
                Ok(answers) => answers,
                Err(error) => vec![Err(error); items.len()],
            };
            let returned = answers.len();
            let missing = || {
                Err(Error::internal(format!(
                    "internal error: store returned {returned} extend results, expected {}; \
                     please report it",
                    items.len()
                )))
            };
            answers.resize_with(items.len(), missing);
            Done::Extended { member, items, answers }
        });
    }
}
