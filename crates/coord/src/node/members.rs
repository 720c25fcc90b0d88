//! Lists of members and worker numbers, with the members that are shown as live.
//!
//! A store without a clock judges by the caller's clock, so a member whose clock differs by more
//! than its time to live would seem gone. Lists allow the difference that `clock_skew_max_ms`
//! permits, as long as the member's renewals advance by our elapsed clock. Claims do not: the store
//! judges them by itself.

use std::collections::HashSet;
use std::sync::PoisonError;

use super::state::Node;
use crate::error::{Result, Verb};
use crate::ids::Incarnation;
use crate::model::member::MemberInfo;
use crate::model::pool::SECTIONS_POOL;
use crate::model::slot::SlotInfo;
use crate::store::capability::ClockOf;

impl Node {
    /// Returns the addresses of the other live members that report one.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn others(&self) -> Result<Vec<String>> {
        let mut members = self.members().await?;
        let own = self.incarnation();
        members.retain(|info| info.live && Some(info.member.incarnation) != own);
        let addresses = members.into_iter().map(|info| info.member.address);
        Ok(addresses.filter(|address| !address.is_empty()).collect())
    }

    /// Returns the members that the store knows, live or not.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn members(&self) -> Result<Vec<MemberInfo>> {
        let core = self.core();
        let ctx = &core.ctx;
        let now = ctx.clock.unix_ms();
        let mut members = ctx.store_call(Verb::Members, core.reads.members(now)).await?;
        if ctx.store.capabilities().clock == ClockOf::Store {
            return Ok(members);
        }
        let at = ctx.timer.elapsed();
        let mut watch = core.renewal_watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.record(&members, at);
        let stalled: HashSet<_> = watch.stalled(at).into_iter().map(|it| it.member).collect();
        for info in &mut members {
            let may_be_live = info.is_live_within(core.settings.clock_skew_max_ms, now);
            info.live = may_be_live && !stalled.contains(&info.member.incarnation);
        }
        Ok(members)
    }

    /// Returns all worker numbers that were ever claimed, without the sections of counters, of
    /// which there are many.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn workers(&self) -> Result<Vec<SlotInfo>> {
        let ctx = &self.core().ctx;
        let slots = self.core().reads.workers(ctx.clock.unix_ms());
        let mut slots = ctx.store_call(Verb::Workers, slots).await?;
        slots.retain(|slot| slot.pool != SECTIONS_POOL);
        if ctx.store.capabilities().clock == ClockOf::Caller {
            let members = self.members().await?;
            let live: HashSet<Incarnation> = members
                .iter()
                .filter(|info| info.live)
                .map(|info| info.member.incarnation)
                .collect();
            for slot in &mut slots {
                slot.live = slot.holder.is_some_and(|holder| live.contains(&holder));
            }
        }
        Ok(slots)
    }
}
