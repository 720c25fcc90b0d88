//! Names of the keys of a namespace, below its own prefix.

use snowmint_coord::Incarnation;

/// The store's identity.
pub const STORE: &str = "store";
/// State of the namespace as a whole.
pub const NAMESPACE: &str = "namespace";
/// Key written with every batch, if the server's write count is not the namespace's own.
pub const WRITES: &str = "writes";
/// The folder of members.
pub const MEMBERS: &str = "member";
/// The folder of pools.
pub(super) const POOLS: &str = "pool";
/// The folder of sources.
pub const SOURCES: &str = "source";

pub(super) fn member(incarnation: Incarnation) -> String {
    format!("{MEMBERS}/{incarnation}")
}

pub(super) fn pool(name: &str) -> String {
    format!("{POOLS}/{name}")
}

/// Returns the folder of a pool's slots.
pub(super) fn slots(pool: &str) -> String {
    format!("slot/{pool}")
}

pub(super) fn slot(pool: &str, slot: u64) -> String {
    format!("slot/{pool}/{slot}")
}

pub(super) fn source(name: &str) -> String {
    format!("{SOURCES}/{name}")
}

/// Splits a key into its folder and its name there. The folder of a key without one is the empty
/// name.
pub fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}
