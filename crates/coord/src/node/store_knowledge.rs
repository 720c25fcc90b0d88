//! Knowledge of a node about its store, and checks for a store that lacks some of it.

use std::collections::BTreeMap;

use snowmint_core::UnixMillis;

use super::recovery::days_too_far_ahead;
use super::settings::NodeSettings;
use crate::error::{Error, ErrorKind, Result, Verb, chain};
use crate::ids::{Mark, Term};
use crate::model::catalog::Catalog;
use crate::model::history::{
    Doubt, Evidence, JournalInfo, Known, Proof, Recalled, RecalledBy, Standing, StoreIdentity,
    check_ends, check_recovered,
};
use crate::sources::NodeContext;

/// Attempts to put a store in doubt, which fail while others change its history: after an outage,
/// each of them leaves a start.
const DOUBT_TRIES: u32 = 8;

/// Fingerprint of the store.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreFingerprint {
    /// Identity; empty when the store was never reached.
    pub(super) store: String,
    /// Highest write count.
    pub(super) writes: u64,
    /// Term of slots that no member has had, at the last join: it leaps when an operator moves the
    /// store forward.
    pub(super) ground: Option<Term>,
    /// Name of the holder of this fingerprint, for messages.
    pub(super) who: String,
}

/// Knowledge of a node about its store, for comparison and reports.
#[derive(Clone, Debug)]
pub(super) struct StoreKnowledge {
    pub(super) fingerprint: StoreFingerprint,
    /// State that the store had reached.
    pub(super) known: Known,
    /// Next number of each source, as far as it was surely seen handed out and not given back
    /// since.
    pub(super) ends: BTreeMap<String, u64>,
    /// Store's name for the journal; none without a journal.
    pub(super) journal: Option<String>,
    /// Nothing was taken from the store since this was put together.
    pub(super) is_whole: bool,
}

impl StoreKnowledge {
    fn seen(&self) -> StoreIdentity {
        StoreIdentity { id: self.fingerprint.store.clone(), writes: self.fingerprint.writes }
    }

    pub(super) fn journal(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
    ) -> Option<JournalInfo> {
        let now = ctx.clock.unix_ms();
        Some(JournalInfo {
            id: self.journal.clone()?,
            owner: settings.owner.clone(),
            host: settings.host.clone(),
            seen_at_ms: now.get(),
            has_reported: false,
            is_heard_of: false,
            reports: 0,
            far_mark: if self.is_far(now) { self.known.mark } else { 0 },
        })
    }

    /// Checks that the store has everything that this node has seen of it. If it has not, no
    /// process may mint from it, and this node reports to the store how far it had come.
    pub(super) async fn recall(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
    ) -> Result<Recalled> {
        match self.compare(ctx, settings).await {
            Ok((recalled, None)) => Ok(recalled),
            // It was recovered without this node, which does not report that it knows more.
            Ok((Recalled::Recovered, Some(above))) => Err(above),
            Ok((Recalled::Same, Some(error))) => Err(self.doubts(ctx, settings, error).await),
            Err(error) => Err(self.doubts(ctx, settings, error).await),
        }
    }

    /// Compares the store's history with what was seen of it. The error is for rows that lie below
    /// what was seen.
    async fn compare(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
    ) -> Result<(Recalled, Option<Error>)> {
        let (who, seen) = (&self.fingerprint.who, self.seen());
        let recalled = ctx.store_call(Verb::Recall, ctx.store.recall(who, &seen)).await?;
        let is_program = ctx.store.owner_client().is_some();
        // The servers of a store that was not recovered find out for themselves what it lacks.
        if is_program && recalled == Recalled::Same {
            return Ok((recalled, None));
        }
        // Servers tell no program the mark of numbers that were never claimed.
        let ground = if is_program {
            None
        } else {
            Some(ctx.store_call(Verb::Ground, ctx.store.ground()).await?.mark)
        };
        let catalog = ctx.store_call(Verb::List, ctx.store.list()).await?;
        let covered = match recalled {
            Recalled::Recovered => {
                let is_below = ground.is_some_and(|mark| mark.get() < self.known.mark);
                // It has reported its mark, and the operator has left it out.
                let ground = match is_below && self.is_counted(ctx, settings).await? {
                    true => None,
                    false => ground,
                };
                self.check_recovered(ctx, settings, ground, &catalog)
            }
            Recalled::Same => self.check_same(&catalog),
        };
        Ok((recalled, covered.err()))
    }

    /// Puts the store in doubt, and reports, if this error is a reason. Returns the error.
    pub(super) async fn doubts(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
        error: Error,
    ) -> Error {
        // Servers put their store in doubt themselves: no program makes them refuse.
        if ctx.store.owner_client().is_some() || !error.kind().is_rolled_back() {
            return error;
        }
        if let Err(report_error) = self.report(ctx, settings).await {
            tracing::warn!(error = %chain(&report_error), "failed to report the rollback of the store");
        }
        error
    }

