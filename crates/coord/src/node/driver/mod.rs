//! The one loop that gives the machines their events and does what they answer. Everything that waits
//! is a task of its own, bounded in time; the loop itself only decides.

mod alone;
mod answers;
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

use self::ordered::OrderedSources;
use self::owed::Owed;
use self::sections::SectionsDone;
use self::strays::Strays;
use super::Core;
use super::compare::{self, Compared};
use super::entry::{self, Entered, Left};
use super::journal_write::Written;
use super::lease::{Held, LeaseKey};
use super::record::Keeper;
use super::seen::Witness;
use super::settings::NodeSettings;
use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind, Result, chain};
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

/// No sleep of the loop is longer: the clock may be set meanwhile.
const LOOK_MS_MAX: u64 = 1_000;
/// The catalog is read no more often, however many say that it has changed.
const CATALOG_EVERY_MS: u64 = 100;
/// A presence is renewed so often in its time to live; unless the node rests, clocks and catalog are looked at as often.
const LOOKS_A_PRESENCE: u64 = 3;
/// How long to wait after the node could not join.
const ENTER_RETRY_MS_MAX: u64 = 2_000;

/// What a node asks of its driver.
#[derive(Debug)]
pub(super) enum Command {
    /// Keep a snowflake source supplied; answer when it can mint.
    Attach { source: Arc<SourceInner>, reply: oneshot::Sender<Result<()>> },
    /// Close everything, and answer whether everything could be given back.
    Close { reply: oneshot::Sender<Result<()>> },
}

/// What a task brings back.
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
    /// What of the releases owed is done.
    Released(Vec<Release>),
    /// What is held by whom, asked as this member.
    Listed(Incarnation, Result<Vec<SlotInfo>>),
    /// About sections of counters, asked for as this member.
    Sections(Incarnation, SectionsDone),
    /// Which journals there are.
    Standing(Result<Standing>),
    /// A task ended as none can, unless it panics.
    Failed(Error),
}

/// Where the node stands with the store.
#[derive(Debug)]
enum Stage {
    /// Not joined; since when the next try may begin, and how many have failed.
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
    clock_error: Option<Error>,
    leases: BTreeMap<LeaseKey, Held>,
    /// What is known about slots that no generator of ours mints from any more.
    past: Vec<JournalLease>,
    /// The highest mark of a lease that has ended, also of those that are not kept.
    past_mark: Mark,
    /// The member before this one, which surely mints no more.
    before: Option<Incarnation>,
    keeper: Keeper,
    disk: Arc<dyn Disk>,
    clock_compared_at_ms: u64,
    catalog_busy: bool,
    catalog_read_at_ms: u64,
    /// The history of the store of which the journals were asked for last.
    journals_of: String,
    owed: Owed,
    strays: Strays,
    sections: SectionsMachine,
    serving: Serving,
    ordered: OrderedSources,
    /// Which membership in the store this is.
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
            clock_error: None,
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
            // In order, here and wherever a node waits: a simulation repeats exactly. First what tasks bring, of
            // which there is an end: commands may come without one.
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
                        // Dropped without close: generators stop, slots stay held until our presence
                        // lapses.
                        self.shut_all(&closed());
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

    /// Time as decisions may see it.
    fn now(&mut self) -> Now {
        let (now, jumped) = self.core.around.now();
        let known = self.clock_error.as_ref().map(Error::op);
        match jumped {
            Some(error) if known.is_none() => {
                tracing::error!(error = %chain(&error), "the clock jumped ahead and is not believed");
                self.clock_error = Some(error);
            }
            None if known == Some("read clock") => self.clock_error = None,
            _ => {}
        }
        now
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
                Done::Renewed(member, around.call("renew", renewal).await)
            });
            // With the renewal that comes next to when it is due.
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
        // Extends and reserves bring the catalog's version, and others tell us; without any, ask now and
        // then.
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

    /// With each start that was left in the store there may be another journal: a store that was put back may not know
    /// of it, and this one's must.
    pub(super) fn look_at_journals(&mut self) {
        // The journals that count are those of servers, if the store is theirs.
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

    /// Whether nobody mints: then the store is asked no more often than must be.
    fn rests(&self) -> bool {
        let mut windows = self.leases.values().flat_map(|held| held.windows()).peekable();
        windows.peek().is_some() && windows.all(WindowMachine::is_resting)
    }

    /// How often the clocks and the catalog are looked at.
    fn look_every_ms(&self) -> u64 {
        let ttl_ms = self.settings().presence_ttl_ms;
        if self.rests() { ttl_ms.max(LOOK_AT_REST_MS) } else { ttl_ms / LOOKS_A_PRESENCE }
    }

    fn since_catalog_ms(&self, now: Now) -> u64 {
        now.elapsed.get().saturating_sub(self.catalog_read_at_ms)
    }

    fn look_at_journal(&mut self, now: Now) {
        self.keeper.hears(self.core.around.reports.take());
        // Before the store was compared, this process knows nothing of the one that the journal knows.
        if matches!(self.stage, Stage::In { .. }) && self.core.around.doubts.check().is_ok() {
            let (seen, writes) = (self.core.around.store.seen(), self.core.around.writes_seen());
            if let Some(seen) = &seen
                && self.was_recovered(seen)
            {
                return;
            }
            self.keeper.saw_catalog(self.core.around.catalog_seen());
            // A count belongs to the history in which it was counted: beside an older start, it would be of a
            // history that others have written anew.
            match &seen {
                Some(seen) => {
                    (self.witness.store, self.witness.writes) = (seen.id.clone(), seen.writes);
                }
                None => self.witness.writes = self.witness.writes.max(writes),
            }
            self.keeper.saw(seen, writes);
        }
        if self.keeper.is_due(now) {
            // Each write is as far ahead as it can be for all of them, so that they are due together.
            self.leases.values_mut().for_each(|held| held.journal(now));
        }
        let held = self.leases.values().flat_map(|held| held.windows());
        if let Some(write) = self.keeper.begin(now, held, &self.past) {
            let disk = Arc::clone(&self.disk);
            self.tasks.spawn(async move {
                match disk::on(&*disk, "write journal", move || write.run()).await {
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
    /// However it ends, also with its runtime: what the store answers from here on is used by nobody, and nothing is
    /// minted once the directory's lock is gone, which proves to the next process that this one has ended.
    fn drop(&mut self) {
        self.core.around.reports.end();
        self.shut_all(&closed());
        self.close_sections();
        self.core.close_stocks();
    }
}

/// Whether a number may be claimed again. What is known of those that are not would fill the journal, a
/// little with each start.
fn uses_again(settings: &NodeSettings) -> bool {
    settings.reuse != Reuse::Never
}

fn closed() -> Error {
    Error::new("mint", ErrorKind::Closed { what: "the node".into() })
}
