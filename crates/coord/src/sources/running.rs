//! A source as it runs: its current definition, and the backing that it mints from.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use snowmint_core::Refusal;
use snowmint_core::text::Format;

use super::asked::{self, nothing_at_hand};
use super::prefill::Prefill;
use super::{
    Back, Block, CounterSource, Form, Ordered, Patience, Remembered, Row, SegmentSource,
    SnowflakeBack, Surroundings, WINDOW_WAIT_MS,
};
use crate::catalog::SourceState;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::home::Home;
use crate::spec::{Kind, Plan, PrefillPlan, SerialPlan, SnowflakePlan, SourceSpec, Stripe};

/// Current definition of a source.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) plan: Plan,
    pub(crate) form: Form,
    pub(crate) state: SourceState,
    pub(crate) version: u64,
    /// Definition as canonical JSON, made on first use.
    pub(crate) text: OnceLock<String>,
}

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
    pub(crate) around: Arc<Surroundings>,
    home: Home,
    pub(crate) back: Back,
    /// Version of the definition found to agree with all that share its generator; 0 if unknown.
    agreed: AtomicU64,
    /// Whether IDs leave unchanged: a part of the identity, which never changes.
    pub(super) plain: bool,
    /// Map from numbers to serials, in a source of serials: a part of the identity, too.
    pub(super) serial: Option<SerialPlan>,
}

/// Returns the plan of a source's queue. A deleted source has none: its IDs must never be issued.
pub(super) fn prefill_of(plan: &SnowflakePlan, state: SourceState) -> Option<PrefillPlan> {
    plan.prefill.filter(|_| state != SourceState::Deleted)
}

