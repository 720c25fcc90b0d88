//! How sources stand.

use std::sync::atomic::Ordering;

use snowmint_core::{Clock as _, UnixMillis};

use super::{Back, NumberStats, PrefillStats, ShareStats, SnowflakeBack, Source};
use crate::spec::Plan;

/// How a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether it can mint now.
    pub ready: bool,
    /// The end of everything taken, of a snowflake source.
    pub taken_until: Option<UnixMillis>,
    /// How far the last tick that was taken leads the clock, of a snowflake source.
    pub lead_ms: Option<u64>,
    /// How far the store's grant reaches beyond the clock, and beyond what was taken, of a snowflake
    /// source: for so long the store may be away. None for a source that is switched off, or is in
    /// global order.
    pub window_ms: Option<u64>,
    /// Clock steps back and ahead that its generator met.
    pub clock_steps: (u64, u64),
    /// Of a segment source.
    pub numbers: Option<NumberStats>,
    /// Keys that are known here and the bytes that they take, of a counter source.
    pub keys: Option<(u64, u64)>,
    /// The queue, of a prefilled source.
    pub prefill: Option<PrefillStats>,
    /// Each of its stores, of a source that has several.
    pub stores: Vec<ShareStats>,
}

impl Source {
    /// How it stands.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        let ready = self.inner.enabled.load(Ordering::Acquire);
        match &self.inner.back {
            Back::Snowflake(back) => self.snowflake_stats(back, ready),
            Back::ByStore(source) => SourceStats {
                ready,
                taken_until: source.taken_until(),
                clock_steps: source.clock_steps(),
                ..SourceStats::default()
            },
            Back::Segment(segment) => SourceStats {
                ready,
                numbers: Some(segment.now().stats()),
                ..SourceStats::default()
            },
            Back::Several(several) => several.sum(ready),
            Back::Counter(counter) => {
                SourceStats { ready, keys: Some(counter.size()), ..SourceStats::default() }
            }
            Back::Uuid(_) | Back::Ulid(_) | Back::Afar(_) => {
                SourceStats { ready, ..SourceStats::default() }
            }
        }
    }

    fn snowflake_stats(&self, back: &SnowflakeBack, ready: bool) -> SourceStats {
        // A window in order is moved only while somebody mints, and may be another's.
        let is_kept = ready && back.ordered.is_none();
        let minter = back.minter.load();
        let Some(minter) = minter.as_ref() else {
            return SourceStats { window_ms: is_kept.then_some(0), ..SourceStats::default() };
        };
        let unit_ms = match &self.inner.defined.load().plan {
            Plan::Snowflake(plan) => plan.layout.unit_ms().into(),
            _ => 0,
        };
        let now = self.inner.around.clock.unix_ms();
        let positions = minter.positions();
        let taken_until = positions.iter().map(|slot| slot.taken_until).max();
        // Of clock values that do not serve, some may have been left far ahead.
        let serving = positions.iter().filter(|slot| slot.wanted);
        let at = serving.map(|slot| slot.taken_until).max().unwrap_or_default();
        SourceStats {
            ready,
            taken_until,
            lead_ms: Some(at.saturating_sub(unit_ms).since(now)),
            window_ms: is_kept.then(|| back.mark().since(at.max(now))),
            clock_steps: minter.steps(),
            numbers: None,
            keys: None,
            prefill: back.queue.get().map(|prefill| prefill.stats()),
            stores: Vec::new(),
        }
    }
}
