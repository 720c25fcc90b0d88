//! A source as it runs: its current definition, and the backing that it mints from.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use snowmint_core::MintError;
use snowmint_core::text::Format;

use super::backing::Backing;
use super::counter::CounterSource;
use super::defined::{Defined, prefill_of};
use super::global_order::GlobalOrder;
use super::id_batch::NumberRange;
use super::node_context::NodeContext;
use super::open::open;
use super::per_request::{self, requires_wait};
use super::prefill::Prefill;
use super::retry_policy::{RetryPolicy, WINDOW_WAIT_MS};
use super::segment::{InitialState, SegmentSource};
use super::snowflake::SnowflakeBacking;
use super::values::NumberBlock;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::catalog::SourceState;
use crate::platform::fork_guard::ForkGuard;
use crate::spec::{Kind, Plan, SerialPlan, SourceSpec, Stripe};

/// A source in a node, unique by name.
#[derive(Debug)]
pub(crate) struct SourceInner {
    pub(crate) name: String,
    pub(super) kind: Kind,
    pub(crate) defined: ArcSwap<Defined>,
    pub(super) enabled: AtomicBool,
    /// Whether IDs are shown in decimal. Kept outside the definition, like `enabled`, for a cheap
    /// check at each ID.
    pub(super) decimal: AtomicBool,
    pub(crate) ctx: Arc<NodeContext>,
    fork_guard: ForkGuard,
    pub(crate) backing: Backing,
    /// Version of the definition found to agree with all that share its generator; 0 if unknown.
    agreed: AtomicU64,
    /// Whether IDs leave unchanged: a part of the identity, which never changes.
    pub(super) plain: bool,
    /// Map from numbers to serials, in a source of serials: a part of the identity, too.
    pub(super) serial: Option<SerialPlan>,
}

impl SourceInner {
    pub(crate) fn new(
        name: &str,
        defined: Defined,
        initial: &InitialState,
        ctx: Arc<NodeContext>,
    ) -> Result<Self> {
        let backing = open(name, &defined, initial, &ctx)?;
        let serial = match &defined.plan {
            Plan::Segment(plan) => plan.serial.clone(),
            _ => None,
        };
        Ok(Self {
            name: name.into(),
            kind: defined.spec.kind(),
            plain: defined.id_codec.is_plain() && serial.is_none(),
            serial,
            enabled: AtomicBool::new(defined.state == SourceState::Enabled && !ctx.is_ended()),
            decimal: AtomicBool::new(defined.id_codec.format() == Format::default()),
            defined: ArcSwap::from_pointee(defined),
            fork_guard: ctx.fork_guard.clone(),
            ctx,
            backing,
            agreed: AtomicU64::new(0),
        })
    }

    /// Returns whether this version of the definition was found to agree with all sources that
    /// share its generator.
    pub(crate) fn agrees(&self, version: u64) -> bool {
        self.agreed.load(Ordering::Acquire) == version
    }

    pub(crate) fn agreed(&self, version: u64) {
        self.agreed.store(version, Ordering::Release);
    }

    /// Applies a changed definition.
    pub(crate) fn redefine(&self, defined: Defined) {
        match (&self.backing, &defined.plan) {
            (Backing::Segment(segment), Plan::Segment(plan)) => {
                let enabled = defined.state == SourceState::Enabled;
                segment.alter(plan, defined.version, enabled);
            }
            (Backing::MultiStore(multi_store), plan) => multi_store.alter(plan),
            (Backing::StoreMinted(source), Plan::Snowflake(plan)) => {
                source.alter(plan, defined.version)
            }
            (Backing::Counter(counter), Plan::Counter(plan)) => counter.alter(*plan, defined.state),
            (Backing::Snowflake(backing), Plan::Snowflake(plan)) => {
                if let Some(order) = &backing.global_order {
                    order.alter(plan);
                }
                let prefill = prefill_of(plan, defined.state);
                backing.queue.set(&self.name, prefill, &backing.generators, &self.ctx);
            }
            _ => {}
        }
        self.enabled.store(defined.state == SourceState::Enabled, Ordering::SeqCst);
        if self.ctx.is_ended() {
            self.end();
        }
        self.decimal.store(defined.id_codec.format() == Format::default(), Ordering::Release);
        self.defined.store(Arc::new(defined));
    }

