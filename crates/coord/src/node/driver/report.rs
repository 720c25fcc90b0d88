//! Telling who waits, and how the node is.

use std::sync::PoisonError;

use snowmint_core::ElapsedMillis;

use super::super::lease::Held;
use super::{Driver, Stage};
use crate::error::{Error, ErrorKind};
use crate::machine::Now;
use crate::node::Readiness;

impl Driver {
    /// Answers who waits, and says how the node is.
    pub(super) fn report(&mut self, now: Now) {
        let mut reasons = Vec::new();
        let mut incarnation = None;
        let mut live_until = ElapsedMillis::new(0);
        // The one that ends first.
        let without_store_until = self.leases.values().filter_map(Held::alone_until).min();
        match &self.stage {
            // What can be minted is, and each lease says so below.
            Stage::Out { .. } | Stage::Entering { .. } if without_store_until.is_some() => {}
            Stage::Out { error: Some(error), .. } => reasons.push(error.to_string()),
            Stage::Out { .. } | Stage::Entering { .. } => {
                reasons.push("the store is not joined yet".into());
            }
            Stage::In { member, presence } => {
                incarnation = Some(member.incarnation);
                live_until = presence.lease_until();
                if !presence.is_live(now) {
                    reasons.push("our presence in the store has lapsed".into());
                }
            }
        }
        let not_joined = match &self.stage {
            Stage::Out { error, .. } => error.as_ref().filter(|error| is_clocks(error)),
            Stage::Entering { .. } | Stage::In { .. } => None,
        };
        self.core.around.tell_clock_error(self.clock_error.as_ref().or(not_joined).cloned());
        // Every clock error is loud; none of them takes an open window away.
        reasons.extend(self.clock_error.as_ref().map(ToString::to_string));
        reasons.extend(self.keeper.error().map(ToString::to_string));
        for held in self.leases.values_mut() {
            held.tell_granted();
            match held.not_ready(now) {
                Some(reason) => reasons.push(reason),
                None => {
                    for group in held.groups.values_mut().filter(|group| group.minter.is_some()) {
                        group.answer(&Ok(()));
                    }
                }
            }
        }
        self.core.around.watch.live_until(live_until);
        let readiness = Readiness { ready: reasons.is_empty(), reasons, without_store_until };
        *self.core.readiness.lock().unwrap_or_else(PoisonError::into_inner) = readiness;
        *self.core.member.lock().unwrap_or_else(PoisonError::into_inner) = incarnation;
    }
}

fn is_clocks(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ClockAhead { .. } | ErrorKind::ClockBehind { .. })
}
