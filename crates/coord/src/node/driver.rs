//! The one loop that gives the machines their events and does what they answer. Everything that waits
//! is a task of its own, bounded in time; the loop itself only decides.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use snowmint_core::Clock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::entry::{self, Claim, Compared, Entered, Witness};
use super::lease::{GroupKey, Held, LeaseKey, group_key, place};
use super::record::{JournalMark, Keeper, Written};
use super::settings::{AfterCrash, NodeSettings};
use super::{Core, Readiness};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::JournalLease;
use crate::lease::{Extend, Extended, Release};
use crate::machine::{
    ClockGuard, Granted, LeaseAction, LeaseEvent, Now, Pace, PresenceAction, PresenceMachine,
    WindowAction,
};
use crate::member::{Incarnation, Member};
use crate::sources::{Make, SourceInner};
use crate::spec::{Plan, SnowflakePlan};

/// No sleep of the loop is longer: the clock may be set meanwhile.
const LOOK_MS_MAX: u64 = 1_000;
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
    Claimed { key: LeaseKey, member: Incarnation, request: u64, answer: Result<Vec<Granted>> },
    Extended { member: Incarnation, items: Vec<(LeaseKey, Extend)>, answers: Vec<Result<Extended>> },
    Journal(Written),
    Catalog(Result<()>),
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
    guard: ClockGuard,
    clock_error: Option<Error>,
    leases: BTreeMap<LeaseKey, Held>,
    /// What is known about slots that no generator of ours mints from any more.
    past: Vec<JournalLease>,
    /// The member before this one, which surely mints no more.
    before: Option<Incarnation>,
    keeper: Keeper,
    catalog_busy: bool,
    catalog_read_at_ms: u64,
}

impl Driver {
    pub(super) fn new(
        core: Arc<Core>,
        commands: mpsc::Receiver<Command>,
        keeper: Keeper,
        witness: Witness,
    ) -> Self {
        let past = keeper.past_leases();
        let before = keeper.past_member();
        let guard = ClockGuard::new(core.settings.clock_jump_max_ms);
        Self {
            core,
            commands,
            tasks: JoinSet::new(),
            stage: Stage::Out { retry_at_ms: 0, failures: 0, error: None },
            witness,
            guard,
            clock_error: None,
            leases: BTreeMap::new(),
            past,
            before,
            keeper,
            catalog_busy: false,
            catalog_read_at_ms: 0,
        }
    }

    fn settings(&self) -> &NodeSettings {
        &self.core.settings
    }

