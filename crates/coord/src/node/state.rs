//! State that the handle of a node and its driver share, and the handle itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::command::DriverCommand;
use super::external_cache::ExternalLeaseCache;
use super::lookup::Lookup;
use super::own_sources::OwnSwap;
use super::reason::Readiness;
use super::saved::SavedDefinitions;
use super::secondary::SecondaryStores;
use super::settings::NodeSettings;
use crate::ids::{Incarnation, Mark};
use crate::journal::JournalTail;
use crate::model::exclusive::RenewalWatch;
use crate::sources::{NodeContext, SourceInner};
use crate::store::Store;

/// State that the handle and the driver share.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) ctx: Arc<NodeContext>,
    /// Store for reads on behalf of callers: they are many, and the node's own calls must not wait
    /// behind them.
    pub(super) reads: Arc<dyn Store>,
    pub(super) settings: NodeSettings,
    pub(super) sources: Mutex<BTreeMap<String, Arc<SourceInner>>>,
    /// Number of recoveries of the store under this node; raised with `sources` locked.
    pub(super) histories: AtomicU64,
    pub(super) lookup: Lookup,
    /// Secondary stores of the node.
    pub(super) secondary_stores: SecondaryStores,
    pub(super) saved_definitions: SavedDefinitions,
    pub(super) external_leases: ExternalLeaseCache,
    pub(super) segments_seen: BTreeMap<String, Mark>,
    /// Numbers that an earlier process kept for this one, of sources that were not opened yet.
    pub(super) tails: Mutex<Vec<JournalTail>>,
    pub(super) own: OwnSwap,
    pub(super) readiness: Mutex<Readiness>,
    /// Present incarnation of the node; none while it has not joined the store.
    pub(super) member: Mutex<Option<Incarnation>>,
    /// Renewals of the members as lists showed them.
    pub(super) renewal_watch: Mutex<RenewalWatch>,
}

/// Handle of the driver: dropping the last one ends it.
pub(super) struct NodeHandle {
    pub(super) core: Arc<NodeState>,
    pub(super) commands: mpsc::Sender<DriverCommand>,
}

/// Membership of a process in one namespace of one store. Clones share it.
///
/// [`Node::close`] gives worker numbers back at once. Dropping the last clone (and the last
/// [`Source`](crate::sources::Source)) stops minting, but gives nothing back: numbers stay held
/// until the node's presence has expired, and the unused rest of its windows is never minted.
#[derive(Clone)]
pub struct Node {
    pub(super) handle: Arc<NodeHandle>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.core.fmt(f)
    }
}

impl Node {
    pub(super) fn core(&self) -> &Arc<NodeState> {
        &self.handle.core
    }
}
