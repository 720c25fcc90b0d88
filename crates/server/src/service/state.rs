//! The service as a value: its parts, and what it returns for a mint.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{IdBatch, Node, Source};
use tokio::sync::watch;

use super::order_forwarder::OrderForwarder;
use super::throttled_log::ThrottledLog;
use super::turns::Turns;
use super::unsent_permit::UnsentPermit;
use crate::access::{Access, Caller, Logins};
use crate::clients::share::Shares;
use crate::observe::live::Live;
use crate::observe::meter::{Meter, Protocol, Tally};

/// A source, and its metrics.
pub(super) type Tallied = (Source, Arc<Tally>);

/// All use cases. Clones are the same service, and cost next to nothing: each call has one.
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) shared: Arc<ServiceInner>,
    /// Protocol of the callers.
    pub(super) protocol: Protocol,
    /// Caller of the requests.
    pub(super) caller: Caller,
}

/// Part of a [`Service`] that does not depend on the caller.
#[derive(Debug)]
pub struct ServiceInner {
    pub(super) node: Node,
    pub(super) live: Live,
    pub(super) unsent: Arc<Shares>,
    pub(super) turns: Arc<Turns>,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) order_forwarder: OrderForwarder,
    /// Sources that were used: opening one goes through the node's driver. Only sources in the
    /// catalog get in.
    pub(super) sources: RwLock<HashMap<String, Tallied>>,
    pub(super) meter: Meter,
    pub(super) throttled_log: ThrottledLog,
    /// Access control; `None` where tokens are not required.
    pub(super) access: Option<Access>,
    pub(super) logins: Arc<Logins>,
    /// Locks for definitions that take room, by the names of their stores: of the known ones only.
    pub(super) defining: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Number of sources in the last list.
    pub(super) listed: AtomicUsize,
    /// Sources that the configuration defines.
    pub(super) configured: ArcSwap<BTreeMap<String, SourceSpec>>,
}

impl Deref for Service {
    type Target = ServiceInner;

    #[inline]
    fn deref(&self) -> &ServiceInner {
        &self.shared
    }
}

/// Exactly the requested number of IDs. Keep it until they are sent: a large one counts toward the
/// limit of unsent IDs.
#[derive(Debug)]
pub struct Minted {
    /// The IDs.
    pub values: IdBatch,
    pub(super) unsent_permit: UnsentPermit,
}

impl Minted {
    /// Returns the IDs, and the hold to keep until they are sent.
    #[must_use]
    pub fn into_parts(self) -> (IdBatch, UnsentPermit) {
        (self.values, self.unsent_permit)
    }
}
