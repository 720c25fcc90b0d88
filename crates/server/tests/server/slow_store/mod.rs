//! Tests of a store that responds slowly: how many may wait for it, and which callers are served
//! meanwhile.

mod definitions;
mod lists;
mod secondary;
mod turns;
mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmint_coord::store::StoreConnectors;
use snowmint_coord::{
    BoxFuture, Error, MemoryStore, Node, NodeSettings, Platform, Result, Store, StoreCall,
    StoreReply,
};
use tokio::sync::watch;

use super::recovery::doubted;

/// Length from which on a reservation waits: the server's own are shorter.
const LONG: u64 = 10_000;
/// Calls of one client at the store at the same time.
const AT_THE_STORE: usize = 8;
/// A source that reserves each number when it is requested.
const BILLS: &str = r#"{"name":"bills","kind":"segment","step":{"rule":"fixed","size":1}}"#;
/// A counter whose numbers the store confirms.
const SURE: &str = r#"{"name":"sure","kind":"counter","counter":{"confirm":"store"}}"#;
/// Path of a call that reserves numbers at the store.
const PATH: &str = "/v1/segments/numbers";

/// Returns its body, for a reservation that waits.
fn long() -> String {
    format!("{{\"length\":{LONG}}}")
}

/// A memory store with calls that wait until the test releases them: lists, long reservations,
/// confirmations of counters, restripes and deletions. A move finds it in doubt. Definitions cannot
/// be read while it is away.
#[derive(Debug)]
pub(super) struct BlockedStore {
    pub(super) store: MemoryStore,
    is_held: watch::Sender<bool>,
    is_away: AtomicBool,
    /// Calls that wait, apart from lists, and the most that have waited at the same time.
    waiting: watch::Sender<(usize, usize)>,
}

impl BlockedStore {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new("test").unwrap(),
            is_held: watch::Sender::new(false),
            is_away: AtomicBool::new(false),
            waiting: watch::Sender::default(),
        })
    }

    /// Opens a node on this store.
    async fn node(self: &Arc<Self>) -> Node {
        self.node_with(StoreConnectors::new()).await
    }

    /// Opens a node on this store, with these secondary stores.
    async fn node_with(self: &Arc<Self>, secondary_stores: StoreConnectors) -> Node {
        // The name tells its acquires from confirmations, which have none. The time is long enough
        // for any slow machine.
        let (owner, store_call_ms) = ("server".to_owned(), 600_000);
        let patient = NodeSettings {
            builtin: true,
            owner,
            store_call_ms,
            secondary_stores,
            ..NodeSettings::default()
        };
        let store = Arc::clone(self) as Arc<dyn Store>;
        Node::open(store, patient, Platform::system()).await.unwrap()
    }

    /// Waits, and is counted, until the test releases the store.
    async fn wait(&self) {
        self.waiting.send_modify(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
        self.released().await;
        self.waiting.send_modify(|(now, _)| *now -= 1);
    }

    async fn released(&self) {
        // The sender lives in self.
        let _ = self.is_held.subscribe().wait_for(|is_held| !is_held).await;
    }
}

impl Store for BlockedStore {
    snowmint_coord::as_inner!(store);

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            match call {
                StoreCall::Acquire { acquire, .. } if acquire.owner.is_empty() => self.wait().await,
                StoreCall::Reserve { reserve } if reserve.length >= LONG => self.wait().await,
                StoreCall::Restripe { .. } | StoreCall::SetState { .. } => self.wait().await,
                StoreCall::Get { .. } if self.is_away.load(Ordering::SeqCst) => {
                    return Err(Error::unavailable("memory store is unavailable"));
                }
                StoreCall::List {} => self.released().await,
                // A doubt begins between the caller's look and the move.
                StoreCall::FastForward { .. } => doubted(&self.store).await,
                _ => {}
            }
            self.store.call(call).await
        })
    }
}