    /// Returns whether a definition is one of this source, even if it has another stripe.
    pub(crate) fn has_same_identity(&self, other: &Defined) -> bool {
        let identity = |spec: &SourceSpec| {
            let spec = match (spec.kind(), &spec.stores) {
                (Kind::Segment, None) => {
                    SourceSpec { upstream: None, ..Stripe::ALL.to_spec(spec.clone()) }
                }
                _ => spec.clone(),
            };
            spec.identity().ok()
        };
        identity(&self.defined.load().spec).is_some_and(|own| identity(&other.spec) == Some(own))
    }

    /// Marks a source that the catalog does not have any more, at version 0: any definition that
    /// follows is newer.
    pub(crate) fn mark_deleted(&self) {
        let Defined { spec, plan, id_codec, .. } = &*self.defined.load_full();
        let (spec, plan, id_codec) = (spec.clone(), plan.clone(), id_codec.clone());
        let (state, version) = (SourceState::Deleted, 0);
        self.redefine(Defined { spec, plan, id_codec, state, version, text: OnceLock::new() });
    }

    /// Stops minting because the node has ended, also where the source calls servers or the store
    /// each time, or needs neither. The source is disabled, so that no mint needs another check.
    pub(crate) fn end(&self) {
        self.enabled.store(false, Ordering::SeqCst);
    }

    /// Returns the backing of a global-order source.
    pub(crate) fn as_global_order(&self) -> Option<(&SnowflakeBacking, &GlobalOrder)> {
        let Backing::Snowflake(backing) = &self.backing else { return None };
        backing.global_order.as_ref().map(|order| (backing, order))
    }

    /// Checks that the source may mint in this process at all.
    #[inline]
    pub(crate) fn check_enabled(&self) -> Result<()> {
        if self.enabled.load(Ordering::Acquire) && self.fork_guard.is_here() {
            return Ok(());
        }
        Err(self.disabled_error())
    }

    #[cold]
    fn disabled_error(&self) -> Error {
        let name = &self.name;
        if !self.fork_guard.is_here() {
            return Error::unsupported(format!(
                "source {name:?} was opened before a fork; open the store in this process"
            ));
        }
        match self.defined.load().state {
            _ if self.ctx.is_ended() => {
                Error::closed(format!("source {name:?} is closed; open it again"))
            }
            SourceState::Deleted => {
                Error::not_found(format!("source {name:?} was deleted; define it again"))
            }
            _ => Error::disabled(format!(
                "source {name:?} is disabled; enable it (snowmint source alter NAME --enabled true)"
            )),
        }
    }

    pub(super) fn not_number(&self) -> Error {
        let made = if self.serial.is_some() { "serial" } else { self.kind.name() };
        Error::invalid(format!("source {:?} makes {made}s; this call needs numbers", self.name))
    }

    /// Returns the error for a counter called without a key.
    pub(super) fn no_key(&self) -> Error {
        Error::invalid(format!("source {:?} counts by key; give a key", self.name))
    }

    pub(super) fn counter(&self) -> Result<&CounterSource> {
        match &self.backing {
            Backing::Counter(counter) => Ok(counter),
            Backing::Remote(source) => Err(source.at_once()),
            _ => Err(Error::invalid(format!(
                "source {:?} has kind {}; keys need kind counter",
                self.name,
                self.kind.name()
            ))),
        }
    }

    pub(super) fn try_mint(&self) -> Result<u64> {
        if self.serial.is_some() {
            self.check_enabled()?;
            return Err(self.not_number());
        }
        self.show(self.take()?)
    }

