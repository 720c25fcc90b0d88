//! Backing of a snowflake source whose IDs this process mints.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use snowmint_core::{Clock as _, MintError, UnixMillis};

use super::defined::Defined;
use super::generator_set::GeneratorSet;
use super::global_order::GlobalOrder;
use super::node_context::NodeContext;
use super::prefill::Prefill;
use super::prefill_holder::PrefillHolder;
use super::retry_policy::{RetryPolicy, WINDOW_WAIT_MS};
use super::segment::Unused;
use super::source_kind::SourceKind;
use super::values::SourceStats;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::catalog::SourceState;
use crate::spec::{Order, Plan, SnowflakePlan};

/// Generators of a snowflake source, with its queue and its state of the order.
#[derive(Debug)]
pub(crate) struct SnowflakeBacking {
    pub(super) name: String,
    pub(super) ctx: Arc<NodeContext>,
    /// Milliseconds of a tick: a part of the identity, which never changes.
    unit_ms: u64,
    /// Absent while no window is held.
    pub(super) generators: Arc<ArcSwapOption<GeneratorSet>>,
    /// Error that explains why the generators are absent.
    error: Mutex<Option<Error>>,
    /// Prefill queue, used where the definition asks for it.
    pub(super) queue: PrefillHolder,
    /// Present in global-order sources only.
    pub(super) global_order: Option<GlobalOrder>,
    /// Time up to which the store has granted windows, in Unix milliseconds.
    granted_until: AtomicU64,
}

impl SnowflakeBacking {
    pub(super) fn new(
        name: &str,
        plan: &SnowflakePlan,
        state: SourceState,
        ctx: &Arc<NodeContext>,
    ) -> Self {
        let is_ordered = plan.order == Order::Global;
        let backing = Self {
            name: name.into(),
            ctx: Arc::clone(ctx),
            unit_ms: plan.layout.unit_ms().into(),
            generators: Arc::default(),
            error: Mutex::default(),
            queue: PrefillHolder::default(),
            global_order: is_ordered.then(|| GlobalOrder::new(name, plan)),
            granted_until: AtomicU64::default(),
        };
        if is_ordered {
            ctx.sections.begin();
        }
        backing.set_queue(plan, state);
        backing
    }

    /// Sets the queue that a definition asks for. A deleted source has none: its IDs must never be
    /// issued.
    fn set_queue(&self, plan: &SnowflakePlan, state: SourceState) {
        let prefill_plan = plan.prefill.filter(|_| state != SourceState::Deleted);
        self.queue.set(&self.name, prefill_plan, &self.generators, &self.ctx);
    }

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

