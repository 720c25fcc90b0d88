//! One store's part of a source that has several.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::error::{Error, ErrorKind, chain};
use crate::sources::{Back, Source};

/// One store's part of a source.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) store: String,
    /// None while the store does not serve.
    source: ArcSwapOption<Source>,
    /// Why it does not, or why it is not to be trusted to for long.
    why: Mutex<Option<Error>>,
}

/// How one of the stores of a source stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareStats {
    /// The store's name.
    pub store: String,
    /// Whether it hands out numbers: what is in stock counts.
    pub serves: bool,
    /// Which stripe of the numbers it has, and of how many, if that is known.
    pub stripe: Option<(u64, u64)>,
    /// The worker number in its IDs, where the stores mint and if it is known.
    pub worker: Option<u64>,
    /// What is wrong with it, as when it is away while its stock lasts.
    pub trouble: Option<String>,
}

impl Share {
    pub(super) fn new(store: &str) -> Self {
        Self { store: store.into(), source: ArcSwapOption::empty(), why: Mutex::new(None) }
    }

    /// It serves from here on.
    pub(crate) fn serve(&self, source: Source) {
        self.source.store(Some(Arc::new(source)));
        self.say(None);
    }

    /// It does not serve. Answers whether why is news: it is asked again each second, and one line is enough.
    pub(crate) fn suspend(&self, why: Error) -> bool {
        self.source.store(None);
        let said = why.to_string();
        let before = self.why.lock().unwrap_or_else(PoisonError::into_inner).replace(why);
        before.is_none_or(|before| before.to_string() != said)
    }

    pub(crate) fn say(&self, why: Option<Error>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Its part of the source, as it serves.
    pub(crate) fn source(&self) -> Option<Arc<Source>> {
        self.source.load_full()
    }

    /// Asks its part of the source; none while it does not serve.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&Source) -> T) -> Option<T> {
        self.source.load().as_ref().map(|source| ask(source))
    }

    pub(super) fn serves(&self) -> bool {
        self.source.load().is_some()
    }

    /// What its own chain says, or what was said of it.
    pub(super) fn trouble(&self) -> Option<Error> {
        let said = || self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failed = self.ask(|source| match &source.inner.back {
            Back::Segment(segment) => segment.now().trouble(),
            _ => None,
        });
        failed.flatten().or_else(said)
    }

    /// A request was answered so, or refused: who is in trouble is not asked while others are not.
    pub(super) fn answered(&self, why: Option<&Error>) {
        match why.map(Error::kind) {
            // Of the moment, and not of the store.
            Some(ErrorKind::TickFull { .. } | ErrorKind::Conflict { .. }) => {}
            Some(_) => {
                if let Some(why) = why.filter(|_| self.trouble().is_none()) {
                    tracing::warn!(store = %self.store, error = %chain(why), "a store does not serve");
                }
                self.say(why.cloned());
            }
            None => self.say(None),
        }
    }

    pub(super) fn stats(&self) -> ShareStats {
        let source = self.source.load();
        let stock = source.as_ref().and_then(|source| source.stats().numbers).unwrap_or_default();
        let trouble = self.trouble();
        let spec = source.as_ref().map(|source| source.spec()).unwrap_or_default();
        ShareStats {
            store: self.store.clone(),
            serves: source.is_some() && (trouble.is_none() || stock.stock > 0),
            stripe: spec.offset.zip(spec.increment),
            worker: spec.worker,
            trouble: trouble.map(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_stays_away_is_told_of_once() {
        let share = Share::new("a");
        let away =
            |what: &str| Error::new("open store", ErrorKind::Unavailable { what: what.to_owned() });
        let told = ["one", "one", "two", "two", "one"].map(|what| share.suspend(away(what)));
        assert_eq!(told, [true, false, true, false, true]);
        share.say(None);
        assert!(share.suspend(away("one")));
    }
}
