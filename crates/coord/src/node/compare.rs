//! Check of our clock against a better source: the store's clock, else the result of most members'
//! clocks, else a configured time reference.

use snowmint_core::UnixMillis;

use super::settings::NodeSettings;
use crate::error::{Error, Result, Verb, chain};
use crate::machine::{Verdict, compare_clocks};
use crate::member::Incarnation;
use crate::sources::Surroundings;

/// Interval at which members that seem gone are looked for.
const LOOK_MS: u64 = 500;

/// Result of a check of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Our clock agrees with a better source.
    Agrees,
    /// There is no time reference.
    Alone,
}

/// Time that ours is compared with.
struct Other {
    time: UnixMillis,
    /// Milliseconds by which it may be wrong, because of the way it was obtained.
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
    around: &Surroundings,
    settings: &NodeSettings,
    own: Incarnation,
) -> Result<Compared> {
    let other = match stores(around).await? {
        Some(other) => Some(other),
        None => match members(around, Some(own)).await? {
            Verdict::Most { time, slack_ms } => Some(most(time, slack_ms)),
            Verdict::TooFew { .. } => witness(around, settings).await,
        },
    };
    compared(around, settings, other)
}

/// Checks the clock of a process that is about to join, which may know nothing about other members
/// yet. When members seem gone by its clock alone, and there is no better source, it waits for
/// them: for half their time to live at most.
///
/// # Errors
/// Those of [`while_running`].
pub(super) async fn before_joining(
    around: &Surroundings,
    settings: &NodeSettings,
    before: Option<Incarnation>,
) -> Result<()> {
    let other = match stores(around).await? {
        Some(other) => Some(other),
        None => others(around, settings, before).await?,
    };
    if compared(around, settings, other)? == Compared::Agrees {
        around.believe_clock();
    }
    Ok(())
}

async fn others(
    around: &Surroundings,
    settings: &NodeSettings,
    before: Option<Incarnation>,
) -> Result<Option<Other>> {
    // A caller that opens a source waits for this check.
    let latest = around.timer.elapsed().saturating_add(settings.open_wait_ms / 2);
    let mut is_asked = false;
    loop {
        let until = match members(around, before).await? {
            Verdict::Most { time, slack_ms } => return Ok(Some(most(time, slack_ms))),
            Verdict::TooFew { until } => until.map(|until| until.min(latest)),
        };
        if !is_asked && let Some(other) = witness(around, settings).await {
            return Ok(Some(other));
        }
        let now = around.timer.elapsed();
        let Some(until) = until.filter(|until| now < *until) else { return Ok(None) };
        if !is_asked {
            tracing::info!("members that seem to be gone are waited for, to compare clocks");
        }
        is_asked = true;
        around.timer.sleep_ms(until.since(now).min(LOOK_MS)).await;
    }
}

/// Returns the store's clock, where it has one.
async fn stores(around: &Surroundings) -> Result<Option<Other>> {
    let now = around.store_call(Verb::Now, around.store.now()).await?;
    Ok(now.map(|time| Other {
        time,
        slack_ms: 0,
        whose: "the store's clock".into(),
        address: None,
    }))
}

/// Returns the result of the clocks of all members but this one.
async fn members(around: &Surroundings, own: Option<Incarnation>) -> Result<Verdict> {
    let asked_at = around.timer.elapsed();
    let listed = around.store.members(around.clock.unix_ms());
    let mut listed = around.store_call(Verb::Members, listed).await?;
    listed.retain(|info| Some(info.member.incarnation) != own);
    let mut voices = around.voices();
    voices.look(listed.iter(), asked_at, around.timer.elapsed());
    Ok(voices.verdict(around.clock.unix_ms(), around.timer.elapsed()))
}

fn most(time: UnixMillis, slack_ms: u64) -> Other {
    Other { time, slack_ms, whose: "most members' clocks".into(), address: None }
}

/// Returns the time of the configured time reference, if it responds. One that does not blocks
/// nothing.
async fn witness(around: &Surroundings, settings: &NodeSettings) -> Option<Other> {
    let witness = settings.clock_witness.clone().or_else(|| around.store.clock_witness())?;
    let within_ms = around.store_call_ms;
    let late =
        || Error::unavailable(format!("{} did not respond within {within_ms} ms", witness.name()));
    match around.with_timeout(within_ms, late, witness.now()).await {
        Ok(time) => {
            let (whose, address) = (witness.name(), witness.address());
            Some(Other { time, slack_ms: 0, whose, address })
        }
        Err(error) => {
            tracing::debug!(error = %chain(&error), "the clock is compared with nobody's");
            None
        }
    }
}

fn compared(
    around: &Surroundings,
    settings: &NodeSettings,
    other: Option<Other>,
) -> Result<Compared> {
    let Some(other) = other else {
        around.watch.compared(None);
        return Ok(Compared::Alone);
    };
    // Read after the response: a slow response makes our clock look ahead, but never hides that it
    // is ahead.
    let wall = around.clock.unix_ms();
    let (ahead_ms, behind_ms) = (wall.since(other.time), other.time.since(wall));
    let signed = |ms| i64::try_from(ms).unwrap_or(i64::MAX);
    around.watch.compared(Some(signed(ahead_ms) - signed(behind_ms)));
    let limit_ms = settings.clock_skew_max_ms.saturating_add(other.slack_ms);
    match (compare_clocks(wall, other.time, limit_ms, &other.whose), other.address) {
        (Ok(()), _) => Ok(Compared::Agrees),
        (Err(error), Some(address)) => Err(error.with_detail(address)),
        (Err(error), None) => Err(error),
    }
}
