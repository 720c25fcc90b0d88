//! A node: one process's membership in one namespace of one store, and the sources it mints for.
//!
//! It claims worker numbers as sources need them, keeps their windows ahead of need, and starts anew
//! as another member when its right to mint is lost or in doubt. Nothing is minted on hope: a
//! generator sees a window only after store and journal have acknowledged it.

mod alone;
mod beside;
mod builtin;
mod compare;
mod defining;
mod definitions;
mod disguised;
mod driver;
mod ending;
mod entry;
mod journal_write;
mod kept;
mod lease;
mod lend;
mod listed;
mod lookup;
mod peer_probes;
mod programs;
mod readiness;
mod record;
mod recovering;
mod restripe;
mod room;
mod seen;
mod settings;
mod tails;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use snowmint_core::Clock;
use tokio::sync::{mpsc, oneshot};

use beside::Beside;
pub use builtin::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use driver::{Command, Driver};
pub use ending::END_MS;
use kept::KeptSources;
use lend::Lendings;
pub use listed::{Listed, SourceInfo};
use lookup::Lookup;
pub use programs::Shapes;
pub use readiness::{Readiness, Reason};
use record::Keeper;
pub use restripe::NewStripe;
pub use room::DefinedRoom;
pub use settings::{AfterCrash, NodeSettings, Parts};

use crate::catalog::{SourceState, check_name};
pub use crate::clock_witness::ClockWitness;
use crate::error::{Error, ErrorKind, Result};
use crate::forecast::{Forecast, forecast};
use crate::history::Recalled;
use crate::journal::{JournalTail, disk};
use crate::lease::Mark;
use crate::member::Incarnation;
use crate::pool::SECTIONS_POOL;
pub use crate::pool::{is_worker_pool, pool_of};
use crate::random;
use crate::reads::SharedReads;
use crate::segment::{Reserve, Segment};
use crate::slot::SlotInfo;
use crate::sources::{Back, Shares, Source, SourceInner, Surroundings};
use crate::spec::Plan;
use crate::stats::NodeStats;
use crate::store::Store;

/// What the handle and the driver share.
#[derive(Debug)]
struct Core {
    around: Arc<Surroundings>,
    /// The store, for whoever asks this node: they are many, and what the node must have in time waits behind none of them.
    reads: Arc<dyn Store>,
    settings: NodeSettings,
    sources: Mutex<BTreeMap<String, Arc<SourceInner>>>,
    /// How often the store was recovered under this node; raised with `sources` locked.
    histories: AtomicU64,
    lookup: Lookup,
    /// The stores beside the node's own.
    beside: Beside,
    kept: KeptSources,
    lendings: Lendings,
    segments_seen: BTreeMap<String, Mark>,
    /// What an earlier process kept for us, of sources that were not opened yet.
    tails: Mutex<Vec<JournalTail>>,
    readiness: Mutex<Readiness>,
    /// Which member the node is now; none while it is out of the store.
    member: Mutex<Option<Incarnation>>,
}

/// Dropping the last one ends the driver.
struct Alive {
    core: Arc<Core>,
    commands: mpsc::Sender<Command>,
}

/// A process's membership in one namespace of one store. Clones share it.
///
/// [`Node::close`] gives worker numbers back at once. Dropping the last clone (and the last
/// [`Source`]) stops minting, but gives nothing back: numbers stay held until the node's presence has
/// lapsed, and the unused rest of its windows is not minted by anybody.
#[derive(Clone)]
pub struct Node {
    alive: Arc<Alive>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.alive.core.fmt(f)
    }
}

