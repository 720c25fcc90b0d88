//! Checks of a snowflake source's keys, one function for each group of them.

use snowmint_core::Layout;
use snowmint_core::generator::check_shards;
use snowmint_core::layout::ParseLayoutError;

use super::disguise::{Hides, disguise};
use super::rollback::{ONE_MARK, RollbackPlan};
use super::snowflake::{MinterPlan, PrefillPlan, SnowflakePlan, StartPlan};
use super::span::span;
use super::text::text;
use crate::spec::bounds::{BURST_MS, PREFILL_THRESHOLD, WAIT_MS};
use crate::spec::duration::Span;
use crate::spec::error::{SpecError, needs, value, within};
use crate::spec::kind::{OnEmpty, Order, Unique};
use crate::spec::source_spec::{PrefillSpec, SourceSpec};

/// Layout of a source that names none.
const LAYOUT_DEFAULT: &str = "time=41,worker=10,sequence=12";
/// Leaf's bound for random starts.
const RANDOM_BELOW_DEFAULT: u64 = 100;
/// Most IDs in a queue, 256 MiB: each takes 16 bytes.
const PREFILL_CAPACITY_MAX: u64 = 1 << 24;
const PREFILL_BOOST_DEFAULT: u32 = 3;
const PREFILL_THRESHOLD_DEFAULT: u32 = 50;
const PREFILL_WAIT_MAX_MS_DEFAULT: u64 = 100;
const NO_RING: &str = "another on_rollback than ring, which continues each tick by itself";

pub(super) fn snowflake(spec: &SourceSpec) -> Result<SnowflakePlan, SpecError> {
    let layout = layout(spec)?;
    let rollback_plan = RollbackPlan::check(spec, &layout)?;
    let disguise = disguise(spec.disguise.as_ref(), Some(&layout))?;
    let text = text(spec.text.as_deref())?;
    if text.needs_layout() && disguise.is_some_and(|plan| matches!(plan.hides, Hides::All { .. })) {
        return Err(value("text", text, "a full disguise hides the time that it would show"));
    }
    let mut plan = SnowflakePlan {
        layout,
        minter_plan: MinterPlan::Process,
        short_life: spec.short_life.unwrap_or(false),
        unique: spec.unique.unwrap_or_default(),
        order: spec.order.unwrap_or_default(),
        rollback_plan,
        burst_ms: span("burst", spec.burst, 0, &BURST_MS)?,
        start: start(spec, &layout)?,
        prefill: prefill(spec.prefill.as_ref(), &layout)?,
        disguise,
        text,
    };
    check_shards_possible(&plan)?;
    check_ring(&plan)?;
    plan.minter_plan = MinterPlan::check(spec, &plan)?;
    if plan.order == Order::Global {
        check_global(&plan)?;
    }
    Ok(plan)
}

/// Rejects what would spread the IDs of this source unevenly, or spreads them by itself.
fn check_shards_possible(plan: &SnowflakePlan) -> Result<(), SpecError> {
    if !matches!(plan.start, StartPlan::Shards(_)) {
        return Ok(());
    }
    let check = |is_lacking, text| needs("shards", is_lacking, text);
    check(matches!(plan.rollback_plan, RollbackPlan::Ring { .. }), NO_RING)?;
    check(
        plan.unique == Unique::Namespace,
        "unique = source: sources that share a generator would share its turns",
    )?;
    check(
        plan.disguise.is_some(),
        "disguise.mode = none: a disguise spreads IDs over any number of shards",
    )
}

/// Rejects what a ring cannot follow: each of its ticks continues by itself.
fn check_ring(plan: &SnowflakePlan) -> Result<(), SpecError> {
    if !matches!(plan.rollback_plan, RollbackPlan::Ring { .. }) {
        return Ok(());
    }
    needs("burst", plan.burst_ms > 0, NO_RING)?;
    needs("sequence_start", plan.start == StartPlan::Carried, NO_RING)
}

/// Rejects what would break the order, or the promise that no ID comes twice.
fn check_global(plan: &SnowflakePlan) -> Result<(), SpecError> {
    let needs = |reason: &str| Err(value("order", "global", format!("it needs {reason}")));
    if !plan.rollback_plan.keeps_one_mark() {
        return needs(&format!("{ONE_MARK}, and a layout without clock bits"));
    }
    if plan.unique == Unique::Namespace {
        return needs("unique = source: its IDs all have worker number 0");
    }
    if plan.prefill.is_some() {
        return needs("prefill.enabled = false: what is minted ahead of need is out of order");
    }
    if plan.disguise.is_some() {
        return needs("disguise.mode = none: a disguise hides the order");
    }
    Ok(())
}

