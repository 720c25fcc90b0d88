//! Finding the definition of a name that no source runs under, without letting whoever asks for names
//! that nobody has defined load the store.
//!
//! A name is looked up by itself, as long as few are missing. Beyond that the whole catalog is read,
//! by one caller for all, and at most so often; a definition that somebody else makes meanwhile is
//! found within [`PERIOD_MS`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use snowmint_core::ElapsedMillis;

use crate::catalog::{Definition, SourceState};
use crate::error::{Error, ErrorKind, Result};
use crate::sources::Surroundings;
use crate::store::Store;

/// How often the catalog is read for names that are missing, at most.
const PERIOD_MS: u64 = 100;
/// So many names may be missing in a period before the store is not asked for each any more.
const MISSES_MAX: u32 = 8;

/// What was missing of late, and the catalog as it was last read for it.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    misses: Mutex<Misses>,
    /// How often we heard that the catalog was changed: what was read before is not trusted.
    changes: AtomicU64,
    read: tokio::sync::Mutex<Option<Read>>,
}

#[derive(Debug, Default)]
struct Misses {
    since: ElapsedMillis,
    count: u32,
}

#[derive(Debug)]
struct Read {
    at: ElapsedMillis,
    changes: u64,
    /// None when the store did not answer.
    found: Option<HashMap<String, Definition>>,
}

impl Lookup {
    /// The definition of a source, a deleted one too.
    ///
    /// # Errors
    /// `NotFound`, and as the store says.
    pub(super) async fn find(
        &self,
        (around, store): (&Surroundings, &dyn Store),
        name: &str,
    ) -> Result<Definition> {
        if self.are_many(around.timer.elapsed()) {
            return self.find_read((around, store), name).await;
        }
        let found = around.call("open source", store.get(name)).await;
        let missing = match &found {
            Ok(definition) => definition.state == SourceState::Deleted,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound { .. }),
        };
        if missing {
            self.missed(around.timer.elapsed());
        }
        found
    }

    async fn find_read(
        &self,
        (around, store): (&Surroundings, &dyn Store),
        name: &str,
    ) -> Result<Definition> {
        let mut read = self.read.lock().await;
        let (now, changes) = (around.timer.elapsed(), self.changes.load(Ordering::Acquire));
        let is_new = |read: &Read| read.changes == changes && now.since(read.at) < PERIOD_MS;
        if !read.as_ref().is_some_and(is_new) {
            let listed = around.call("read catalog", store.list()).await;
            let at = around.timer.elapsed();
            let by_name = |definition: Definition| (definition.name.clone(), definition);
            let (found, error) = match listed {
                Ok(listed) => (Some(listed.definitions.into_iter().map(by_name).collect()), None),
                Err(error) => (None, Some(error)),
            };
            *read = Some(Read { at, changes, found });
            if let Some(error) = error {
                return Err(error);
            }
        }
        let Some(found) = read.as_ref().and_then(|read| read.found.as_ref()) else {
            let what = "the catalog: the store did not answer just now".into();
            return Err(Error::new("open source", ErrorKind::Unavailable { what }));
        };
        found.get(name).cloned().ok_or_else(|| {
            Error::new("open source", ErrorKind::NotFound { what: format!("source {name:?}") })
        })
    }

    /// Somebody has changed the catalog.
    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn are_many(&self, now: ElapsedMillis) -> bool {
        let misses = self.misses.lock().unwrap_or_else(PoisonError::into_inner);
        misses.count >= MISSES_MAX && now.since(misses.since) < PERIOD_MS
    }

    fn missed(&self, now: ElapsedMillis) {
        let mut misses = self.misses.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(misses.since) >= PERIOD_MS {
            *misses = Misses { since: now, count: 0 };
        }
        misses.count = misses.count.saturating_add(1);
    }
}
