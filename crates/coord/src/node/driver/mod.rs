//! Driver loop that feeds events to the machines and does the resulting actions. Everything that
//! waits is a task of its own, bounded in time; the loop itself only decides.

mod alone;
mod answers;
mod clock;
mod closing;
mod leases;
mod memory;
mod ordered;
mod owed;
mod report;
mod sections;
mod strays;
mod supply;

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_core::Clock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::clock::ClockFault;
use self::ordered::OrderedSources;
use self::owed::Owed;
use self::sections::SectionsDone;
use self::strays::Strays;
use super::compare::{self, Compared};
use super::entry::{self, Entered, Left};
use super::journal_write::Written;
use super::lease::{Held, LeaseKey};
use super::record::Keeper;
use super::seen::Witness;
use super::settings::NodeSettings;
use super::{Core, node_closed};
use crate::catalog::Catalog;
use crate::error::{Error, Result, Verb};
use crate::history::Standing;
use crate::journal::{Disk, JournalLease, disk};
use crate::lease::{Extend, Extended, Mark, Release};
use crate::machine::{
    Granted, LOOK_AT_REST_MS, Now, PresenceAction, PresenceMachine, SectionsMachine, Serving,
    WindowMachine,
};
use crate::member::{Incarnation, Member};
use crate::pool::{Reuse, sections_pool};
use crate::slot::SlotInfo;
use crate::sources::SourceInner;

/// Longest sleep of the loop: the clock may be set meanwhile.
const LOOK_MS_MAX: u64 = 1_000;
/// Shortest time between two reads of the catalog, however many notices of changes arrive.
const CATALOG_EVERY_MS: u64 = 100;
/// Number of renewals in a time to live. Unless the node is idle, clocks and catalog are checked as
/// often.
const LOOKS_A_PRESENCE: u64 = 3;
/// Longest wait after a failed join.
const ENTER_RETRY_MS_MAX: u64 = 2_000;

/// Command to the driver.
#[derive(Debug)]
pub(super) enum Command {
    /// Keep a snowflake source supplied; reply when it can mint.
    Attach { source: Arc<SourceInner>, reply: oneshot::Sender<Result<()>> },
    /// Close everything, and reply whether everything could be given back.
    Close { reply: oneshot::Sender<Result<()>> },
}

/// Result of a task.
enum Done {
    Entered(Result<Entered>),
    Renewed(Incarnation, Result<()>),
    ClockChecked(Result<Compared>),
    Claimed {
        key: LeaseKey,
        member: Incarnation,
        request: u64,
        answer: Result<Vec<Granted>>,
        left: Left,
    },
    Extended {
        member: Incarnation,
        items: Vec<(LeaseKey, Extend)>,
        answers: Vec<Result<Extended>>,
    },
    Journal(Written),
    Catalog(Result<Catalog>),
    /// Pending releases that are done.
    Released(Vec<Release>),
    /// Slots and their holders, read as this member.
    Listed(Incarnation, Result<Vec<SlotInfo>>),
    /// Result about sections, for a call as this member.
    Sections(Incarnation, SectionsDone),
    /// Journals of the store.
    Standing(Result<Standing>),
    /// A task ended in a way that only a panic explains.
    Failed(Error),
}

/// Stage of the node's membership.
#[derive(Debug)]
enum Stage {
    /// Not joined: the time of the next attempt, and how many attempts have failed.
    Out {
        retry_at_ms: u64,
        failures: u32,
        error: Option<Error>,
    },
    Entering {
        failures: u32,
    },
    In {
        member: Member,
        presence: PresenceMachine,
    },
}

pub(super) struct Driver {
    core: Arc<Core>,
    commands: mpsc::Receiver<Command>,
    tasks: JoinSet<Done>,
    stage: Stage,
    witness: Witness,
    clock_fault: Option<ClockFault>,
    leases: BTreeMap<LeaseKey, Held>,
    /// Knowledge about slots that no generator of this node mints from any more.
    past: Vec<JournalLease>,
    /// Highest mark of the leases that have ended, including those that are not kept.
    past_mark: Mark,
    /// Previous member of this process, which has certainly stopped minting.
    before: Option<Incarnation>,
    keeper: Keeper,
    disk: Arc<dyn Disk>,
    clock_compared_at_ms: u64,
    catalog_busy: bool,
    catalog_read_at_ms: u64,
    /// History of the store for which the journals were last requested.
    journals_of: String,
    owed: Owed,
    strays: Strays,
    sections: SectionsMachine,
    serving: Serving,
    ordered: OrderedSources,
    /// Number of the present membership.
    membership: u64,
}

