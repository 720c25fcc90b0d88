//! Evidence of a store rollback.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Error, Result};
use crate::model::catalog::Definition;
use crate::model::history::StoreIdentity;

/// Knowledge of a process about a store, which can prove a store rollback, or an operator's word
/// that another server has taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Identity of the store, in its history, when it was last read.
    pub id: String,
    /// Progress of the store at that time.
    pub seen: StoreIdentity,
    /// Next number of each source, as far as the process saw numbers issued.
    pub ends: BTreeMap<String, u64>,
    /// Whether an operator accepts the server that has the store now, in the place of the one that
    /// wrote the rows. That server may lack acknowledged writes, so this needs no other proof: the
    /// same step puts the store in doubt, and earlier reports count no more. Nothing is changed if
    /// the identity differs from [`id`](Self::id), or the server is the one that wrote the rows.
    /// Fails with `StoreMismatch` when the handle has seen a store with another identity, and with
    /// `Conflict` when another namespace of the store is in doubt already.
    pub other_server: bool,
}

impl Evidence {
    /// Returns an operator's word that another server has taken over the store with this identity,
    /// in its history, and that the former server takes no more writes.
    #[must_use]
    pub fn of_operator(id: String) -> Self {
        let seen = StoreIdentity { id: id.clone(), writes: 0 };
        Self { id, seen, ends: BTreeMap::new(), other_server: true }
    }
}

/// Maximum number of sources that the error names after the first.
const NAMED_MAX: usize = 16;

/// Rejects a store with sources that begin below issued numbers: the store was rolled back, however
/// far it has counted since. The error names all these sources, up to a limit: numbers in between
/// may be issued twice.
pub(crate) fn check_ends(
    who: &str,
    ends: &BTreeMap<String, u64>,
    stored: &[Definition],
) -> Result<()> {
    if ends.is_empty() {
        return Ok(());
    }
    let next = stored.iter().map(|source| (source.name.as_str(), source.segment.mark.get()));
    let next: HashMap<&str, u64> = next.collect();
    let mut below = ends.iter().filter_map(|(name, seen)| {
        let found = next.get(name.as_str()).copied().unwrap_or(0);
        (found < *seen).then_some((name, *seen, found))
    });
    let Some((name, seen, found)) = below.next() else { return Ok(()) };
    let mut others = String::new();
    for (name, seen, found) in below.by_ref().take(NAMED_MAX) {
        others.push_str(&format!("{name:?} (seen {seen}, found {found}), "));
    }
    let left_out = below.count();
    if left_out > 0 {
        others.push_str(&format!("{left_out} more, "));
    }
    let mut evidence = format!("next number of source {name:?} seen by {who}");
    if !others.is_empty() {
        evidence.push_str(&format!(" (and {})", others.trim_end_matches(", ")));
    }
    Err(Error::store_rolled_back(evidence, seen, found))
}
