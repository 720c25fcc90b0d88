//! Backing of a source, by its kind.

use std::sync::Arc;

use super::counter::CounterSource;
use super::defined::Defined;
use super::multi_store::MultiStoreSource;
use super::node_context::NodeContext;
use super::remote_source::RemoteSource;
use super::segment::{InitialState, Refill, SegmentBacking, SegmentSource};
use super::snowflake::SnowflakeBacking;
use super::source_kind::SourceKind;
use super::store_minted::StoreMinted;
use super::texts;
use crate::error::Result;
use crate::model::catalog::SourceState;
use crate::spec::{MinterPlan, Plan, SnowflakePlan};

/// Backing that a source mints from.
#[derive(Debug)]
pub(crate) enum Backing {
    Snowflake(SnowflakeBacking),
    StoreMinted(Box<StoreMinted>),
    Segment(SegmentBacking),
    MultiStore(Arc<MultiStoreSource>),
    Counter(Arc<CounterSource>),
    Remote(RemoteSource),
    /// Source of texts: no code but its own names its type.
    Texts(Box<dyn SourceKind>),
}

impl Backing {
    /// Opens the backing that the source's current definition asks for.
    pub(super) fn open(
        name: &str,
        defined: &Defined,
        initial: &InitialState,
        ctx: &Arc<NodeContext>,
    ) -> Result<Self> {
        if let Some(remote) = RemoteSource::of(name, &defined.plan, ctx) {
            return Ok(Self::Remote(remote));
        }
        Ok(match &defined.plan {
            plan if !plan.stores().is_empty() => {
                Self::MultiStore(Arc::new(MultiStoreSource::new(name, plan, Arc::clone(ctx))))
            }
            Plan::Snowflake(
                plan @ SnowflakePlan { minter_plan: MinterPlan::Store { worker }, .. },
            ) => {
                let (version, ctx) = (defined.version, Arc::clone(ctx));
                Self::StoreMinted(Box::new(StoreMinted::new(name, plan, *worker, version, ctx)))
            }
            Plan::Snowflake(plan) => {
                Self::Snowflake(SnowflakeBacking::new(name, plan, defined.state, ctx))
            }
            Plan::Segment(plan) => {
                let (version, ctx) = (defined.version, Arc::clone(ctx));
                let enabled = defined.state == SourceState::Enabled;
                let refill = Refill::starting_from(initial, plan.stripe);
                let source = SegmentSource::new(name, plan.clone(), version, refill, enabled, ctx);
                Self::Segment(SegmentBacking::new(source))
            }
            Plan::Counter(plan) => {
                Self::Counter(Arc::new(CounterSource::new(name, *plan, Arc::clone(ctx))))
            }
            Plan::Text(plan) => Self::Texts(texts::open(plan, &ctx.clock)?),
        })
    }

    /// Returns what its kind does in its own way.
    pub(crate) fn kind(&self) -> &dyn SourceKind {
        match self {
            Self::Snowflake(kind) => kind,
            Self::StoreMinted(kind) => &**kind,
            Self::Segment(kind) => kind,
            Self::MultiStore(kind) => &**kind,
            Self::Counter(kind) => &**kind,
            Self::Remote(kind) => kind,
            Self::Texts(kind) => &**kind,
        }
    }

    /// Returns whether each request calls servers or the store. Callers ask before each ID, so the
    /// usual kind needs no virtual call.
    pub(super) fn is_per_request(&self) -> bool {
        !matches!(self, Self::Snowflake(_)) && self.kind().is_per_request()
    }

    /// Returns whether each request is a call of the store or of servers, as before each ID.
    pub(super) fn calls_each_time(&self) -> bool {
        !matches!(self, Self::Snowflake(_)) && self.kind().calls_each_time()
    }

    pub(crate) fn as_snowflake(&self) -> Option<&SnowflakeBacking> {
        if let Self::Snowflake(snowflake) = self { Some(snowflake) } else { None }
    }

    pub(crate) fn as_segment(&self) -> Option<&SegmentBacking> {
        if let Self::Segment(segment) = self { Some(segment) } else { None }
    }

    pub(crate) fn as_multi_store(&self) -> Option<&Arc<MultiStoreSource>> {
        if let Self::MultiStore(multi_store) = self { Some(multi_store) } else { None }
    }

    pub(super) fn as_remote(&self) -> Option<&RemoteSource> {
        if let Self::Remote(remote) = self { Some(remote) } else { None }
    }
}
