//! Check of our clock against a better source: the store's clock, else the result of most members'
//! clocks, else a configured time reference.

use snowmint_core::UnixMillis;

use super::settings::NodeSettings;
use crate::error::{Error, Result, Verb, chain};
use crate::ids::Incarnation;
use crate::machine::{QuorumResult, compare_clocks};
use crate::sources::NodeContext;

/// Interval at which members that seem gone are looked for.
const POLL_MS: u64 = 500;

/// Result of a check of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockCheck {
    /// Our clock agrees with a better source.
    Agrees,
    /// There is no time reference.
    NoReference,
}

/// Time that ours is compared with.
struct Other {
    time: UnixMillis,
    /// Milliseconds by which it may be later, because of the way it was obtained.
    slack_ms: u64,
    whose: String,
    /// Address for operators, if it has one.
    address: Option<String>,
}

/// Checks the clock of a running member once.
///
/// # Errors
/// `ClockAhead` and `ClockBehind` beyond `clock_skew_max_ms`; any error of the store.
pub(super) async fn while_running(
    ctx: &NodeContext,
    settings: &NodeSettings,
    own: Incarnation,
) -> Result<ClockCheck> {
    let other = match stores(ctx).await? {
        Some(other) => Some(other),
        None => match members(ctx, Some(own)).await? {
            QuorumResult::Most { time, slack_ms } => Some(most(time, slack_ms)),
            QuorumResult::TooFew { .. } => time_reference(ctx, settings).await,
        },
    };
    compared(ctx, settings, other)
}

/// Checks the clock of a process that is about to join, which may know nothing about other members
/// yet. When members seem gone by its clock alone, and there is no better source, it waits for
/// them: for half their time to live at most.
///
/// # Errors
/// Those of [`while_running`].
pub(super) async fn before_joining(
    ctx: &NodeContext,
    settings: &NodeSettings,
    before: Option<Incarnation>,
) -> Result<()> {
    let other = match stores(ctx).await? {
        Some(other) => Some(other),
        None => others(ctx, settings, before).await?,
    };
    if compared(ctx, settings, other)? == ClockCheck::Agrees {
        ctx.believe_clock();
    }
    Ok(())
}

async fn others(
    ctx: &NodeContext,
    settings: &NodeSettings,
    before: Option<Incarnation>,
) -> Result<Option<Other>> {
    // A caller that opens a source waits for this check.
    let latest = ctx.timer.elapsed().saturating_add(settings.open_wait_ms / 2);
    let mut has_read_reference = false;
    loop {
        let until = match members(ctx, before).await? {
            QuorumResult::Most { time, slack_ms } => return Ok(Some(most(time, slack_ms))),
            QuorumResult::TooFew { until } => until.map(|until| until.min(latest)),
        };
        if !has_read_reference && let Some(other) = time_reference(ctx, settings).await {
            return Ok(Some(other));
        }
        let now = ctx.timer.elapsed();
        let Some(until) = until.filter(|until| now < *until) else { return Ok(None) };
        if !has_read_reference {
            tracing::info!("waiting for renewals of members to compare clocks");
        }
        has_read_reference = true;
        ctx.timer.sleep_ms(until.since(now).min(POLL_MS)).await;
    }
}

/// Returns the store's clock, where it has one.
async fn stores(ctx: &NodeContext) -> Result<Option<Other>> {
    let now = ctx.store_call(Verb::Now, ctx.store.now()).await?;
    Ok(now.map(|time| Other {
        time,
        slack_ms: 0,
        whose: "the store's clock".into(),
        address: None,
    }))
}

/// Returns the result of the clocks of all members but this one.
async fn members(ctx: &NodeContext, own: Option<Incarnation>) -> Result<QuorumResult> {
    let requested_at = ctx.timer.elapsed();
    let listed = ctx.store.members(ctx.clock.unix_ms());
    let mut listed = ctx.store_call(Verb::Members, listed).await?;
    listed.retain(|info| Some(info.member.incarnation) != own);
    let mut clock_quorum = ctx.clock_quorum();
    clock_quorum.record(listed.iter(), requested_at, ctx.timer.elapsed());
    Ok(clock_quorum.quorum_result(ctx.clock.unix_ms(), ctx.timer.elapsed()))
}

fn most(time: UnixMillis, slack_ms: u64) -> Other {
    Other { time, slack_ms, whose: "most members' clocks".into(), address: None }
}

/// Returns the time of the configured time reference, if it responds. One that does not blocks
/// nothing.
async fn time_reference(ctx: &NodeContext, settings: &NodeSettings) -> Option<Other> {
    let reference = settings.time_reference.clone().or_else(|| ctx.store.time_reference())?;
    let within_ms = ctx.store_call_ms;
    let late = || {
        Error::unavailable(format!("{} did not respond within {within_ms} ms", reference.name()))
    };
    match ctx.with_timeout(within_ms, late, reference.now()).await {
        Ok(time) => {
            let (whose, address) = (reference.name(), reference.address());
            Some(Other { time, slack_ms: 0, whose, address })
        }
        Err(error) => {
            tracing::debug!(error = %chain(&error), "time reference failed; clock not compared");
            None
        }
    }
}

fn compared(
    ctx: &NodeContext,
    settings: &NodeSettings,
    other: Option<Other>,
) -> Result<ClockCheck> {
    let Some(other) = other else {
        ctx.metrics.compared(None);
        return Ok(ClockCheck::NoReference);
    };
    // Read after the response: a slow response makes our clock look ahead, but never hides that it
    // is ahead.
    let wall = ctx.clock.unix_ms();
    // A reading's age is not an offset: up to `slack_ms`, our clock may be right.
    let ahead_ms = wall.since(other.time.saturating_add(other.slack_ms));
    let behind_ms = other.time.since(wall);
    let signed = |ms| i64::try_from(ms).unwrap_or(i64::MAX);
    ctx.metrics.compared(Some(signed(ahead_ms) - signed(behind_ms)));
    let limit_ms = settings.clock_skew_max_ms.saturating_add(other.slack_ms);
    match (compare_clocks(wall, other.time, limit_ms, &other.whose), other.address) {
        (Ok(()), _) => Ok(ClockCheck::Agrees),
        (Err(error), Some(address)) => Err(error.with_detail(address)),
        (Err(error), None) => Err(error),
    }
}
