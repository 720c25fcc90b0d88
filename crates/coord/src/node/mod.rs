//! Node: one process's membership in one namespace of one store, and the sources it mints for.
//!
//! The node claims worker numbers as sources need them, keeps their windows ahead of need, and
//! joins again as a new member when its right to mint is lost or in doubt. A generator sees a
//! window only after store and journal have acknowledged it.

mod builtin;
mod command;
mod compare;
mod definitions;
mod disguised;
mod driver;
mod ending;
mod external;
mod external_cache;
pub(crate) mod forecast;
mod forwarded_store;
mod join;
mod journal_writer;
mod lease;
mod listed;
mod lookup;
mod members;
mod offline;
mod own;
mod own_sources;
mod peer_probes;
mod permitted_pools;
mod readiness;
mod reason;
mod recovering;
pub mod recovery;
mod restripe;
mod room;
mod saved;
mod saved_definitions;
mod secondary;
mod settings;
mod source_info;
mod source_operations;
mod state;
mod store_knowledge;
mod tails;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use snowmint_core::Clock;
use tokio::sync::{mpsc, oneshot};

pub use builtin::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use command::{DriverCommand, node_closed};
use driver::Driver;
pub use ending::END_MS;
use external_cache::ExternalLeaseCache;
use forwarded_store::ForwardedStore;
use journal_writer::JournalWriter;
use lookup::Lookup;
pub use own_sources::OwnSources;
use own_sources::OwnSwap;
pub use permitted_pools::PermittedPools;
pub use reason::{Readiness, Reason};
pub use restripe::NewStripe;
pub use room::DefinedRoom;
use saved::SavedDefinitions;
use secondary::SecondaryStores;
pub use settings::{AfterCrash, NodeSettings, Platform};
pub use source_info::{Listed, SourceInfo};
pub use source_operations::StoresChecked;
pub use state::Node;
use state::{NodeHandle, NodeState};

use crate::error::{Error, Result, Verb};
use crate::ids::Incarnation;
use crate::journal::disk;
use crate::machine::section_assignment::SectionAssignment;
use crate::model::catalog::SourceState;
use crate::model::history::Recalled;
use crate::model::name::check_name;
pub use crate::model::pool::{is_worker_pool, pool_of};
use crate::model::segment::{Reserve, Segment};
use crate::node::forecast::{Forecast, forecast};
use crate::platform::random;
use crate::sources::{NodeContext, Source, SourceInner};
use crate::spec::Plan;
use crate::stats::NodeStats;
use crate::store::Store;
use crate::store::reads::SharedReads;
pub use crate::store::time_reference::TimeReference;

