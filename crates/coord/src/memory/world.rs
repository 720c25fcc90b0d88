//! All that a store in memory holds, in all its namespaces.

use std::collections::BTreeMap;
use std::fmt;

use super::space::Space;
use crate::history::{Doubt, History, Recalled, Starts, recall};
use crate::lease::SlotRow;
use crate::store::StoreIdentity;

/// What is asked of a store in doubt, too.
pub(super) const IN_DOUBT: [&str; 11] = [
    "now",
    "identity",
    "members",
    "workers",
    "get",
    "list",
    "ground",
    "recall",
    "report",
    "standing",
    "fast_forward",
];

#[derive(Clone)]
pub(super) struct World {
    pub(super) line: Line,
    pub(super) spaces: BTreeMap<String, Space>,
}

/// How far the store has come.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) identity: StoreIdentity,
    pub(super) starts: Starts,
}

/// Everything that a store in memory held at one moment.
#[derive(Clone)]
pub struct MemoryBackup(pub(super) World);

impl World {
    /// Puts all namespaces in doubt, which share the store's identity, if it is this one still.
    pub(super) fn doubt(&mut self, doubt: &Doubt, id: &str) {
        if self.line.identity.id == id {
            self.spaces.values_mut().for_each(|space| space.standing.begin(doubt));
        }
    }
}

impl Line {
    /// Tells a handle how the store is now, unless it has seen more: then it stays as it was, but where it has asked.
    pub(super) fn show(&self, seen: &mut Option<StoreIdentity>, has_asked: bool) {
        match seen {
            // As nearly always, and at little cost.
            Some(seen) if seen.id == self.identity.id && seen.writes <= self.identity.writes => {
                seen.writes = self.identity.writes;
            }
            Some(known) => {
                let recalled = recall("", known, &self.identity, &self.starts);
                if has_asked || recalled == Ok(Recalled::Same) {
                    *known = self.identity.clone();
                }
            }
            None => *seen = Some(self.identity.clone()),
        }
    }

    /// Nothing of what others wrote from this count on is kept.
    pub(super) fn begin(&mut self, history: &History, from: u64) {
        self.starts = self.starts.and(&history.start, from);
        self.identity.id = history.to_string();
    }
}

impl MemoryBackup {
    /// The slots of a namespace and their pools' names.
    pub fn slots_mut(&mut self, namespace: &str) -> impl Iterator<Item = (&str, &mut SlotRow)> {
        self.0.spaces.get_mut(namespace).into_iter().flat_map(Space::slots_mut)
    }
}

impl fmt::Debug for MemoryBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackup")
            .field("identity", &self.0.line.identity)
            .finish_non_exhaustive()
    }
}
