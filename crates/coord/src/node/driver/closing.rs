//! End of a node: held slots and numbers go back, and waiting callers get their results.

use std::sync::{Arc, PoisonError};

use snowmint_core::{Clock, UnixMillis};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::super::command::{DriverCommand, node_closed};
use super::state::{Completion, Driver, Stage};
use crate::error::{Error, ErrorKind, Result, Verb};
use crate::ids::Incarnation;
use crate::model::lease::Release;
use crate::node::reason::{Readiness, Reason};
use crate::node::tails::SortedTails;
use crate::sources::NodeContext;

/// Longest wait at the end for numbers in flight.
const FETCH_WAIT_MS: u64 = 1_000;

impl Driver {
    /// Sends the outcome to all callers of close, including those that called meanwhile.
    pub(super) async fn reply_to_closers(
        &mut self,
        first: oneshot::Sender<Result<()>>,
        outcome: &Result<()>,
    ) {
        // The caller may have stopped waiting.
        let _ = first.send(outcome.clone());
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            if let DriverCommand::Close { reply } = command {
                let _ = reply.send(outcome.clone());
            }
        }
    }

    /// Waits a moment for numbers in flight, so that they end up unused and not lost.
    async fn bring_in(&mut self) {
        let ctx = Arc::clone(&self.core.ctx);
        let deadline = ctx.timer.elapsed().saturating_add(FETCH_WAIT_MS);
        while let Some(segment) = self.core.fetching() {
            self.journal_writer.hears(ctx.journal_budget.take());
            self.journal_writer.notify(&*self.disk).await;
            let left_ms = deadline.since(ctx.timer.elapsed());
            tokio::select! {
                biased;
                () = segment.fetched() => {}
                () = ctx.wake.notified() => {}
                () = ctx.timer.sleep_ms(left_ms) => return,
            }
        }
    }

    /// Closes the node in this order: generators, journal, store.
    pub(super) async fn close(&mut self) -> Result<()> {
        let reason = node_closed();
        let reasons = vec![Reason::new(reason.kind().code(), reason.message())];
        *self.core.readiness.lock().unwrap_or_else(PoisonError::into_inner) =
            Readiness { ready: false, reasons, without_store_until: None };
        self.core.end_sources();
        let mut releases = self.close_leases(&reason);
        // Their marks stay unchanged: the next holder continues above them.
        self.close_sections();
        self.core.end_fetching();
        let member = self.end_tasks().await;
        self.bring_in().await;
        let unused = self.core.close_prefetched();
        releases.append(&mut self.pending_releases.releases);
        let boot = if self.journal_writer.is_kept() { self.disk.boot() } else { String::new() };
        let sorted = self.core.sort(unused, &boot, self.journal_writer.tails_left()).await;
        // A store that was recovered meanwhile has another history, which is compared at the start.
        self.see_store();
        let outcome = self.journal_the_end(&sorted).await;
        if outcome.is_err() && self.settings().start_without_store {
            // The next process may not know of the release, and resume in a window that the store
            // grants to another.
            releases.clear();
        }
        let wall = self.core.ctx.clock.unix_ms();
        if outcome.is_ok() {
            self.core.kept(&sorted.kept);
            // Numbers that go back without the journal's knowledge would look like a store
            // rollback.
            self.core.give_back(sorted.backs).await;
        }
        let Some(member) = member else { return outcome };
        let ctx = &self.core.ctx;
        let released = release_all(ctx, releases, wall).await;
        let left = ctx.store_call(Verb::Leave, ctx.store.leave(member, wall)).await;
        outcome.and(released).and(left)
    }

    /// Waits for calls in flight, which may still move a mark but no longer mint. Returns the
    /// incarnation under which the node joined.
    async fn end_tasks(&mut self) -> Option<Incarnation> {
        let mut member = match &self.stage {
            Stage::In { member, .. } => Some(member.incarnation),
            Stage::Out { .. } | Stage::Joining { .. } => None,
        };
        while let Some(done) = self.tasks.join_next().await {
            match done {
                Ok(Completion::Journal(written)) => {
                    let now = self.now();
                    self.journal_writer.end(now, written);
                }
                // The join has just ended. The journal must record which store its numbers belong
                // to.
                Ok(Completion::Joined(Ok(new_member))) => {
                    if let Some(catalog) = &new_member.catalog {
                        self.forget_lost_history(catalog, new_member.identity.writes);
                    }
                    self.journal_writer.joined(&new_member.identity, new_member.member.incarnation);
                    member = Some(new_member.member.incarnation);
                }
                Ok(Completion::Claimed { left, .. }) => self.add_releases(left.pending_releases),
                Ok(Completion::Released(done)) => self.pending_releases.done(&done),
                _ => {}
            }
        }
        member
    }

    /// Journals which numbers go back, which are kept, and that all leases are given up.
    async fn journal_the_end(&mut self, SortedTails { backs, kept }: &SortedTails) -> Result<()> {
        for back in backs {
            self.journal_writer.gives_back(&back.source, back.first);
        }
        self.journal_writer.keeps(kept.clone());
        self.journal_writer.released(&*self.disk, &self.past).await
    }
}

/// Releases all slots at the same time; the first failure is the outcome.
async fn release_all(
    ctx: &Arc<NodeContext>,
    releases: Vec<Release>,
    wall: UnixMillis,
) -> Result<()> {
    let mut sent = JoinSet::new();
    for release in releases {
        let ctx = Arc::clone(ctx);
        sent.spawn(async move {
            ctx.store_call(Verb::Release, ctx.store.release(&release, wall)).await
        });
    }
    let mut outcome = Ok(());
    while let Some(result) = sent.join_next().await {
        let result = result.unwrap_or_else(|error| {
            Err(Error::internal(format!(
                "internal error: release task ended: {error}; please report it"
            )))
        });
        match result.as_ref().map_err(Error::kind) {
            Ok(()) | Err(ErrorKind::Fenced) => {}
            Err(_) => outcome = outcome.and(result),
        }
    }
    outcome
}