    /// Takes one ID of a numeric source, before its disguise.
    #[inline]
    pub(super) fn take(&self) -> Result<u64> {
        self.check_enabled()?;
        Ok(match &self.backing {
            Backing::Snowflake(backing) => {
                if let Some(order) = &backing.global_order {
                    let mut one = [0];
                    self.fill_in_order(backing, order, &mut one).map_err(|(_, error)| error)?;
                    let [id] = one;
                    id
                } else if let Some(Some(prefill)) = backing.queue.load().as_deref() {
                    prefill.take().ok_or_else(|| self.dry(backing, prefill))?
                } else {
                    let generators = backing.generators.load();
                    let generators = generators.as_ref().ok_or_else(|| self.suspended(backing))?;
                    generators.try_mint().map_err(|error| self.refused(error))?
                }
            }
            Backing::StoreMinted(_) => return Err(requires_wait(&self.name)),
            Backing::Segment(segment) => segment.try_current(SegmentSource::try_mint)?,
            Backing::MultiStore(multi_store) => multi_store.try_mint()?,
            Backing::Counter(_) => return Err(self.no_key()),
            Backing::Remote(source) => return Err(source.at_once()),
            Backing::Uuid(_) | Backing::Ulid(_) => return Err(self.not_number()),
        })
    }

    /// Takes consecutive numbers of a segment source.
    pub(super) fn block(&self, length: u64) -> Result<NumberBlock> {
        self.check_enabled()?;
        match &self.backing {
            Backing::Segment(segment) => segment.try_current(|now| now.block(length)),
            Backing::MultiStore(multi_store) => multi_store.block(length),
            _ => Err(self.not_number()),
        }
    }

    #[inline]
    pub(super) fn show(&self, id: u64) -> Result<u64> {
        if self.plain { Ok(id) } else { self.defined.load().id_codec.show(&self.name, id) }
    }

    #[cold]
    pub(super) fn suspended(&self, backing: &SnowflakeBacking) -> Error {
        self.ctx.wake.notify_one();
        let error = backing.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        error.unwrap_or_else(|| {
            Error::unavailable(format!("source {:?} has no worker number yet; retry", self.name))
        })
    }

    /// Waits at most `within_ms` for the first IDs in the queue of a prefilled source. A disabled
    /// source fills none.
    pub(crate) async fn first_fill(&self, within_ms: u64) {
        if !self.enabled.load(Ordering::Acquire) {
            return;
        }
        let Backing::Snowflake(backing) = &self.backing else { return };
        let Some(prefill) = backing.queue.get() else { return };
        let timer = &self.ctx.timer;
        let deadline = timer.elapsed().saturating_add(within_ms);
        while prefill.stats().tail == 0 && deadline.since(timer.elapsed()) > 0 {
            tokio::select! {
                biased;
                () = prefill.filled().notified() => {}
                () = timer.sleep_ms(1) => {}
            }
        }
    }

