//! The verbs on the history of a store: comparison, doubts and reports.

use async_trait::async_trait;

use super::BackendStore;
use super::history::{
    self, DOUBT, JOURNALS, KNOWN, check_server_of, is_in_doubt, is_rolled_back, others_in_doubt,
    put_start, read_history, refuse_doubt, text,
};
use super::rows::{Access, Backend, Failure, Rows, RowsResult, THIS_PROCESS, VerbResult};
use super::run_verb::{RunVerb, steps};
use super::seen_by_handle::SeenByHandle;
use crate::error::label::Visible;
use crate::error::{Error, Result, Verb};
use crate::model::history::{
    Doubt, Evidence, History, JournalInfo, Known, Proof, Recalled, Standing, StoreIdentity,
    check_ends, recall,
};

/// Compares the store with the state that a caller has seen, and the state that this handle has
/// seen.
struct RecallVerb<'a> {
    who: &'a str,
    seen: &'a StoreIdentity,
    by_handle: Option<&'a SeenByHandle>,
}

#[async_trait]
impl RunVerb for RecallVerb<'_> {
    /// The identity is to be remembered; `None` for a replica that took over.
    type Output = (Recalled, Option<StoreIdentity>);
    const VERB: Verb = Verb::Recall;
    const IN_DOUBT: bool = true;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output> {
        let doubted = refuse_doubt(rows).await;
        if doubted.is_err() {
            // The reports were made to another server: it has to be accepted first.
            rows.check_server()?;
        }
        doubted?;
        rows.check_rows()?;
        let past = read_history(rows).await?;
        let found = rows.identity().clone();
        let recalled = recall(self.who, self.seen, &found, &past);
        check_server_of(rows, &recalled)?;
        let mut recalled = recalled?;
        if let Some(seen) = self.by_handle {
            let by_handle = seen.recall(&found, &past);
            check_server_of(rows, &by_handle)?;
            if by_handle? == Recalled::Recovered {
                recalled = Recalled::Recovered;
            }
        }
        let kept = rows.check_server().is_ok().then_some(found);
        Ok(((recalled, kept), false))
    }
}

struct DoubtVerb<'a> {
    doubt: &'a Doubt,
    evidence: &'a Evidence,
    by_handle: Option<&'a SeenByHandle>,
}

impl DoubtVerb<'_> {
    /// Returns whether the store, as this step finds it, lacks the seen state: another store may
    /// have taken its place since.
    async fn is_shown<R: Rows>(&self, rows: &mut R) -> RowsResult<R, bool> {
        if rows.check_rows().is_err() {
            return Ok(true);
        }
        let past = read_history(rows).await?;
        let found = rows.identity().clone();
        let by_handle = self.by_handle.map(|seen| seen.recall(&found, &past));
        let by_evidence = recall(THIS_PROCESS, &self.evidence.seen, &found, &past);
        for recalled in by_handle.into_iter().chain([by_evidence]) {
            match recalled {
                Ok(Recalled::Same) => {}
                Err(error) if is_rolled_back(&error) => return Ok(true),
                Ok(Recalled::Recovered) | Err(_) => return Ok(false),
            }
        }
        if self.evidence.proof == Proof::Reply {
            return Ok(true);
        }
        if self.evidence.ends.is_empty() {
            return Ok(false);
        }
        let stored = rows.definitions().await?;
        Ok(check_ends(THIS_PROCESS, &self.evidence.ends, &stored).is_err())
    }
}

#[async_trait]
impl RunVerb for DoubtVerb<'_> {
    type Output = ();
    const VERB: Verb = Verb::Doubt;
    const IN_DOUBT: bool = true;
    const LEAVES_START: bool = true;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        if rows.identity().id != self.evidence.id || is_in_doubt(rows).await? {
            return Ok(((), false));
        }
        if !self.is_shown(rows).await? {
            return Ok(((), false));
        }
        let history = put_doubt(rows, self.doubt, self.by_handle).await?;
        let (id, writes) = (history.to_string(), rows.identity().writes);
        match rows.check_rows() {
            Ok(()) => rows.name(id)?,
            Err(_) => rows.accept(StoreIdentity { id, writes }).await?,
        }
        Ok(((), true))
    }
}

