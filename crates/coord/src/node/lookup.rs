//! Lookup of definitions of names without a running source. Callers that request undefined names
//! must not load the store.
//!
//! A name is looked up individually, as long as few are missing. Beyond that one caller reads the
//! whole catalog for all, at a limited rate. A definition that another process adds meanwhile is
//! found within [`PERIOD_MS`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use snowmint_core::ElapsedMillis;

use crate::error::{Error, ErrorKind, Result, Verb};
use crate::model::catalog::{Definition, SourceState};
use crate::sources::NodeContext;
use crate::store::Store;

/// Shortest time between two reads of the catalog for missing names.
const PERIOD_MS: u64 = 100;
/// Number of missing names in a period, above which the store is not asked for each name.
const MISSES_MAX: u32 = 8;

/// Recent misses, and the catalog as it was last read for them.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    misses: Mutex<Misses>,
    /// Number of known changes of the catalog: older reads are not trusted.
    changes: AtomicU64,
    read: tokio::sync::Mutex<Option<CatalogRead>>,
}

#[derive(Debug, Default)]
struct Misses {
    since: ElapsedMillis,
    count: u32,
}

#[derive(Debug)]
struct CatalogRead {
    at: ElapsedMillis,
    changes: u64,
    /// None when the store did not respond.
    found: Option<HashMap<String, Definition>>,
}

impl Lookup {
    /// Returns the definition of a source, also of a deleted one.
    ///
    /// # Errors
    /// `NotFound`; any error of the store.
    pub(super) async fn find(
        &self,
        (ctx, store): (&NodeContext, &dyn Store),
        name: &str,
    ) -> Result<Definition> {
        if self.are_many(ctx.timer.elapsed()) {
            return self.find_read((ctx, store), name).await;
        }
        let found = ctx.store_call(Verb::Get, store.get(name)).await;
        let missing = match &found {
            Ok(definition) => definition.state == SourceState::Deleted,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound),
        };
        if missing {
            self.missed(ctx.timer.elapsed());
        }
        found
    }

    async fn find_read(
        &self,
        (ctx, store): (&NodeContext, &dyn Store),
        name: &str,
    ) -> Result<Definition> {
        let mut read = self.read.lock().await;
        let (now, changes) = (ctx.timer.elapsed(), self.changes.load(Ordering::Acquire));
        let is_new = |read: &CatalogRead| read.changes == changes && now.since(read.at) < PERIOD_MS;
        if !read.as_ref().is_some_and(is_new) {
            let listed = ctx.store_call(Verb::List, store.list()).await;
            let at = ctx.timer.elapsed();
            let by_name = |definition: Definition| (definition.name.clone(), definition);
            let (found, error) = match listed {
                Ok(listed) => (Some(listed.definitions.into_iter().map(by_name).collect()), None),
                Err(error) => (None, Some(error)),
            };
            *read = Some(CatalogRead { at, changes, found });
            if let Some(error) = error {
                return Err(error);
            }
        }
        let Some(found) = read.as_ref().and_then(|read| read.found.as_ref()) else {
            let message = "catalog could not be read: the store did not respond; retry";
            return Err(Error::unavailable(message));
        };
        found
            .get(name)
            .cloned()
            .ok_or_else(|| Error::not_found(format!("source {name:?} does not exist; define it")))
    }

    /// Records that the catalog was changed.
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
