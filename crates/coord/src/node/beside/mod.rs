//! The stores beside a node's own: one more node on each, for the sources whose numbers several stores
//! hand out.

mod agree;
mod supply;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Node, NodeSettings, Parts};
use crate::beside::{Place, Places};
use crate::error::{Error, ErrorKind, Result};
use crate::sources::{Several, Surroundings};
use crate::spec::{SegmentPlan, SourceSpec};
use supply::Supply;

/// All stores beside a node's own.
#[derive(Debug, Default)]
pub(super) struct Beside {
    all: BTreeMap<String, Arc<Neighbour>>,
}

/// A store beside the node's own.
#[derive(Debug)]
struct Neighbour {
    name: String,
    place: Arc<dyn Place>,
    namespace: String,
    settings: NodeSettings,
    parts: Parts,
    state: Mutex<State>,
    /// Held while the store is opened: by one at a time.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<Node>,
    closed: bool,
}

impl Beside {
    /// None of them is opened before a source needs it. Journals are in folders of the data directory.
    pub(super) fn new(
        places: &Places,
        namespace: &str,
        settings: &NodeSettings,
        parts: &Parts,
    ) -> Self {
        let neighbour = |(name, place): (&String, &Arc<dyn Place>)| {
            let data_dir = settings.data_dir.as_ref().map(|dir| folder(dir, name));
            let settings = NodeSettings {
                data_dir,
                builtin: false,
                origins: BTreeMap::new(),
                beside: Places::new(),
                worker: None,
                address: String::new(),
                ..settings.clone()
            };
            let neighbour = Neighbour {
                name: name.clone(),
                place: Arc::clone(place),
                namespace: namespace.into(),
                settings,
                parts: parts.clone(),
                state: Mutex::default(),
                opening: tokio::sync::Mutex::default(),
            };
            (name.clone(), Arc::new(neighbour))
        };
        Self { all: places.iter().map(neighbour).collect() }
    }

    /// Has a source served by its stores, until it is closed.
    pub(super) fn supply(
        &self,
        around: &Arc<Surroundings>,
        several: &Arc<Several>,
        (spec, plan): (&SourceSpec, &SegmentPlan),
    ) {
        let neighbours =
            plan.stores.iter().filter_map(|name| self.all.get(name).cloned()).collect();
        let wanted = SourceSpec { stores: None, enabled: None, ..spec.clone() };
        let supply = Supply::new(several, neighbours, wanted, Arc::clone(around));
        around.runtime.spawn(supply.run());
    }

    /// Gives everything back to the stores that were opened, and closes them: all at once, since some may
    /// be away.
    ///
    /// # Errors
    /// What went wrong first. All are closed in any case.
    pub(super) async fn close(&self) -> Result<()> {
        let mut closing = tokio::task::JoinSet::new();
        for neighbour in self.all.values() {
            if let Some(node) = neighbour.take() {
                closing.spawn(close(node));
            }
        }
        let mut outcome = Ok(());
        while let Some(closed) = closing.join_next().await {
            let failed =
                |error: tokio::task::JoinError| Error::internal("close", error.to_string());
            outcome = outcome.and(closed.map_err(failed).and_then(|closed| closed));
        }
        outcome
    }
}

fn folder(dir: &std::path::Path, name: &str) -> PathBuf {
    dir.join("stores").join(name)
}

/// Boxed, since closing a node closes the nodes beside it, of which these have none.
fn close(node: Node) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
    Box::pin(async move {
        let closed = node.close().await;
        closed.and(node.store().close().await)
    })
}

/// Boxed for the same reason.
fn open(neighbour: Arc<Neighbour>) -> Pin<Box<dyn Future<Output = Result<Node>> + Send>> {
    Box::pin(async move {
        let store = neighbour.place.open().await?;
        if store.namespace() != neighbour.namespace {
            let what = format!(
                "store {} was opened in namespace {}, not {}",
                neighbour.name,
                store.namespace(),
                neighbour.namespace
            );
            return Err(Error::internal("open store", what));
        }
        Node::open(store, neighbour.settings.clone(), neighbour.parts.clone()).await
    })
}

impl Neighbour {
    /// The node on this store, which is opened if it is not yet.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer in time; what it says otherwise.
    async fn node(self: &Arc<Self>) -> Result<Node> {
        let _one_at_a_time = self.opening.lock().await;
        if let Some(node) = self.known()? {
            return Ok(node);
        }
        // To its end, whoever waits for it: a store that is opened half holds its locks.
        let mut opening = tokio::spawn(open(Arc::clone(self)));
        let node = tokio::select! {
            biased;
            opened = &mut opening => {
                opened.map_err(|error| Error::internal("open store", error.to_string()))??
            }
            () = self.parts.timer.sleep_ms(self.settings.store_call_ms) => {
                opening.abort();
                let what = format!("store {} within {} ms", self.name, self.settings.store_call_ms);
                return Err(Error::new("open store", ErrorKind::Unavailable { what }));
            }
        };
        let mut state = self.state();
        if state.closed {
            return Err(self.gone());
        }
        state.node = Some(node.clone());
        Ok(node)
    }

    fn known(&self) -> Result<Option<Node>> {
        let state = self.state();
        if state.closed { Err(self.gone()) } else { Ok(state.node.clone()) }
    }

    fn take(&self) -> Option<Node> {
        let mut state = self.state();
        state.closed = true;
        state.node.take()
    }

    fn gone(&self) -> Error {
        Error::new("open store", ErrorKind::Closed { what: format!("store {}", self.name) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
