//! State of sources, for monitors.

use std::sync::atomic::Ordering;

use snowmint_core::{Clock as _, UnixMillis};

use super::{Backing, NumberStats, PrefillStats, SnowflakeBacking, Source, StoreStatus};
use crate::spec::Plan;

/// State of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether it can mint now.
    pub ready: bool,
    /// End of everything taken, of a snowflake source.
    pub taken_until: Option<UnixMillis>,
    /// Milliseconds by which the last tick taken leads the clock, of a snowflake source.
    pub lead_ms: Option<u64>,
    /// Runway of a snowflake source: milliseconds from the clock, or from the end of everything
    /// taken if that is later, to the end of the store's grant. Absent for a disabled or a
    /// global-order source.
    pub window_ms: Option<u64>,
    /// Backward and forward clock steps that its generator met.
    pub clock_steps: (u64, u64),
    /// Totals of a segment source.
    pub numbers: Option<NumberStats>,
    /// Keys known here, and the bytes that they take, of a counter source.
    pub keys: Option<(u64, u64)>,
    /// Queue of a prefilled source.
    pub prefill: Option<PrefillStats>,
    /// State of each store, of a multi-store source.
    pub stores: Vec<StoreStatus>,
}

impl Source {
    /// Returns the source's state.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        let ready = self.inner.enabled.load(Ordering::Acquire);
        match &self.inner.backing {
            Backing::Snowflake(backing) => self.snowflake_stats(backing, ready),
            Backing::StoreMinted(source) => SourceStats {
                ready,
                taken_until: source.taken_until(),
                clock_steps: source.clock_steps(),
                ..SourceStats::default()
            },
            Backing::Segment(segment) => SourceStats {
                ready,
                numbers: Some(segment.now().stats()),
                ..SourceStats::default()
            },
            Backing::MultiStore(multi_store) => multi_store.sum(ready),
            Backing::Counter(counter) => {
                SourceStats { ready, keys: Some(counter.size()), ..SourceStats::default() }
            }
            Backing::Uuid(_) | Backing::Ulid(_) | Backing::Remote(_) => {
                SourceStats { ready, ..SourceStats::default() }
            }
        }
    }

    fn snowflake_stats(&self, backing: &SnowflakeBacking, ready: bool) -> SourceStats {
        // A global-order source's window moves only while IDs are minted, and may be another
        // server's.
        let is_kept = ready && backing.global_order.is_none();
        let generators = backing.generators.load();
        let Some(generators) = generators.as_ref() else {
            return SourceStats { window_ms: is_kept.then_some(0), ..SourceStats::default() };
        };
        let unit_ms = match &self.inner.defined.load().plan {
            Plan::Snowflake(plan) => plan.layout.unit_ms().into(),
            _ => 0,
        };
        let now = self.inner.ctx.clock.unix_ms();
        let positions = generators.positions();
        let taken_until = positions.iter().map(|slot| slot.taken_until).max();
        // Clock values that do not serve may have been left far ahead.
        let serving = positions.iter().filter(|slot| slot.wanted);
        let at = serving.map(|slot| slot.taken_until).max().unwrap_or_default();
        SourceStats {
            ready,
            taken_until,
            lead_ms: Some(at.saturating_sub(unit_ms).since(now)),
            window_ms: is_kept.then(|| backing.mark().since(at.max(now))),
            clock_steps: generators.steps(),
            numbers: None,
            keys: None,
            prefill: backing.queue.get().map(|prefill| prefill.stats()),
            stores: Vec::new(),
        }
    }
}