impl SourceInner {
    pub(crate) fn new(
        name: &str,
        defined: Defined,
        remembered: &Remembered,
        around: Arc<Surroundings>,
    ) -> Result<Self> {
        let back = Back::open(name, &defined, remembered, &around)?;
        let serial = match &defined.plan {
            Plan::Segment(plan) => plan.serial.clone(),
            _ => None,
        };
        Ok(Self {
            name: name.into(),
            kind: defined.spec.kind(),
            plain: defined.form.is_plain() && serial.is_none(),
            serial,
            enabled: AtomicBool::new(defined.state == SourceState::Enabled && !around.is_ended()),
            decimal: AtomicBool::new(defined.form.format() == Format::default()),
            defined: ArcSwap::from_pointee(defined),
            home: around.home.clone(),
            around,
            back,
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
        match (&self.back, &defined.plan) {
            (Back::Segment(segment), Plan::Segment(plan)) => {
                let enabled = defined.state == SourceState::Enabled;
                segment.alter(plan, defined.version, enabled);
            }
            (Back::Several(several), plan) => several.alter(plan),
            (Back::ByStore(source), Plan::Snowflake(plan)) => source.alter(plan, defined.version),
            (Back::Counter(counter), Plan::Counter(plan)) => counter.alter(*plan, defined.state),
            (Back::Snowflake(back), Plan::Snowflake(plan)) => {
                if let Some(ordered) = &back.ordered {
                    ordered.alter(plan);
                }
                let prefill = prefill_of(plan, defined.state);
                back.queue.set(&self.name, prefill, &back.minter, &self.around);
            }
            _ => {}
        }
        self.enabled.store(defined.state == SourceState::Enabled, Ordering::SeqCst);
        if self.around.is_ended() {
            self.end();
        }
        self.decimal.store(defined.form.format() == Format::default(), Ordering::Release);
        self.defined.store(Arc::new(defined));
    }

    /// Returns whether a definition is one of this source, even if it has another stripe.
    pub(crate) fn is_as(&self, other: &Defined) -> bool {
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
    pub(crate) fn lose(&self) {
        let Defined { spec, plan, form, .. } = &*self.defined.load_full();
        let (spec, plan, form) = (spec.clone(), plan.clone(), form.clone());
        let (state, version) = (SourceState::Deleted, 0);
        self.redefine(Defined { spec, plan, form, state, version, text: OnceLock::new() });
    }

    /// Stops minting because the node has ended, also where the source calls servers or the store
    /// each time, or needs neither. The source is disabled, so that no mint needs another check.
    pub(crate) fn end(&self) {
        self.enabled.store(false, Ordering::SeqCst);
    }

    /// Returns the backing of a global-order source.
    pub(crate) fn in_order(&self) -> Option<(&SnowflakeBack, &Ordered)> {
        match &self.back {
            Back::Snowflake(back) => back.ordered.as_ref().map(|ordered| (back, ordered)),
            _ => None,
        }
    }

    /// Checks that the source may mint in this process at all.
    #[inline]
    pub(crate) fn check_enabled(&self) -> Result<()> {
        if self.enabled.load(Ordering::Acquire) && self.home.is_here() {
            return Ok(());
        }
        Err(self.not_now())
    }

    #[cold]
    fn not_now(&self) -> Error {
        let name = &self.name;
        if !self.home.is_here() {
            return Error::unsupported(format!(
                "source {name:?} was opened before a fork; open the store in this process"
            ));
        }
        match self.defined.load().state {
            _ if self.around.is_ended() => {
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
        match &self.back {
            Back::Counter(counter) => Ok(counter),
            Back::Afar(source) => Err(source.at_once()),
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
        Ok(match &self.back {
            Back::Snowflake(back) => {
                if let Some(ordered) = &back.ordered {
                    let mut one = [0];
                    self.fill_in_order(back, ordered, &mut one).map_err(|(_, error)| error)?;
                    let [id] = one;
                    id
                } else if let Some(Some(prefill)) = back.queue.load().as_deref() {
                    prefill.take().ok_or_else(|| self.dry(back, prefill))?
                } else {
                    let minter = back.minter.load();
                    let minter = minter.as_ref().ok_or_else(|| self.suspended(back))?;
                    minter.try_mint().map_err(|why| self.refused(why))?
                }
            }
            Back::ByStore(_) => return Err(nothing_at_hand(&self.name)),
            Back::Segment(segment) => segment.ask(SegmentSource::try_mint)?,
            Back::Several(several) => several.try_mint()?,
            Back::Counter(_) => return Err(self.no_key()),
            Back::Afar(source) => return Err(source.at_once()),
            Back::Uuid(_) | Back::Ulid(_) => return Err(self.not_number()),
        })
    }

    /// Takes consecutive numbers of a segment source.
    pub(super) fn block(&self, length: u64) -> Result<Block> {
        self.check_enabled()?;
        match &self.back {
            Back::Segment(segment) => segment.ask(|now| now.block(length)),
            Back::Several(several) => several.block(length),
            _ => Err(self.not_number()),
        }
    }

    #[inline]
    pub(super) fn show(&self, id: u64) -> Result<u64> {
        if self.plain { Ok(id) } else { self.defined.load().form.show(&self.name, id) }
    }

    #[cold]
    pub(super) fn suspended(&self, back: &SnowflakeBack) -> Error {
        self.around.wake.notify_one();
        let why = back.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        why.unwrap_or_else(|| {
            Error::unavailable(format!("source {:?} has no worker number yet; retry", self.name))
        })
    }

    /// Waits at most `within_ms` for the first IDs in the queue of a prefilled source. A disabled
    /// source fills none.
    pub(crate) async fn first_fill(&self, within_ms: u64) {
        if !self.enabled.load(Ordering::Acquire) {
            return;
        }
        let Back::Snowflake(back) = &self.back else { return };
        let Some(prefill) = back.queue.get() else { return };
        let timer = &self.around.timer;
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
    fn dry(&self, back: &SnowflakeBack, prefill: &Prefill) -> Error {
        if back.minter.load().is_none() {
            return self.suspended(back);
        }
        match prefill.why() {
            Some(why) => self.refused(why),
            None => {
                let message = format!("queue of source {:?} is empty; retry in 1 ms", self.name);
                Error::unavailable(message).with_retry(Retry::AfterMs(1))
            }
        }
    }

    #[cold]
    pub(super) fn refused(&self, why: Refusal) -> Error {
        match why {
            Refusal::WindowSpent { .. } | Refusal::NoClockValue { .. } => {
                self.around.window_spent();
            }
            // Closed because the right to mint was lost, or because another generator follows.
            Refusal::Closed => {
                if let Back::Snowflake(back) = &self.back {
                    return self.suspended(back);
                }
            }
            _ => {}
        }
        self.minted_nothing(why)
    }

    /// Returns the error for the source's generator, which minted nothing.
    pub(super) fn minted_nothing(&self, why: Refusal) -> Error {
        Error::refused(format_args!("source {:?}", self.name), why)
    }

    /// Reserves consecutive numbers of a segment source.
    pub(super) async fn row(&self, length: u64, within_ms: u64) -> Result<Row> {
        match &self.back {
            Back::Segment(segment) => segment.row(length, within_ms).await,
            Back::Several(several) => several.row(length, within_ms).await,
            _ => Err(Error::invalid(format!(
                "source {:?} has kind {}; ranges need kind segment",
                self.name,
                self.kind.name()
            ))),
        }
    }

    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        self.check_enabled().map_err(|error| (0, error))?;
        match &self.back {
            Back::Snowflake(back) => {
                if let Some(ordered) = &back.ordered {
                    return self.fill_in_order(back, ordered, out);
                }
                if let Some(Some(prefill)) = back.queue.load().as_deref() {
                    for (made, slot) in out.iter_mut().enumerate() {
                        *slot = prefill.take().ok_or_else(|| (made, self.dry(back, prefill)))?;
                    }
                    return Ok(());
                }
                let minter = back.minter.load();
                let minter = minter.as_ref().ok_or_else(|| (0, self.suspended(back)))?;
                minter.try_fill(out).map_err(|short| (short.made, self.refused(short.why)))
            }
            Back::Segment(segment) => {
                let now = segment.now();
                match now.try_fill(out) {
                    // The IDs already made are dropped unused.
                    Err(_) if segment.replaced(&now) => segment.now().try_fill(out),
                    filled => filled,
                }
            }
            Back::Several(several) => several.try_fill(out),
            Back::ByStore(_) => Err((0, nothing_at_hand(&self.name))),
            Back::Counter(_) => Err((0, self.no_key())),
            Back::Afar(source) => Err((0, source.at_once())),
            Back::Uuid(_) | Back::Ulid(_) => Err((0, self.not_number())),
        }
    }

    /// Calls a per-request source once for undisguised IDs; returns how many came. Other sources
    /// return their prefetched IDs.
    pub(super) async fn ask_once(&self, out: &mut [u64], within_ms: u64) -> Result<usize> {
        self.check_enabled()?;
        match &self.back {
            Back::ByStore(source) => asked::once(&**source, out, within_ms).await,
            Back::Segment(segment) if segment.now().keeps_none() => {
                asked::once(&*segment.now(), out, within_ms).await
            }
            _ => match self.try_fill(out) {
                Ok(()) => Ok(out.len()),
                Err((0, why)) => Err(why),
                Err((made, _)) => Ok(made),
            },
        }
    }

    /// Fills the buffer with undisguised IDs.
    pub(super) async fn fill(&self, out: &mut [u64], within_ms: u64) -> Result<()> {
        let mut patience = Patience::of(self);
        if let Back::ByStore(source) = &self.back {
            return asked::fill(&**source, &mut patience, out, within_ms).await;
        }
        if let Back::Segment(segment) = &self.back {
            self.check_enabled()?;
            let now = segment.now();
            return match now.fill(&mut patience, out, within_ms).await {
                Err(_) if segment.replaced(&now) => {
                    segment.now().fill(&mut patience, out, within_ms).await
                }
                filled => filled,
            };
        }
        if let Back::Several(several) = &self.back {
            self.check_enabled()?;
            return several.fill(&mut patience, out, within_ms).await;
        }
        let prefill = match &self.back {
            Back::Snowflake(back) => back.queue.get(),
            _ => None,
        };
        // An empty queue is waited for as long as its definition allows, by default not at all.
        let within_ms = prefill
            .as_ref()
            .map_or(within_ms, |prefill| within_ms.min(prefill.plan().wait_max_ms.unwrap_or(0)));
        let timer = &self.around.timer;
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
            let Some(wait_ms) = patience.rest_ms(&error, left_ms) else { return Err(error) };
            match error.kind() {
                ErrorKind::TickFull { .. } => self.around.until_tick(wait_ms).await,
                _ => timer.sleep_ms(wait_ms).await,
            }
        }
    }
}
