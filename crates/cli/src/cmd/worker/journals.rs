//! The journals that know how far a store had come: those that have reported, those that are read here, and those that
//! are missing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use snowmint_coord::journal::{self, DataDir, Record};
use snowmint_coord::{JournalInfo, Known, Standing};
use snowmint_core::UnixMillis;

use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::when::Zone;

/// What is known of a store, and by whom.
#[derive(Debug, Default)]
pub(super) struct Journals {
    standing: Standing,
    read: Vec<Record>,
    without: Vec<String>,
}

/// The journals of other data directories, which nobody else may be using.
pub(super) fn read_all(dirs: &[PathBuf]) -> Outcome<Vec<Record>> {
    dirs.iter().map(|dir| read(dir)).collect()
}

fn read(dir: &Path) -> Outcome<Record> {
    // Where there is none, no lock is made either.
    if !journal::is_in(dir).unwrap_or(false) {
        let shown = dir.display();
        return Err(Failure::usage(format!("--journal {shown}: there is no journal in it")));
    }
    Ok(journal::inspect(&DataDir::lock(dir)?)?)
}

impl Journals {
    /// What a store says, beside the journals that are read here. `without` is what an operator has named.
    pub(super) fn new(
        mut standing: Standing,
        read: Vec<Record>,
        without: &[String],
    ) -> Outcome<Self> {
        for other in read.iter().flat_map(|record| &record.journals) {
            if standing.journals.iter().all(|known| known.id != other.id) {
                standing.hear(other, None);
            }
        }
        if let Some(id) =
            without.iter().find(|id| standing.journals.iter().all(|known| known.id != **id))
        {
            return Err(Failure::usage(format!(
                "--without {id}: neither the store nor a journal that was read knows a journal of this ID"
            )));
        }
        Ok(Self { standing, read, without: without.to_vec() })
    }

    /// Whether the store is in doubt.
    pub(super) const fn is_in_doubt(&self) -> bool {
        self.standing.doubt.is_some()
    }

    /// All that is known.
    pub(super) fn known(&self) -> Known {
        let mut known = self.standing.known.clone();
        self.read.iter().for_each(|record| known.merge(&record.known()));
        known
    }

    /// Refuses while something may be known that nobody has said.
    pub(super) fn check(&self) -> Outcome {
        let mut missing =
            self.standing.journals.iter().filter(|journal| self.state(journal) == MISSING);
        let Some(first) = missing.next() else { return Ok(()) };
        let others = missing.count();
        Err(Failure::refused(format!(
            "{} journals have not said what they know, among them {} of {}: what only they know would come again. Start \
             their servers, which report by themselves; or name their data directories (--journal DIR); or, where one \
             is lost, name it (--without ID), and the numbers that only it may have known (--segment SOURCE=NUMBER)",
            others + 1,
            first.id,
            shown(first),
        )))
    }

    fn state(&self, journal: &JournalInfo) -> &'static str {
        if self.without.contains(&journal.id) {
            "left out"
        } else if self.read.iter().any(|record| record.id == journal.id) {
            "read here"
        } else if journal.has_reported {
            "reported"
        } else {
            MISSING
        }
    }

    /// One line for each.
    pub(super) fn show(&self, out: &mut Output) -> Outcome {
        for journal in &self.standing.journals {
            let seen = Zone::default().show(UnixMillis::new(journal.seen_at_ms));
            let (state, who) = (self.state(journal), shown(journal));
            out.line(format_args!("journal {} of {who}, last seen {seen}: {state}", journal.id))?;
        }
        Ok(())
    }

    /// The same for machines.
    pub(super) fn to_json(&self) -> Value {
        let journal = |journal: &JournalInfo| {
            json!({
                "id": journal.id,
                "owner": journal.owner,
                "host": journal.host,
                "last_seen": Zone::default().show(UnixMillis::new(journal.seen_at_ms)),
                "state": self.state(journal),
            })
        };
        self.standing.journals.iter().map(journal).collect()
    }
}

const MISSING: &str = "MISSING";

fn shown(journal: &JournalInfo) -> String {
    let owner = if journal.owner.is_empty() { "nobody named" } else { &journal.owner };
    format!("{owner} on {}", journal.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str, has_reported: bool) -> JournalInfo {
        let (owner, host) = ("shop".to_owned(), "here".to_owned());
        JournalInfo { id: id.into(), owner, host, seen_at_ms: 0, has_reported }
    }

    #[test]
    fn nothing_is_moved_while_a_journal_is_missing_that_anybody_knows() {
        let journals = vec![info("a", true), info("b", false)];
        let standing = Standing { journals, ..Standing::default() };
        let read = Record { id: "c".into(), journals: vec![info("d", false)], ..Record::default() };
        let journals = |read: &[&Record], without: &[&str]| {
            let without: Vec<_> = without.iter().map(|id| (*id).to_owned()).collect();
            let read = read.iter().map(|record| (*record).clone()).collect();
            Journals::new(standing.clone(), read, &without)
        };
        assert!(journals(&[], &[]).unwrap().check().is_err());
        assert!(journals(&[], &["b"]).unwrap().check().is_ok());
        assert!(journals(&[&read], &["b"]).unwrap().check().is_err(), "that one knows another");
        assert!(journals(&[&read], &["b", "d"]).unwrap().check().is_ok());
        let b = Record { id: "b".into(), ..Record::default() };
        assert!(journals(&[&b], &[]).unwrap().check().is_ok());
        assert!(journals(&[], &["nobody"]).is_err());
    }
}
