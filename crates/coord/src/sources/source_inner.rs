//! A source as it runs: its current definition, and the backing that it mints from.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use snowmint_core::text::Format;

use super::backing::Backing;
use super::counter::CounterSource;
use super::defined::Defined;
use super::global_order::GlobalOrder;
use super::id_batch::{IdBatch, NumberRange};
use super::node_context::NodeContext;
use super::per_request;
use super::retry_policy::RetryPolicy;
use super::segment::{InitialState, SegmentSource};
use super::shared_errors::{closed, has_other_kind, needs_key, requires_wait, takes_no_key};
use super::snowflake::SnowflakeBacking;
use super::values::NumberBlock;
use crate::error::{Error, Result};
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
        let backing = Backing::open(name, &defined, initial, &ctx)?;
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
        self.backing.kind().alter(&defined);
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
        let backing = self.backing.as_snowflake()?;
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
            _ if self.ctx.is_ended() => closed(name),
            SourceState::Deleted => {
                Error::not_found(format!("source {name:?} was deleted; define it again"))
            }
            _ => Error::disabled(format!(
                "source {name:?} is disabled; enable it (snowmint source enable NAME)"
            )),
        }
    }

    pub(super) fn not_number(&self) -> Error {
        let made = if self.serial.is_some() { "serial" } else { self.kind.name() };
        Error::invalid(format!("source {:?} makes {made}s; this call needs numbers", self.name))
    }

    /// Returns the error of a kind that never has numbers ready for a call without wait and key.
    #[cold]
    fn unready(&self) -> Error {
        match &self.backing {
            Backing::StoreMinted(_) => requires_wait(&self.name),
            Backing::Counter(_) => needs_key(&self.name),
            Backing::Remote(source) => source.at_once(),
            Backing::Texts(_)
            | Backing::Snowflake(_)
            | Backing::Segment(_)
            | Backing::MultiStore(_) => self.not_number(),
        }
    }

    pub(super) fn counter(&self) -> Result<&CounterSource> {
        match &self.backing {
            Backing::Counter(counter) => Ok(counter),
            Backing::Remote(source) => Err(source.at_once()),
            _ => Err(has_other_kind(&self.name, self.kind, "keys need kind counter")),
        }
    }

    /// Checks that a request may begin in this process.
    pub(super) fn check_owner(&self, key: Option<&[u8]>) -> Result<()> {
        self.check_enabled()?;
        match (&self.backing, key) {
            (Backing::Counter(counter), Some(key)) => counter.check_owner(key),
            _ => Ok(()),
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
            Backing::Snowflake(snowflake) => snowflake.take()?,
            Backing::Segment(segment) => segment.try_current(SegmentSource::try_mint)?,
            Backing::MultiStore(multi_store) => multi_store.try_mint()?,
            Backing::StoreMinted(_)
            | Backing::Counter(_)
            | Backing::Remote(_)
            | Backing::Texts(_) => return Err(self.unready()),
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

    /// Reserves consecutive numbers of a segment source.
    pub(super) async fn reserve_range(&self, length: u64, within_ms: u64) -> Result<NumberRange> {
        match &self.backing {
            Backing::Segment(segment) => segment.reserve_range(length, within_ms).await,
            Backing::MultiStore(multi_store) => multi_store.reserve_range(length, within_ms).await,
            _ => Err(has_other_kind(&self.name, self.kind, "ranges need kind segment")),
        }
    }

    pub(super) fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        self.check_enabled().map_err(|error| (0, error))?;
        match &self.backing {
            Backing::Snowflake(snowflake) => snowflake.try_fill(out),
            Backing::Segment(segment) => segment.try_current(|now| now.try_fill(out)),
            Backing::MultiStore(multi_store) => multi_store.try_fill(out),
            Backing::StoreMinted(_)
            | Backing::Counter(_)
            | Backing::Remote(_)
            | Backing::Texts(_) => Err((0, self.unready())),
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

    /// Mints IDs, as callers see them.
    pub(super) async fn mint(
        &self,
        count: u32,
        key: Option<&str>,
        within_ms: u64,
    ) -> Result<IdBatch> {
        self.check_enabled()?;
        match &self.backing {
            Backing::Remote(source) => return source.mint(count, key, within_ms).await,
            Backing::Counter(counter) => {
                let key = key.ok_or_else(|| needs_key(&self.name))?;
                let counted = counter.take(key.as_bytes(), count.into(), within_ms).await?;
                return Ok(IdBatch::Numbers((counted.first..=counted.last).collect()));
            }
            Backing::Texts(source) => {
                if let Some(texts) = source.mint_texts(count, key) {
                    return texts.map(IdBatch::Texts);
                }
            }
            Backing::Snowflake(_)
            | Backing::StoreMinted(_)
            | Backing::Segment(_)
            | Backing::MultiStore(_) => {}
        }
        if key.is_some() {
            return Err(takes_no_key(&self.name));
        }
        let mut ids = vec![0; usize::try_from(count).unwrap_or(0)];
        self.fill(&mut ids, within_ms).await?;
        if let Some(serial) = &self.serial {
            let text = |id: u64| serial.text_of(id).ok_or_else(|| no_serial(&self.name, id));
            return ids.into_iter().map(text).collect::<Result<_>>().map(IdBatch::Texts);
        }
        for id in &mut ids {
            *id = self.show(*id)?;
        }
        Ok(IdBatch::Numbers(ids))
    }

    /// Fills the buffer with undisguised IDs; waits at most `within_ms`.
    pub(super) async fn fill(&self, out: &mut [u64], within_ms: u64) -> Result<()> {
        self.check_enabled()?;
        let retry_policy = &mut RetryPolicy::of(&self.defined.load().plan);
        match &self.backing {
            Backing::Snowflake(snowflake) => {
                snowflake.fill(retry_policy, out, within_ms, || self.check_enabled()).await
            }
            Backing::StoreMinted(source) => {
                per_request::fill(&**source, retry_policy, out, within_ms).await
            }
            Backing::Segment(segment) => segment.fill(retry_policy, out, within_ms).await,
            Backing::MultiStore(multi_store) => {
                multi_store.fill(retry_policy, out, within_ms).await
            }
            Backing::Counter(_) | Backing::Remote(_) | Backing::Texts(_) => Err(self.unready()),
        }
    }
}

fn no_serial(name: &str, number: u64) -> Error {
    Error::exhausted(format!(
        "next number {number} of source {name:?} lies in no period, after a recovery, and cannot be \
         lowered; define another source, and name there the last serial (snowmint worker recover \
         --segment SOURCE=SERIAL)"
    ))
}
