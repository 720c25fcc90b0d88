//! Minter of a snowflake source's IDs: processes or stores.

use snowmint_core::layout::Field;

use super::check::value;
use super::{RollbackPlan, SnowflakePlan, StartPlan};
use crate::spec::stores::workers;
use crate::spec::{MintBy, Order, SourceSpec, SpecError, Unique};

/// Minter of a snowflake source's IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MinterPlan {
    /// Each process, under a worker number that it claimed.
    Process,
    /// The store, at each request.
    Store {
        /// Worker number in all its IDs.
        worker: u64,
    },
    /// Any of these stores, at each request, each with the worker number in its IDs. Entries
    /// without a name are of removed stores, which mint no more.
    Stores(Vec<(String, u64)>),
}

impl MinterPlan {
    /// Returns the minting stores of a multi-store source, with the worker number in their IDs.
    pub(crate) fn minters(&self) -> impl Iterator<Item = (&str, u64)> {
        let stores = match self {
            Self::Stores(stores) => stores.as_slice(),
            Self::Process | Self::Store { .. } => &[],
        };
        let named = stores.iter().filter(|(store, _)| !store.is_empty());
        named.map(|(store, worker)| (store.as_str(), *worker))
    }

    pub(super) fn check(spec: &SourceSpec, plan: &SnowflakePlan) -> Result<Self, SpecError> {
        if spec.mint.unwrap_or_default() == MintBy::Process {
            return match (spec.worker, &spec.stores) {
                (Some(_), _) => Err(SpecError::Needs {
                    key: "worker",
                    needs: "mint = store (a process has the one of worker.number, or claims one)",
                }),
                (None, Some(_)) => Err(SpecError::Needs {
                    key: "stores",
                    needs: "kind = segment, or mint = store",
                }),
                (None, None) => Ok(Self::Process),
            };
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
        if spec.worker.is_some() {
            let needs = "no stores, each of which has a number of its own there";
            return Err(SpecError::Needs { key: "worker", needs });
        }
        let stores = workers(text).map_err(|reason| value("stores", text, reason))?;
        for (_, worker) in &stores {
            check_worker("stores", *worker, worker_max)?;
        }
        Ok(Self::Stores(stores))
    }

    /// Writes the keys that are not defaults: then no reader has to know about the others.
    pub(super) fn to_spec(&self, spec: &mut SourceSpec) {
        match self {
            Self::Process => return,
            Self::Store { worker } => spec.worker = Some(*worker),
            Self::Stores(stores) => {
                let each = stores.iter().map(|(store, worker)| format!("{store}={worker}"));
                spec.stores = Some(each.collect::<Vec<_>>().join(","));
            }
        }
        spec.mint = Some(MintBy::Store);
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
    let needs = |reason: &str| Err(value("mint", "store", format!("it needs {reason}")));
    if plan.layout.bits(Field::Clock) > 0 {
        return needs("a layout without clock bits");
    }
    match plan.rollback_plan {
        RollbackPlan::Hold { .. } | RollbackPlan::Wait { .. } | RollbackPlan::Fail => {}
        _ => return needs("on_rollback = hold, wait or fail"),
    }
    if plan.order == Order::Global {
        return needs("order = local: the IDs of one store are in one order for all callers");
    }
    if plan.unique == Unique::Namespace {
        return needs("unique = source: the process has no generator to share");
    }
    if plan.start != StartPlan::Zero {
        return needs("sequence_start = zero: the store continues its own count");
    }
    if plan.prefill.is_some() {
        return needs("prefill.enabled = false: nothing is minted ahead of need");
    }
    Ok(())
}