/// Writes a doubt with a new start, and voids all earlier reports. Returns the history that takes
/// effect when the store gets its name.
async fn put_doubt<R: Rows>(
    rows: &mut R,
    doubt: &Doubt,
    by_handle: Option<&SeenByHandle>,
) -> RowsResult<R, History> {
    let evidence = Visible(&doubt.evidence).to_string();
    let doubt = Doubt { evidence, ..doubt.clone() };
    let mut standing = Standing { doubt: None, ..history::standing(rows).await? };
    standing.begin(&doubt);
    rows.remove_note(KNOWN).await?;
    rows.put_note(JOURNALS, text(&standing.journals)?).await?;
    rows.put_note_everywhere(DOUBT, text(&doubt)?).await?;
    // During the doubt, reports may raise the count past the lost state: with a new start, no
    // earlier state matches.
    let history = put_start(rows, by_handle.and_then(SeenByHandle::lost_from)).await?;
    Ok(History { in_doubt: true, ..history })
}

/// Accepts the server that has the rows now in the place of the one that wrote them, and puts the
/// store in doubt in the same step: only reports and a recovery get past it.
struct AcceptServerVerb<'a> {
    doubt: &'a Doubt,
    evidence: &'a Evidence,
    by_handle: Option<&'a SeenByHandle>,
}

#[async_trait]
impl RunVerb for AcceptServerVerb<'_> {
    type Output = ();
    const VERB: Verb = Verb::Doubt;
    const ACCESS: Access = Access::Forward;
    const IN_DOUBT: bool = true;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        if rows.identity().id != self.evidence.id || rows.check_server().is_ok() {
            return Ok(((), false));
        }
        // The former server may have had a recovery that this one lacks, so the reports here may be
        // older than what their journals know now. This step voids only its own namespace's.
        let others = others_in_doubt(rows).await?;
        if !others.is_empty() {
            return Err(Failure::from(Error::conflict(format!(
                "other namespaces of this store were in doubt when its server changed ({others}); \
                 stop all servers, and move these and this one forward (snowmint worker \
                 fast-forward --namespace NAME)"
            ))));
        }
        let writes = rows.identity().writes;
        let doubt = Doubt { seen: writes, found: writes, ..self.doubt.clone() };
        let history = put_doubt(rows, &doubt, self.by_handle).await?;
        rows.accept(StoreIdentity { id: history.to_string(), writes }).await?;
        Ok(((), true))
    }
}

async fn report<R: Rows>(
    rows: &mut R,
    journal: &JournalInfo,
    known: Option<&Known>,
) -> VerbResult<R, ()> {
    let before = history::standing(rows).await?;
    if before.doubt.is_none() {
        rows.check_rows()?;
    }
    let mut after = before.clone();
    after.record_report(journal, known);
    if after.known != before.known {
        rows.put_note(KNOWN, text(&after.known)?).await?;
    }
    rows.put_note(JOURNALS, text(&after.journals)?).await?;
    Ok(((), true))
}

async fn standing<R: Rows>(rows: &mut R) -> VerbResult<R, Standing> {
    let others_in_doubt = others_in_doubt(rows).await?;
    Ok((Standing { others_in_doubt, ..history::standing(rows).await? }, false))
}

steps! {
    Report(IN_DOUBT): fn report(journal: &'a JournalInfo, known: Option<&'a Known>) -> ();
    Standing(IN_DOUBT): fn standing() -> Standing;
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.backend.catch_up().await.map_err(|failure| self.error(Verb::Recall, failure))?;
        let by_handle = self.lineage.by_handle();
        let recalls = RecallVerb { who, seen, by_handle: by_handle.as_ref() };
        let (recalled, found) = self.output_of(recalls).await?;
        // After a recovery the caller ensures that nothing of the lost state is used.
        let access = match recalled {
            Recalled::Recovered => Access::Forward,
            Recalled::Same => Access::Read,
        };
        if let Some(found) = found {
            self.lineage.saw(found, access);
        }
        Ok(recalled)
    }

    pub(super) async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        let by_handle = self.lineage.by_handle();
        let by_handle = by_handle.as_ref();
        if evidence.proof == Proof::OtherServer {
            return self.output_of(AcceptServerVerb { doubt, evidence, by_handle }).await;
        }
        self.output_of(DoubtVerb { doubt, evidence, by_handle }).await
    }
}
