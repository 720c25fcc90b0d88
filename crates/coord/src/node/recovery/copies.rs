//! Journals that may be old copies, and the word of an operator about what they may lack.
//!
//! A copy lacks what its process came to know later. Only numbers of segment sources need a word:
//! worker marks and sources that the store mints go past the clock, and counters leap by 2^40.

use std::collections::BTreeSet;

use super::{Recovery, RecoveryRequest};
use crate::journal::Inspected;

/// Maximum number of sources that a message names.
const NAMED_MAX: usize = 20;

impl Recovery {
    /// Returns whether a file of a journal was read that is surely the last one.
    pub(super) fn is_read_whole(&self, id: &str) -> bool {
        self.read.iter().any(|read| read.record.id == id && !read.is_perhaps_old)
    }

    /// Returns what an operator has to confirm about read journals that may be old copies, if it is
    /// not confirmed: that they lack nothing, or the sources with what they may lack. A store that is
    /// not in doubt has all that its journals know.
    pub(super) fn unvouched(&self, request: &RecoveryRequest) -> Option<String> {
        if request.journals_are_complete || self.is_whole() {
            return None;
        }
        let copies: Vec<_> = self.read.iter().filter(|read| self.may_lack(read)).collect();
        let first = &copies.first()?.record;
        let unnamed: Vec<_> = copies
            .iter()
            .flat_map(|copy| self.numbered(copy))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter(|name| request.segments.iter().all(|(named, _)| named != name))
            .collect();
        let (shown, count) = (unnamed.iter().take(NAMED_MAX), copies.len());
        let mut values = shown.map(|name| format!("--segment {name}=id:ID")).collect::<Vec<_>>();
        match unnamed.len() {
            0 => return None,
            all => {
                values.extend((all > NAMED_MAX).then(|| format!("and {} more", all - NAMED_MAX)))
            }
        }
        let values = values.join(" ");
        let id = if first.id.is_empty() { "without an ID" } else { &first.id };
        Some(format!(
            "{count} journals may be old copies, among them {id}: numbers issued since would repeat. \
             Name the highest ID that was ever issued of each source ({values}; --segment SOURCE=1 if \
             there is none). Only if the directory was moved or copied while its server was stopped, \
             and no server ran on the original since, add --journal-is-complete instead"
        ))
    }

    /// Returns whether a read journal may lack something that no other file or report of it has.
    fn may_lack(&self, read: &Inspected) -> bool {
        let id = &read.record.id;
        let mut journals = self.standing.journals.iter();
        let has_reported = journals.any(|journal| journal.id == *id && journal.has_reported);
        read.is_perhaps_old && !has_reported && !self.is_read_whole(id)
    }

    /// Returns the sources whose numbers a copy may lack: those of the store, of the configuration
    /// and of the copy itself, unless they surely have no numbers in this store.
    fn numbered(&self, copy: &Inspected) -> BTreeSet<String> {
        let ends = copy.record.known().ends.into_keys();
        let names = ends.chain(self.going.numbers.keys().cloned());
        names.filter(|name| self.going.numbers.get(name).copied().unwrap_or(true)).collect()
    }
}
