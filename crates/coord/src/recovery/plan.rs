//! How far a store is moved by what is known of it.

use std::collections::BTreeMap;

use snowmint_core::{Layout, UnixMillis};

use crate::history::Known;
use crate::lease::Mark;
use crate::spec::Stripe;
use crate::store::FastForward;
use crate::ticks::Ticks;

/// What sources are by the definitions that a store goes on with, which may be older than what is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Going {
    /// Those that the store itself mints.
    pub(super) minting: Vec<(String, Layout)>,
    /// By which stripes numbers become IDs. One that is not here may be defined anew by any.
    pub(super) stripes: BTreeMap<String, Stripe>,
}

impl Going {
    /// The next number of a source whose numbers, and whose IDs, have come so far. By the definition that made IDs of
    /// them, the same number may be a higher ID than it will be.
    fn next(&self, name: &str, end: u64, ids: u64) -> Mark {
        let stripe = self.stripes.get(name).copied().unwrap_or(Stripe::ALL);
        let above = Mark::new(stripe.number_from(ids.max(end))).min(Mark::MAX);
        Mark::new(end).max(above)
    }
}

/// Past what is `known` and what is named; marks of workers and of what the store mints also past the time that was
/// `reached`.
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
    // What the store mints goes past the same time: its marks are numbers of ticks.
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
