//! Limits on a program's move of a source's mark: as far as the definition lets programs move it. A
//! mark never falls, so a client with a free choice of length or bounds could exhaust a source for
//! every caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use snowmint_coord::segment::NumberInterval;
use snowmint_coord::spec::{MinterPlan, Plan, SegmentPlan, SnowflakePlan};
use snowmint_coord::{Bounds, Error as StoreError, Reserve, SourceSpec, Ticks};
use snowmint_core::{Clock as _, SystemClock, UnixMillis};
use snowmint_wire::error::Code;

use super::target_store::TargetStore;
use crate::error::Error;
use crate::service::{Limit, NotDone, Service};

/// Milliseconds ahead of this server's clock at which a caller may begin a period of serials.
/// Clocks that differ by more are rejected where they are compared.
const AHEAD_MS: u64 = 60_000;

/// Plans of sources by their last read definitions: of each store, by name.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<HashMap<(String, String), (u64, Plan)>>);

impl Plans {
    /// Limits a request to the source's definition.
    pub(crate) async fn limited(
        &self,
        at: &TargetStore,
        service: &Service,
        mut reserve: Reserve,
    ) -> Result<Reserve, NotDone> {
        let now = SystemClock.unix_ms();
        let segment_max = service.most(&reserve.source, Limit::Segment);
        match self.of(at, &reserve).await? {
            Plan::Snowflake(plan) if plan.minter_plan != MinterPlan::Process => {
                reserve.within = Some(Bounds::Now(ticks(&plan, reserve.within, now)?));
            }
            Plan::Segment(plan) => {
                reserve.length = reserve.length.min(segment_max.max(plan.step.most()));
                reserve.within = self.range(at, &plan, &reserve, now).await?;
            }
            _ => return Err(without_numbers(&reserve.source)),
        }
        Ok(reserve)
    }

    /// Returns the plan by the caller's version of the definition; else by the newest, which the
    /// store rejects.
    async fn of(&self, at: &TargetStore, reserve: &Reserve) -> Result<Plan, NotDone> {
        let key = (at.secondary_store.clone(), reserve.source.clone());
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, plan)) = known().get(&key)
            && *version == reserve.definition_version
        {
            return Ok(plan.clone());
        }
        let definition = at.store.get(&reserve.source).await?;
        let plan = SourceSpec::from_stored(&definition.spec).and_then(|spec| spec.check());
        let plan = plan.map_err(|error| {
            StoreError::unsupported(format!(
                "source {:?} has a definition unknown to this server: {error}; update the server",
                reserve.source
            ))
        })?;
        known().insert(key, (definition.version, plan.clone()));
        Ok(plan)
    }

    /// Limits the program's range: the mark jumps to its beginning.
    async fn range(
        &self,
        at: &TargetStore,
        plan: &SegmentPlan,
        reserve: &Reserve,
        now: UnixMillis,
    ) -> Result<Option<Bounds>, NotDone> {
        let source = &reserve.source;
        let range = match reserve.within {
            Some(Bounds::Now(_)) => return Err(refused(source)),
            // The upstream's table decides the place, and only a caller with `admin` is believed.
            _ if plan.upstream.is_some() => return Err(of_upstream(source)),
            Some(Bounds::Range(range)) => range,
            None if plan.serial.is_some() => return Err(without_period(source)),
            None if plan.stripe.until().is_none() => return Ok(None),
            None => NumberInterval { first: plan.stripe.number_min(), end: u64::MAX },
        };
        let is_reached = range.first <= furthest(plan, now);
        if is_reached && range.end <= end_from(plan, range.first) {
            return Ok(Some(Bounds::Range(range)));
        }
        let mark = at.store.get(source).await?.segment.mark.get();
        // A range that other callers have taken already moves no mark.
        if !is_reached && range.first > mark {
            return Err(refused(source));
        }
        // The mark follows the last number that was taken, and may lie between two periods.
        let newest = if range.first > mark { range.first } else { mark.saturating_sub(1) };
        let end = range.end.min(end_from(plan, newest));
        Ok(Some(Bounds::Range(NumberInterval { end, ..range })))
    }
}

/// Returns the furthest jump of a program: the beginning of the numbers, or of this period's.
fn furthest(plan: &SegmentPlan, now: UnixMillis) -> u64 {
    match &plan.serial {
        None => plan.stripe.number_min(),
        Some(serial) => {
            let period = serial.at(now.saturating_add(AHEAD_MS));
            period.map_or(0, |period| plan.stripe.number_from(period.first))
        }
    }
}

/// Returns the latest end of the numbers after this one: the source's, or the period's.
fn end_from(plan: &SegmentPlan, number: u64) -> u64 {
    let stripe = plan.stripe;
    let end = stripe.number_max().saturating_add(1);
    let Some(serial) = &plan.serial else {
        // The store itself reports the exhaustion of a source without an end.
        return if stripe.until().is_some() { end } else { u64::MAX };
    };
    let id = stripe.last(number.saturating_add(1)).unwrap_or(stripe.first());
    stripe.number_from(serial.of(id).end).min(end)
}

/// Returns the definition's own ticks, at this time at the latest: the mark follows.
fn ticks(
    plan: &SnowflakePlan,
    requested: Option<Bounds>,
    now: UnixMillis,
) -> Result<Ticks, NotDone> {
    let Some(Bounds::Now(requested)) = requested else {
        let message = "request for numbers with a time has no ticks; send the ticks of now";
        return Err(Error::bad_request(message).into());
    };
    let lead_ms = plan.rollback_plan.lead_max_ms();
    Ok(Ticks::of(&plan.layout, plan.burst_ms, lead_ms, requested.now.min(now)))
}

fn refused(source: &str) -> NotDone {
    let message = format!(
        "source {source:?} would jump to numbers it has not reached, which needs the right admin; \
         ask for lower ones"
    );
    Error::new(Code::Forbidden, message).into()
}

fn of_upstream(source: &str) -> NotDone {
    let message = format!(
        "source {source:?} allocates from an upstream, so a program needs the right admin over it; \
         grant admin {source}, or mint through the servers"
    );
    Error::new(Code::Forbidden, message).into()
}

fn without_period(source: &str) -> NotDone {
    let message = format!(
        "request for serials of source {source:?} names no period (within); send it, or update the \
         program"
    );
    Error::bad_request(message).into()
}

fn without_numbers(source: &str) -> NotDone {
    let message = format!(
        "source {source:?} has no ranges; ask a server for its IDs, or use a source of kind segment"
    );
    Error::bad_request(message).into()
}
