//! Check of the data directory's journal: whether `serve` would accept it, and the store with it.

use std::path::Path;

use snowmint_coord::journal::{self, DataDir, Past};
use snowmint_coord::{Definition, Error, ErrorKind, Recalled, StoreIdentity};

use super::finding::Finding;

const SUBJECT: &str = "journal";

/// Result of the check before the store is reached.
pub(super) enum JournalCheck {
    /// No journal, or a complete result.
    Checked(Option<Finding>),
    /// Usable journal, if the store is the one that it knows.
    Usable(Box<Past>),
}

/// Checks the journal of a data directory, for a namespace.
pub(super) fn inspect(dir: &Path, namespace: &str) -> JournalCheck {
    match journal::is_in(dir) {
        Ok(true) => {}
        // No lock file is created either.
        Ok(false) => return JournalCheck::Checked(None),
        Err(error) => {
            let shown = dir.display();
            return JournalCheck::Checked(Some(Finding::error(
                SUBJECT,
                format!("journal in {shown} cannot be read: {error}; check path and permissions"),
            )));
        }
    }
    let past = match DataDir::lock(dir).and_then(journal::examine) {
        Ok(Some(past)) => past,
        Ok(None) => return JournalCheck::Checked(None),
        Err(error) => return JournalCheck::Checked(Some(unusable(dir, &error))),
    };
    let written_for = &past.record.namespace;
    if written_for.is_empty() || written_for == namespace {
        return JournalCheck::Usable(Box::new(past));
    }
    JournalCheck::Checked(Some(Finding::error(
        SUBJECT,
        format!(
            "journal in {} was written for namespace {written_for}, this is {namespace}; use a \
             data directory for each",
            dir.display()
        ),
    )))
}

fn unusable(dir: &Path, error: &Error) -> Finding {
    match error.kind() {
        ErrorKind::Locked => {
            let shown = dir.display();
            Finding::ok(
                SUBJECT,
                format!("a running server uses {shown}, so its journal is not checked"),
            )
        }
        _ => Finding::error(SUBJECT, format!("journal cannot be used: {}", error.full_message())),
    }
}

/// Result of reading the store.
pub(super) enum Store<'a> {
    /// The store cannot be read.
    Silent,
    /// The store does not exist yet.
    None,
    /// Whether the store has everything that the journal has seen, and its sources.
    Is(&'a snowmint_coord::Result<Recalled>, &'a [Definition]),
}

/// Returns the state of the store as the journal last saw it.
pub(super) fn seen(past: &Past) -> StoreIdentity {
    StoreIdentity { id: past.record.store.clone(), writes: past.record.writes }
}

/// Checks whether a journal and the store belong together.
pub(super) fn against(past: &Past, store: &Store<'_>) -> Finding {
    let record = &past.record;
    let (recalled, definitions) = match store {
        Store::Is(recalled, definitions) => (recalled, definitions),
        Store::Silent => {
            let message =
                "journal is usable, but it is unknown whether the store is the one that it knows";
            return Finding::warning(SUBJECT, message);
        }
        Store::None if record.store.is_empty() => return Finding::ok(SUBJECT, "journal is usable"),
        Store::None => {
            let message = format!(
                "journal knows store {}, and no store exists: a server would make another, and \
                 reject it; correct store.url, or see snowmint worker fast-forward if the store is \
                 lost",
                seen(past).store()
            );
            return Finding::error(SUBJECT, message);
        }
    };
    if let Err(error) = recalled {
        let message = format!("a server would not mint: {}", error.full_message());
        return Finding::error(SUBJECT, message);
    }
    if let Some(message) = above(past, definitions) {
        return Finding::error(SUBJECT, message);
    }
    if past.marks_are_sure {
        return Finding::ok(
            SUBJECT,
            "journal is unchanged since its last write, and the store is the one that it knows",
        );
    }
    Finding::warning(
        SUBJECT,
        "journal knows this store, but its file was touched after its last write, or its machine \
         lost power; the next start takes another worker number, or waits for the store's mark",
    )
}

/// Describes the first source with a higher mark in the journal than in the store.
fn above(past: &Past, definitions: &[Definition]) -> Option<String> {
    past.record.segments.iter().find_map(|(name, end)| {
        let source = definitions.iter().find(|source| source.name == *name);
        let found = source.map_or(0, |source| source.segment.mark.get());
        (found < end.get()).then(|| {
            format!(
                "a server would not mint: the journal has source {name} at {end}, and the store \
                 has it at {found}; see snowmint worker recover"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use snowmint_coord::journal::Record;
    use snowmint_coord::segment::SegmentRow;
    use snowmint_coord::{Mark, SourceState};

    use super::super::finding::Severity;
    use super::*;

    #[test]
    fn store_below_a_journal_end_is_an_error() {
        let segments = [("bills".to_owned(), Mark::new(101))].into();
        let record = Record { store: "one".into(), segments, ..Record::default() };
        let past = Past { record, marks_are_sure: true };
        let at = |next| Definition {
            name: "bills".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            version: 1,
            state: SourceState::Enabled,
            segment: SegmentRow { mark: Mark::new(next), ..SegmentRow::NEW },
        };
        let found = |definitions: &[Definition]| {
            against(&past, &Store::Is(&Ok(Recalled::Same), definitions))
        };
        let below = found(&[at(100)]);
        assert_eq!(below.severity, Severity::Error, "{below:?}");
        for part in ["source bills at 101", "has it at 100", "worker recover"] {
            assert!(below.message.contains(part), "{part}: {below:?}");
        }
        let gone = found(&[]);
        assert_eq!(gone.severity, Severity::Error, "{gone:?}");
        let whole = found(&[at(101)]);
        assert_eq!(whole.severity, Severity::Ok, "{whole:?}");
    }
}
