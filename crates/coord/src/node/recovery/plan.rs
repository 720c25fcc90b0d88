//! Computation of how far a store is moved by what is known of it.

use std::collections::BTreeMap;

use snowmint_core::{Layout, UnixMillis};

use crate::ids::Mark;
use crate::model::fast_forward::FastForward;
use crate::model::history::Known;
use crate::model::stripe::Stripe;
use crate::model::ticks::Ticks;
use crate::spec::SegmentPlan;

/// Properties of sources by the definitions that stay in force, which may be older than the
/// reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Going {
    /// Sources that the store itself mints.
    pub(super) minting: Vec<(String, Layout)>,
    /// Stripes that map numbers to IDs. A source without an entry may be defined again with any
    /// stripe.
    pub(super) stripes: BTreeMap<String, Stripe>,
    /// Segment sources with a readable definition.
    pub(super) segments: BTreeMap<String, SegmentPlan>,
    /// Whether each source has, or may have, numbers of segments in this store.
    pub(super) numbers: BTreeMap<String, bool>,
}

impl Going {
    /// Returns the next number of a source with numbers up to `end` and IDs up to `ids`.
    fn next(&self, name: &str, end: u64, ids: u64) -> Mark {
        let stripe = self.stripes.get(name).copied().unwrap_or(Stripe::ALL);
        Mark::new(stripe.next_after(end, ids))
    }
}

/// Plans a move past everything `known` and named. Marks of workers and of sources that the store
/// mints also go past the time `reached`.
pub(super) fn plan(
    known: &Known,
    mark: Option<UnixMillis>,
    segments: &[(String, Mark)],
    going: &Going,
    reached: UnixMillis,
) -> FastForward {
    let named = mark.map_or(Mark::ZERO, Mark::from);
    let marks_at_least = Mark::from(reached).max(Mark::new(known.mark)).max(named);
    let ids_of = |name: &String| known.ids.get(name).copied().unwrap_or(0);
    let ends = known.ends.iter();
    let ends = ends.map(|(name, end)| (name.clone(), going.next(name, *end, ids_of(name))));
    let mut all: BTreeMap<_, _> = ends.collect();
    // Sources that the store mints go past the same time: their marks are numbers of ticks.
    let times = going.minting.iter().map(|(name, layout)| {
        let ticks = Ticks::of(layout, 0, 0, reached);
        let time = marks_at_least.unix_millis().since(layout.epoch());
        let next = (time / u64::from(layout.unit_ms())).saturating_add(1);
        (name.clone(), Mark::new(ticks.first_of(next.min(ticks.tick_max))))
    });
    for (name, mark) in segments.iter().cloned().chain(times) {
        let known = all.entry(name).or_insert(mark);
        *known = (*known).max(mark);
    }
    FastForward {
        marks_at_least,
        segments: all.into_iter().collect(),
        writes_at_least: known.writes,
        recoveries_at_least: known.recoveries,
        catalog_at_least: known.catalog,
        ..FastForward::default()
    }
}
