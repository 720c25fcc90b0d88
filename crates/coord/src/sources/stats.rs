//! State of sources, for monitors.

use std::sync::atomic::Ordering;

use snowmint_core::Clock as _;

use super::Source;
use super::backing::Backing;
use super::snowflake::SnowflakeBacking;
use super::values::SourceStats;
use crate::spec::Plan;

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
