//! How far the sources of numbers had come, as a journal keeps it.

use std::collections::{BTreeMap, BTreeSet};

use super::{KEPT_BYTES_MAX, Keeper, OpenJournal, SOURCES_BYTES_MAX};
use crate::journal::Record;
use crate::lease::Mark;
use crate::sources::{For, Reported, Reserved};

impl OpenJournal {
    /// The record, with what is not sure: a store in doubt is to be moved past that, too.
    pub(super) fn whole(&self) -> Record {
        let mut record = self.record.clone();
        for (name, end) in &self.unsure {
            let known = record.segments.entry(name.clone()).or_default();
            *known = (*known).max(*end);
        }
        record
    }
}

impl Keeper {
    /// The sources that have a place in the journal, for what was reserved for whom.
    pub(in crate::node) fn places(&self) -> BTreeSet<(String, For)> {
        let Some(OpenJournal { record, unsure, .. }) = &self.kept else { return BTreeSet::new() };
        let place = |whose| move |name: &String| (name.clone(), whose);
        let own = record.segments.keys().chain(unsure.keys()).map(place(For::Node));
        let others = record.for_programs.keys().map(place(For::Programs));
        own.chain(others).chain(record.ids.keys().map(place(For::Ids))).collect()
    }

    /// The ends that a store which has all of its history cannot lie below.
    pub(in crate::node) fn ends(&self) -> BTreeMap<String, u64> {
        self.segments_seen().into_iter().map(|(name, end)| (name, end.get())).collect()
    }

    /// The ends of what earlier processes surely saw reserved.
    pub(in crate::node) fn segments_seen(&self) -> BTreeMap<String, Mark> {
        self.kept.as_ref().map(|kept| kept.record.segments.clone()).unwrap_or_default()
    }

    /// How many bytes the ends of segment sources may take.
    pub(in crate::node) fn segments_bytes_max(&self) -> usize {
        let keeps_windows = self.kept.as_ref().is_some_and(|kept| kept.keeps_windows);
        if keeps_windows { KEPT_BYTES_MAX - SOURCES_BYTES_MAX } else { KEPT_BYTES_MAX }
    }

    /// What segment sources have reported.
    pub(in crate::node) fn hears(&mut self, reported: Reported) {
        let Reported { forgotten, reserved } = reported;
        if let Some(kept) = &mut self.kept {
            kept.record.segments.retain(|name, _| !forgotten.contains(name));
            kept.record.for_programs.retain(|name, _| !forgotten.contains(name));
            kept.record.ids.retain(|name, _| !forgotten.contains(name));
            kept.unsure.retain(|name, _| !forgotten.contains(name));
        }
        reserved.into_iter().for_each(|reserved| self.reserved(reserved));
    }

    /// The numbers may be used once this is on disk.
    pub(super) fn reserved(&mut self, reserved: Reserved) {
        if let Some(kept) = &mut self.kept {
            if let Some(free) = reserved.free {
                let known = kept.record.ids.entry(reserved.source.clone()).or_default();
                *known = (*known).max(free);
            }
            let ends = match reserved.whose {
                For::Programs => &mut kept.record.for_programs,
                For::Node | For::Ids => &mut kept.record.segments,
            };
            let seen = ends.entry(reserved.source).or_default();
            *seen = (*seen).max(Mark::new(reserved.end));
            kept.told.add(reserved.told);
            kept.wanted = true;
        }
    }

    /// The numbers from `first` on were not used and go back to the store, which will hand them out
    /// again: that is no store that went back. To be on disk before the store is told.
    pub(in crate::node) fn gives_back(&mut self, source: &str, first: u64) {
        if let Some(kept) = &mut self.kept
            && let Some(seen) = kept.record.segments.get_mut(source)
        {
            *seen = (*seen).min(Mark::new(first));
        }
    }
}
