//! Backing of a snowflake source whose IDs this process mints.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use snowmint_core::UnixMillis;

use super::generator_set::GeneratorSet;
use super::global_order::GlobalOrder;
use super::node_context::NodeContext;
use super::prefill_holder::PrefillHolder;
use crate::error::Error;

/// Generators of a snowflake source, with its queue and its state of the order.
#[derive(Debug, Default)]
pub(crate) struct SnowflakeBacking {
    /// Absent while no window is held.
    pub(super) generators: Arc<ArcSwapOption<GeneratorSet>>,
    /// Error that explains why the generators are absent.
    pub(super) error: Mutex<Option<Error>>,
    /// Prefill queue, used where the definition asks for it.
    pub(crate) queue: PrefillHolder,
    /// Present in global-order sources only.
    pub(super) global_order: Option<GlobalOrder>,
    /// Time up to which the store has granted windows, in Unix milliseconds.
    granted_until: AtomicU64,
}

impl SnowflakeBacking {
    pub(crate) fn serve(&self, generators: Arc<GeneratorSet>) {
        self.generators.store(Some(generators));
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.queue.serve();
    }

    /// Records the time up to which the store has granted windows.
    pub(crate) fn granted_until(&self, until: UnixMillis) {
        self.granted_until.store(until.get(), Ordering::Relaxed);
    }

    /// Returns the time recorded last by `granted_until()`.
    pub(crate) fn mark(&self) -> UnixMillis {
        UnixMillis::new(self.granted_until.load(Ordering::Relaxed))
    }

    /// Drops the prefilled IDs unused.
    pub(crate) fn drop_prefetched(&self, ctx: &Arc<NodeContext>) {
        self.queue.drop_prefetched(&self.generators, ctx);
    }

    pub(crate) fn generators(&self) -> Option<Arc<GeneratorSet>> {
        self.generators.load_full()
    }

    /// Returns the error that explains why the generators are absent, if one is known.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops minting for now.
    pub(crate) fn stop(&self) {
        self.generators.store(None);
    }

    pub(crate) fn suspend(&self, error: Error) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.generators.store(None);
    }
}
