//! What shows that a store went back.

use std::collections::BTreeMap;

use crate::catalog::Definition;
use crate::error::ErrorKind;
use crate::store::StoreIdentity;

/// What a process knows of a store, by which it says that the store went back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The store's identity, in its history, when it was looked at.
    pub id: String,
    /// How far it had come.
    pub seen: StoreIdentity,
    /// The next number of each source, as far as it was seen handed out.
    pub ends: BTreeMap<String, u64>,
}

/// How many sources are named beside the first.
const NAMED_MAX: usize = 16;

/// Refuses sources whose numbers begin below what was seen handed out: the store went back, however far it has counted
/// since. All of them are named, up to a limit: their numbers in between may come twice.
pub(crate) fn check_ends(
    who: &str,
    ends: &BTreeMap<String, u64>,
    stored: &[Definition],
) -> Result<(), ErrorKind> {
    let mut below = ends.iter().filter_map(|(name, seen)| {
        let source = stored.iter().find(|source| source.name == *name);
        let found = source.map_or(0, |source| source.segment.mark.get());
        (found < *seen).then_some((name, *seen, found))
    });
    let Some((name, seen, found)) = below.next() else { return Ok(()) };
    let mut others = String::new();
    for (name, seen, found) in below.by_ref().take(NAMED_MAX) {
        others.push_str(&format!("{name} (seen {seen}, found {found}), "));
    }
    let left_out = below.count();
    if left_out > 0 {
        others.push_str(&format!("{left_out} more, "));
    }
    if !others.is_empty() {
        others = format!(" beside {}", others.trim_end_matches(", "));
    }
    let witness = format!("the next number of source {name}{others}, as {who} has seen it,");
    Err(ErrorKind::StoreWentBack { witness, seen, found })
}
