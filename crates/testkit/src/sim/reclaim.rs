//! Marks that were pushed ahead, and that an operator lowers while nodes mint.

use std::collections::BTreeMap;

use snowmint_coord::{Mark, Reclaim, Term, is_worker_pool};
use snowmint_core::UnixMillis;

use super::doubt::AHEAD_MS;
use super::rare_faults::POISONER;
use super::world::World;
use crate::history::{Checked, Resource};

impl World {
    /// Lowers marks, as an operator, that a party pushed ahead which mints no more; no caller has
    /// its IDs. A slot qualifies only if no other party was promised anything above the new mark.
    pub(super) async fn reclaim(&mut self) -> Checked {
        let now = UnixMillis::new(self.true_ms());
        let to = self.true_ms() + AHEAD_MS;
        let mut pools: BTreeMap<String, Vec<(u64, Term)>> = BTreeMap::new();
        for slot in self.store.workers(now).await.unwrap() {
            let resource = Resource::Slot(slot.pool.clone(), slot.slot);
            let is_unused = self.oracle.is_unused_from(&resource, to, POISONER);
            let is_worker = is_worker_pool(&slot.pool);
            if is_worker && slot.mark.get() > to && !slot.live && is_unused {
                pools.entry(slot.pool).or_default().push((slot.slot, slot.term));
            }
        }
        for (pool, slots) in pools {
            let (reach_ms, marks_at_least) = (AHEAD_MS, Mark::ZERO);
            let reclaim =
                Reclaim { pool: pool.clone(), slots, reach_ms, marks_at_least, from_live: false };
            for reclaimed in self.store.reclaim(&reclaim, now).await.unwrap() {
                self.oracle.moved(&Resource::Slot(pool.clone(), reclaimed.slot)).await;
                self.count("poisoned slots reclaimed");
            }
        }
        self.oracle.violation().map_or(Ok(()), Err)
    }
}
