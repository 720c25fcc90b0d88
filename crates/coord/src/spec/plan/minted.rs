//! Who mints the IDs of a snowflake source.

use snowmint_core::layout::Field;

use super::check::value;
use super::{Clockwork, SnowflakePlan, StartPlan};
use crate::spec::{MintBy, Order, SourceSpec, SpecError, Unique};

/// Who mints the IDs of a snowflake source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minted {
    /// Each process, under a worker number that it claimed.
    Process,
    /// The store, at each request.
    Store {
        /// The worker number in all its IDs.
        worker: u64,
    },
}

impl Minted {
    pub(super) fn check(spec: &SourceSpec, plan: &SnowflakePlan) -> Result<Self, SpecError> {
        if spec.mint.unwrap_or_default() == MintBy::Process {
            return match spec.worker {
                Some(_) => Err(SpecError::Needs {
                    key: "worker",
                    needs: "mint = store (a process has the one of worker.number, or claims one)",
                }),
                None => Ok(Self::Process),
            };
        }
        check_possible(plan)?;
        let Some(worker) = spec.worker else {
            return Err(SpecError::Missing {
                key: "worker",
                why: "with mint = store it is the worker number in all IDs; where several stores mint \
                      for one application, each has another",
            });
        };
        let worker_max = plan.layout.worker_max();
        if worker > worker_max {
            let why = format!("the layout has workers 0 to {worker_max}");
            return Err(value("worker", worker, why));
        }
        Ok(Self::Store { worker })
    }

    /// What goes without saying is left out: nobody has to know of it then.
    pub(super) const fn to_spec(self, spec: &mut SourceSpec) {
        if let Self::Store { worker } = self {
            spec.mint = Some(MintBy::Store);
            spec.worker = Some(worker);
        }
    }
}

/// What the store cannot do, or does without being told.
fn check_possible(plan: &SnowflakePlan) -> Result<(), SpecError> {
    let needs = |why: &str| Err(value("mint", "store", format!("it needs {why}")));
    if plan.layout.bits(Field::Clock) > 0 {
        return needs("a layout without clock bits");
    }
    match plan.clockwork {
        Clockwork::Hold { .. } | Clockwork::Wait { .. } | Clockwork::Fail => {}
        _ => return needs("on_rollback = hold, wait or fail"),
    }
    if plan.order == Order::Global {
        return needs("order = local: what one store mints is in one order for everybody anyway");
    }
    if plan.unique == Unique::Namespace {
        return needs("unique = source: no generator is there to be shared");
    }
    if plan.start != StartPlan::Zero {
        return needs("sequence_start = zero: the store counts on where it is");
    }
    if plan.prefill.is_some() {
        return needs("prefill.enabled = false: nothing is minted ahead of need");
    }
    Ok(())
}
