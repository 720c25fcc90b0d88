//! Sources of every run, and the meaning of their IDs.

use snowmint_coord::SourceSpec;
use snowmint_coord::spec::Plan;
use snowmint_core::Layout;
use snowmint_core::layout::Field;

use super::density::STEP_MIN;
use crate::history::Resource;

/// A source of the run.
#[derive(Clone, Debug)]
pub(super) struct SimSource {
    pub(super) name: &'static str,
    pub(super) spec: SourceSpec,
    /// Whether the IDs of one worker increase.
    pub(super) increases: bool,
    /// Whether its IDs may lead the clock as far as they are allowed.
    pub(super) leads: bool,
    layout: Option<Layout>,
}

/// Name of the segment source.
pub(super) const NUMBERS: &str = "numbers";

/// Name of another segment source, with numbers that become other IDs again and again.
pub(super) const STRIPED: &str = "striped";

pub(super) const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Count of worker numbers. With fewer, slots change hands sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolSize {
    /// More than are ever used.
    Wide,
    /// Twice as many as are needed.
    Narrow,
    /// One slot for each machine; sources that take slots of their own are left out.
    Tight,
}

impl PoolSize {
    /// Returns the policies that a source can be given.
    pub(super) const fn policies(self) -> &'static [&'static str] {
        match self {
            Self::Wide | Self::Narrow => &["hold", "fail", "wait", "borrow"],
            Self::Tight => &["hold", "fail", "wait"],
        }
    }
}

/// Returns the layout of the plain sources. The epoch is early, so that clocks can be decades
/// wrong.
pub(super) fn plain_layout(pool_size: PoolSize) -> String {
    let (worker, sequence) = match pool_size {
        PoolSize::Wide => (10, 12),
        PoolSize::Narrow => (4, 6),
        PoolSize::Tight => (2, 6),
    };
    format!("time=41,worker={worker},sequence={sequence},epoch={EPOCH}")
}

impl SimSource {
    pub(super) fn all(pool_size: PoolSize) -> Vec<Self> {
        let plain = plain_layout(pool_size);
        let worker = if pool_size == PoolSize::Wide { 7 } else { 3 };
        let values = format!("time=41,clock=3,worker={worker},sequence=12,epoch={EPOCH}");
        let numbers = format!(r#"{{"kind":"segment","step":{{"min":{STEP_MIN}}}}}"#);
        let source = |name, spec: String, increases, leads| {
            let spec = SourceSpec::from_json(&spec).unwrap();
            let layout = match spec.check().unwrap() {
                Plan::Snowflake(plan) => Some(plan.layout),
                _ => None,
            };
            Self { name, spec, increases, leads, layout }
        };
        let mut all = vec![
            source("hold", format!(r#"{{"layout":"{plain}"}}"#), true, true),
            source(
                "fail",
                format!(r#"{{"layout":"{plain}","on_rollback":"fail","burst":"3ms"}}"#),
                true,
                false,
            ),
            source(
                "borrow",
                format!(r#"{{"layout":"{plain}","on_rollback":"borrow"}}"#),
                true,
                true,
            ),
            source("ring", format!(r#"{{"layout":"{plain}","on_rollback":"ring"}}"#), false, false),
            source("values", format!(r#"{{"layout":"{values}"}}"#), false, false),
            source(NUMBERS, numbers.clone(), false, true),
            source(STRIPED, numbers, false, true),
        ];
        if pool_size == PoolSize::Tight {
            all.retain(|source| !["borrow", "values"].contains(&source.name));
        }
        all
    }

    /// Returns the right from which an ID was minted, and the part of it that the ID takes; `None`
    /// where the ID does not show it.
    pub(super) fn promised(&self, id: u64) -> Option<(Resource, u64, u64)> {
        let Some(layout) = &self.layout else {
            let resource = || Resource::Numbers(self.name.into());
            return (self.name != STRIPED).then(|| (resource(), id, id + 1));
        };
        let parts = layout.unpack(id).unwrap();
        let (width, clock) = (layout.bits(Field::Worker), layout.bits(Field::Clock));
        let pool = match clock {
            0 => format!("workers-{width}"),
            _ => format!("workers-{width}-clock-{clock}"),
        };
        let slot = parts.worker * (layout.clock_max() + 1) + parts.clock;
        let start_ms = layout.start_of(parts.tick).get();
        Some((Resource::Slot(pool, slot), start_ms, start_ms + u64::from(layout.unit_ms())))
    }

    /// Returns the worker of an ID of an increasing source.
    pub(super) fn worker(&self, id: u64) -> Option<u64> {
        let layout = self.layout.filter(|_| self.increases)?;
        layout.unpack(id).ok().map(|parts| parts.worker)
    }
}