fn layout(spec: &SourceSpec) -> Result<Layout, SpecError> {
    let written = spec.layout.as_deref().unwrap_or(LAYOUT_DEFAULT);
    let layout: Layout = written
        .parse()
        .map_err(|error: ParseLayoutError| value("layout", written, error.to_string()))?;
    let Some(epoch) = spec.epoch.as_deref() else { return Ok(layout) };
    if written.split(',').any(|word| word.trim_start().starts_with("epoch")) {
        return Err(value(
            "epoch",
            epoch,
            "the layout already names an epoch: leave one of them out",
        ));
    }
    format!("{written},epoch={epoch}")
        .parse()
        .map_err(|error: ParseLayoutError| value("epoch", epoch, error.to_string()))
}

fn start(spec: &SourceSpec, layout: &Layout) -> Result<StartPlan, SpecError> {
    let below_max = layout.sequence_max().saturating_add(1);
    let written = spec.sequence_start.as_deref().unwrap_or("zero");
    if let Some(shards) = spec.shards.filter(|&shards| shards != 1) {
        check_shards(layout, shards).map_err(|error| value("shards", shards, error.to_string()))?;
        // The default may be written out.
        return match written {
            "zero" => Ok(StartPlan::Shards(shards)),
            _ => Err(SpecError::Needs { key: "sequence_start", needs: "shards = 1, or none" }),
        };
    }
    match written {
        "zero" => Ok(StartPlan::Zero),
        "carried" => Ok(StartPlan::Carried),
        "random" => Ok(StartPlan::RandomBelow(Ord::min(RANDOM_BELOW_DEFAULT, below_max))),
        _ => {
            let below = written.strip_prefix("random:").and_then(|n| n.parse::<u64>().ok());
            match below {
                Some(below) if below >= 1 && below <= below_max => {
                    Ok(StartPlan::RandomBelow(below))
                }
                Some(_) => Err(value(
                    "sequence_start",
                    written,
                    format!(
                        "the layout's sequence holds {below_max} numbers: take 1 to {below_max}"
                    ),
                )),
                None => Err(value(
                    "sequence_start",
                    written,
                    "take zero, random, random:N (below N) or carried",
                )),
            }
        }
    }
}

fn prefill(given: Option<&PrefillSpec>, layout: &Layout) -> Result<Option<PrefillPlan>, SpecError> {
    let Some(spec) = given else { return Ok(None) };
    if spec.enabled != Some(true) {
        let reject = |key, is_given| needs(key, is_given, "prefill.enabled = true");
        reject("prefill.boost", spec.boost.is_some())?;
        reject("prefill.threshold", spec.threshold.is_some())?;
        reject("prefill.schedule", spec.schedule.is_some())?;
        reject("prefill.on_empty", spec.on_empty.is_some())?;
        reject("prefill.wait_max", spec.wait_max.is_some())?;
        return Ok(None);
    }
    let boost = spec.boost.unwrap_or(PREFILL_BOOST_DEFAULT);
    let capacity = layout
        .sequence_max()
        .checked_add(1)
        .and_then(|ids| ids.checked_mul(1_u64.checked_shl(boost)?))
        .filter(|&capacity| capacity <= PREFILL_CAPACITY_MAX)
        .and_then(|capacity| usize::try_from(capacity).ok());
    let Some(capacity) = capacity else {
        let ids = layout.sequence_max();
        return Err(value(
            "prefill.boost",
            boost,
            format!(
                "({ids} + 1) * 2^{boost} IDs are too many: the queue holds at most {PREFILL_CAPACITY_MAX}"
            ),
        ));
    };
    let threshold_percent = spec.threshold.unwrap_or(PREFILL_THRESHOLD_DEFAULT);
    within("prefill.threshold", threshold_percent, &PREFILL_THRESHOLD, " percent")?;
    let schedule_ms = spec.schedule.map(Span::ms);
    if schedule_ms == Some(0) {
        return Err(value("prefill.schedule", "0ms", "take at least 1ms, or leave it out"));
    }
    let waits = spec.on_empty == Some(OnEmpty::Wait);
    needs("prefill.wait_max", spec.wait_max.is_some() && !waits, "prefill.on_empty = wait")?;
    let wait_max_ms =
        span("prefill.wait_max", spec.wait_max, PREFILL_WAIT_MAX_MS_DEFAULT, &WAIT_MS)?;
    Ok(Some(PrefillPlan {
        capacity,
        boost,
        // Percent of at most 2^24: no overflow, and at least 1 so that an empty queue is refilled.
        refill_below: Ord::max(capacity * threshold_percent as usize / 100, 1),
        threshold_percent,
        schedule_ms,
        wait_max_ms: waits.then_some(wait_max_ms),
    }))
}
