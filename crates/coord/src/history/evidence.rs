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

/// Refuses a source whose numbers begin below what was seen handed out: the store went back, however far it has counted
/// since.
pub(crate) fn check_ends(
    who: &str,
    ends: &BTreeMap<String, u64>,
    stored: &[Definition],
) -> Result<(), ErrorKind> {
    for (name, seen) in ends {
        let source = stored.iter().find(|source| source.name == *name);
        let found = source.map_or(0, |source| source.segment.mark.get());
        if found < *seen {
            let witness = format!("the next number of source {name}, as {who} has seen it,");
            return Err(ErrorKind::StoreWentBack { witness, seen: *seen, found });
        }
    }
    Ok(())
}
