//! Notifying waiting callers, and reporting the node's readiness.

use std::sync::{Arc, PoisonError};

use snowmint_core::ElapsedMillis;

use super::super::lease::ActiveLease;
use super::state::{ClockFault, Driver, Stage};
use crate::machine::Now;
use crate::node::reason::{Readiness, Reason};

impl Driver {
    /// Replies to waiting callers, and updates the node's readiness. Leases without an own source
    /// have no part in it: a definition at run time must not take servers out of service.
    pub(super) fn report(&mut self, now: Now) {
        let mut reasons = Vec::new();
        let mut incarnation = None;
        let mut live_until = ElapsedMillis::new(0);
        let core = Arc::clone(&self.core);
        let is_own = |held: &ActiveLease| held.serves(|source| core.is_own(source));
        let own = self.leases.values().filter(|&held| is_own(held));
        // The one that ends first.
        let without_store_until = own.filter_map(ActiveLease::offline_until).min();
        match &self.stage {
            // Each lease that can be minted from reports its own state below.
            Stage::Out { .. } | Stage::Joining { .. } if without_store_until.is_some() => {}
            Stage::Out { error: Some(error), .. } | Stage::Joining { error: Some(error), .. } => {
                reasons.push(Reason::from(error));
            }
            Stage::Out { .. } | Stage::Joining { .. } => {
                reasons.push(Reason::not_joined());
            }
            Stage::In { member, presence } => {
                incarnation = Some(member.incarnation);
                live_until = presence.lease_until();
                // The rest of the windows can still be minted; an outage affects all servers of the
                // store at the same time, and each lease below reports a missing margin. Sections
                // have no window of their own: they are served as long as the presence lasts.
                if !presence.is_live(now) && !self.leases.values().any(is_own) {
                    let expired = "presence of this member in the store has expired";
                    reasons.push(Reason::new("unavailable", expired));
                }
            }
        }
        let of_clock = self.clock_fault.as_ref().map(ClockFault::error);
        self.core.ctx.set_clock_error(of_clock.cloned());
        // Every clock error is logged; none of them takes an open window away.
        let of_clock = of_clock.map(Reason::from);
        // It may be the reason why the store is not joined.
        reasons.extend(of_clock.filter(|reason| !reasons.contains(reason)));
        reasons.extend(self.journal_writer.error().map(Reason::from));
        for held in self.leases.values_mut() {
            held.publish_granted();
            // The margin is a tick. Ticks of other sources may be long, and require none here.
            let own_tick_ms = held.unit_ms_max_of(|source| core.is_own(source));
            reasons.extend(own_tick_ms.and_then(|tick_ms| held.not_ready(now, tick_ms)));
            if held.not_ready(now, held.unit_ms_max()).is_none() {
                for group in held.groups.values_mut().filter(|group| group.generators.is_some()) {
                    group.waiters.notify(&Ok(()));
                }
            }
        }
        self.core.ctx.metrics.live_until(live_until);
        let readiness = Readiness { ready: reasons.is_empty(), reasons, without_store_until };
        *self.core.readiness.lock().unwrap_or_else(PoisonError::into_inner) = readiness;
        *self.core.member.lock().unwrap_or_else(PoisonError::into_inner) = incarnation;
    }
}
