//! Checks of the keys that name the minter of a snowflake source's IDs: processes or stores.

use snowmint_core::layout::Field;

use super::rollback::ONE_MARK;
use super::snowflake::{MinterPlan, SnowflakePlan, StartPlan};
use crate::spec::error::{SpecError, needs, value};
use crate::spec::kind::{MintBy, Order, Unique};
use crate::spec::source_spec::SourceSpec;
use crate::spec::stores::workers;

impl MinterPlan {
    pub(super) fn check(spec: &SourceSpec, plan: &SnowflakePlan) -> Result<Self, SpecError> {
        if spec.mint.unwrap_or_default() == MintBy::Process {
            let stored = "mint = store (a process has the one of worker.number, or claims one)";
            needs("worker", spec.worker.is_some(), stored)?;
            needs("stores", spec.stores.is_some(), "kind = segment, or mint = store")?;
            return Ok(Self::Process);
        }
        check_possible(plan)?;
        if let Some(text) = spec.stores.as_deref() {
            return Self::check_stores(spec, text, plan.layout.worker_max());
        }
        let Some(worker) = spec.worker else {
            return Err(SpecError::Missing {
                key: "worker",
                reason: "with mint = store it is the worker number in all IDs; where several stores mint, stores \
                      has a number for each (a=3,b=4)",
            });
        };
        check_worker("worker", worker, plan.layout.worker_max())?;
        Ok(Self::Store { worker })
    }

    fn check_stores(spec: &SourceSpec, text: &str, worker_max: u64) -> Result<Self, SpecError> {
        let alone = "no stores, each of which has a number of its own there";
        needs("worker", spec.worker.is_some(), alone)?;
        let stores = workers(text).map_err(|reason| value("stores", text, reason))?;
        for (_, worker) in &stores {
            check_worker("stores", *worker, worker_max)?;
        }
        Ok(Self::Stores(stores))
    }
}

fn check_worker(key: &'static str, worker: u64, worker_max: u64) -> Result<(), SpecError> {
    if worker <= worker_max {
        return Ok(());
    }
    Err(value(key, worker, format!("the layout has workers 0 to {worker_max}")))
}

/// Rejects keys that the store cannot follow, or follows without being configured.
fn check_possible(plan: &SnowflakePlan) -> Result<(), SpecError> {
    let mint_needs = |reason: &str| Err(value("mint", "store", format!("it needs {reason}")));
    if plan.layout.bits(Field::Clock) > 0 {
        return mint_needs("a layout without clock bits");
    }
    if !plan.rollback_plan.keeps_one_mark() {
        return mint_needs(ONE_MARK);
    }
    if plan.order == Order::Global {
        return mint_needs("order = local: the IDs of one store are in one order for all callers");
    }
    if plan.unique == Unique::Namespace {
        return mint_needs("unique = source: the process has no generator to share");
    }
    let by_process = "mint = process: the store begins each tick at sequence number 0";
    needs("shards", matches!(plan.start, StartPlan::Shards(_)), by_process)?;
    if plan.start != StartPlan::Zero {
        return mint_needs("sequence_start = zero: the store continues its own count");
    }
    if plan.prefill.is_some() {
        return mint_needs("prefill.enabled = false: nothing is minted ahead of need");
    }
    Ok(())
}
