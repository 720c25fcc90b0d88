//! Queue of a running source: present or absent, as its definition says, and kept filled by its own
//! task, which ends with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwapOption, Guard};
use snowmint_core::MintError;

use super::generator_set::GeneratorSet;
use super::node_context::NodeContext;
use super::prefill::Prefill;
use super::queue_room::Places;
use crate::platform::lock::lock;
use crate::spec::PrefillPlan;

/// Longest pause, in milliseconds, of a filler whose generator fails.
const FILL_RETRY_MS: u64 = 50;

/// Place for a source's queue.
#[derive(Debug, Default)]
pub(crate) struct PrefillHolder {
    prefill: ArcSwapOption<Prefill>,
    /// Whether there is a queue: nearly no source has one, and each ID would pay for the access.
    is_made: AtomicBool,
    /// Part of the node's limit on queued IDs that this queue uses.
    places: Mutex<Option<Places>>,
}

impl Drop for PrefillHolder {
    fn drop(&mut self) {
        self.close();
    }
}

impl PrefillHolder {
    #[inline]
    pub(super) fn load(&self) -> Option<Guard<Option<Arc<Prefill>>>> {
        // A caller that does not see a new queue yet mints from the generator that fills it.
        self.is_made.load(Ordering::Acquire).then(|| self.prefill.load())
    }

    pub(super) fn get(&self) -> Option<Arc<Prefill>> {
        self.prefill.load_full()
    }

    /// Makes the queue that the definition asks for, and its filler; prefilled IDs move to it. If
    /// the limit leaves no room, the source mints without a queue and callers wait for the
    /// generator.
    pub(super) fn set(
        &self,
        name: &str,
        plan: Option<PrefillPlan>,
        generators: &Arc<ArcSwapOption<GeneratorSet>>,
        ctx: &Arc<NodeContext>,
    ) {
        let old = self.get();
        if old.as_ref().map(|old| *old.plan()) == plan {
            return;
        }
        let plan = self.fitting(name, plan, ctx);
        let new = self.put(old.as_ref(), plan);
        if let Some(old) = &old {
            if let Some(new) = &new {
                std::iter::from_fn(|| old.take_prefilled()).for_each(|id| new.put(id));
            }
            old.close();
        }
        if let Some(new) = new {
            ctx.runtime.spawn(keep_filled(new, Arc::clone(generators), Arc::clone(ctx)));
        }
    }

    /// Reserves room for a queue, and frees the room of the previous one. Without room it returns
    /// `None` and logs a warning.
    fn fitting(
        &self,
        name: &str,
        plan: Option<PrefillPlan>,
        ctx: &NodeContext,
    ) -> Option<PrefillPlan> {
        let mut places = lock(&self.places);
        *places = None;
        let plan = plan?;
        let ids = u64::try_from(plan.capacity).unwrap_or(u64::MAX);
        *places = ctx.queue_room.reserve(ids);
        if places.is_none() {
            tracing::warn!(
                source = name,
                ids,
                ids_max = ctx.queue_room.ids_max(),
                "no room for the queue of a prefilled source, which mints without it: raise limits.prefill_ids_max, or \
                 lower prefill.boost"
            );
        }
        places.is_some().then_some(plan)
    }

    /// Drops the prefilled IDs, and those being minted for the queue.
    pub(crate) fn drop_prefetched(
        &self,
        generators: &Arc<ArcSwapOption<GeneratorSet>>,
        ctx: &Arc<NodeContext>,
    ) {
        let Some(old) = self.get() else { return };
        let new = self.put(Some(&old), Some(*old.plan()));
        old.close();
        if let Some(new) = new {
            ctx.runtime.spawn(keep_filled(new, Arc::clone(generators), Arc::clone(ctx)));
        }
    }

    /// Replaces `old` by an empty queue.
    fn put(&self, old: Option<&Arc<Prefill>>, plan: Option<PrefillPlan>) -> Option<Arc<Prefill>> {
        let new = plan.map(|plan| Arc::new(Prefill::new(plan)));
        if let (Some(old), Some(new)) = (old, &new) {
            new.set_hooks(old.hooks());
        }
        self.prefill.store(new.clone());
        self.is_made.store(new.is_some(), Ordering::Release);
        new
    }

    /// Records that there is a new generator.
    pub(super) fn serve(&self) {
        if let Some(prefill) = self.get() {
            prefill.serve();
        }
    }

    /// Ends the filler and drops the queue's IDs.
    pub(crate) fn close(&self) {
        if let Some(prefill) = self.prefill.swap(None) {
            prefill.close();
        }
        *lock(&self.places) = None;
    }
}

/// Fills a queue whenever it is needed, until it is closed.
async fn keep_filled(
    prefill: Arc<Prefill>,
    generators: Arc<ArcSwapOption<GeneratorSet>>,
    ctx: Arc<NodeContext>,
) {
    let schedule_ms = prefill.plan().schedule_ms;
    loop {
        tokio::select! {
            biased;
            () = prefill.needed() => {}
            () = ctx.timer.sleep_ms(schedule_ms.unwrap_or(0)), if schedule_ms.is_some() => {}
        }
        if prefill.is_closed() {
            return;
        }
        let filled = generators.load_full().map_or(Err(MintError::Closed), |generators| {
            prefill.fill_from(|out| generators.try_fill(out))
        });
        let Err(error) = filled else { continue };
        // The fill is still needed: it is tried again after a pause.
        prefill.call();
        match error {
            // A disabled source waits until it is enabled.
            MintError::Closed => prefill.served().await,
            MintError::WindowSpent { .. } => {
                ctx.window_spent();
                ctx.timer.sleep_ms(1).await;
            }
            MintError::TickFull { retry_after_ms, .. } => {
                ctx.until_tick(retry_after_ms.min(FILL_RETRY_MS)).await;
            }
            other => {
                let wait_ms = other.retry_after_ms().unwrap_or(FILL_RETRY_MS);
                ctx.timer.sleep_ms(wait_ms.min(FILL_RETRY_MS)).await;
            }
        }
    }
}