impl Driver {
    pub(super) fn new(
        core: Arc<Core>,
        commands: mpsc::Receiver<Command>,
        keeper: Keeper,
        disk: Arc<dyn Disk>,
        witness: Witness,
        seed: u64,
    ) -> Self {
        let past = keeper.past_leases();
        let past = if uses_again(&core.settings) { past } else { Vec::new() };
        let before = keeper.past_member();
        let mut sections = SectionsMachine::new(sections_pool(), seed);
        sections.ended(keeper.earlier_members());
        Self {
            core,
            commands,
            tasks: JoinSet::new(),
            stage: Stage::Out { retry_at_ms: 0, failures: 0, error: None },
            witness,
            clock_fault: None,
            leases: BTreeMap::new(),
            past,
            past_mark: Mark::ZERO,
            before,
            keeper,
            disk,
            clock_compared_at_ms: 0,
            catalog_busy: false,
            catalog_read_at_ms: 0,
            journals_of: String::new(),
            owed: Owed::default(),
            strays: Strays::default(),
            sections,
            serving: Serving::default(),
            ordered: OrderedSources::default(),
            membership: 0,
        }
    }

    fn settings(&self) -> &NodeSettings {
        &self.core.settings
    }

    /// Runs until the node is closed or dropped.
    pub(super) async fn run(mut self) {
        let mut now = self.now();
        loop {
            self.look(now);
            let wait_ms = self.wait_ms(now);
            // The order is fixed, here and wherever a node waits, so that a simulation repeats
            // exactly. Results of tasks come first: their number is limited, while commands may
            // arrive without end.
            let done = tokio::select! {
                biased;
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => Some(done),
                command = self.commands.recv() => match command {
                    Some(Command::Attach { source, reply }) => {
                        self.attach(&source, reply);
                        None
                    }
                    Some(Command::Close { reply }) => {
                        let outcome = self.close().await;
                        self.answer_closers(reply, &outcome).await;
                        return;
                    }
                    None => {
                        // Dropped without close: generators stop, and slots stay held until this
                        // member's presence expires.
                        self.shut_all(&node_closed());
                        self.close_sections();
                        self.core.close_stocks();
                        return;
                    }
                },
                () = self.core.around.wake.notified() => None,
                () = self.core.around.timer.sleep_ms(wait_ms) => None,
            };
            now = self.now();
            match done {
                Some(Ok(done)) => self.done(now, done),
                Some(Err(error)) => tracing::error!(%error, "a task of the node failed"),
                None => {}
            }
        }
    }

    /// Does everything that is due.
    fn look(&mut self, now: Now) {
        if let Stage::Out { retry_at_ms, failures, .. } = &self.stage
            && now.elapsed.get() >= *retry_at_ms
        {
            let failures = *failures;
            self.stage = Stage::Entering { failures };
            self.spawn_enter();
        }
        self.look_at_doubt();
        self.look_at_presence(now);
        self.stir(now);
        self.go_on_alone(now);
        self.leases.values_mut().for_each(Held::see);
        self.look_alone(now);
        self.look_at_leases(now);
        self.look_at_sections(now);
        self.look_at_catalog(now);
        self.look_at_journal(now);
        self.look_at_owed(now);
        self.look_for_strays(now);
        self.report(now);
    }

    fn spawn_enter(&mut self) {
        let core = Arc::clone(&self.core);
        let (memory, before) = (self.memory(), self.before);
        self.tasks.spawn(async move {
            let entered = entry::enter(&core.around, &core.settings, &memory, before);
            Done::Entered(entered.await)
        });
    }

