//! Lazy store: opened on first use, with retries until it is available.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use snowmint_core::UnixMillis;
use tokio::sync::OnceCell;

use crate::error::{Error, ErrorKind, Result, chain};
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
use crate::model::exclude::Exclude;
use crate::model::exclusive::{Acquire, Acquired, Relinquish};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, Evidence, JournalInfo, Known, Recalled, Standing, StoreIdentity,
};
use crate::model::lease::{Extend, Extended, Lease, Release};
use crate::model::member::{Member, MemberInfo, MemberStatus, Presence};
use crate::model::pool::{ClaimRequest, SlotDefaults};
use crate::model::reclaim::{Reclaim, Reclaimed};
use crate::model::segment::{GiveBack, Reserve, Segment};
use crate::model::slot::SlotInfo;
use crate::platform::timer::{BootTimer, Timer as _};
use crate::store::capability::{Capabilities, ClockOf, PresenceBy};
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;
use crate::store::{Store, StoreConnector};

/// Maximum time in milliseconds that a start waits for a store before it continues without it.
const OPEN_MS_MAX: u64 = 5_000;

/// The future of a store that is being opened.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Store>>>;

/// A store that is opened on first use. Until it is open, every verb tries to open it and returns
/// the error.
pub struct LazyStore {
    namespace: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
    store: OnceCell<Arc<dyn Store>>,
    /// Identity to pass to the store once it is open.
    remembered: Mutex<Option<StoreIdentity>>,
}

impl LazyStore {
    /// Creates a store in this namespace that `open` opens later.
    pub fn new(
        namespace: impl Into<String>,
        open: impl Fn() -> Opening + Send + Sync + 'static,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            open: Box::new(open),
            store: OnceCell::new(),
            remembered: Mutex::default(),
        }
    }

    /// Returns the store that `open` opens, or a lazy store if it is unavailable now.
    ///
    /// # Errors
    /// The errors of `open`, except `Unavailable`.
    pub async fn now_or_later(
        namespace: &str,
        open: impl Fn() -> Opening + Send + Sync + 'static,
    ) -> Result<Arc<dyn Store>> {
        let opened = tokio::select! {
            biased;
            opened = open() => opened,
            () = BootTimer.sleep_ms(OPEN_MS_MAX) => {
                Err(Error::unavailable(format!(
                    "store did not open within {OPEN_MS_MAX} ms; \
                     check that it runs and is reachable"
                )))
            }
        };
        match opened {
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable) => {
                tracing::warn!(error = %chain(&error), "the store does not respond; calls continue until it does");
                Ok(Arc::new(Self::new(namespace, open)))
            }
            opened => opened,
        }
    }

    async fn store(&self) -> Result<&Arc<dyn Store>> {
        let opened = async {
            let store = (self.open)().await?;
            for warning in store.warnings() {
                tracing::warn!("{warning}");
            }
            if let Some(seen) = &*self.remembered() {
                store.remember(seen);
            }
            Ok(store)
        };
        self.store.get_or_try_init(|| opened).await
    }

    fn remembered(&self) -> MutexGuard<'_, Option<StoreIdentity>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore").field("store", &self.store.get()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for LazyStore {
    /// Returns no capability that a caller could rely on until the store is open.
    fn capabilities(&self) -> Capabilities {
        let none = Capabilities {
            clock: ClockOf::Caller,
            durable_on_reply: false,
            safe_over_failover: false,
            presence: PresenceBy::Record,
        };
        self.store.get().map_or(none, |store| store.capabilities())
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn warnings(&self) -> Vec<String> {
        self.store.get().map_or_else(Vec::new, |store| store.warnings())
    }

    fn group_max(&self) -> u32 {
        self.store.get().map_or(u32::MAX, |store| store.group_max())
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        self.store.get().and_then(|store| store.owner_client())
    }

    fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        self.store.get().and_then(|store| store.secondary_store(name))
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        self.store.get().and_then(|store| store.time_reference())
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.store.get().and_then(|store| store.seen())
    }

    fn remember(&self, seen: &StoreIdentity) {
        // The order matters: whether this call or the opening comes first, the open store gets the
        // identity.
        *self.remembered() = Some(seen.clone());
        if let Some(store) = self.store.get() {
            store.remember(seen);
        }
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.store().await?.now().await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.store().await?.identity().await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.store().await?.recall(who, seen).await
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.store().await?.doubt(doubt, evidence).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.store().await?.report(journal, known).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.store().await?.standing().await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store().await?.join(member, presence, now).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store().await?.renew(member, presence, now).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.store().await?.announce(member, status).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.store().await?.leave(member, now).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.store().await?.members(now).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        self.store().await?.claim(request, now).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        self.store().await?.extend(items, now).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.store().await?.release(release, now).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        self.store().await?.acquire(acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.store().await?.relinquish(relinquish, now).await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.store().await?.exclude(exclude, now).await
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        self.store().await?.reclaim(reclaim, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.store().await?.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.store().await?.reserve(reserve).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.store().await?.give_back(back).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.store().await?.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.store().await?.alter(new, if_version).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.store().await?.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.store().await?.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.store().await?.get(name).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.store().await?.list().await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.store().await?.fast_forward(forward).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.store().await?.accept_lead(until).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        self.store().await?.ground().await
    }

    /// Closes the store if it was ever opened.
    async fn close(&self) -> Result<()> {
        match self.store.get() {
            Some(store) => store.close().await,
            None => Ok(()),
        }
    }
}