    /// Runs until the node is closed or dropped.
    pub(super) async fn run(mut self) {
        loop {
            let now = self.now();
            self.look(now);
            let wait_ms = self.wait_ms(now);
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Attach { source, reply }) => self.attach(&source, reply),
                    Some(Command::Close { reply }) => {
                        let outcome = self.close().await;
                        // Whoever asked may have stopped waiting.
                        let _ = reply.send(outcome);
                        return;
                    }
                    None => {
                        // Dropped without close: generators stop, slots stay held until our presence
                        // lapses.
                        self.shut_all(&closed());
                        return;
                    }
                },
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => match done {
                    Ok(done) => self.done(done),
                    Err(error) => tracing::error!(%error, "a task of the node failed"),
                },
                () = self.core.around.wake.notified() => {}
                () = self.core.around.timer.sleep_ms(wait_ms) => {}
            }
        }
    }

    /// Time as decisions may see it.
    fn now(&mut self) -> Now {
        let wall = self.core.around.clock.unix_ms();
        let seen = Now { wall, elapsed: self.core.around.timer.elapsed() };
        let (believed, beyond_ms) = self.guard.vet(seen);
        if beyond_ms > 0 && self.clock_error.is_none() {
            let kind = ErrorKind::ClockAhead {
                ahead_ms: beyond_ms,
                limit_ms: self.core.settings.clock_jump_max_ms,
                compared_with: "the time that has passed".into(),
            };
            tracing::error!(beyond_ms, "the clock jumped ahead and is not believed");
            self.clock_error = Some(Error::new("read clock", kind));
        } else if beyond_ms == 0
            && self.clock_error.as_ref().is_some_and(|error| error.op() == "read clock")
        {
            self.clock_error = None;
        }
        Now { wall: believed, elapsed: seen.elapsed }
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
        self.look_at_presence(now);
        self.look_at_leases(now);
        self.look_at_catalog(now);
        self.look_at_journal(now);
        self.report(now);
    }

    fn spawn_enter(&mut self) {
        let core = Arc::clone(&self.core);
        let (witness, before) = (self.witness.clone(), self.before);
        self.tasks.spawn(async move {
            Done::Entered(entry::enter(&core.around, &core.settings, &witness, before).await)
        });
    }

    fn look_at_presence(&mut self, now: Now) {
        let Stage::In { member, presence } = &mut self.stage else { return };
        let member = member.incarnation;
        if let Some(PresenceAction::Renew(said)) = presence.look(now) {
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let around = &core.around;
                let wall = around.clock.unix_ms();
                let renewal = around.store.renew(member, said, wall);
                Done::Renewed(member, around.call("renew", renewal).await)
            });
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move {
                let checked = entry::check_clock(&core.around, &core.settings, Some(member));
                Done::ClockChecked(checked.await)
            });
        }
    }

    fn look_at_leases(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        let member = member.clone();
        let mut extends = Vec::new();
        for (key, held) in &mut self.leases {
            let positions = held.positions();
            for minter in held.groups.values().filter_map(|group| group.minter.as_ref()) {
                minter.check_clock();
            }
            for action in held.machine.on(now, LeaseEvent::Look(&positions)) {
                match action {
                    LeaseAction::Claim { request } => {
                        let past = self.past.iter().filter(|past| past.pool == held.pool.name);
                        let claim = Claim {
                            pool: held.pool.clone(),
                            member: member.clone(),
                            supersedes: self.before,
                            past: past.cloned().collect(),
                            request,
                        };
                        let (core, key) = (Arc::clone(&self.core), key.clone());
                        let member = member.incarnation;
                        self.tasks.spawn(async move {
                            let answer = entry::claim(&core.around, &core.settings, claim).await;
                            Done::Claimed { key, member, request, answer }
                        });
                    }
                    LeaseAction::Window { action: WindowAction::Extend(extend), .. } => {
                        extends.push((key.clone(), extend));
                    }
                    LeaseAction::Window { action: WindowAction::Journal(_), .. } => {
                        self.keeper.want();
                    }
                    LeaseAction::Window { index, action: WindowAction::Open(until) } => {
                        held.open(index, until);
                    }
                    LeaseAction::Window { action: WindowAction::Shut(_), .. }
                    | LeaseAction::Granted
                    | LeaseAction::Lost(_) => {}
                }
            }
        }
        self.spawn_extends(member.incarnation, extends, now);
    }

    fn spawn_extends(&mut self, member: Incarnation, items: Vec<(LeaseKey, Extend)>, now: Now) {
        if items.is_empty() {
            return;
        }
        let core = Arc::clone(&self.core);
        self.tasks.spawn(async move {
            let extends: Vec<_> = items.iter().map(|(_, extend)| extend.clone()).collect();
            let around = &core.around;
            let call = around.call("extend", around.store.extend(&extends, now.wall));
            let mut answers = match call.await {
                Ok(answers) => answers,
                Err(error) => vec![Err(error); items.len()],
            };
            let missing = || Err(Error::internal("extend", "the store answered too few items"));
            answers.resize_with(items.len(), missing);
            Done::Extended { member, items, answers }
        });
    }

    fn look_at_catalog(&mut self, now: Now) {
        if self.catalog_busy || !matches!(self.stage, Stage::In { .. }) {
            return;
        }
        // Extends and reserves bring the catalog's version; without any, ask now and then.
        let due = now.elapsed.get().saturating_sub(self.catalog_read_at_ms)
            >= self.settings().presence_ttl_ms / 3;
        if self.core.around.take_stale() || due {
            self.catalog_busy = true;
            self.catalog_read_at_ms = now.elapsed.get();
            let core = Arc::clone(&self.core);
            self.tasks.spawn(async move { Done::Catalog(core.read_catalog().await.map(|_| ())) });
        }
    }

    fn look_at_journal(&mut self, now: Now) {
        for (source, end) in self.core.around.take_reserved() {
            self.keeper.reserved(source, end);
        }
        self.keeper.saw_writes(self.core.around.writes_seen());
        let held = self.leases.values().flat_map(|held| held.machine.windows());
        if let Some(write) = self.keeper.begin(now, held, &self.past) {
            self.tasks.spawn_blocking(move || Done::Journal(write.run()));
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
            .filter_map(|held| held.machine.look_in_ms(now, &held.positions()))
            .min();
        let soonest = stage.into_iter().chain(leases).chain(self.keeper.wait_ms(now)).min();
        soonest.unwrap_or(LOOK_MS_MAX).clamp(1, LOOK_MS_MAX)
    }

    fn done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Entered(answer) => self.entered(now, answer),
            Done::Renewed(who, answer) => {
                let Stage::In { member, presence } = &mut self.stage else { return };
                if member.incarnation != who {
                    return;
                }
                presence.renewed(now, &answer);
                if presence.is_gone() {
                    let what = "this member: the store has forgotten it".into();
                    self.lose(&Error::new("renew", ErrorKind::NotFound { what }));
                }
            }
            Done::ClockChecked(Ok(compared)) => {
                if compared == Compared::Agrees {
                    let wall = self.core.around.clock.unix_ms();
                    self.guard.believe(Now { wall, elapsed: now.elapsed });
                }
                if self.clock_error.as_ref().is_some_and(|error| error.op() == "compare clocks") {
                    self.clock_error = None;
                }
            }
            Done::ClockChecked(Err(error)) => match error.kind() {
                ErrorKind::ClockAhead { .. } | ErrorKind::ClockBehind { .. } => {
                    tracing::error!(%error, "this machine's clock disagrees");
                    self.clock_error = Some(error);
                }
                _ => {}
            },
            Done::Claimed { key, member, request, answer } => {
                if self.is_member(member) {
                    self.claimed(now, &key, request, answer);
                }
            }
            Done::Extended { member, items, answers } => {
                if self.is_member(member) {
                    self.extended(now, &items, &answers);
                }
            }
            Done::Journal(written) => self.journal_written(now, written),
            Done::Catalog(answer) => {
                self.catalog_busy = false;
                if let Err(error) = answer {
                    tracing::warn!(%error, "the catalog could not be read");
                } else {
                    self.apply_catalog();
                }
            }
        }
    }

    fn is_member(&self, incarnation: Incarnation) -> bool {
        matches!(&self.stage, Stage::In { member, .. } if member.incarnation == incarnation)
    }

    fn entered(&mut self, now: Now, answer: Result<Entered>) {
        let Stage::Entering { failures } = self.stage else { return };
        match answer {
            Ok(Entered { member, identity }) => {
                self.core.around.saw(0, identity.writes);
                self.witness.store.clone_from(&identity.id);
                self.witness.writes = self.witness.writes.max(identity.writes);
                self.keeper.joined(&identity, member.incarnation);
                let ttl_ms = self.settings().presence_ttl_ms;
                let presence = PresenceMachine::new(ttl_ms, now.elapsed);
                self.stage = Stage::In { member, presence };
            }
            Err(error) => {
                tracing::warn!(%error, "the store cannot be joined");
                let failures = failures.saturating_add(1);
                let wait_ms = (50_u64 << failures.min(6)).min(ENTER_RETRY_MS_MAX);
                for group in self.leases.values_mut().flat_map(|held| held.groups.values_mut()) {
                    group.suspend(&error);
                    if !matches!(error.kind(), ErrorKind::Unavailable { .. }) {
                        group.answer(&Err(error.clone()));
                    }
                }
                self.stage = Stage::Out {
                    retry_at_ms: now.elapsed.get().saturating_add(wait_ms),
                    failures,
                    error: Some(error),
                };
            }
        }
    }

    fn claimed(&mut self, now: Now, key: &LeaseKey, request: u64, answer: Result<Vec<Granted>>) {
        let Some(held) = self.leases.get_mut(key) else { return };
        let error = answer.as_ref().err().cloned();
        let actions = held.machine.on(now, LeaseEvent::Claimed { request, answer });
        for action in actions {
            match action {
                LeaseAction::Granted => {
                    for window in held.machine.windows() {
                        let lease = window.lease();
                        tracing::info!(pool = %lease.pool, slot = lease.slot, term = %lease.term, "claimed");
                        self.past.retain(|past| past.pool != lease.pool || past.slot != lease.slot);
                    }
                    if let Err(error) = held.make_minters(&self.core.around) {
                        tracing::error!(%error, "no generator");
                    }
                }
                LeaseAction::Lost(error) => return self.lose(&error),
                _ => {}
            }
        }
        if let Some(error) = error {
            tracing::warn!(pool = %held.pool.name, %error, "no worker number");
            for group in held.groups.values_mut() {
                group.suspend(&error);
                if !matches!(error.kind(), ErrorKind::Unavailable { .. }) {
                    group.answer(&Err(error.clone()));
                }
            }
        }
    }

    fn extended(&mut self, now: Now, items: &[(LeaseKey, Extend)], answers: &[Result<Extended>]) {
        let mut lost = None;
        for ((key, extend), answer) in items.iter().zip(answers) {
            if let Ok(extended) = answer {
                self.core.around.saw(extended.catalog_version, extended.writes);
                self.witness.writes = self.witness.writes.max(extended.writes);
            }
            let Some(held) = self.leases.get_mut(key) else { continue };
            let event = LeaseEvent::Extended { slot: extend.slot, request: extend.request, answer };
            for action in held.machine.on(now, event) {
                match action {
                    LeaseAction::Window { index, action: WindowAction::Open(until) } => {
                        held.open(index, until);
                    }
                    LeaseAction::Lost(error) => lost = Some(error),
                    _ => {}
                }
            }
        }
        if let Some(error) = lost {
            self.lose(&error);
        }
    }

    fn journal_written(&mut self, now: Now, written: Written) {
        let marks = self.keeper.end(now, written);
        for held in self.leases.values_mut() {
            let event = match &marks {
                Some(marks) => {
                    // A write that began under an earlier lease says nothing about this one.
                    let is_ours = |mark: &&JournalMark| {
                        mark.pool == held.pool.name
                            && held.machine.windows().iter().any(|window| {
                                window.lease().slot == mark.slot && window.lease().term == mark.term
                            })
                    };
                    let own = marks.iter().filter(is_ours);
                    let own: Vec<_> = own.map(|mark| (mark.slot, mark.mark)).collect();
                    held.machine.on(now, LeaseEvent::Journalled(&own))
                }
                None => held.machine.on(now, LeaseEvent::JournalFailed),
            };
            for action in event {
                if let LeaseAction::Window { index, action: WindowAction::Open(until) } = action {
                    held.open(index, until);
                }
            }
        }
    }

    /// The right to mint is gone, or in doubt: all generators close for good, and everything begins
    /// anew as another member.
    fn lose(&mut self, error: &Error) {
        tracing::error!(%error, "the right to mint was lost: joining anew");
        let what = "the worker number was lost, another one".into();
        let why = Error::new("mint", ErrorKind::Unavailable { what }).with_source(error.clone());
        self.shut_all(&why);
        if let Stage::In { member, .. } = &self.stage {
            self.before = Some(member.incarnation);
        }
        self.stage = Stage::Out { retry_at_ms: 0, failures: 0, error: Some(error.clone()) };
        for held in self.leases.values_mut() {
            if let Err(error) = held.restart() {
                tracing::error!(%error, "no randomness");
            }
        }
    }

    /// Closes all generators, and remembers what they have taken.
    fn shut_all(&mut self, why: &Error) -> Vec<Release> {
        let mut releases = Vec::new();
        for held in self.leases.values_mut() {
            let (known, release) = held.close(why);
            self.past.retain(|past| {
                known.iter().all(|new| new.pool != past.pool || new.slot != past.slot)
            });
            self.past.extend(known);
            releases.extend(release);
        }
        releases
    }

    fn attach(&mut self, source: &Arc<SourceInner>, reply: oneshot::Sender<Result<()>>) {
        let defined = source.defined.load_full();
        let Plan::Snowflake(plan) = &defined.plan else {
            let _ = reply.send(Ok(()));
            return;
        };
        match self.settle(source, plan) {
            Ok((lease, group)) => {
                let group =
                    self.leases.get_mut(&lease).and_then(|held| held.groups.get_mut(&group));
                if let Some(group) = group {
                    group.waiters.push(reply);
                }
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Finds or makes the lease and the generator of a source.
    fn settle(
        &mut self,
        source: &Arc<SourceInner>,
        plan: &SnowflakePlan,
    ) -> Result<(LeaseKey, GroupKey)> {
        let settings = self.core.settings.clone();
        let (key, pool) = place(&source.name, plan, settings.reuse);
        let group_key = group_key(&source.name, plan);
        let mut make = Make::of(plan);
        if let AfterCrash::Lead { max_ms } = settings.after_crash {
            make = make.leading(max_ms);
        }
        self.leave_other_leases(source, &key, &group_key);
        let unit_ms = u64::from(plan.layout.unit_ms());
        let known = self.leases.get(&key);
        let unit_ms = unit_ms.max(known.map_or(1, Held::unit_ms_max));
        let mut pace = Pace::new(
            settings.window_ms,
            unit_ms,
            make.lead_max_ms(),
            settings.clock_skew_max_ms,
            self.keeper.is_kept(),
        );
        if let Some(held) = known {
            pace.ahead_max_ms = pace.ahead_max_ms.max(held.pace().ahead_max_ms);
        }
        let held = match self.leases.entry(key.clone()) {
            std::collections::btree_map::Entry::Occupied(held) => held.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Held::new(pool, pace)?)
            }
        };
        held.set_pace(pace);
        held.machine.hurry();
        if let Some(group) = held.groups.get(&group_key)
            && group.make != make
        {
            held.replace(&group_key, make);
        }
        let group =
            held.groups.entry(group_key.clone()).or_insert_with(|| super::lease::Group::new(make));
        if !group.sources.iter().any(|known| Arc::ptr_eq(known, source)) {
            group.sources.push(Arc::clone(source));
        }
        group.serve();
        held.make_minters(&self.core.around)?;
        Ok((key, group_key))
    }

    /// A source whose policy was altered may need another lease: it leaves the one that it had.
    fn leave_other_leases(
        &mut self,
        source: &Arc<SourceInner>,
        key: &LeaseKey,
        group_key: &GroupKey,
    ) {
        for (other, held) in &mut self.leases {
            if other == key {
                continue;
            }
            if let Some(group) = held.groups.get_mut(group_key)
                && group.sources.iter().any(|known| Arc::ptr_eq(known, source))
            {
                group.sources.retain(|known| !Arc::ptr_eq(known, source));
                held.close_if_unused(group_key);
            }
        }
    }

    /// Sources whose definition has changed get another generator.
    fn apply_catalog(&mut self) {
        for source in self.core.known_sources() {
            let defined = source.defined.load_full();
            if let Plan::Snowflake(plan) = &defined.plan
                && let Err(error) = self.settle(&source, plan)
            {
                tracing::error!(source = %source.name, %error, "the altered source cannot mint");
            }
        }
    }

    /// Answers who waits, and says how the node is.
    fn report(&mut self, now: Now) {
        let mut reasons = Vec::new();
        match &self.stage {
            Stage::Out { error: Some(error), .. } => reasons.push(error.to_string()),
            Stage::Out { .. } | Stage::Entering { .. } => {
                reasons.push("the store is not joined yet".into());
            }
            Stage::In { presence, .. } => {
                if !presence.is_live(now) {
                    reasons.push("our presence in the store has lapsed".into());
                }
            }
        }
        // Every clock error is loud; none of them takes an open window away.
        reasons.extend(self.clock_error.as_ref().map(ToString::to_string));
        reasons.extend(self.keeper.error().map(ToString::to_string));
        for held in self.leases.values_mut() {
            match held.not_ready(now) {
                Some(reason) => reasons.push(reason),
                None => {
                    for group in held.groups.values_mut().filter(|group| group.minter.is_some()) {
                        group.answer(&Ok(()));
                    }
                }
            }
        }
        let readiness = Readiness { ready: reasons.is_empty(), reasons };
        *self.core.readiness.lock().unwrap_or_else(PoisonError::into_inner) = readiness;
    }

    /// In this order: generators, journal, store.
    async fn close(&mut self) -> Result<()> {
        let why = closed();
        let releases = self.shut_all(&why);
        let backs = self.core.close_segments();
        // What is on its way may still move a mark, and cannot mint any more.
        while let Some(done) = self.tasks.join_next().await {
            if let Ok(Done::Journal(written)) = done {
                let now = self.now();
                self.keeper.end(now, written);
            }
        }
        let mut outcome = self.keeper.released(&self.past).await;
        let around = &self.core.around;
        let wall = around.clock.unix_ms();
        for back in backs {
            // Refused when others have reserved since: then it is a gap.
            let _ = around.call("give back", around.store.give_back(&back)).await;
        }
        let Stage::In { member, .. } = &self.stage else { return outcome };
        let mut sent = JoinSet::new();
        for release in releases {
            let around = Arc::clone(around);
            sent.spawn(async move {
                around.call("release", around.store.release(&release, wall)).await
            });
        }
        while let Some(answer) = sent.join_next().await {
            let answer =
                answer.unwrap_or_else(|error| Err(Error::internal("release", error.to_string())));
            match answer.as_ref().map_err(Error::kind) {
                Ok(()) | Err(ErrorKind::Fenced { .. }) => {}
                Err(_) => outcome = outcome.and(answer),
            }
        }
        let left = around.call("leave", around.store.leave(member.incarnation, wall)).await;
        outcome.and(left)
    }
}

fn closed() -> Error {
    Error::new("mint", ErrorKind::Closed { what: "the node".into() })
}
