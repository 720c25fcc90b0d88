//! Check whether a store may leave a source.
//!
//! The stores in a source's list are the only ones asked about its numbers. A store that has left
//! is not asked any more. While the other stores have handed out nothing, its numbers would look
//! free to the next store that joins. A store may leave when a store that stays, or joins in its
//! place, shows that numbers were handed out. No numbers are given away while the source has such a
//! store, and a store shows this for ever.

use super::SecondaryStores;
use super::agree::shows_use;
use super::comparison::Has;
use super::store_supervisor::reach;
use crate::error::{Error, Result};
use crate::spec::{MinterPlan, Plan, SnowflakePlan, SourceSpec};

impl SecondaryStores {
    /// Rejects a list of stores, to replace the `stored` one, that would allow the numbers of a
    /// removed store to be given to another store.
    ///
    /// # Errors
    /// `Unsupported` when a store of the new list is unknown here, so that it cannot be asked.
    /// `Conflict` when the numbers could be given away. `Unavailable`, or the store's own error,
    /// when a store that was not reached might prevent this.
    pub(in crate::node) async fn check_leaving(
        &self,
        source: &str,
        (stored, wanted): (&SourceSpec, &SourceSpec),
    ) -> Result<()> {
        let (before, after) = (striped(stored), striped(wanted));
        let leaves: Vec<_> = before.iter().filter(|store| !after.contains(store)).collect();
        if leaves.is_empty() {
            return Ok(());
        }
        if let Ok(plan) = wanted.check() {
            self.check_known(source, &plan)?;
        }
        let mut away = None;
        for secondary in after.iter().filter_map(|name| self.secondary(name)) {
            let reached = reach(&secondary, source).await;
            match reached.has {
                Has::Source(info) if shows_use(&info) => return Ok(()),
                _ => away = away.or(reached.error),
            }
        }
        let leaves: Vec<_> = leaves.into_iter().map(String::as_str).collect();
        Err(away.unwrap_or_else(|| {
            Error::conflict(format!(
                "stores {} cannot leave source {source:?} ({} to {}) before the others issued a \
                 number; remove their stripes first (source restripe --remove {})",
                leaves.join(", "),
                before.join(","),
                after.join(","),
                leaves.join(" --remove ")
            ))
        }))
    }
}

/// Returns the names of the stores that have a stripe each.
fn striped(spec: &SourceSpec) -> Vec<String> {
    match spec.check() {
        Ok(Plan::Snowflake(SnowflakePlan { minter_plan: MinterPlan::Stores(_), .. })) | Err(_) => {
            Vec::new()
        }
        Ok(plan) => plan.stores().into_iter().map(Into::into).collect(),
    }
}
