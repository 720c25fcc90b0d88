//! Pools of worker numbers.

use snowmint_core::Layout;
use snowmint_core::layout::Field;

use super::{Pool, Reuse};

/// Prefix of the names of worker pools; their width follows.
const WORKERS_PREFIX: &str = "workers-";

/// Returns whether a pool of this name has worker numbers, not external leases or sections.
#[must_use]
pub fn is_worker_pool(pool: &str) -> bool {
    pool.starts_with(WORKERS_PREFIX)
}

/// Returns the pool that sources of a layout take their worker numbers from. The name is the same with and
/// without reuse, so that the store rejects members with different rules: they would mint from one
/// number at the same time.
#[must_use]
pub fn pool_of(layout: &Layout, reuse: Reuse) -> Pool {
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
