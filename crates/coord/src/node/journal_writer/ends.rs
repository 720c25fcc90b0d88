//! Ends of the sources of numbers, and unused numbers, as a journal keeps them.

use std::collections::{BTreeMap, BTreeSet};

use super::{JournalWriter, KEPT_BYTES_MAX, OpenJournal, SOURCES_BYTES_MAX};
use crate::ids::Mark;
use crate::journal::JournalTail;
use crate::node::tails::TAILS_MAX;
use crate::sources::{Reported, Reserved, ReservedFor};

impl JournalWriter {
    /// Returns the sources with a place in the journal, by the user of the reserved numbers.
    pub(in crate::node) fn places(&self) -> BTreeSet<(String, ReservedFor)> {
        let Some(OpenJournal { record, .. }) = &self.kept else { return BTreeSet::new() };
        let place = |reserved_for| move |name: &String| (name.clone(), reserved_for);
        let own = record.segments.keys().map(place(ReservedFor::Node));
        let others = record.for_programs.keys().map(place(ReservedFor::Clients));
        own.chain(others).chain(record.ids.keys().map(place(ReservedFor::Ids))).collect()
    }

    /// Returns the ends below which a store with all of its history cannot lie.
    pub(in crate::node) fn ends(&self) -> BTreeMap<String, u64> {
        self.segments_seen().into_iter().map(|(name, end)| (name, end.get())).collect()
    }

    /// Returns the ends of what earlier processes surely saw reserved.
    pub(in crate::node) fn segments_seen(&self) -> BTreeMap<String, Mark> {
        self.kept.as_ref().map(|kept| kept.record.segments.clone()).unwrap_or_default()
    }

    /// Returns the byte limit for the ends of segment sources.
    pub(in crate::node) fn segments_bytes_max(&self) -> usize {
        let keeps_windows = self.kept.as_ref().is_some_and(|kept| kept.keeps_windows);
        if keeps_windows { KEPT_BYTES_MAX - SOURCES_BYTES_MAX } else { KEPT_BYTES_MAX }
    }

    /// Handles the reports of segment sources.
    pub(in crate::node) fn hears(&mut self, reported: Reported) {
        let Reported { forgotten, reserved } = reported;
        if let Some(kept) = &mut self.kept {
            kept.record.segments.retain(|name, _| !forgotten.contains(name));
            kept.record.for_programs.retain(|name, _| !forgotten.contains(name));
            kept.record.ids.retain(|name, _| !forgotten.contains(name));
        }
        reserved.into_iter().for_each(|reserved| self.reserved(reserved));
    }

    /// Adds reserved numbers, which may be used once this record is on disk.
    pub(super) fn reserved(&mut self, reserved: Reserved) {
        if let Some(kept) = &mut self.kept {
            if let Some(free) = reserved.free {
                let known = kept.record.ids.entry(reserved.source.clone()).or_default();
                *known = (*known).max(free);
            }
            let ends = match reserved.reserved_for {
                ReservedFor::Clients => &mut kept.record.for_programs,
                ReservedFor::Node | ReservedFor::Ids => &mut kept.record.segments,
            };
            let seen = ends.entry(reserved.source).or_default();
            *seen = (*seen).max(Mark::new(reserved.end));
            kept.waiters.add(reserved.waiter);
            kept.wanted = true;
        }
    }

    /// Records that the numbers from `first` on were not used and go back to the store. The store
    /// will hand them out again, which is not a store rollback. This must be on disk before the
    /// numbers are sent back.
    pub(in crate::node) fn gives_back(&mut self, source: &str, first: u64) {
        if let Some(kept) = &mut self.kept
            && let Some(seen) = kept.record.segments.get_mut(source)
        {
            *seen = (*seen).min(Mark::new(first));
        }
    }

    /// Returns how many more tails the journal has room for. Tails that were not taken, because the
    /// store was not reached, are still in it.
    pub(in crate::node) fn tails_left(&self) -> usize {
        let kept = self.kept.as_ref().map_or(0, |kept| kept.record.tails.len());
        TAILS_MAX.saturating_sub(kept)
    }

    /// Adds numbers for the next process, written with the next record.
    pub(in crate::node) fn keeps(&mut self, tails: Vec<JournalTail>) {
        if let Some(kept) = &mut self.kept {
            kept.record.tails.extend(tails);
        }
    }
}
