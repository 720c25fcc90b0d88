//! Handle of a store, with faults between the two that tests inject.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::*;
use crate::error::Retry;
use crate::model::history::StoreIdentity;
use crate::model::lease::{Extended, Release};
use crate::store::capability::Capabilities;
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;
use crate::store::verbs::set_to_lose;
use crate::store::{StoreCall, StoreConnector, StoreReply};

/// Action that happens next to a verb.
pub(super) struct Meanwhile(pub(super) Box<dyn FnOnce() + Send>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// Verb, and the notification that it waits for.
type HeldVerb = (&'static str, Arc<Notify>);

/// Verbs that servers offer to no program.
const UNTOLD: [&str; 6] = ["doubt", "report", "standing", "announce", "reclaim", "ground"];

/// Faults of one handle. Tests keep a copy of the part that they change.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Verb that fails on this handle, from now on.
    pub(super) lacks: Arc<Mutex<Option<&'static str>>>,
    /// Retry hint of the failing verb, and how often it failed.
    pub(super) failures: Arc<Mutex<(Option<Retry>, u32)>>,
    /// Verbs that find another store from now on.
    pub(super) astray: Arc<Mutex<Vec<&'static str>>>,
    /// Verbs that find the store set to lose what it acknowledged, from now on: by
    /// [`LOSING`](Self::LOSING).
    pub(super) losing: Arc<Mutex<Vec<&'static str>>>,
    /// The extended rights are newer than the store, from now on.
    pub(super) outlived: Arc<AtomicBool>,
    /// Verb that is done, and with a result that does not reach this handle.
    pub(super) unheard: Arc<Mutex<Option<&'static str>>>,
    /// Action at the next call of a verb.
    pub(super) meanwhile: Arc<Mutex<Option<(&'static str, Meanwhile)>>>,
    /// Verbs that were called on this handle, in order, including held ones.
    pub(super) verbs: Arc<Mutex<Vec<&'static str>>>,
    /// Verb that is not sent before its notification, at its next call.
    pub(super) held: Arc<Mutex<Option<HeldVerb>>>,
    /// Verb that is done, with a result that is held until its notification, at its next call.
    pub(super) late: Arc<Mutex<Option<HeldVerb>>>,
    /// Every release that was sent on this handle, with or without a result.
    pub(super) releases: Arc<Mutex<Vec<Release>>>,
    /// Time reference that the store leads to, as a store of servers does.
    pub(super) time_reference: Option<Arc<dyn TimeReference>>,
    /// Servers that own what a process does elsewhere, as a store of servers has.
    pub(super) owner_client: Option<Arc<dyn OwnerClient>>,
    /// Place of each secondary store that a caller names, as a store of servers has.
    pub(super) secondary_store: Option<Arc<dyn StoreConnector>>,
}

impl Faults {
    /// Value of `lacks` for a handle on which every verb fails.
    pub(super) const EVERY_VERB: &str = "every verb";
    /// Setting by which the store can lose what it acknowledged.
    pub(super) const LOSING: &str = "sync off";

    async fn hold(held: &Mutex<Option<HeldVerb>>, op: &'static str) {
        let held = {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            held.take_if(|(verb, _)| *verb == op)
        };
        if let Some((_, resume)) = held {
            resume.notified().await;
        }
    }

    /// Runs before the step: an error means that nothing is done.
    pub(super) fn before(&self, op: &'static str) -> Result<()> {
        let mut meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, happens)) = meanwhile.take_if(|(verb, _)| *verb == op) {
            (happens.0)();
        }
        drop(meanwhile);
        if is_among(&self.astray, op) {
            return Err(Error::store_mismatch("store is two, expected one"));
        }
        if is_among(&self.losing, op) {
            return Err(set_to_lose("the memory store", Self::LOSING, "sync on"));
        }
        fails(&self.lacks, op).map_err(|error| {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.1 += 1;
            match failures.0 {
                Some(retry) => error.with_retry(retry),
                None => error,
            }
        })
    }

    /// Runs after the step: an error means that everything is done.
    pub(super) fn after(&self, op: &'static str) -> Result<()> {
        fails(&self.unheard, op)
    }

    /// Returns the final results for each right.
    fn of_each(&self, results: Vec<Result<Extended>>) -> Vec<Result<Extended>> {
        if !self.outlived.load(Ordering::SeqCst) {
            return results;
        }
        let newer = |_| Err(Error::contradiction("the term of a slot", 2, 1));
        results.into_iter().map(newer).collect()
    }

    pub(super) fn sent(&self, release: &Release) {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner).push(release.clone());
    }
}

fn is_among(verbs: &Mutex<Vec<&'static str>>, op: &'static str) -> bool {
    let verbs = verbs.lock().unwrap_or_else(PoisonError::into_inner);
    verbs.iter().any(|verb| [op, Faults::EVERY_VERB].contains(verb))
}

fn fails(verb: &Mutex<Option<&'static str>>, op: &'static str) -> Result<()> {
    let failing = *verb.lock().unwrap_or_else(PoisonError::into_inner);
    if failing != Some(op) && failing != Some(Faults::EVERY_VERB) {
        return Ok(());
    }
    Err(Error::unavailable("memory store is unavailable"))
}

/// Handle with these faults.
#[derive(Debug)]
pub(super) struct Faulty {
    store: MemoryStore,
    pub(super) faults: Faults,
}

impl Faulty {
    pub(super) fn over(store: MemoryStore) -> Self {
        Self { store, faults: Faults::default() }
    }
}

impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn namespace(&self) -> &str {
        self.store.namespace()
    }

    fn warnings(&self) -> Vec<String> {
        self.store.warnings()
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.store.seen()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.store.remember(seen);
    }

    fn group_max(&self) -> u32 {
        self.store.group_max()
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        self.faults.owner_client.clone().or_else(|| self.store.owner_client())
    }

    fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        self.faults.secondary_store.clone().or_else(|| self.store.secondary_store(name))
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        self.faults.time_reference.clone()
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            if let StoreCall::Release { release, .. } = call {
                self.faults.sent(release);
            }
            let op = call.verb().label();
            if self.faults.owner_client.is_some() && UNTOLD.contains(&op) {
                return Err(Error::unsupported("verb is not available through servers"));
            }
            self.faults.verbs.lock().unwrap_or_else(PoisonError::into_inner).push(op);
            Faults::hold(&self.faults.held, op).await;
            self.faults.before(op)?;
            let reply = self.store.call(call).await?;
            Faults::hold(&self.faults.late, op).await;
            self.faults.after(op)?;
            Ok(match reply {
                StoreReply::Extend(results) => StoreReply::Extend(self.faults.of_each(results)),
                reply => reply,
            })
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Faults::hold(&self.faults.held, "close").await;
            self.store.close().await
        })
    }
}
