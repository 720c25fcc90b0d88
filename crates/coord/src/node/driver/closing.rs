//! End of a node: held slots and numbers go back, and waiting callers get their results.

use std::sync::{Arc, PoisonError};

use snowmint_core::{Clock, UnixMillis};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Command, Done, Driver, Stage};
use crate::error::{Error, ErrorKind, Result, Verb};
use crate::lease::Release;
use crate::member::Incarnation;
use crate::node::tails::Sorted;
use crate::node::{Readiness, Reason, node_closed};
use crate::sources::Surroundings;

/// Longest wait at the end for numbers in flight.
const FETCH_WAIT_MS: u64 = 1_000;

impl Driver {
    /// Sends the outcome to all callers of close, including those that called meanwhile.
    pub(super) async fn answer_closers(
        &mut self,
        first: oneshot::Sender<Result<()>>,
        outcome: &Result<()>,
    ) {
        // The caller may have stopped waiting.
        let _ = first.send(outcome.clone());
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            if let Command::Close { reply } = command {
                let _ = reply.send(outcome.clone());
            }
        }
    }

    /// Waits a moment for numbers in flight, so that they end up unused and not lost.
    async fn bring_in(&mut self) {
        let around = Arc::clone(&self.core.around);
        let deadline = around.timer.elapsed().saturating_add(FETCH_WAIT_MS);
        while let Some(segment) = self.core.fetching() {
            self.keeper.hears(around.reports.take());
            self.keeper.tell(&*self.disk).await;
            let left_ms = deadline.since(around.timer.elapsed());
            tokio::select! {
                biased;
                () = segment.fetched() => {}
                () = around.wake.notified() => {}
                () = around.timer.sleep_ms(left_ms) => return,
            }
        }
    }

    /// Closes the node in this order: generators, journal, store.
    pub(super) async fn close(&mut self) -> Result<()> {
        let why = node_closed();
        let reasons = vec![Reason::new(why.kind().code(), why.message())];
        *self.core.readiness.lock().unwrap_or_else(PoisonError::into_inner) =
            Readiness { ready: false, reasons, without_store_until: None };
        self.core.end_sources();
        let mut releases = self.shut_all(&why);
        // Their marks stay unchanged: the next holder continues above them.
        self.close_sections();
        self.core.end_fetching();
        let member = self.end_tasks().await;
        self.bring_in().await;
        let unused = self.core.close_stocks();
        releases.append(&mut self.owed.releases);
        let boot = if self.keeper.is_kept() { self.disk.boot() } else { String::new() };
        let sorted = self.core.sort(unused, &boot).await;
        let outcome = self.journal_the_end(&sorted).await;
        if outcome.is_err() && self.settings().start_without_store {
            // The next process may not know of the release, and resume in a window that the store
            // grants to another.
            releases.clear();
        }
        let wall = self.core.around.clock.unix_ms();
        if outcome.is_ok() {
            self.core.kept(&sorted.kept);
            // Numbers that go back without the journal's knowledge would look like a store
            // rollback.
            self.core.give_back(sorted.backs).await;
        }
        let Some(member) = member else { return outcome };
        let around = &self.core.around;
        let released = release_all(around, releases, wall).await;
        let left = around.store_call(Verb::Leave, around.store.leave(member, wall)).await;
        outcome.and(released).and(left)
    }

    /// Waits for calls in flight, which may still move a mark but no longer mint. Returns the
    /// incarnation under which the node joined.
    async fn end_tasks(&mut self) -> Option<Incarnation> {
        let mut member = match &self.stage {
            Stage::In { member, .. } => Some(member.incarnation),
            Stage::Out { .. } | Stage::Entering { .. } => None,
        };
        while let Some(done) = self.tasks.join_next().await {
            match done {
                Ok(Done::Journal(written)) => {
                    let now = self.now();
                    self.keeper.end(now, written);
                }
                // The join has just ended. The journal must record which store its numbers belong
                // to.
                Ok(Done::Entered(Ok(entered))) => {
                    if let Some(catalog) = &entered.catalog {
                        self.forget_lost_history(catalog, entered.identity.writes);
                    }
                    self.keeper.joined(&entered.identity, entered.member.incarnation);
                    member = Some(entered.member.incarnation);
                }
                Ok(Done::Claimed { left, .. }) => self.owe(left.owed),
                Ok(Done::Released(done)) => self.owed.done(&done),
                _ => {}
            }
        }
        member
    }

    /// Journals which numbers go back, which are kept, and that all leases are given up.
    async fn journal_the_end(&mut self, Sorted { backs, kept }: &Sorted) -> Result<()> {
        for back in backs {
            self.keeper.gives_back(&back.source, back.first);
        }
        self.keeper.keeps(kept.clone());
        self.keeper.released(&*self.disk, &self.past).await
    }
}

/// Releases all slots at the same time; the first failure is the outcome.
async fn release_all(
    around: &Arc<Surroundings>,
    releases: Vec<Release>,
    wall: UnixMillis,
) -> Result<()> {
    let mut sent = JoinSet::new();
    for release in releases {
        let around = Arc::clone(around);
        sent.spawn(async move {
            around.store_call(Verb::Release, around.store.release(&release, wall)).await
        });
    }
    let mut outcome = Ok(());
    while let Some(answer) = sent.join_next().await {
        let answer = answer.unwrap_or_else(|error| {
            Err(Error::internal(format!(
                "internal error: release task ended: {error}; please report it"
            )))
        });
        match answer.as_ref().map_err(Error::kind) {
            Ok(()) | Err(ErrorKind::Fenced) => {}
            Err(_) => outcome = outcome.and(answer),
        }
    }
    outcome
}