    fn look_at_presence(&mut self, now: Now) {
        let Stage::In { member, presence } = &mut self.stage else { return };
        let member = member.incarnation;
        if let Some(PresenceAction::Renew(said)) = presence.look(now) {
            let half_ms = said.ttl_ms / LOOKS_A_PRESENCE / 2;
            self.look_at_journals();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let around = &core.around;
                let wall = around.clock.unix_ms();
                let renewal = around.store.renew(member, said, wall);
                Done::Renewed(member, around.store_call(Verb::Renew, renewal).await)
            });
            // The checks go with the renewal that is nearest to their due time.
            let since_ms = now.elapsed.get().saturating_sub(self.clock_compared_at_ms);
            if since_ms.saturating_add(half_ms) < self.look_every_ms() {
                return;
            }
            self.clock_compared_at_ms = now.elapsed.get();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let checked = compare::while_running(&core.around, &core.settings, member);
                Done::ClockChecked(checked.await)
            });
        }
    }

    fn look_at_catalog(&mut self, now: Now) {
        if self.catalog_busy || !matches!(self.stage, Stage::In { .. }) {
            return;
        }
        // Extends and reserves report the catalog's version, and peers notify this node; otherwise
        // it is read at intervals.
        let since_ms = self.since_catalog_ms(now);
        let due = since_ms >= self.look_every_ms();
        if due || since_ms >= CATALOG_EVERY_MS && self.core.around.is_stale() {
            self.core.around.take_stale();
            self.catalog_busy = true;
            self.catalog_read_at_ms = now.elapsed.get();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move { Done::Catalog(core.read_catalog().await) });
        }
    }

    /// Reads the list of journals when the store has a new start. Each start may bring another
    /// journal, which a store that was rolled back may not know; so this node's journal must know
    /// it.
    pub(super) fn look_at_journals(&mut self) {
        // Where the store is reached through servers, the servers' journals count.
        let is_told = self.keeper.is_kept()
            && matches!(self.stage, Stage::In { .. })
            && self.core.around.store.owners().is_none();
        let Some(seen) = self.core.around.store.seen().filter(|_| is_told) else { return };
        if seen.id == self.journals_of {
            return;
        }
        self.journals_of = seen.id;
        let (core, memory) = (Arc::clone(&self.core), self.memory());
        self.tasks.spawn(async move {
            Done::Standing(memory.look_at_journals(&core.around, &core.settings).await)
        });
    }

    /// Returns whether the node is idle: then it calls the store as rarely as possible.
    fn rests(&self) -> bool {
        let mut windows = self.leases.values().flat_map(|held| held.windows()).peekable();
        windows.peek().is_some() && windows.all(WindowMachine::is_resting)
    }

    /// Returns the interval between checks of the clocks and the catalog.
    fn look_every_ms(&self) -> u64 {
        let ttl_ms = self.settings().presence_ttl_ms;
        if self.rests() { ttl_ms.max(LOOK_AT_REST_MS) } else { ttl_ms / LOOKS_A_PRESENCE }
    }

    fn since_catalog_ms(&self, now: Now) -> u64 {
        now.elapsed.get().saturating_sub(self.catalog_read_at_ms)
    }

    fn look_at_journal(&mut self, now: Now) {
        self.keeper.hears(self.core.around.reports.take());
        // Before the store was compared, this process knows nothing of the store in its journal.
        if matches!(self.stage, Stage::In { .. }) && self.core.around.doubts.check().is_ok() {
            let (seen, writes) = (self.core.around.store.seen(), self.core.around.writes_seen());
            if let Some(seen) = &seen
                && self.was_recovered(seen)
            {
                return;
            }
            self.keeper.saw_catalog(self.core.around.catalog_seen());
            // A write count belongs to the history in which it was counted: stored with an older
            // start, it would belong to a history that other processes have replaced.
            match &seen {
                Some(seen) => {
                    (self.witness.store, self.witness.writes) = (seen.id.clone(), seen.writes);
                }
                None => self.witness.writes = self.witness.writes.max(writes),
            }
            self.keeper.saw(seen, writes);
        }
        if self.keeper.is_due(now) {
            // Each write moves all marks as far as possible, so that they are due together.
            self.leases.values_mut().for_each(|held| held.journal(now));
        }
        let held = self.leases.values().flat_map(|held| held.windows());
        if let Some(write) = self.keeper.begin(now, held, &self.past) {
            let disk = Arc::clone(&self.disk);
            self.tasks.spawn(async move {
                match disk::on(&*disk, move || write.run()).await {
                    Ok(written) => Done::Journal(written),
                    Err(error) => Done::Failed(error),
                }
            });
        }
    }

    fn wait_ms(&self, now: Now) -> u64 {
        let stage = match &self.stage {
            Stage::Out { retry_at_ms, .. } => Some(retry_at_ms.saturating_sub(now.elapsed.get())),
            Stage::Entering { .. } => None,
            Stage::In { presence, .. } => presence.look_in_ms(now),
        };
        let joined = matches!(self.stage, Stage::In { .. });
        let leases = self
            .leases
            .values()
            .filter(|_| joined)
            .filter_map(|held| held.machine.look_in_ms(now, &held.seen))
            .min();
        let alone = self.leases.values().filter_map(|held| held.look_alone_in_ms(now)).min();
        let sections = self.actor().and_then(|actor| self.sections.look_in_ms(now.elapsed, &actor));
        let stale = joined && !self.catalog_busy && self.core.around.is_stale();
        let catalog = stale.then(|| CATALOG_EVERY_MS.saturating_sub(self.since_catalog_ms(now)));
        let strays = self.strays.wait_ms(now).filter(|_| joined);
        let owed = self.owed_wait_ms(now);
        let others = [self.keeper.wait_ms(now), owed, strays, alone, sections, catalog];
        let soonest = stage.into_iter().chain(leases).chain(others.into_iter().flatten()).min();
        soonest.unwrap_or(LOOK_MS_MAX).clamp(1, LOOK_MS_MAX)
    }
}

impl Drop for Driver {
    /// Ends minting however the driver ends, also with its runtime. Later results of the store are
    /// not used. Nothing is minted once the directory's lock is gone, which proves to the next
    /// process that this one has ended.
    fn drop(&mut self) {
        self.core.around.reports.end();
        self.shut_all(&node_closed());
        self.close_sections();
        self.core.close_stocks();
    }
}

/// Returns whether a worker number may be claimed again. Knowledge about numbers that may not would
/// fill the journal, a little with each start.
fn uses_again(settings: &NodeSettings) -> bool {
    settings.reuse != Reuse::Never
}
