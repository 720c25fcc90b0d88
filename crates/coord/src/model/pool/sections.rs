//! The pool of the sections of counters and of the slots of global-order sources.

use super::{Pool, Reuse, SlotDefaults};
use crate::ids::{Mark, Term};

/// Number of sections: the hash slots of a Redis Cluster, so that its clients find owners.
pub const SECTIONS: u16 = 16_384;
/// Counter sections, and as many slots of global-order sources.
const SLOTS: u16 = 2 * SECTIONS;
/// Name of the pool of all sections of a namespace.
pub(crate) const SECTIONS_POOL: &str = "sections";

/// Returns the pool of all sections of a namespace.
pub(crate) fn sections_pool() -> Pool {
    let slots = u64::from(SLOTS);
    Pool { name: SECTIONS_POOL.into(), slots, group: 1, reuse: Reuse::Ordered }
}

/// Returns whether the mark of a slot is a number of counters.
pub(crate) fn counts(pool: &str, slot: u64) -> bool {
    pool == SECTIONS_POOL && slot < u64::from(SECTIONS)
}

impl SlotDefaults {
    /// Returns term and mark of a slot never used. Marks of counters are numbers, unrelated to
    /// time. They begin above the lost numbers, one leap for each time that an operator moved the
    /// namespace forward.
    pub(crate) fn of(self, pool: &str, slot: u64) -> (Term, Mark) {
        let mark = if counts(pool, slot) { Mark::ZERO.leapt(self.term.leaps()) } else { self.mark };
        (self.term, mark)
    }
}