    /// Takes one ID, before its disguise.
    #[inline]
    pub(super) fn take(&self) -> Result<u64> {
        if let Some(order) = &self.global_order {
            let mut one = [0];
            self.fill_in_order(order, &mut one).map_err(|(_, error)| error)?;
            let [id] = one;
            Ok(id)
        } else if let Some(Some(prefill)) = self.queue.load().as_deref() {
            prefill.take().ok_or_else(|| self.dry(prefill))
        } else {
            let generators = self.generators.load();
            let generators = generators.as_ref().ok_or_else(|| self.suspended())?;
            generators.try_mint().map_err(|error| self.refused(error))
        }
    }

    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        if let Some(order) = &self.global_order {
            return self.fill_in_order(order, out);
        }
        if let Some(Some(prefill)) = self.queue.load().as_deref() {
            for (made, slot) in out.iter_mut().enumerate() {
                *slot = prefill.take().ok_or_else(|| (made, self.dry(prefill)))?;
            }
            return Ok(());
        }
        let generators = self.generators.load();
        let generators = generators.as_ref().ok_or_else(|| (0, self.suspended()))?;
        generators.try_fill(out).map_err(|short| (short.made, self.refused(short.error)))
    }

    /// Fills the buffer. Waits at most `within_ms`; checks `may_mint` before each try.
    pub(super) async fn fill(
        &self,
        retry_policy: &mut RetryPolicy,
        out: &mut [u64],
        within_ms: u64,
        may_mint: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let prefill = self.queue.get();
        // An empty queue is waited for as long as its definition allows, by default not at all.
        let within_ms = prefill
            .as_ref()
            .map_or(within_ms, |prefill| within_ms.min(prefill.plan().wait_max_ms.unwrap_or(0)));
        let deadline = self.ctx.deadline(within_ms);
        let mut made: usize = 0;
        loop {
            may_mint()?;
            let rest = out.get_mut(made..).unwrap_or_default();
            let Err((more, error)) = self.try_fill(rest) else { return Ok(()) };
            made = made.saturating_add(more);
            if let Some(prefill) = &prefill {
                // Checked again soon, whether filled in between or not.
                if error.retry() == Retry::Never
                    || !deadline.wait(prefill.filled().notified(), WINDOW_WAIT_MS).await
                {
                    return Err(error);
                }
                continue;
            }
            let Some(wait_ms) = retry_policy.wait_ms_after(&error, deadline.left_ms()) else {
                return Err(error);
            };
            match error.kind() {
                ErrorKind::TickFull { .. } => self.ctx.until_tick(wait_ms).await,
                _ => self.ctx.timer.sleep_ms(wait_ms).await,
            }
        }
    }

    /// Waits at most `within_ms` for the first IDs in the queue, if there is one.
    pub(crate) async fn first_fill(&self, within_ms: u64) {
        let Some(prefill) = self.queue.get() else { return };
        let deadline = self.ctx.deadline(within_ms);
        while prefill.stats().tail == 0 && deadline.wait(prefill.filled().notified(), 1).await {}
    }

    #[cold]
    fn suspended(&self) -> Error {
        self.ctx.wake.notify_one();
        self.error().unwrap_or_else(|| {
            Error::unavailable(format!("source {:?} has no worker number yet; retry", self.name))
        })
    }

    /// Returns the error for an empty queue: the error that stopped its filler, or that the filler
    /// has not come yet.
    #[cold]
    fn dry(&self, prefill: &Prefill) -> Error {
        if self.generators.load().is_none() {
            return self.suspended();
        }
        match prefill.error() {
            Some(error) => self.refused(error),
            None => {
                let message = format!("queue of source {:?} is empty; retry in 1 ms", self.name);
                Error::unavailable(message).with_retry(Retry::AfterMs(1))
            }
        }
    }

    #[cold]
    fn refused(&self, error: MintError) -> Error {
        match error {
            MintError::WindowSpent { .. } | MintError::NoClockValue { .. } => {
                self.ctx.window_spent();
            }
            // Closed because the right to mint was lost, or because another generator follows.
            MintError::Closed => return self.suspended(),
            _ => {}
        }
        self.minted_nothing(error)
    }

    /// Returns the error for the source's generator, which minted nothing.
    pub(super) fn minted_nothing(&self, error: MintError) -> Error {
        Error::refused(format_args!("source {:?}", self.name), error)
    }
}

impl SourceKind for SnowflakeBacking {
    fn alter(&self, defined: &Defined) {
        let Plan::Snowflake(plan) = &defined.plan else { return };
        if let Some(order) = &self.global_order {
            order.alter(plan);
        }
        self.set_queue(plan, defined.state);
    }

    fn stats(&self, ready: bool) -> SourceStats {
        // A global-order source's window moves only while IDs are minted, and may be another
        // server's.
        let is_kept = ready && self.global_order.is_none();
        let generators = self.generators.load();
        let Some(generators) = generators.as_ref() else {
            return SourceStats { window_ms: is_kept.then_some(0), ..SourceStats::default() };
        };
        let now = self.ctx.clock.unix_ms();
        let positions = generators.positions();
        let taken_until = positions.iter().map(|slot| slot.taken_until).max();
        // Clock values that do not serve may have been left far ahead.
        let serving = positions.iter().filter(|slot| slot.wanted);
        let at = serving.map(|slot| slot.taken_until).max().unwrap_or_default();
        SourceStats {
            ready,
            taken_until,
            lead_ms: Some(at.saturating_sub(self.unit_ms).since(now)),
            window_ms: is_kept.then(|| self.mark().since(at.max(now))),
            clock_steps: generators.steps(),
            prefill: self.queue.get().map(|prefill| prefill.stats()),
            ..SourceStats::default()
        }
    }

    fn drop_prefetched(&self) {
        self.queue.drop_prefetched(&self.generators, &self.ctx);
    }

    fn close_prefetched(&self) -> Option<Unused> {
        self.queue.close();
        None
    }
}