    /// Returns the error for an empty queue: the error that stopped its filler, or that the filler
    /// has not come yet.
    #[cold]
    fn dry(&self, backing: &SnowflakeBacking, prefill: &Prefill) -> Error {
        if backing.generators.load().is_none() {
            return self.suspended(backing);
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
    pub(super) fn refused(&self, error: MintError) -> Error {
        match error {
            MintError::WindowSpent { .. } | MintError::NoClockValue { .. } => {
                self.ctx.window_spent();
            }
            // Closed because the right to mint was lost, or because another generator follows.
            MintError::Closed => {
                if let Backing::Snowflake(backing) = &self.backing {
                    return self.suspended(backing);
                }
            }
            _ => {}
        }
        self.minted_nothing(error)
    }

    /// Returns the error for the source's generator, which minted nothing.
    pub(super) fn minted_nothing(&self, error: MintError) -> Error {
        Error::refused(format_args!("source {:?}", self.name), error)
    }

    /// Reserves consecutive numbers of a segment source.
    pub(super) async fn reserve_range(&self, length: u64, within_ms: u64) -> Result<NumberRange> {
        match &self.backing {
            Backing::Segment(segment) => segment.reserve_range(length, within_ms).await,
            Backing::MultiStore(multi_store) => multi_store.reserve_range(length, within_ms).await,
            _ => Err(Error::invalid(format!(
                "source {:?} has kind {}; ranges need kind segment",
                self.name,
                self.kind.name()
            ))),
        }
    }

    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        self.check_enabled().map_err(|error| (0, error))?;
        match &self.backing {
            Backing::Snowflake(backing) => {
                if let Some(order) = &backing.global_order {
                    return self.fill_in_order(backing, order, out);
                }
                if let Some(Some(prefill)) = backing.queue.load().as_deref() {
                    for (made, slot) in out.iter_mut().enumerate() {
                        *slot = prefill.take().ok_or_else(|| (made, self.dry(backing, prefill)))?;
                    }
                    return Ok(());
                }
                let generators = backing.generators.load();
                let generators = generators.as_ref().ok_or_else(|| (0, self.suspended(backing)))?;
                generators.try_fill(out).map_err(|short| (short.made, self.refused(short.error)))
            }
            Backing::Segment(segment) => {
                let now = segment.now();
                match now.try_fill(out) {
                    // The IDs already made are dropped unused.
                    Err(_) if segment.replaced(&now) => segment.now().try_fill(out),
                    filled => filled,
                }
            }
            Backing::MultiStore(multi_store) => multi_store.try_fill(out),
            Backing::StoreMinted(_) => Err((0, requires_wait(&self.name))),
            Backing::Counter(_) => Err((0, self.no_key())),
            Backing::Remote(source) => Err((0, source.at_once())),
            Backing::Uuid(_) | Backing::Ulid(_) => Err((0, self.not_number())),
        }
    }

    /// Calls a per-request source once for undisguised IDs; returns how many came. Other sources
    /// return their prefetched IDs.
    pub(super) async fn fill_once(&self, out: &mut [u64], within_ms: u64) -> Result<usize> {
        self.check_enabled()?;
        match &self.backing {
            Backing::StoreMinted(source) => per_request::once(&**source, out, within_ms).await,
            Backing::Segment(segment) if segment.now().is_per_request() => {
                per_request::once(&*segment.now(), out, within_ms).await
            }
            _ => match self.try_fill(out) {
                Ok(()) => Ok(out.len()),
                Err((0, error)) => Err(error),
                Err((made, _)) => Ok(made),
            },
        }
    }

    /// Fills the buffer with undisguised IDs.
    pub(super) async fn fill(&self, out: &mut [u64], within_ms: u64) -> Result<()> {
        let mut retry_policy = RetryPolicy::of(&self.defined.load().plan);
        if let Backing::StoreMinted(source) = &self.backing {
            return per_request::fill(&**source, &mut retry_policy, out, within_ms).await;
        }
        if let Backing::Segment(segment) = &self.backing {
            self.check_enabled()?;
            let now = segment.now();
            return match now.fill(&mut retry_policy, out, within_ms).await {
                Err(_) if segment.replaced(&now) => {
                    segment.now().fill(&mut retry_policy, out, within_ms).await
                }
                filled => filled,
            };
        }
        if let Backing::MultiStore(multi_store) = &self.backing {
            self.check_enabled()?;
            return multi_store.fill(&mut retry_policy, out, within_ms).await;
        }
        let prefill = match &self.backing {
            Backing::Snowflake(backing) => backing.queue.get(),
            _ => None,
        };
        // An empty queue is waited for as long as its definition allows, by default not at all.
        let within_ms = prefill
            .as_ref()
            .map_or(within_ms, |prefill| within_ms.min(prefill.plan().wait_max_ms.unwrap_or(0)));
        let timer = &self.ctx.timer;
        let deadline = timer.elapsed().saturating_add(within_ms);
        let mut made = 0;
        loop {
            let rest = out.get_mut(made..).unwrap_or_default();
            let Err((more, error)) = self.try_fill(rest) else { return Ok(()) };
            made = made.saturating_add(more);
            if let Some(prefill) = &prefill {
                let left_ms = deadline.since(timer.elapsed());
                if left_ms == 0 || error.retry() == Retry::Never {
                    return Err(error);
                }
                // Checked again soon, whether filled in between or not.
                tokio::select! {
                    biased;
                    () = prefill.filled().notified() => {}
                    () = timer.sleep_ms(left_ms.min(WINDOW_WAIT_MS)) => {}
                }
                continue;
            }
            let left_ms = deadline.since(timer.elapsed());
            let Some(wait_ms) = retry_policy.wait_ms_after(&error, left_ms) else {
                return Err(error);
            };
            match error.kind() {
                ErrorKind::TickFull { .. } => self.ctx.until_tick(wait_ms).await,
                _ => timer.sleep_ms(wait_ms).await,
            }
        }
    }
}
