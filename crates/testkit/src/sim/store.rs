//! The store of a run: its kind, and the world's own access to it, past the verbs.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{MemoryBackup, MemoryClock, MemoryStore, SlotRow, Store};

use super::keys::{self, Keyspace, SimConnection};
use super::random::SimRng;
use super::server::{Etcd, Redis, Zookeeper};
use super::time::WorldTimer;

const NAMESPACE: &str = "default";

/// Kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// Rows in memory: a step runs alone.
    Rows,
    /// Keys on a server with a count of changes for each namespace, and a step of its own for
    /// numbers.
    Redis,
    /// The same; each run of the server is another store.
    RedisByRun,
    /// Keys in a cluster that counts the changes of all programs, and reads one moment.
    Etcd,
    /// Keys in an ensemble that counts the changes of all programs; its servers may lag.
    Zookeeper,
}

impl StoreKind {
    /// Draws a kind: a store on keys in two of five runs, or always.
    pub(super) fn any(rng: &SimRng, has_clock: bool, is_keyed: bool) -> Self {
        if !is_keyed && !rng.percent(40) {
            return Self::Rows;
        }
        match (has_clock, rng.percent(50)) {
            (true, true) => Self::Redis,
            (true, false) => Self::RedisByRun,
            (false, true) => Self::Etcd,
            (false, false) => Self::Zookeeper,
        }
    }

    pub(super) fn is_keyed(self) -> bool {
        self != Self::Rows
    }

    /// Returns whether a lagging replica may take over, which the store then distinguishes from the
    /// first server.
    pub(super) const fn fails_over(self) -> bool {
        matches!(self, Self::Rows | Self::RedisByRun | Self::Etcd)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rows => "a store of rows",
            Self::Redis => "a store of keys as Redis's",
            Self::RedisByRun => "a store of keys as Redis's, by run",
            Self::Etcd => "a store of keys as etcd's",
            Self::Zookeeper => "a store of keys as ZooKeeper's",
        }
    }

    /// Makes a new, empty store on the server of this number.
    pub(super) fn make(self, clock: Option<&MemoryClock>, server: u64) -> Arc<dyn SimStore> {
        let clock = clock.cloned();
        match self {
            Self::Rows => {
                let store = match clock {
                    Some(clock) => MemoryStore::with_clock(NAMESPACE, clock).unwrap(),
                    None => MemoryStore::new(NAMESPACE).unwrap(),
                };
                Arc::new(store.by_timer(Arc::new(WorldTimer)))
            }
            Self::Redis => keys::make::<Redis>(clock, None),
            Self::RedisByRun => keys::make::<Redis>(clock, Some(server)),
            Self::Etcd => keys::make::<Etcd>(clock, Some(server)),
            Self::Zookeeper => keys::make::<Zookeeper>(clock, None),
        }
    }
}

/// Copy of all that a store held at one moment.
#[derive(Clone, Debug)]
pub(super) enum StoreContent {
    Rows(MemoryBackup),
    Keys(Keyspace),
}

impl StoreContent {
    /// Returns the same content on another server.
    pub(super) fn on_server(self, server: u64) -> Self {
        match self {
            Self::Rows(_) => self,
            Self::Keys(keys) => Self::Keys(keys.on_server(server)),
        }
    }
}

/// Handle on the store of a run.
#[async_trait]
pub(super) trait SimStore: Store {
    /// Opens another handle; with a connection, its requests to keys take time.
    fn handle(&self, connection: Option<SimConnection>) -> Arc<dyn SimStore>;
    /// Opens a handle on another namespace, which shares the store's history; `None` where each has
    /// its own.
    fn other_namespace(&self) -> Option<Arc<dyn Store>>;
    /// Returns the row of a slot, or `None` if it was never claimed.
    fn row(&self, pool: &str, slot: u64) -> Option<SlotRow>;
    /// Returns the rows of a pool.
    fn rows(&self, pool: &str) -> Vec<SlotRow>;
    /// Replaces a slot's row, past all rules.
    fn put_row(&self, pool: &str, row: SlotRow);
    /// Forgets what this handle has seen of the store.
    fn forget_seen(&self);
    /// Copies all that the store holds.
    fn backup(&self) -> StoreContent;
    /// Replaces all that the store holds by a copy. This handle, unlike all others, forgets what it
    /// has seen.
    fn restore(&self, content: StoreContent);
}

#[async_trait]
impl SimStore for MemoryStore {
    fn handle(&self, connection: Option<SimConnection>) -> Arc<dyn SimStore> {
        let timer = connection.map_or_else(|| Arc::new(WorldTimer) as _, |to| to.timer);
        Arc::new(self.by_timer(timer))
    }

    fn other_namespace(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Self::handle(self, "other").unwrap()))
    }

    fn row(&self, pool: &str, slot: u64) -> Option<SlotRow> {
        Self::row(self, pool, slot)
    }

    fn rows(&self, pool: &str) -> Vec<SlotRow> {
        let mut backup = Self::backup(self);
        let found = backup.slots_mut(NAMESPACE).filter(|(name, _)| *name == pool);
        found.map(|(_, row)| row.clone()).collect()
    }

    fn put_row(&self, pool: &str, row: SlotRow) {
        let mut backup = Self::backup(self);
        let is_it = |(name, old): &(&str, &mut SlotRow)| *name == pool && old.slot == row.slot;
        if let Some((_, old)) = backup.slots_mut(NAMESPACE).find(is_it) {
            *old = row;
        }
        Self::restore(self, backup);
    }

    fn forget_seen(&self) {
        self.forget();
    }

    fn backup(&self) -> StoreContent {
        StoreContent::Rows(Self::backup(self))
    }

    fn restore(&self, content: StoreContent) {
        let StoreContent::Rows(backup) = content else { panic!("keys are no rows") };
        Self::restore(self, backup);
    }
}
