//! All data of a store in memory, in all its namespaces, and the exclusive access of one step at a
//! time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::ids::Incarnation;
use crate::model::catalog::Definition;
use crate::model::history::StoreIdentity;
use crate::model::lease::SlotRow;
use crate::model::member::MemberRow;
use crate::model::pool::Pool;
use crate::platform::lock::lock;
use crate::store::verbs::NamespaceRow;

#[derive(Clone, PartialEq)]
pub(super) struct World {
    pub(super) identity: StoreIdentity,
    pub(super) spaces: BTreeMap<String, Space>,
    /// Texts by namespace and name; texts of the whole store are under the namespace without a
    /// name.
    pub(super) notes: BTreeMap<(String, String), String>,
    /// Whether this is a replica: another server than the one that was written to, until an
    /// operator moves it forward.
    pub(super) is_replica: bool,
}

/// The rows of one namespace.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Space {
    pub(super) members: BTreeMap<Incarnation, MemberRow>,
    /// Pools, each with the first number never used, for pools without reuse.
    pub(super) pools: BTreeMap<String, (Pool, u64)>,
    pub(super) slots: BTreeMap<String, BTreeMap<u64, SlotRow>>,
    pub(super) namespace: NamespaceRow,
    pub(super) definitions: BTreeMap<String, Definition>,
}

impl World {
    pub(super) fn new(identity: StoreIdentity) -> Self {
        Self { identity, spaces: BTreeMap::new(), notes: BTreeMap::new(), is_replica: false }
    }
}

/// The world, or `None` while a step has it. A step owns the world, so that it can move between
/// threads in the middle and no lock is held over an await. A step over memory never waits, so no
/// task waits long for its end.
pub(super) struct Shared {
    world: Mutex<Option<World>>,
    ended: Condvar,
}

impl Shared {
    pub(super) const fn new(world: World) -> Self {
        Self { world: Mutex::new(Some(world)), ended: Condvar::new() }
    }

    pub(super) fn take(&self) -> World {
        let mut kept = lock(&self.world);
        loop {
            if let Some(world) = kept.take() {
                return world;
            }
            kept = self.ended.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn put(&self, world: World) {
        *lock(&self.world) = Some(world);
        self.ended.notify_one();
    }

    /// Gives access to the world between steps, to observe or replace it.
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.take();
        let seen = access(&mut world);
        self.put(world);
        seen
    }
}

/// All data of a store in memory at one moment.
#[derive(Clone, PartialEq)]
pub struct MemoryBackup(pub(super) World);

impl MemoryBackup {
    /// Returns the slots of a namespace with their pools' names.
    pub fn slots_mut(&mut self, namespace: &str) -> impl Iterator<Item = (&str, &mut SlotRow)> {
        let pools = self.0.spaces.get_mut(namespace).map(|space| &mut space.slots);
        pools
            .into_iter()
            .flatten()
            .flat_map(|(name, rows)| rows.values_mut().map(move |row| (name.as_str(), row)))
    }
}

impl fmt::Debug for MemoryBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackup").field("identity", &self.0.identity).finish_non_exhaustive()
    }
}
