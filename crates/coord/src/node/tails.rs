//! Tails: prefetched numbers that segment sources have left when a node stops.
//!
//! Each tail goes one way, which is chosen before anything is sent. It goes back to the store if
//! the store shows that no process has reserved since; otherwise into the journal, for the next
//! process of the data directory. A tail that was sent back is in no journal, whatever became of
//! it. A tail in the journal was never sent back, and is erased from there before it is used. Where
//! neither is certain, it is a gap.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use super::saved::is_away;
use super::state::NodeState;
use crate::error::Verb;
use crate::journal::JournalTail;
use crate::model::catalog::Definition;
use crate::model::segment::GiveBack;
use crate::sources::{InitialState, SegmentBacking, SegmentSource, SourceInner, Unused};

/// Largest number of tails in a journal: its room is limited.
pub(super) const TAILS_MAX: usize = 1_000;

/// Unused numbers, by destination.
#[derive(Debug, Default)]
pub(super) struct SortedTails {
    pub(super) backs: Vec<GiveBack>,
    pub(super) kept: Vec<JournalTail>,
}

impl NodeState {
    /// Ends minting from all sources, and from those that are opened later.
    pub(super) fn end_sources(&self) {
        self.ctx.end();
        self.known_sources().iter().for_each(|source| source.end());
    }

    /// Ends prefetching by all segment sources.
    pub(super) fn end_fetching(&self) {
        for source in self.known_sources() {
            if let Some(segment) = source.backing.as_segment() {
                segment.now().end_fetching();
            }
        }
    }

    /// Returns a source with a reserve in flight.
    pub(super) fn fetching(&self) -> Option<Arc<SegmentSource>> {
        let fetching = |source: Arc<SourceInner>| {
            source.backing.as_segment().map(SegmentBacking::now).filter(|now| now.is_fetching())
        };
        self.known_sources().into_iter().find_map(fetching)
    }

    /// Decides where each tail goes. Without a `boot` nothing can be kept, and in any case at most
    /// `kept_max` tails: first those of own sources, whatever the number of others.
    pub(super) async fn sort(
        &self,
        unused: Vec<Unused>,
        boot: &str,
        kept_max: usize,
    ) -> SortedTails {
        if boot.is_empty() {
            let backs = unused.iter().filter_map(Unused::newest).collect();
            return SortedTails { backs, kept: Vec::new() };
        }
        let (mut sorted, mut away) = (SortedTails::default(), false);
        for mut unused in unused {
            if let Some(newest) = unused.newest().filter(|_| !away)
                && self.is_newest(&newest, &mut away).await
            {
                unused.pieces.pop();
                sorted.backs.push(newest);
            }
            sorted.kept.extend(joined(&unused, boot));
        }
        // Tails of sources that were not opened.
        let tails = std::mem::take(&mut *self.tails.lock().unwrap_or_else(PoisonError::into_inner));
        sorted.kept.extend(tails.into_iter().filter(|tail| tail.definition_version > 0));
        sorted.kept.sort_by_key(|tail| !self.is_own(&tail.source));
        sorted.kept.truncate(kept_max);
        sorted
    }

    /// Returns whether no process has reserved since. Sets `away` when the store does not respond.
    async fn is_newest(&self, newest: &GiveBack, away: &mut bool) -> bool {
        let stored = self.ctx.store_call(Verb::Get, self.ctx.store.get(&newest.source)).await;
        match stored {
            Ok(stored) => {
                let row = stored.segment;
                row.version == newest.version && row.mark.get() == newest.last.saturating_add(1)
            }
            Err(error) => {
                *away = is_away(&error);
                false
            }
        }
    }

    /// Gives tails back to the store. They are never used here again, whatever the result.
    pub(super) async fn give_back(&self, backs: Vec<GiveBack>) {
        for back in backs {
            // Rejected when another process has reserved since: then it is a gap.
            match self.ctx.store_call(Verb::GiveBack, self.ctx.store.give_back(&back)).await {
                Ok(_) => self.not_lost(&back.source, back.first, back.last),
                // The other tails would each wait as long for the same store: they are gaps.
                Err(error) if is_away(&error) => return,
                Err(_) => {}
            }
        }
    }

    /// Records that the journal has these tails.
    pub(super) fn kept(&self, tails: &[JournalTail]) {
        for tail in tails {
            self.not_lost(&tail.source, tail.first, tail.last);
        }
    }

    fn not_lost(&self, source: &str, first: u64, last: u64) {
        if let Some(source) = self.known(source)
            && let Some(segment) = source.backing.as_segment()
        {
            segment.now().gave_back(last.saturating_sub(first).saturating_add(1));
        }
    }

    /// Returns the ends of the numbers of sources that this process, or earlier ones, saw handed
    /// out.
    pub(super) fn ends_seen(&self) -> BTreeMap<String, u64> {
        let mut ends: BTreeMap<_, _> =
            self.segments_seen.iter().map(|(name, end)| (name.clone(), end.get())).collect();
        for source in self.known_sources() {
            let Some(end) = source.backing.kind().seen_end() else { continue };
            let known = ends.entry(source.name.clone()).or_default();
            *known = (*known).max(end);
        }
        ends
    }

    /// Returns for each source the lowest ID that was not handed out, where IDs differ from
    /// numbers.
    pub(super) fn ids_seen(&self) -> BTreeMap<String, u64> {
        let free = |source: Arc<SourceInner>| {
            Some((source.name.clone(), source.backing.as_segment()?.now().free_id()?))
        };
        self.known_sources().into_iter().filter_map(free).collect()
    }

    /// Drops numbers that an earlier process kept: they may be another process's in the history
    /// after a recovery.
    pub(super) fn forget_tails(&self) {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the initial state of a source that is opened now. Numbers that were kept by another
    /// definition, or that lie above the mark of a store that was rolled back, are never used.
    pub(super) fn initial_state(&self, definition: &Definition) -> InitialState {
        let seen_end = self.segments_seen.get(&definition.name).map_or(0, |mark| mark.get());
        let mut initial = InitialState { seen_end, ..InitialState::default() };
        let is_of = |tail: &mut JournalTail| tail.source == definition.name;
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tails: Vec<_> = tails.extract_if(.., is_of).collect();
        tails.sort_unstable_by_key(|tail| tail.first);
        let mut above = 0;
        for JournalTail { first, last, definition_version, .. } in tails {
            let is_as_reserved = definition_version == definition.version;
            if is_as_reserved && last < definition.segment.mark.get() && first >= above {
                initial.kept.push((first, last));
                above = last.saturating_add(1);
            } else {
                let count = last.saturating_sub(first).saturating_add(1);
                initial.burned = initial.burned.saturating_add(count);
            }
        }
        initial
    }
}

/// Returns the pieces in the form that the journal keeps; adjacent ones are joined.
fn joined(unused: &Unused, boot: &str) -> Vec<JournalTail> {
    let mut tails: Vec<JournalTail> = Vec::new();
    for piece in &unused.pieces {
        match tails.last_mut() {
            Some(tail) if tail.last.saturating_add(1) == piece.first => tail.last = piece.last,
            _ => tails.push(JournalTail {
                source: unused.source.clone(),
                first: piece.first,
                last: piece.last,
                definition_version: unused.definition_version,
                boot: boot.into(),
            }),
        }
    }
    tails
}
