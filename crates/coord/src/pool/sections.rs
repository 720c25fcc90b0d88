//! The pool of what counters and sources of global order answer from.

use super::{Pool, Reuse};

/// How many sections there are: the hash slots of a Redis Cluster, so that its clients find owners.
pub const SECTIONS: u16 = 16_384;
/// Sections of counters, and as many slots of sources of global order.
const SLOTS: u16 = 2 * SECTIONS;
/// The pool of all sections of a namespace.
pub(crate) const SECTIONS_POOL: &str = "sections";

/// The pool of all sections of a namespace.
pub(crate) fn sections_pool() -> Pool {
    let slots = u64::from(SLOTS);
    Pool { name: SECTIONS_POOL.into(), slots, group: 1, reuse: Reuse::Ordered }
}

/// Whether the mark of a slot is a number of counters.
pub(crate) fn counts(pool: &str, slot: u64) -> bool {
    pool == SECTIONS_POOL && slot < u64::from(SECTIONS)
}
