//! Whether a store may leave a source.
//!
//! What the stores of a source have is known from those that are in its list. One that has left is asked no more,
//! so while the others have handed out nothing, its numbers would look free to whoever joins next. It may leave
//! when one of those that stay, or come in its place, shows that numbers were handed out: no numbers are given
//! away beside such a store, and what a store shows it shows for ever.

use super::Beside;
use super::agree::{Has, shows_use};
use super::supply::reach;
use crate::error::{Error, ErrorKind, Result};
use crate::spec::{Minted, Plan, SnowflakePlan, SourceSpec};

impl Beside {
    /// Refuses a list of stores, in the place of what is `stored`, beside which the numbers of those that it
    /// does not name could be given to another.
    ///
    /// # Errors
    /// `Conflict`; `Unavailable`, or what else a store says, when it could be otherwise and that store was not
    /// reached.
    pub(in crate::node) async fn check_leaving(
        &self,
        op: &'static str,
        source: &str,
        (stored, wanted): (&SourceSpec, &SourceSpec),
    ) -> Result<()> {
        let (before, after) = (striped(stored), striped(wanted));
        let leaves: Vec<_> = before.iter().filter(|store| !after.contains(store)).collect();
        if leaves.is_empty() {
            return Ok(());
        }
        let mut away = None;
        for neighbour in after.iter().filter_map(|name| self.neighbour(name)) {
            let reached = reach(&neighbour, source).await;
            match reached.has {
                Has::Source(info) if shows_use(&info) => return Ok(()),
                _ => away = away.or(reached.error),
            }
        }
        let leaves: Vec<_> = leaves.into_iter().map(String::as_str).collect();
        Err(away.unwrap_or_else(|| {
            let kind = ErrorKind::Conflict {
                what: format!(
                    "a store of source {source} cannot leave it while those that stay have handed out nothing: its \
                     numbers would be given to the next that joins; give it no stripe first (source restripe \
                     --leaves {})",
                    leaves.join(" --leaves ")
                ),
                stored: before.join(","),
                wanted: after.join(","),
            };
            Error::new(op, kind)
        }))
    }
}

/// The stores that have a stripe each.
fn striped(spec: &SourceSpec) -> Vec<String> {
    match spec.check() {
        Ok(Plan::Snowflake(SnowflakePlan { minted: Minted::Stores(_), .. })) | Err(_) => Vec::new(),
        Ok(plan) => plan.stores().into_iter().map(Into::into).collect(),
    }
}