impl Node {
    /// Opens a node on a store. Must be called within a Tokio runtime, on which the node's one task
    /// then runs.
    ///
    /// Joining goes on in the background: a store that is away is waited for, and
    /// [`Node::readiness`] says so. With `settings.builtin`, the built-in sources are defined first,
    /// so the store must be there.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`], [`ErrorKind::JournalRefused`] and others for the data directory;
    /// [`ErrorKind::StoreWentBack`] and [`ErrorKind::OtherStore`] for a store that is not the one
    /// that the journal knows; [`ErrorKind::Unsupported`] outside a runtime.
    pub fn open(
        store: Arc<dyn Store>,
        settings: NodeSettings,
        parts: Parts,
    ) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
                let what = "a node needs a Tokio runtime to run on".into();
                Error::new("open node", ErrorKind::Unsupported { what }).with_source(error)
            })?;
            let beside = Beside::new(&store, &settings, &parts);
            let Parts { timer, clock, observer, disk } = parts;
            let mut keeper = match settings.data_dir.clone() {
                None => Keeper::none(),
                Some(path) => {
                    let (on, namespace) = (Arc::clone(&disk), store.namespace().to_owned());
                    let keeps = settings.start_without_store;
                    let open =
                        move || Keeper::open(on.lock(&path)?, &on.machine(), &namespace, keeps);
                    disk::on(&*disk, "open journal", open).await??
                }
            };
            let call_ms = settings.store_call_ms;
            let around = Surroundings::new(
                store,
                timer,
                clock,
                observer,
                runtime.clone(),
                call_ms,
                keeper.is_kept(),
            )?;
            let around = around.drawing_from(settings.origins.clone());
            let around = around.within_skew(settings.clock_skew_max_ms);
            let around = around.within_jumps(settings.clock_jump_max_ms);
            let around = around.queueing(settings.prefill_ids_max);
            let around = Arc::new(around.counting_in(settings.counter_bytes_max));
            around.store.remember(&keeper.seen());
            around.reports.begin(keeper.places(), keeper.segments_bytes_max());
            let witness = keeper.witness();
            let memory = seen::Memory {
                witness: witness.clone(),
                known: keeper.known(),
                ends: keeper.ends(),
                journal: keeper.id().map(Into::into),
                is_whole: true,
            };
            let met = seen::refuse_other_store(&around, &settings, &memory).await?;
            let tails = keeper.take_tails(&*disk, met == Some(Recalled::Same)).await?;
            let (store, timer) = (Arc::clone(&around.store), Arc::clone(&around.timer));
            let at = (runtime.clone(), around.home.clone());
            let reads = Arc::new(SharedReads::of(store, timer, at, call_ms));
            let core = Arc::new(Core {
                around,
                reads,
                settings,
                sources: Mutex::new(BTreeMap::new()),
                histories: AtomicU64::new(0),
                lookup: Lookup::default(),
                beside,
                kept: KeptSources::new(keeper.kept_sources()),
                lendings: Lendings::default(),
                segments_seen: keeper.segments_seen(),
                tails: Mutex::new(tails),
                readiness: Mutex::new(Readiness {
                    ready: false,
                    reasons: vec![Reason::not_joined()],
                    without_store_until: None,
                }),
                member: Mutex::new(None),
            });
            let (commands, received) = mpsc::channel(64);
            let seed = random::number()?;
            let driver = Driver::new(Arc::clone(&core), received, keeper, disk, witness, seed);
            runtime.spawn(driver.run());
            let node = Self { alive: Arc::new(Alive { core, commands }) };
            // The servers that answer for a store's sources define the built-in ones, as they are configured.
            if node.store().owners().is_none() {
                match node.define_builtin().await {
                    Err(error)
                        if node.core().settings.waits_for_recovery && seen::is_in_doubt(&error) => {
                    }
                    defined => defined?,
                }
            }
            Ok(node)
        })
    }

    fn core(&self) -> &Arc<Core> {
        &self.alive.core
    }

    /// The source of this name, ready to mint. Asking again gives the same generator.
    ///
    /// # Errors
    /// `NotFound`; `PoolFull` and others when no worker number can be had; `Unavailable` when the
    /// store is away.
    pub async fn source(&self, name: &str) -> Result<Source> {
        check_name("source", name).map_err(|kind| Error::new("open source", kind))?;
        let core = self.core();
        let known = core.known(name);
        let inner = match known {
            Some(inner) if inner.defined.load().state != SourceState::Deleted => inner,
            _ => {
                let history = core.history();
                let definition = core.find(name).await?;
                core.take_up(&definition, history)?
            }
        };
        if matches!(inner.back, Back::Snowflake(_)) {
            self.attach(&inner).await?;
            inner.first_fill(self.core().settings.open_wait_ms).await;
        }
        if let Back::Several(several) = &inner.back {
            several.first(self.core().settings.open_wait_ms).await?;
        }
        let alive = Arc::clone(&self.alive) as Arc<dyn Send + Sync>;
        Ok(Source::new(inner, alive))
    }

    async fn attach(&self, inner: &Arc<SourceInner>) -> Result<()> {
        self.core().check_namespace_unique(inner).await?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Attach { source: Arc::clone(inner), reply }).await?;
        let wait_ms = self.core().settings.open_wait_ms;
        let name = &inner.name;
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(node_closed())).or_else(|error| {
                // It may be about another that has the same generator.
                inner.check_enabled().and(Err(error))
            }),
            () = self.core().around.timer.sleep_ms(wait_ms) => {
                let reasons = self.readiness().why();
                let what = format!("a window for source {name} within {wait_ms} ms ({reasons})");
                Err(Error::new("open source", ErrorKind::Unavailable { what }))
            }
        }
    }

    async fn send(&self, command: Command) -> Result<()> {
        self.alive.commands.send(command).await.map_err(|_| node_closed())
    }

    /// Somebody says that the catalog has changed: it is read within a tenth of a second.
    pub fn catalog_changed(&self) {
        self.core().lookup.changed();
        self.core().around.catalog_stale();
    }

    /// Where the other live members are reached, those that say so.
    ///
    /// # Errors
    /// As the store says.
    pub async fn others(&self) -> Result<Vec<String>> {
        let around = &self.core().around;
        let members = self.core().reads.members(around.clock.unix_ms());
        let mut members = around.call("list members", members).await?;
        let own = self.incarnation();
        members.retain(|info| info.live && Some(info.member.incarnation) != own);
        let addresses = members.into_iter().map(|info| info.member.address);
        Ok(addresses.filter(|address| !address.is_empty()).collect())
    }

    /// All worker numbers that were ever claimed; not the sections of counters, of which there are many.
    ///
    /// # Errors
    /// As the store says.
    pub async fn workers(&self) -> Result<Vec<SlotInfo>> {
        let around = &self.core().around;
        let slots = self.core().reads.workers(around.clock.unix_ms());
        let mut slots = around.call("list workers", slots).await?;
        slots.retain(|slot| slot.pool != SECTIONS_POOL);
        Ok(slots)
    }

    /// How long the sources that are enabled, and the pools that they use, will last.
    ///
    /// # Errors
    /// As the store says.
    pub async fn forecast(&self) -> Result<Vec<Forecast>> {
        let around = &self.core().around;
        let catalog = around.call("list sources", self.core().reads.list()).await?;
        let slots = self.workers().await?;
        let reuse = self.core().settings.reuse;
        Ok(forecast(&catalog.definitions, &slots, reuse, around.clock.unix_ms()))
    }

    /// Whether the node can mint for all sources that were opened, and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let core = self.core();
        let mut readiness = core.readiness.lock().unwrap_or_else(PoisonError::into_inner).clone();
        readiness.reasons.extend(core.without_stores());
        readiness.reasons.extend(core.without_years());
        readiness.ready &= readiness.reasons.is_empty();
        readiness
    }

    /// Which member of the store this node is now; none while it has not joined, or is joining anew.
    /// Slots with this holder are its own.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        *self.core().member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What people call this node: a label, and a wish for a slot; never an identity. May be empty.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.core().settings.owner
    }

    /// The name of the host that it runs on, as it was told. May be empty.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.core().settings.host
    }

    /// The sources that were opened here and not deleted since, by name.
    #[must_use]
    pub fn running(&self) -> Vec<Source> {
        let known = self.core().known_sources();
        let here = |inner: &Arc<SourceInner>| inner.defined.load().state != SourceState::Deleted;
        let source = |inner| Source::new(inner, Arc::clone(&self.alive) as Arc<dyn Send + Sync>);
        known.into_iter().filter(here).map(source).collect()
    }

    /// How the node stands, and what it has met since it was opened.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let around = &self.core().around;
        let running = self.core().known_sources();
        let policies = running.iter().filter_map(|inner| match &inner.defined.load().plan {
            Plan::Snowflake(plan) => Some(plan.clockwork.policy()),
            _ => None,
        });
        NodeStats {
            joined: self.incarnation().is_some(),
            without_store: self.readiness().without_store_until.is_some(),
            sections: around.sections.held(),
            ..around.watch.stats(around.timer.elapsed(), policies)
        }
    }

    /// Who answers for which sections of counters, as far as is known here.
    #[must_use]
    pub fn shares(&self) -> Arc<Shares> {
        let sections = &self.core().around.sections;
        // Whoever asks wants to know how it is, not how it was when somebody counted last.
        sections.look_again();
        sections.shares()
    }

    /// How long a process that answers for sections of counters, or for an order, is missed at most when
    /// it dies: then another has taken over, if the store answers at once and settings are the same.
    #[must_use]
    pub fn missed_ms(&self) -> u64 {
        self.core().settings.missed_ms()
    }

    /// Takes numbers of a segment source for a program that mints by itself and asks through this process; `store` is the
    /// node's, as it is offered to programs. The journal knows of them when this answers, so a recovery goes past them whether the program is there or not.
    ///
    /// # Errors
    /// As [`Store::reserve`]; `Unavailable` while the journal cannot be written, `Exhausted` where it has no place for
    /// one more source.
    pub async fn reserve_for_program(
        &self,
        store: &dyn Store,
        reserve: &Reserve,
    ) -> Result<Segment> {
        self.core().around.reserve_for_program(store, reserve).await
    }

    /// The store. Of each kind of read one call is in flight, for all who ask through this node.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core().reads
    }

    /// Gives everything back: closes the generators for good, writes so in the journal, and tells the
    /// store. Later calls of this node and its sources are refused with `Closed`.
    ///
    /// # Errors
    /// When the journal or the store could not be told. Nothing is lost then: worker numbers stay
    /// held until the node's presence has lapsed.
    pub async fn close(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        if self.send(Command::Close { reply }).await.is_err() {
            // Closed before.
            return Ok(());
        }
        let closed = answer.await.unwrap_or_else(|_| Err(node_closed()));
        // Those who minted from them are closed now.
        closed.and(self.core().beside.close().await)
    }
}

fn node_closed() -> Error {
    Error::new("use node", ErrorKind::Closed { what: "the node".into() })
}
