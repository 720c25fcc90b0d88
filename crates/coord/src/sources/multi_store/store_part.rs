//! One store's part of a multi-store source.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::error::{Error, ErrorKind, chain};
use crate::sources::Source;
use crate::sources::values::StoreStatus;

/// One store's part of a source.
#[derive(Debug)]
pub(crate) struct StorePart {
    pub(crate) store: String,
    /// Absent while the store does not serve.
    source: ArcSwapOption<Source>,
    /// Reason why it does not serve, or may soon stop.
    error: Mutex<Option<Error>>,
}

impl StorePart {
    pub(super) fn new(store: &str) -> Self {
        Self { store: store.into(), source: ArcSwapOption::empty(), error: Mutex::new(None) }
    }

    /// Makes the store serve with this source.
    pub(crate) fn serve(&self, source: Source) {
        self.source.store(Some(Arc::new(source)));
        self.set_error(None);
    }

    /// Stops serving. Returns whether the reason is of another kind than before: the store is tried
    /// each second, and one log line is enough.
    pub(crate) fn suspend(&self, error: Error) -> bool {
        self.source.store(None);
        let code = error.kind().code();
        let before = self.error.lock().unwrap_or_else(PoisonError::into_inner).replace(error);
        before.is_none_or(|before| before.kind().code() != code)
    }

    pub(crate) fn set_error(&self, error: Option<Error>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Returns its part of the source, while it serves.
    pub(crate) fn source(&self) -> Option<Arc<Source>> {
        self.source.load_full()
    }

    /// Calls its part of the source; `None` while it does not serve.
    pub(super) fn on_source<T>(&self, call: impl FnOnce(&Source) -> T) -> Option<T> {
        self.source.load().as_ref().map(|source| call(source))
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

    /// Returns the doubt of the store's own node, which renews its presence there: then the store
    /// gives nothing, prefetched numbers included, also if no request has called it since.
    fn doubt(&self) -> Option<Error> {
        self.on_source(|source| source.inner.ctx.doubts.check().err()).flatten()
    }

    /// Returns the doubt about the store, the error of its own chain, or else the recorded reason.
    pub(super) fn current_error(&self) -> Option<Error> {
        let recorded = || self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failed = |source: &Source| source.inner.backing.as_segment()?.now().fetch_error();
        self.doubt().or_else(|| self.on_source(failed).flatten()).or_else(recorded)
    }

    /// Records a request's outcome: a failed store is not called while others work.
    pub(super) fn record_outcome(&self, error: Option<&Error>) {
        match error.map(Error::kind) {
            // Errors of the moment, not of the store.
            Some(ErrorKind::TickFull { .. } | ErrorKind::Conflict) => {}
            Some(_) => {
                if let Some(error) = error.filter(|_| self.current_error().is_none()) {
                    tracing::warn!(store = %self.store, error = %chain(error), "store does not serve");
                }
                self.set_error(error.cloned());
            }
            None => self.set_error(None),
        }
    }

    pub(super) fn stats(&self) -> StoreStatus {
        let source = self.source.load();
        let numbers = source.as_ref().and_then(|source| source.stats().numbers).unwrap_or_default();
        let (is_doubted, error) = (self.doubt().is_some(), self.current_error());
        let spec = source.as_ref().map(|source| source.spec()).unwrap_or_default();
        StoreStatus {
            store: self.store.clone(),
            serving: source.is_some() && !is_doubted && (error.is_none() || numbers.prefetched > 0),
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
        let part = StorePart::new("a");
        let away = part.named(Error::unavailable("store did not respond within 5 ms; retry"));
        assert_eq!(away.message(), r#"store "a": store did not respond within 5 ms; retry"#);
        assert!(matches!(away.kind(), ErrorKind::Unavailable));
        assert_eq!(part.named(Error::disabled("off")).message(), "off");
    }

    #[test]
    fn status_keeps_the_address_of_an_error_apart() {
        let part = StorePart::new("a");
        part.set_error(Some(Error::unavailable("MySQL is unavailable").with_detail("at db:3306")));
        let StoreStatus { error, error_detail, .. } = part.stats();
        assert_eq!(error.as_deref(), Some("MySQL is unavailable"));
        assert_eq!(error_detail.as_deref(), Some("at db:3306"));
    }

    #[test]
    fn reason_of_another_kind_is_news() {
        let part = StorePart::new("a");
        let away = |ms: u64| Error::unavailable(format!("store did not respond within {ms} ms"));
        let full = || Error::storage_full("no space left for the store");
        let reasons = [away(4_000), away(4_001), full(), full(), away(4_002)];
        let news = reasons.map(|error| part.suspend(error));
        assert_eq!(news, [true, false, true, false, true]);
        part.set_error(None);
        assert!(part.suspend(away(4_000)));
    }
}