    /// Puts the store in doubt, unless it is or this node finds no reason any more, and reports.
    async fn report(&self, ctx: &NodeContext, settings: &NodeSettings) -> Result<()> {
        for _ in 0..DOUBT_TRIES {
            let standing = ctx.store_call(Verb::Standing, ctx.store.standing()).await?;
            if standing.doubt.is_some() {
                break;
            }
            // The first finding may have been resolved meanwhile; a finding now belongs to this
            // history.
            let (error, proof) = match self.compare(ctx, settings).await {
                Ok((Recalled::Same, Some(error))) | Err(error) => (error, Proof::Comparison),
                Ok((Recalled::Same, None)) => match self.contradiction(ctx).await? {
                    Some(error) => (error, Proof::Reply),
                    None => return Ok(()),
                },
                Ok((Recalled::Recovered, _)) => return Ok(()),
            };
            let who = match settings.owner.as_str() {
                "" => format!("{} on {}", self.fingerprint.who, settings.host),
                owner => format!("{} of {owner}", self.fingerprint.who),
            };
            let Some(doubt) = Doubt::of(error.kind(), &who) else { return Ok(()) };
            let (id, seen, ends) = (standing.id, self.seen(), self.ends.clone());
            let evidence = Evidence { id, seen, ends, proof };
            ctx.store_call(Verb::Doubt, ctx.store.doubt(&doubt, &evidence)).await?;
        }
        // The next attempt also knows what was taken meanwhile: a recovery waits for that as for a
        // missing report.
        if !self.is_whole {
            return Ok(());
        }
        let journal = self.journal(ctx, settings).unwrap_or_default();
        ctx.store_call(Verb::Report, ctx.store.report(&journal, Some(&self.known))).await?;
        Ok(())
    }

    /// Returns the reply by which the store contradicted an earlier one since the join, unless it was
    /// recovered meanwhile.
    async fn contradiction(&self, ctx: &NodeContext) -> Result<Option<Error>> {
        let Some(error) = ctx.doubts.contradiction() else { return Ok(None) };
        let ground = ctx.store_call(Verb::Ground, ctx.store.ground()).await?.term;
        Ok(Some(error).filter(|_| self.fingerprint.ground == Some(ground)))
    }

    /// Returns whether the mark is far ahead of the clock.
    fn is_far(&self, now: UnixMillis) -> bool {
        days_too_far_ahead(UnixMillis::new(self.known.mark), now).is_some()
    }

    /// Returns whether the last recovery had a report of this mark, far ahead of the clock, by this
    /// journal. If the store lies below the mark, the operator has left it out.
    async fn is_counted(&self, ctx: &NodeContext, settings: &NodeSettings) -> Result<bool> {
        let Some(own) = self.journal(ctx, settings) else { return Ok(false) };
        let standing = ctx.store_call(Verb::Standing, ctx.store.standing()).await?;
        let is_own = |known: &&JournalInfo| known.id == own.id;
        let own = standing.journals.iter().find(is_own);
        Ok(own.is_some_and(|own| own.has_reported_far(self.known.mark)))
    }

    /// Returns the journals that the store knows. Registers this one again if the store has
    /// forgotten it, as it does after many others have joined: a recovery would not wait for it.
    pub(super) async fn read_journals(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
    ) -> Result<Standing> {
        let standing = ctx.store_call(Verb::Standing, ctx.store.standing()).await?;
        if let Some(own) = self.journal(ctx, settings)
            && standing.journals.iter().all(|known| known.id != own.id)
        {
            ctx.store_call(Verb::Report, ctx.store.report(&own, None)).await?;
        }
        Ok(standing)
    }

    /// Rejects a store with sources below the ends that are sure and were not given back since.
    fn check_same(&self, catalog: &Catalog) -> Result<()> {
        check_ends(&self.fingerprint.who, &self.ends, &catalog.definitions)?;
        Ok(())
    }

    /// Rejects a store that was recovered without this node, and lies below what it knows: the ends
    /// of sources, and the marks, if they count.
    fn check_recovered(
        &self,
        ctx: &NodeContext,
        settings: &NodeSettings,
        ground: Option<Mark>,
        catalog: &Catalog,
    ) -> Result<()> {
        let (known, stored) = (&self.known, &catalog.definitions);
        let far_ahead = self.is_far(ctx.clock.unix_ms());
        let secondary = settings.secondary.as_deref();
        let is_program = ctx.store.owner_client().is_some();
        let (who, has_journal) = (self.fingerprint.who.as_str(), self.journal.is_some());
        let recall = RecalledBy { who, secondary, is_program, far_ahead, has_journal };
        check_recovered(&recall, known, stored, ground.unwrap_or(Mark::MAX))
    }
}

/// Rejects a store that is another one, or an older state, by the journal's knowledge. Returns the
/// result of the comparison; none if the store was not reached and is waited for: it is compared
/// before anything is minted.
pub(super) async fn refuse_other_store(
    ctx: &NodeContext,
    settings: &NodeSettings,
    knowledge: &StoreKnowledge,
) -> Result<Option<Recalled>> {
    if knowledge.fingerprint.store.is_empty() {
        return Ok(None);
    }
    // Also before the first join, nothing comes from a store that lacks what was seen of it.
    match knowledge.recall(ctx, settings).await.inspect_err(|error| ctx.doubt(error)) {
        Ok(recalled) => Ok(Some(recalled)),
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable) => Ok(None),
        Err(error) if settings.waits_for_recovery && error.kind().is_rolled_back() => Ok(None),
        Err(error) => Err(error),
    }
}
