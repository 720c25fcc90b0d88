//! Check of the data directory's journal: whether `serve` would accept it, and the store with it.

use std::path::Path;

use snowmint_coord::journal::{self, DataDir, Past};
use snowmint_coord::{Error, ErrorKind, History, Recalled};

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
    /// Whether the store has everything that the journal has seen; the second error is for its
    /// rows.
    Is(&'a snowmint_coord::Result<(Recalled, Option<Error>)>),
}

/// Checks whether a journal and the store belong together.
pub(super) fn against(past: &Past, store: &Store<'_>) -> Finding {
    let record = &past.record;
    let compared = match store {
        Store::Is(compared) => compared,
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
                History::of(&record.store).store
            );
            return Finding::error(SUBJECT, message);
        }
    };
    if let Ok((_, Some(error))) | Err(error) = compared {
        let message = format!("a server would not mint: {}", error.full_message());
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
