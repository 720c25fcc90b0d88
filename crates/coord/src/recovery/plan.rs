//! How far a store is moved by what is known of it.

use std::collections::BTreeMap;

use snowmint_core::{Layout, UnixMillis};

use crate::history::Known;
use crate::lease::Mark;
use crate::store::FastForward;
use crate::ticks::Ticks;

/// Past what is `known` and what is named; marks of workers and of what the store mints also past the time that was
/// `reached`.
pub(super) fn plan(
    known: &Known,
    mark: Option<UnixMillis>,
    segments: &[(String, Mark)],
    minting: &[(String, Layout)],
    reached: UnixMillis,
) -> FastForward {
    let named = mark.map_or(Mark::ZERO, Mark::from);
    let marks_at_least = Mark::from(reached).max(Mark::new(known.mark)).max(named);
    let ends = known.ends.iter().map(|(name, end)| (name.clone(), Mark::new(*end)));
    let mut all: BTreeMap<_, _> = ends.collect();
    // What the store mints goes past the same time: its marks are numbers of ticks.
    let times = minting.iter().map(|(name, layout)| {
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
        ..FastForward::default()
    }
}
