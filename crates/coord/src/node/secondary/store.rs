//! One secondary store, and the node on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use snowmint_core::ElapsedMillis;

use super::super::settings::{NodeSettings, Platform};
use super::super::state::Node;
use crate::error::{Error, Result};
use crate::platform::lock::lock;
use crate::platform::timer::within;
use crate::store::{Store, StoreConnector};

/// Function that opens a node: [`Node::open`]. It is passed as a value, since the function needs all
/// of a node, and this file is a part of that.
pub(super) type OpenNode =
    fn(Arc<dyn Store>, NodeSettings, Platform) -> BoxFuture<'static, Result<Node>>;

/// One secondary store.
#[derive(Debug)]
pub(super) struct SecondaryStore {
    pub(super) name: String,
    /// Whether it is one of this process's settings: otherwise servers may know it.
    pub(super) is_configured: bool,
    pub(super) connector: Arc<dyn StoreConnector>,
    pub(super) namespace: String,
    pub(super) settings: NodeSettings,
    pub(super) platform: Platform,
    pub(super) open: OpenNode,
    pub(super) state: Mutex<SecondaryState>,
    /// Held while the store is opened: one caller at a time opens it.
    pub(super) opening: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
pub(super) struct SecondaryState {
    node: Option<Node>,
    /// Time and error of the last failed attempt to open it.
    failed: Option<(ElapsedMillis, Error)>,
    closed: bool,
}

/// Closes a node. Boxed, since closing a node closes its secondary nodes, which have none
/// themselves.
pub(super) fn close(node: Node) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
    Box::pin(async move {
        let closed = node.close().await;
        closed.and(node.store().close().await)
    })
}

/// Opens the node of a secondary store. Boxed for the same reason as [`close`].
fn open(secondary: Arc<SecondaryStore>) -> Pin<Box<dyn Future<Output = Result<Node>> + Send>> {
    Box::pin(async move {
        let store = secondary.connector.open().await?;
        if store.namespace() != secondary.namespace {
            return Err(Error::internal(format!(
                "internal error: store {:?} opened in namespace {:?}, expected {:?}; please report \
                 it",
                secondary.name,
                store.namespace(),
                secondary.namespace
            )));
        }
        (secondary.open)(store, secondary.settings.clone(), secondary.platform.clone()).await
    })
}

impl SecondaryStore {
    /// Returns whether it is configured, in use or open.
    pub(super) fn is_needed(self: &Arc<Self>) -> bool {
        self.is_configured || Arc::strong_count(self) > 1 || lock(&self.state).node.is_some()
    }

    /// Returns the node on this store. Opens it if necessary.
    ///
    /// # Errors
    /// `Unavailable` when the store does not respond in time; otherwise the store's own error.
    pub(super) async fn node(self: &Arc<Self>) -> Result<Node> {
        let requested_at = self.platform.timer.elapsed();
        let one_at_a_time = Arc::clone(&self.opening).lock_owned().await;
        if let Some(node) = self.known()? {
            return Ok(node);
        }
        // A caller that waited for an earlier attempt need not repeat it.
        if let Some((failed_at, error)) = lock(&self.state).failed.clone()
            && failed_at >= requested_at
        {
            return Err(error);
        }
        // The task runs to its end even if the caller is gone: a half-opened store holds its locks,
        // and an open one is there for the next caller.
        let store = Arc::clone(self);
        let opening = tokio::spawn(async move {
            let opened = store.opened().await;
            if let Err(error) = &opened {
                lock(&store.state).failed = Some((store.platform.timer.elapsed(), error.clone()));
            }
            drop(one_at_a_time);
            opened
        });
        opening.await.map_err(|error| {
            Error::internal(format!(
                "internal error: task that opens store {:?} ended: {error}; please report it",
                self.name
            ))
        })?
    }

    async fn opened(self: &Arc<Self>) -> Result<Node> {
        let (within_ms, opening) = (self.settings.store_call_ms, open(Arc::clone(self)));
        let Some(opened) = within(&*self.platform.timer, within_ms, opening).await else {
            return Err(Error::unavailable(format!(
                "store {:?} did not open within {within_ms} ms; check that it runs and is reachable",
                self.name
            )));
        };
        let node = opened?;
        let mut state = lock(&self.state);
        if state.closed {
            return Err(self.gone());
        }
        state.node = Some(node.clone());
        Ok(node)
    }

    fn known(&self) -> Result<Option<Node>> {
        let state = lock(&self.state);
        if state.closed { Err(self.gone()) } else { Ok(state.node.clone()) }
    }

    pub(super) fn take(&self) -> Option<Node> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.node.take()
    }

    fn gone(&self) -> Error {
        Error::closed(format!("store {:?} is closed; open the node again", self.name))
    }
}
