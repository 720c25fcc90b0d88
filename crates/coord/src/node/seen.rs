//! What a node has seen of its store, and what becomes of a store that lacks some of it.

use std::collections::BTreeMap;

use super::settings::NodeSettings;
use crate::error::{Error, ErrorKind, Result, chain};
use crate::history::{Doubt, Evidence, JournalInfo, Known, Recalled, Standing, check_ends};
use crate::lease::Term;
use crate::pool::Ground;
use crate::sources::Surroundings;
use crate::store::StoreIdentity;

/// What is remembered about the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    /// The identity; empty when the store was never met.
    pub(super) store: String,
    /// The highest count of writes.
    pub(super) writes: u64,
    /// The term of slots that nobody has had, at the last join: it leaps when an operator moves the store forward.
    pub(super) ground: Option<Term>,
    /// Who remembers, for messages.
    pub(super) who: String,
}

/// What a node has seen of its store, and who is to say so.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) witness: Witness,
    /// How far the store had come.
    pub(super) known: Known,
    /// The next number of each source, as far as this surely was seen handed out and not given back since.
    pub(super) ends: BTreeMap<String, u64>,
    /// What the store calls the journal; none without one.
    pub(super) journal: Option<String>,
    /// Nothing was taken from the store since this was put together.
    pub(super) is_whole: bool,
}

impl Memory {
    fn seen(&self) -> StoreIdentity {
        StoreIdentity { id: self.witness.store.clone(), writes: self.witness.writes }
    }

    pub(super) fn journal(
        &self,
        around: &Surroundings,
        settings: &NodeSettings,
    ) -> Option<JournalInfo> {
        Some(JournalInfo {
            id: self.journal.clone()?,
            owner: settings.owner.clone(),
            host: settings.host.clone(),
            seen_at_ms: around.clock.unix_ms().get(),
            has_reported: false,
            is_heard_of: false,
        })
    }

    /// Whether the store has all that this node has seen of it. If it has not, nobody is to mint from it, and the store
    /// is told how far it had come.
    pub(super) async fn recall(
        &self,
        around: &Surroundings,
        settings: &NodeSettings,
    ) -> Result<Recalled> {
        match self.look(around).await {
            Ok((recalled, None)) => Ok(recalled),
            // It was recovered without this node, which keeps to itself that it knows more.
            Ok((Recalled::Recovered, Some(above))) => Err(above),
            Ok((Recalled::Same, Some(error))) => Err(self.doubts(around, settings, error).await),
            Err(error) => Err(self.doubts(around, settings, error).await),
        }
    }

    /// How the store stands to what was seen of it by its history; and what it shows in its rows that was seen further.
    async fn look(&self, around: &Surroundings) -> Result<(Recalled, Option<Error>)> {
        let (who, seen) = (&self.witness.who, self.seen());
        let recalled = around.call("recall", around.store.recall(who, &seen)).await?;
        // Servers show a program no more than its token may see, and compare for themselves.
        if around.store.owners().is_some() {
            return Ok((recalled, None));
        }
        let ground = around.call("look at ground", around.store.ground()).await?;
        let catalog = around.call("list sources", around.store.list()).await?;
        // Below what was given back since, a store lies that went back, or one that nobody asked to go past it.
        let ends = match recalled {
            Recalled::Recovered => &self.known.ends,
            Recalled::Same => &self.ends,
        };
        let ends = check_ends(who, ends, &catalog.definitions);
        let ends = ends.map_err(|kind| Error::new("join", kind));
        let covered = match recalled {
            Recalled::Recovered => ends.and_then(|()| self.check_ground(ground)),
            Recalled::Same => ends,
        };
        Ok((recalled, covered.err()))
    }

    /// Puts the store in doubt, and reports, if this error is a reason. Answers the error.
    async fn doubts(&self, around: &Surroundings, settings: &NodeSettings, error: Error) -> Error {
        // The servers doubt for themselves.
        if around.store.owners().is_some() || !is_in_doubt(&error) {
            return error;
        }
        if let Err(untold) = self.tell(around, settings).await {
            tracing::warn!(error = %chain(&untold), "the store went back, and could not be told so");
        }
        error
    }

    async fn tell(&self, around: &Surroundings, settings: &NodeSettings) -> Result<()> {
        let standing = around.call("look at journals", around.store.standing()).await?;
        if standing.doubt.is_none() {
            // What was found before may have been mended meanwhile; what is found now is of this history.
            let error = match self.look(around).await {
                Ok((Recalled::Same, Some(error))) => error,
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let who = match settings.owner.as_str() {
                "" => format!("{} on {}", self.witness.who, settings.host),
                owner => format!("{} of {owner}", self.witness.who),
            };
            let Some(doubt) = Doubt::of(error.kind(), &who) else { return Ok(()) };
            let evidence = Evidence { id: standing.id, seen: self.seen(), ends: self.ends.clone() };
            around.call("doubt", around.store.doubt(&doubt, &evidence)).await?;
        }
        // The next try knows what was taken meanwhile, too: a recovery waits for that, as for a report that is missing.
        if !self.is_whole {
            return Ok(());
        }
        let journal = self.journal(around, settings).unwrap_or_default();
        around.call("report", around.store.report(&journal, Some(&self.known))).await
    }

    /// The journals that the store knows. This one joins again if the store has forgotten it, as it does when many have
    /// joined since: a recovery would not miss it.
    pub(super) async fn look_at_journals(
        &self,
        around: &Surroundings,
        settings: &NodeSettings,
    ) -> Result<Standing> {
        let standing = around.call("look at journals", around.store.standing()).await?;
        if let Some(own) = self.journal(around, settings)
            && standing.journals.iter().all(|known| known.id != own.id)
        {
            around.call("report", around.store.report(&own, None)).await?;
        }
        Ok(standing)
    }

    /// Refuses a store that was recovered without this node, and lies below its marks.
    fn check_ground(&self, ground: Ground) -> Result<()> {
        if ground.mark.get() >= self.known.mark {
            return Ok(());
        }
        let witness = format!(
            "a worker number's mark, as {} has seen it (the store was recovered without it),",
            self.witness.who
        );
        let (seen, found) = (self.known.mark, ground.mark.get());
        Err(Error::new("join", ErrorKind::StoreWentBack { witness, seen, found }))
    }
}

/// A journal that knows another store, or a newer state of this one, is a reason not to start. Answers
/// how the store stands to what the journal knows; none where it was not met, and is waited for: it is compared before
/// anything is minted.
pub(super) async fn refuse_other_store(
    around: &Surroundings,
    settings: &NodeSettings,
    memory: &Memory,
) -> Result<Option<Recalled>> {
    if memory.witness.store.is_empty() {
        return Ok(None);
    }
    match memory.recall(around, settings).await {
        Ok(recalled) => Ok(Some(recalled)),
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable { .. }) => Ok(None),
        Err(error) if settings.waits_for_recovery && is_in_doubt(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this says that an operator must recover the store.
pub(super) fn is_in_doubt(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreWentBack { .. })
}