impl Node {
    /// Opens a node on a store. Must be called within a Tokio runtime, which then runs the node's
    /// one task.
    ///
    /// Joining continues in the background: an unavailable store is waited for, and
    /// [`Node::readiness`] reports it. With `settings.builtin`, the built-in sources are defined
    /// first, so the store must be available.
    ///
    /// # Errors
    /// `Locked`, `JournalRefused` and others for the data directory; `StoreRolledBack` and
    /// `StoreMismatch` for a store that is not the one that the journal knows; `Unsupported`
    /// outside a runtime.
    pub fn open(
        store: Arc<dyn Store>,
        settings: NodeSettings,
        platform: Platform,
    ) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
                Error::unsupported("node needs a Tokio runtime; open it inside one")
                    .with_source(error)
            })?;
            let secondary_stores = SecondaryStores::new(&store, &settings, &platform, Self::open);
            let Platform { timer, clock, observer, disk } = platform;
            let mut journal_writer = match settings.data_dir.clone() {
                None => JournalWriter::none(),
                Some(path) => {
                    let (on, namespace) = (Arc::clone(&disk), store.namespace().to_owned());
                    let keeps = settings.start_without_store;
                    let open = move || {
                        JournalWriter::open(on.lock(&path)?, &on.machine()?, &namespace, keeps)
                    };
                    disk::on(&*disk, open).await??
                }
            };
            let call_ms = settings.store_call_ms;
            let mut ctx = NodeContext::new(
                store,
                timer,
                clock,
                observer,
                runtime.clone(),
                call_ms,
                journal_writer.is_kept(),
            )?;
            ctx.upstreams = settings.upstreams.clone();
            ctx.limit_clock(settings.clock_skew_max_ms, settings.clock_jump_max_ms);
            ctx.queue_room.set_max(settings.prefill_ids_max);
            ctx.sections.limit_keys(settings.counter_bytes_max);
            let ctx = Arc::new(ctx);
            ctx.store.remember(&journal_writer.seen());
            ctx.journal_budget.begin(journal_writer.places(), journal_writer.segments_bytes_max());
            let fingerprint = journal_writer.fingerprint();
            let knowledge = store_knowledge::StoreKnowledge {
                fingerprint: fingerprint.clone(),
                known: journal_writer.known(),
                ends: journal_writer.ends(),
                journal: journal_writer.id().map(Into::into),
                is_whole: true,
            };
            let met = store_knowledge::refuse_other_store(&ctx, &settings, &knowledge).await?;
            let tails = journal_writer.take_tails(&*disk, met == Some(Recalled::Same)).await?;
            let store = Arc::new(ForwardedStore::of(&ctx)) as Arc<dyn Store>;
            let timer = Arc::clone(&ctx.timer);
            let at = (runtime.clone(), ctx.fork_guard.clone());
            let reads = SharedReads::of(store, timer, at, call_ms, ctx.unjournalled());
            let reads = Arc::new(reads);
            let core = Arc::new(NodeState {
                ctx,
                reads,
                settings,
                sources: Mutex::new(BTreeMap::new()),
                histories: AtomicU64::new(0),
                lookup: Lookup::default(),
                secondary_stores,
                saved_definitions: SavedDefinitions::new(journal_writer.saved_sources()),
                external_leases: ExternalLeaseCache::default(),
                segments_seen: journal_writer.segments_seen(),
                tails: Mutex::new(tails),
                own: OwnSwap::default(),
                readiness: Mutex::new(Readiness {
                    ready: false,
                    reasons: vec![Reason::not_joined()],
                    without_store_until: None,
                }),
                member: Mutex::new(None),
                renewal_watch: Mutex::default(),
            });
            let (commands, received) = mpsc::channel(64);
            let seed = random::number()?;
            let driver =
                Driver::new(Arc::clone(&core), received, journal_writer, disk, fingerprint, seed);
            runtime.spawn(driver.run());
            let node = Self { handle: Arc::new(NodeHandle { core, commands }) };
            // The servers that own a store's sources define the built-in ones, as they are
            // configured.
            if node.store().owner_client().is_none() {
                match node.define_builtin().await {
                    Err(error)
                        if node.core().settings.waits_for_recovery
                            && error.kind().is_rolled_back() => {}
                    defined => defined?,
                }
            }
            Ok(node)
        })
    }

    /// Returns the source of this name, ready to mint. A repeated call returns the same generator.
    ///
    /// # Errors
    /// `NotFound`; `PoolFull` and others when no worker number can be claimed; `Unavailable` when
    /// the store is unavailable.
    pub async fn source(&self, name: &str) -> Result<Source> {
        check_name("source", name)?;
        let core = self.core();
        let known = core.known(name);
        let inner = match known {
            Some(inner) if inner.defined.load().state != SourceState::Deleted => inner,
            _ => core.open(name).await?,
        };
        let wait_ms = core.settings.open_wait_ms;
        if let Some(snowflake) = inner.backing.as_snowflake() {
            self.attach(&inner).await?;
            // A disabled source fills no queue.
            if inner.check_enabled().is_ok() {
                snowflake.first_fill(wait_ms).await;
            }
        }
        if let Some(multi_store) = inner.backing.as_multi_store() {
            multi_store.first(wait_ms).await?;
        }
        let handle = Arc::clone(&self.handle) as Arc<dyn Send + Sync>;
        Ok(Source::new(inner, handle))
    }

    async fn attach(&self, inner: &Arc<SourceInner>) -> Result<()> {
        self.core().check_namespace_unique(inner).await?;
        let (reply, received) = oneshot::channel();
        self.send(DriverCommand::Attach { source: Arc::clone(inner), reply }).await?;
        let wait_ms = self.core().settings.open_wait_ms;
        let name = &inner.name;
        tokio::select! {
            biased;
            attached = received => attached.unwrap_or_else(|_| Err(node_closed())).or_else(|error| {
                // The error may be about another source with the same generator.
                inner.check_enabled().and(Err(error))
            }),
            () = self.core().ctx.timer.sleep_ms(wait_ms) => {
                let mut readiness = self.readiness();
                // The lease of another source is not among the reasons.
                let reason = || self.core().not_minting(inner);
                readiness.reasons.extend((!self.is_own(name)).then(reason).flatten());
                Err(readiness.unavailable(|reasons| {
                    format!("source {name:?} has no window after {wait_ms} ms ({reasons}); retry")
                }))
            }
        }
    }

    async fn send(&self, command: DriverCommand) -> Result<()> {
        self.handle.commands.send(command).await.map_err(|_| node_closed())
    }

    /// Records that the catalog has changed: it is read within a tenth of a second.
    pub fn catalog_changed(&self) {
        self.core().lookup.changed();
        self.core().ctx.catalog_stale();
    }

    /// Returns forecasts for the enabled sources and the pools that they use.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn forecast(&self) -> Result<Vec<Forecast>> {
        let ctx = &self.core().ctx;
        let catalog = ctx.store_call(Verb::List, self.core().reads.list()).await?;
        let slots = self.workers().await?;
        let reuse = self.core().settings.reuse;
        Ok(forecast(&catalog.definitions, &slots, reuse, ctx.clock.unix_ms()))
    }

    /// Returns the node's present incarnation; none while it has not joined, or is joining again.
    /// Slots with this holder are its own.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        *self.core().member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the node's owner name: a label, and a preference for a slot; never an identity. May
    /// be empty.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.core().settings.owner
    }

    /// Returns the address at which peers reach this node, in the format of the server there. Empty
    /// for a process that serves no other.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.core().settings.address
    }

    /// Returns the configured name of the node's host. May be empty.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.core().settings.host
    }

    /// Returns the sources that were opened here and not deleted since, by name.
    #[must_use]
    pub fn running(&self) -> Vec<Source> {
        let known = self.core().known_sources();
        let here = |inner: &Arc<SourceInner>| inner.defined.load().state != SourceState::Deleted;
        let source = |inner| Source::new(inner, Arc::clone(&self.handle) as Arc<dyn Send + Sync>);
        known.into_iter().filter(here).map(source).collect()
    }

    /// Returns the node's state, and counts of events since it was opened.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let ctx = &self.core().ctx;
        let running = self.core().known_sources();
        let policies = running.iter().filter_map(|inner| match &inner.defined.load().plan {
            Plan::Snowflake(plan) => Some(plan.rollback_plan.policy()),
            _ => None,
        });
        NodeStats {
            joined: self.incarnation().is_some(),
            without_store: self.readiness().without_store_until.is_some(),
            sections: ctx.sections.held(),
            ..ctx.metrics.stats(ctx.timer.elapsed(), policies)
        }
    }

    /// Returns the owners of sections of counters, as far as this node knows.
    #[must_use]
    pub fn section_assignment(&self) -> Arc<SectionAssignment> {
        let sections = &self.core().ctx.sections;
        // The caller needs the present owners, not those at the time of the last count.
        sections.recheck();
        sections.assignment()
    }

    /// Returns the owners of sections of counters, for a client that asks for all servers. Waits up
    /// to `wait_ms` until this node has asked the store for its peers: a node that has just joined
    /// would name itself as the owner of all. A node that has not joined does not wait.
    pub async fn listed_assignment(&self, wait_ms: u64) -> Arc<SectionAssignment> {
        let ctx = &self.core().ctx;
        ctx.sections.begin();
        ctx.sections.recheck();
        if self.incarnation().is_some() {
            let listed = async {
                ctx.sections.await_listed().await;
                Ok(())
            };
            // Without a list the node's own view is the best there is.
            let _ = ctx.with_deadline(wait_ms, listed).await;
        }
        ctx.sections.assignment()
    }

    /// Returns the longest time in milliseconds until another process has taken over the sections
    /// or the order of a process that died, if the store responds at once and all have the same
    /// settings.
    #[must_use]
    pub fn missed_ms(&self) -> u64 {
        self.core().settings.missed_ms()
    }

    /// Reserves numbers of a segment source for an embedded client that calls through this process;
    /// `store` is the node's, in the form offered to clients. The journal has them when this
    /// returns, so a recovery goes past them even if the client is gone.
    ///
    /// # Errors
    /// Those of [`Store::reserve`]; `Unavailable` while the journal cannot be written, `Exhausted`
    /// where it has no place for one more source.
    pub async fn reserve_for_client(
        &self,
        store: &dyn Store,
        reserve: &Reserve,
    ) -> Result<Segment> {
        self.core().ctx.reserve_for_client(store, reserve).await
    }

    /// Returns the store. One call is in flight for each kind of read, for all callers of this
    /// node.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core().reads
    }

    /// Gives everything back: closes the generators for good, writes this to the journal, and
    /// releases the slots in the store. Later calls of this node and its sources fail with
    /// `Closed`.
    ///
    /// # Errors
    /// The journal or the store could not be updated. Nothing is lost then: worker numbers stay
    /// held until the node's presence has expired.
    pub async fn close(&self) -> Result<()> {
        let (reply, received) = oneshot::channel();
        if self.send(DriverCommand::Close { reply }).await.is_err() {
            // Closed before.
            return Ok(());
        }
        let closed = received.await.unwrap_or_else(|_| Err(node_closed()));
        // The sources that minted from them are closed now.
        closed.and(self.core().secondary_stores.close().await)
    }
}
