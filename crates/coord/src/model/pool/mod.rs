//! Pools of slots, and the single rule by which a claim chooses among them.

mod check;
mod choose;
mod holders;
mod sections;
mod view;
mod workers;

use crate::error::{Error, Result};
use crate::ids::{Mark, Term};
use crate::model::name::check_name;
pub use check::{ClaimRequest, Preference, check_claim, check_group, check_request};
pub use choose::{Choice, choose, leases};
pub use holders::asks_for_holders;
pub use sections::SECTIONS;
pub(crate) use sections::{SECTIONS_POOL, counts, sections_pool};
pub use workers::{is_worker_pool, pool_of};

/// All slots of one worker width and reuse rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name of the pool, which tells its shape: `workers-10`, `workers-7-clock-3`.
    pub name: String,
    /// Number of slots: a multiple of `group`.
    pub slots: u64,
    /// Number of slots that a claim takes together: 1, or for a clock-sequence layout all the clock
    /// values of one worker. Group `g` has the slots from `g * group` on.
    pub group: u32,
    /// Rule for the reuse of a slot.
    pub reuse: Reuse,
}

/// Rule for the reuse of a slot that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The slot can be claimed again.
    Recycle,
    /// The slot is never reused: every claim gets a number never used before (Baidu's assigner).
    Never,
    /// One member after another uses the slot, in the order of time: slots are acquired, not
    /// claimed ([`exclusive`](crate::model::exclusive)).
    Ordered,
}

/// Defaults for all slots of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotDefaults {
    /// Mark of slots without a row: zero, unless an operator moved the namespace forward.
    pub mark: Mark,
    /// Term of slots without a row: zero, unless an operator moved the namespace forward.
    pub term: Term,
    /// Highest mark allowed to every claim, external leases excepted, whatever its own limit: an
    /// operator has accepted that IDs lead the clocks this far. Zero at first.
    pub accepted_lead: Mark,
}

/// Number of given-up rows that a pool without reuse remembers. They serve listings only: a holder
/// without a row gets an error that it must claim again.
pub const NEVER_ROWS_KEPT: usize = 256;
/// Maximum number of groups of one claim.
pub const CLAIM_COUNT_MAX: u32 = 16_384;
/// Maximum number of holders in the error of a full pool.
pub const HOLDERS_SHOWN: usize = 5;

impl Pool {
    /// Returns the number of groups in the pool.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.slots / u64::from(self.group.max(1))
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("pool", &self.name)?;
        let group = u64::from(self.group);
        if group == 0
            || self.slots == 0
            || self.slots > Mark::MAX.get()
            || !self.slots.is_multiple_of(group)
        {
            return Err(Error::invalid(format!(
                "pool {:?} has {} slots in groups of {group}, allowed are 1 to {} slots and a \
                 multiple of the group; correct it",
                self.name,
                self.slots,
                Mark::MAX
            )));
        }
        Ok(())
    }

    /// Checks that the pool has these slots.
    pub(crate) fn check_slots(&self, slots: &[u64]) -> Result<()> {
        let Some(slot) = slots.iter().find(|slot| **slot >= self.slots) else { return Ok(()) };
        let last = self.slots.saturating_sub(1);
        Err(Error::invalid(format!(
            "slot {slot} of pool {:?} is out of range, maximum {last}; correct the number",
            self.name
        )))
    }

    /// Checks that a stored pool of this name has the same shape.
    ///
    /// # Errors
    /// `Conflict` if it differs.
    pub fn check_same(&self, stored: &Self) -> Result<()> {
        if self == stored {
            return Ok(());
        }
        let shape = |pool: &Self| {
            format!("{} slots in groups of {}, reuse {:?}", pool.slots, pool.group, pool.reuse)
        };
        let (name, found, wanted) = (&self.name, shape(stored), shape(self));
        Err(Error::conflict(if self.reuse == stored.reuse {
            format!("pool {name:?} has {found}, requested {wanted}; use the same layout")
        } else {
            format!(
                "pool {name:?} has {found}, requested {wanted}: reuse is fixed for all members; \
                 set worker.reuse to the stored one"
            )
        }))
    }
}

#[cfg(test)]
mod tests;
