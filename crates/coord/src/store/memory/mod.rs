//! The memory store: the verbs over rows in memory, for tests, for the simulated world, and for IDs
//! that need not outlive the process.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | no |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! With [`MemoryStore::with_clock`] it uses a clock of its own, which tests set.

mod clock;
mod rows;
mod world;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::model::history::StoreIdentity;
use crate::model::lease::SlotRow;
use crate::model::name::check_name;
use crate::platform::random;
use crate::platform::timer::{BootTimer, Timer};
use crate::store::capability::{Capabilities, ClockOf, PresenceBy};
use crate::store::verbs::{Access, Backend, BackendStore, Failure, Rows as _, StoreInfo};
pub use clock::MemoryClock;
pub use rows::MemoryRows;
pub use world::MemoryBackup;
use world::{Shared, World};

/// A handle on one namespace of a store in memory. The store lives as long as a handle on it.
pub type MemoryStore = BackendStore<MemoryBackend>;

/// Back end of such a handle.
pub struct MemoryBackend {
    shared: Arc<Shared>,
    namespace: String,
    clock: Option<MemoryClock>,
    timer: Arc<dyn Timer>,
    closed: AtomicBool,
}

impl MemoryStore {
    /// Capabilities of the store; with a clock of its own, `clock` is [`ClockOf::Store`].
    pub const CAPABILITIES: Capabilities = Capabilities {
        clock: ClockOf::Caller,
        durable_on_reply: false,
        safe_over_failover: false,
        presence: PresenceBy::Record,
    };

    /// Creates an empty store that uses its callers' clocks.
    ///
    /// # Errors
    /// `Invalid` for a bad namespace; `Unavailable` without randomness for its identity.
    pub fn new(namespace: &str) -> Result<Self> {
        Self::open(namespace, None)
    }

    /// Creates an empty store that uses `clock`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(namespace: &str, clock: MemoryClock) -> Result<Self> {
        Self::open(namespace, Some(clock))
    }

    fn open(namespace: &str, clock: Option<MemoryClock>) -> Result<Self> {
        let identity = StoreIdentity { id: random::incarnation()?.to_string(), writes: 0 };
        let shared = Arc::new(Shared::new(World::new(identity)));
        Self::on(shared, namespace, (clock, Arc::new(BootTimer)))
    }

    /// Returns another handle on the same store, in the same or another namespace.
    ///
    /// # Errors
    /// `Invalid` for a bad namespace.
    pub fn handle(&self, namespace: &str) -> Result<Self> {
        let MemoryBackend { shared, clock, timer, .. } = self.backend();
        Self::on(Arc::clone(shared), namespace, (clock.clone(), Arc::clone(timer)))
    }

    /// Returns another handle on the same namespace, which goes by this timer.
    #[must_use]
    pub fn by_timer(&self, timer: Arc<dyn Timer>) -> Self {
        let MemoryBackend { shared, namespace, clock, .. } = self.backend();
        let (shared, clock, namespace) = (Arc::clone(shared), clock.clone(), namespace.clone());
        let closed = AtomicBool::new(false);
        Self::over(MemoryBackend { shared, namespace, clock, timer, closed })
    }

    fn on(
        shared: Arc<Shared>,
        namespace: &str,
        (clock, timer): (Option<MemoryClock>, Arc<dyn Timer>),
    ) -> Result<Self> {
        check_name("namespace", namespace)?;
        let (namespace, closed) = (namespace.to_owned(), AtomicBool::new(false));
        Ok(Self::over(MemoryBackend { shared, namespace, clock, timer, closed }))
    }

    /// Copies all data of the store, in all its namespaces.
    #[must_use]
    pub fn backup(&self) -> MemoryBackup {
        MemoryBackup(self.backend().shared.with(|world| world.clone()))
    }

    /// Replaces all data of the store, in all its namespaces, by a copy, so that tests see the
    /// effects of a store rollback. This handle, unlike all others, forgets what it has seen.
    pub fn restore(&self, backup: MemoryBackup) {
        self.backend().shared.with(|world| *world = backup.0);
        self.forget();
    }

    /// Restores a copy as a replica that takes over: not the server that acknowledged the writes
    /// missing here.
    pub fn take_over(&self, backup: MemoryBackup) {
        self.restore(backup);
        self.backend().shared.with(|world| world.is_replica = true);
    }

    /// Returns the store's row of a slot; `None` if it was never claimed. For test observers:
    /// members get this data only through the verbs.
    #[must_use]
    pub fn row(&self, pool: &str, slot: u64) -> Option<SlotRow> {
        let MemoryBackend { shared, namespace, .. } = self.backend();
        shared.with(|world| world.spaces.get(namespace)?.slots.get(pool)?.get(&slot).cloned())
    }
}

crate::opaque_debug!(MemoryBackend: namespace);

#[async_trait]
impl Backend for MemoryBackend {
    type Rows = MemoryRows;

    fn info(&self) -> StoreInfo<'_> {
        let clock = if self.clock.is_some() { ClockOf::Store } else { ClockOf::Caller };
        StoreInfo {
            capabilities: Capabilities { clock, ..MemoryStore::CAPABILITIES },
            namespace: &self.namespace,
            label: "the memory store",
            address: None,
        }
    }

    fn timer(&self) -> &dyn Timer {
        &*self.timer
    }

    async fn begin(&self, access: Access) -> Result<MemoryRows, Failure<Infallible>> {
        if self.closed.load(Ordering::SeqCst) {
            let label = self.info().label;
            return Err(Failure::from(Error::closed(format!("{label} is closed; open it again"))));
        }
        let clock = self.clock.as_ref().map(MemoryClock::now);
        let rows = MemoryRows::begin(&self.shared, &self.namespace, clock);
        if access == Access::Write {
            rows.check_server()?;
        }
        Ok(rows)
    }

    fn map_error(&self, error: Infallible) -> Error {
        match error {}
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
