//! Opening the backing of a source.

use std::sync::Arc;

use super::backing::Backing;
use super::counter::CounterSource;
use super::defined::{Defined, prefill_of};
use super::global_order::GlobalOrder;
use super::multi_store::MultiStoreSource;
use super::node_context::NodeContext;
use super::remote_source::RemoteSource;
use super::segment::{InitialState, Refill, SegmentBacking, SegmentSource};
use super::snowflake::SnowflakeBacking;
use super::store_minted::StoreMinted;
use super::uuid_source::{UlidSource, UuidSource};
use crate::error::Result;
use crate::model::catalog::SourceState;
use crate::spec::{MinterPlan, Order, Plan, SnowflakePlan};

/// Opens the backing that the source's current definition asks for.
pub(super) fn open(
    name: &str,
    defined: &Defined,
    initial: &InitialState,
    ctx: &Arc<NodeContext>,
) -> Result<Backing> {
    if let Some(remote) = RemoteSource::of(name, &defined.plan, ctx) {
        return Ok(Backing::Remote(remote));
    }
    Ok(match &defined.plan {
        plan if !plan.stores().is_empty() => {
            Backing::MultiStore(Arc::new(MultiStoreSource::new(name, plan, Arc::clone(ctx))))
        }
        Plan::Snowflake(plan @ SnowflakePlan { minter_plan: MinterPlan::Store { worker }, .. }) => {
            let source = StoreMinted::new(name, plan, *worker, defined.version, Arc::clone(ctx));
            Backing::StoreMinted(Box::new(source))
        }
        Plan::Snowflake(plan) => {
            let mut backing = SnowflakeBacking::default();
            if plan.order == Order::Global {
                backing.global_order = Some(GlobalOrder::new(name, plan));
                ctx.sections.begin();
            }
            backing.queue.set(name, prefill_of(plan, defined.state), &backing.generators, ctx);
            Backing::Snowflake(backing)
        }
        Plan::Segment(plan) => {
            let (version, ctx) = (defined.version, Arc::clone(ctx));
            let enabled = defined.state == SourceState::Enabled;
            let refill = Refill::starting_from(initial, plan.stripe);
            let source = SegmentSource::new(name, plan.clone(), version, refill, enabled, ctx);
            Backing::Segment(SegmentBacking::new(source))
        }
        Plan::Counter(plan) => {
            Backing::Counter(Arc::new(CounterSource::new(name, *plan, Arc::clone(ctx))))
        }
        Plan::Uuid(plan) => {
            Backing::Uuid(Box::new(UuidSource::new(*plan, Arc::clone(&ctx.clock))?))
        }
        Plan::Ulid => Backing::Ulid(UlidSource::new(Arc::clone(&ctx.clock))),
    })
}
