//! The pools of worker numbers.

use snowmint_core::layout::Field;

use super::{Pool, Reuse};
use crate::spec::SnowflakePlan;

/// What the names of pools begin with whose numbers leases are on; their width follows.
const WORKERS_PREFIX: &str = "workers-";

/// Whether leases are on the slots of a pool of this name, not lendings or sections.
#[must_use]
pub fn is_worker_pool(pool: &str) -> bool {
    pool.starts_with(WORKERS_PREFIX)
}

/// The pool that a source takes its numbers from. It is called the same with and without reuse, so that
/// the store refuses those who disagree: they would mint from one number at the same time.
#[must_use]
pub fn pool_of(plan: &SnowflakePlan, reuse: Reuse) -> Pool {
    let layout = &plan.layout;
    let (width, clock) = (layout.bits(Field::Worker), layout.bits(Field::Clock));
    let mut pool = format!("{WORKERS_PREFIX}{width}");
    if clock > 0 {
        pool.push_str(&format!("-clock-{clock}"));
    }
    let values = layout.clock_max().saturating_add(1);
    let slots = layout.worker_max().saturating_add(1).saturating_mul(values);
    let group = u32::try_from(values).unwrap_or(u32::MAX);
    Pool { name: pool, slots, group, reuse }
}
