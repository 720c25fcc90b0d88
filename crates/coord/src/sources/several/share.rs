//! One store's part of a multi-store source.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::error::{Error, ErrorKind, chain};
use crate::sources::{Back, Source};

/// One store's part of a source.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) store: String,
    /// Absent while the store does not serve.
    source: ArcSwapOption<Source>,
    /// Reason why it does not serve, or may soon stop.
    why: Mutex<Option<Error>>,
}

/// State of one store of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The store's name.
    pub store: String,
    /// Whether it hands out numbers, prefetched ones included.
    pub serving: bool,
    /// Offset and increment of its stripe, if known.
    pub stripe: Option<(u64, u64)>,
    /// Worker number in its IDs, where the stores mint and if it is known.
    pub worker: Option<u64>,
    /// Present error, for example while it is unreachable and its prefetched numbers last.
    pub error: Option<String>,
    /// Detail of the error for operators, such as the store's address: [`Error::detail`].
    pub error_detail: Option<String>,
}

impl Share {
    pub(super) fn new(store: &str) -> Self {
        Self { store: store.into(), source: ArcSwapOption::empty(), why: Mutex::new(None) }
    }

    /// Makes the store serve with this source.
    pub(crate) fn serve(&self, source: Source) {
        self.source.store(Some(Arc::new(source)));
        self.say(None);
    }

    /// Stops serving. Returns whether the reason is of another kind than before: the store is tried
    /// each second, and one log line is enough.
    pub(crate) fn suspend(&self, why: Error) -> bool {
        self.source.store(None);
        let code = why.kind().code();
        let before = self.why.lock().unwrap_or_else(PoisonError::into_inner).replace(why);
        before.is_none_or(|before| before.kind().code() != code)
    }

    pub(crate) fn say(&self, why: Option<Error>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Returns its part of the source, while it serves.
    pub(crate) fn source(&self) -> Option<Arc<Source>> {
        self.source.load_full()
    }

    /// Calls its part of the source; `None` while it does not serve.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&Source) -> T) -> Option<T> {
        self.source.load().as_ref().map(|source| ask(source))
    }

    /// Names the store in an error of its outage.
    pub(super) fn named(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Unavailable => error.of_store(&self.store),
            _ => error,
        }
    }

    pub(super) fn serves(&self) -> bool {
        self.source.load().is_some()
    }

    /// Returns the error of its own chain, or else the recorded reason.
    pub(super) fn trouble(&self) -> Option<Error> {
        let said = || self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failed = self.ask(|source| match &source.inner.back {
            Back::Segment(segment) => segment.now().trouble(),
            _ => None,
        });
        failed.flatten().or_else(said)
    }

    /// Records a request's outcome: a failed store is not called while others work.
    pub(super) fn answered(&self, why: Option<&Error>) {
        match why.map(Error::kind) {
            // Errors of the moment, not of the store.
            Some(ErrorKind::TickFull { .. } | ErrorKind::Conflict) => {}
            Some(_) => {
                if let Some(why) = why.filter(|_| self.trouble().is_none()) {
                    tracing::warn!(store = %self.store, error = %chain(why), "a store does not serve");
                }
                self.say(why.cloned());
            }
            None => self.say(None),
        }
    }

    pub(super) fn stats(&self) -> StoreStatus {
        let source = self.source.load();
        let stock = source.as_ref().and_then(|source| source.stats().numbers).unwrap_or_default();
        let error = self.trouble();
        let spec = source.as_ref().map(|source| source.spec()).unwrap_or_default();
        StoreStatus {
            store: self.store.clone(),
            serving: source.is_some() && (error.is_none() || stock.prefetched > 0),
            stripe: spec.offset.zip(spec.increment),
            worker: spec.worker,
            error: error.as_ref().map(|error| error.message().into_owned()),
            error_detail: error.as_ref().and_then(Error::detail).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_of_a_store_is_named_and_other_errors_are_not() {
        let share = Share::new("a");
        let away = share.named(Error::unavailable("store did not respond within 5 ms; retry"));
        assert_eq!(away.message(), r#"store "a": store did not respond within 5 ms; retry"#);
        assert!(matches!(away.kind(), ErrorKind::Unavailable));
        assert_eq!(share.named(Error::disabled("off")).message(), "off");
    }

    #[test]
    fn status_keeps_the_address_of_an_error_apart() {
        let share = Share::new("a");
        share.say(Some(Error::unavailable("MySQL is unavailable").with_detail("at db:3306")));
        let StoreStatus { error, error_detail, .. } = share.stats();
        assert_eq!(error.as_deref(), Some("MySQL is unavailable"));
        assert_eq!(error_detail.as_deref(), Some("at db:3306"));
    }

    #[test]
    fn reason_of_another_kind_is_news() {
        let share = Share::new("a");
        let away = |ms: u64| Error::unavailable(format!("store did not respond within {ms} ms"));
        let full = || Error::storage_full("no space left for the store");
        let reasons = [away(4_000), away(4_001), full(), full(), away(4_002)];
        let news = reasons.map(|why| share.suspend(why));
        assert_eq!(news, [true, false, true, false, true]);
        share.say(None);
        assert!(share.suspend(away(4_000)));
    }
}
