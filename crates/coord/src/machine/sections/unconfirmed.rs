//! Sections that the store may hold for this member without its knowledge: the result of an acquire
//! was lost, the member's lease had ended for a while, or a repeated request arrived after the
//! relinquish. Each is acquired once more, and relinquished.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::ElapsedMillis;

/// Wait before the store is asked again about a section that it reported as not ours. Peers may
/// send callers here by mistake at any rate.
const KNOWN_MS: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// Sections requested in this membership, each with the time at which it was known not to be
    /// ours, or not any more; none while it may be ours.
    requested: BTreeMap<u16, Option<ElapsedMillis>>,
    /// Sections to acquire once more. The urgent ones, which a caller asked for, come first.
    due: BTreeSet<u16>,
    urgent: BTreeSet<u16>,
    /// Whether the last acquire was for these.
    had_turn: bool,
}

impl Unconfirmed {
    /// Records that these are requested.
    pub(super) fn requested(&mut self, sections: impl Iterator<Item = u16>) {
        self.requested.extend(sections.map(|section| (section, None)));
    }

    /// Records that, by the store, the section is not ours.
    pub(super) fn not_ours(&mut self, section: u16, now: ElapsedMillis) {
        if let Some(known) = self.requested.get_mut(&section) {
            *known = Some(now);
        }
    }

    /// Handles sections of another owner that a caller asked this member for: the sender may know
    /// from the store that this member holds them.
    pub(super) fn misdirected(&mut self, sections: impl Iterator<Item = u16>, now: ElapsedMillis) {
        let is_unknown =
            |known: &Option<ElapsedMillis>| known.is_none_or(|at| now.since(at) >= KNOWN_MS);
        let requested = &self.requested;
        let may_be_ours = |section: &u16| requested.get(section).is_some_and(is_unknown);
        self.urgent.extend(sections.filter(may_be_ours));
    }

    /// Adds all sections that may be ours and should not be.
    pub(super) fn leave(&mut self, should_not_be: impl Fn(u16) -> bool) {
        let unknown = self.requested.iter().filter(|(_, known)| known.is_none());
        self.due
            .extend(unknown.map(|(section, _)| *section).filter(|section| should_not_be(*section)));
    }

    /// Returns the sections of the next acquire, if it is their turn: never twice in a row while
    /// others wait.
    pub(super) fn turn(&mut self, batch_max: usize, others_wait: bool) -> Option<Vec<u64>> {
        self.had_turn = self.are_due() && !(self.had_turn && others_wait);
        let due = self.urgent.iter().chain(self.due.difference(&self.urgent)).take(batch_max);
        self.had_turn.then(|| due.map(|section| u64::from(*section)).collect())
    }

    /// Records that the outcome for the section is known. Returns whether it was due.
    pub(super) fn found(&mut self, section: u16) -> bool {
        self.due.remove(&section) | self.urgent.remove(&section)
    }

    pub(super) fn are_due(&self) -> bool {
        !(self.due.is_empty() && self.urgent.is_empty())
    }

    /// Records that nothing is in flight any more.
    pub(super) fn expire_all(&mut self) {
        self.due.clear();
        self.urgent.clear();
    }
}
