//! What the store may hold for us without our knowing: the answer to a take was lost, our lease was over for a
//! while, or the question came a second time, after we had let go. Each is taken once more, and let go.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::ElapsedMillis;

/// How soon it is asked again about a section of which the store has said that it is not ours. Others may
/// send people here by mistake as often as they like.
const KNOWN_MS: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// What we asked for in this membership, and when we came to know that it was not ours, or was not any more;
    /// none while it may be.
    asked: BTreeMap<u16, Option<ElapsedMillis>>,
    /// To be taken once more: what somebody asked for before the rest.
    due: BTreeSet<u16>,
    urgent: BTreeSet<u16>,
    /// Whether they had the last take.
    had_turn: bool,
}

impl Orphans {
    /// These are asked for.
    pub(super) fn asked(&mut self, sections: impl Iterator<Item = u16>) {
        self.asked.extend(sections.map(|section| (section, None)));
    }

    /// The store has said that it is not ours.
    pub(super) fn not_ours(&mut self, section: u16, now: ElapsedMillis) {
        if let Some(known) = self.asked.get_mut(&section) {
            *known = Some(now);
        }
    }

    /// Another's sections that we were asked for: whoever sent somebody here may know from the store that we have
    /// them.
    pub(super) fn disown(&mut self, sections: impl Iterator<Item = u16>, now: ElapsedMillis) {
        let is_unknown =
            |known: &Option<ElapsedMillis>| known.is_none_or(|at| now.since(at) >= KNOWN_MS);
        let asked = &self.asked;
        let may_be_ours = |section: &u16| asked.get(section).is_some_and(is_unknown);
        self.urgent.extend(sections.filter(may_be_ours));
    }

    /// All that may be ours, and should not be.
    pub(super) fn leave(&mut self, should_not_be: impl Fn(u16) -> bool) {
        let unknown = self.asked.iter().filter(|(_, known)| known.is_none());
        self.due
            .extend(unknown.map(|(section, _)| *section).filter(|section| should_not_be(*section)));
    }

    /// Those of the next take, if it is their turn: no second one while others wait.
    pub(super) fn turn(&mut self, at_once: usize, others_wait: bool) -> Option<Vec<u64>> {
        self.had_turn = self.are_due() && !(self.had_turn && others_wait);
        let due = self.urgent.iter().chain(self.due.difference(&self.urgent)).take(at_once);
        self.had_turn.then(|| due.map(|section| u64::from(*section)).collect())
    }

    /// What became of it is known. Whether it was due.
    pub(super) fn found(&mut self, section: u16) -> bool {
        self.due.remove(&section) | self.urgent.remove(&section)
    }

    pub(super) fn are_due(&self) -> bool {
        !(self.due.is_empty() && self.urgent.is_empty())
    }

    /// Nothing is on its way any more.
    pub(super) fn lapse(&mut self) {
        self.due.clear();
        self.urgent.clear();
    }
}
