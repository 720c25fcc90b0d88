//! The verbs on the history of a store, and on doubts about it.

use async_trait::async_trait;

use super::rows::{Access, Failure, Rows, RowsResult, THIS_PROCESS, VerbResult};
use super::run_verb::RunVerb;
use super::seen_by_handle::SeenByHandle;
use crate::error::label::Visible;
use crate::error::{Error, ErrorKind, Result, Verb};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, Evidence, History, JournalInfo, Known, Noted, OthersInDoubt, Recalled, Standing, Starts,
    StoreIdentity, StoredHistory, check_ends, recall,
};

/// Name of the note with the starts.
pub const STARTS: &str = "starts";
/// Name of the note with [`StoredHistory::recovered`].
const RECOVERED: &str = "recovered";
/// Name of the note with the reason for the doubt.
const DOUBT: &str = "doubt";
/// Name of the note with the journals that have joined.
const JOURNALS: &str = "journals";
/// Name of the note with their reports.
const KNOWN: &str = "known";

pub(super) async fn read_history<R: Rows>(rows: &mut R) -> RowsResult<R, StoredHistory> {
    let starts = read_starts(rows).await?;
    Ok(StoredHistory { starts, recovered: read(rows, RECOVERED).await?.unwrap_or_default() })
}

async fn read_starts<R: Rows>(rows: &mut R) -> RowsResult<R, Starts> {
    let Some((text, written)) = rows.note(STARTS).await? else { return Ok(Starts::default()) };
    Starts::read(&text, written).map_err(Failure::Damaged)
}

/// Writes a new start, and returns the history that begins with it. It takes effect when the store
/// gets that name. Nothing was kept of the earlier history from this step on, or from `lost_from`.
pub(super) async fn put_start<R: Rows>(
    rows: &mut R,
    lost_from: Option<u64>,
) -> RowsResult<R, History> {
    let history = History::of(&rows.identity().id).started();
    let history = history?;
    put_start_of(rows, &history, lost_from).await?;
    Ok(history)
}

/// Writes the start of a history. See [`put_start`].
async fn put_start_of<R: Rows>(
    rows: &mut R,
    history: &History,
    lost_from: Option<u64>,
) -> RowsResult<R, ()> {
    let starts = read_starts(rows).await?;
    let from = lost_from.or_else(|| rows.begins_alone());
    rows.put_note(STARTS, starts.with(&history.start, from)).await
}

async fn read<R: Rows, T: Noted>(rows: &mut R, name: &str) -> RowsResult<R, Option<T>> {
    let Some((text, _)) = rows.note(name).await? else { return Ok(None) };
    let read = T::from_note(&text);
    read.map(Some).map_err(|wrong| Failure::Damaged(format!("note {name} cannot be read: {wrong}")))
}

fn text<E>(value: &impl Noted) -> Result<String, Failure<E>> {
    value.to_note().map_err(Failure::Damaged)
}

/// Fails for every caller, if this namespace is in doubt.
pub(super) async fn refuse_doubt<R: Rows>(rows: &mut R) -> RowsResult<R, ()> {
    // The doubt may be about another namespace with the same identity.
    if !History::says_doubt(&rows.identity().id) {
        return Ok(());
    }
    match read::<R, Doubt>(rows, DOUBT).await? {
        Some(doubt) => Err(Failure::from(doubt.into_error())),
        None => Ok(()),
    }
}

pub(super) async fn is_in_doubt<R: Rows>(rows: &mut R) -> RowsResult<R, bool> {
    Ok(History::says_doubt(&rows.identity().id) && rows.note(DOUBT).await?.is_some())
}

/// Rejects a plan based on another state: later reports would be lost when the doubt ends.
pub(super) async fn check_plan<R: Rows>(rows: &mut R, planned_on: &Standing) -> RowsResult<R, ()> {
    if standing(rows).await?.says_the_same(planned_on) {
        return Ok(());
    }
    Err(Failure::from(Error::unavailable(
        "store changed since this recovery was planned; look again",
    )))
}

/// Begins the history after an operator's move. A recovery began at the count `lost_from`: a process
/// that saw as many writes or more saw writes that are missing, and may continue if it lies below
/// the move. Without a recovery nothing was lost, and a process that saw more has still to find out
/// that the store lacks it.
pub(super) async fn put_moved<R: Rows>(
    rows: &mut R,
    history: &History,
    lost_from: Option<u64>,
) -> RowsResult<R, ()> {
    put_start_of(rows, history, lost_from).await?;
    if lost_from.is_some() {
        rows.put_note(RECOVERED, text(&history.recoveries)?).await?;
    }
    Ok(())
}

/// Ends the doubt in an operator's step. Returns whether another namespace of the store is still in
/// doubt.
///
/// A step that accepts another server puts all other namespaces in doubt: the move has applied
/// nothing that their processes know, and the server may lack some of it.
pub(super) async fn end_doubt<R: Rows>(rows: &mut R, forward: &FastForward) -> RowsResult<R, bool> {
    let mut standing = standing(rows).await?;
    standing.end(forward);
    if rows.check_server().is_err() {
        let doubt = Doubt::of_other_server(rows.identity().writes);
        rows.put_note_everywhere(DOUBT, text(&doubt)?).await?;
    }
    rows.remove_note(DOUBT).await?;
    rows.remove_note(KNOWN).await?;
    rows.put_note(JOURNALS, text(&standing.journals)?).await?;
    Ok(!rows.other_namespaces_with(DOUBT, 1).await?.is_empty())
}

async fn standing<R: Rows>(rows: &mut R) -> RowsResult<R, Standing> {
    Ok(Standing {
        id: rows.identity().id.clone(),
        doubt: read(rows, DOUBT).await?,
        journals: read(rows, JOURNALS).await?.unwrap_or_default(),
        known: read(rows, KNOWN).await?.unwrap_or_default(),
        others_in_doubt: OthersInDoubt::default(),
    })
}

/// Returns the other namespaces of the store that are in doubt.
async fn others_in_doubt<R: Rows>(rows: &mut R) -> RowsResult<R, OthersInDoubt> {
    // The identity is that of all of them.
    if !History::says_doubt(&rows.identity().id) {
        return Ok(OthersInDoubt::default());
    }
    let names = rows.other_namespaces_with(DOUBT, OthersInDoubt::NAMED_MAX + 1).await?;
    Ok(OthersInDoubt::of(names))
}

/// Compares the store with the state that a caller has seen, and the state that this handle has
/// seen.
pub(super) struct RecallVerb<'a> {
    pub(super) who: &'a str,
    pub(super) seen: &'a StoreIdentity,
    pub(super) by_handle: Option<&'a SeenByHandle>,
}

#[async_trait]
impl RunVerb for RecallVerb<'_> {
    /// The identity is to be remembered; `None` for a replica that took over.
    type Output = (Recalled, Option<StoreIdentity>);
    const ACCESS: Access = Access::Read;
    const IN_DOUBT: bool = true;

    fn verb(&self) -> Verb {
        Verb::Recall
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output> {
        let doubted = refuse_doubt(rows).await;
        if doubted.is_err() {
            // The reports were made to another server: it has to be accepted first.
            rows.check_server()?;
        }
        doubted?;
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

/// Checks the server where the store lacks something: another server of it may have the missing
/// state. An older state on a replica is not a store rollback, since the address may lead back to
/// the first server.
pub(super) fn check_server_of<R: Rows>(rows: &R, recalled: &Result<Recalled>) -> Result<()> {
    let is_older = match recalled {
        Ok(recalled) => *recalled == Recalled::Recovered,
        Err(error) => is_rolled_back(error),
    };
    if is_older { rows.check_server() } else { Ok(()) }
}

fn is_rolled_back(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreRolledBack { .. })
}

pub(super) struct DoubtVerb<'a> {
    pub(super) doubt: &'a Doubt,
    pub(super) evidence: &'a Evidence,
    pub(super) by_handle: Option<&'a SeenByHandle>,
}

impl DoubtVerb<'_> {
    /// Returns whether the store, as this step finds it, lacks the seen state: another store may
    /// have taken its place since.
    async fn is_shown<R: Rows>(&self, rows: &mut R) -> RowsResult<R, bool> {
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
    const IN_DOUBT: bool = true;

    fn verb(&self) -> Verb {
        Verb::Doubt
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        if rows.identity().id != self.evidence.id || rows.note(DOUBT).await?.is_some() {
            return Ok(((), false));
        }
        if !self.is_shown(rows).await? {
            return Ok(((), false));
        }
        let history = put_doubt(rows, self.doubt, self.by_handle).await?;
        rows.name(history.to_string())?;
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
    let mut standing = Standing { doubt: None, ..standing(rows).await? };
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
pub(super) struct AcceptServerVerb<'a> {
    pub(super) doubt: &'a Doubt,
    pub(super) evidence: &'a Evidence,
    pub(super) by_handle: Option<&'a SeenByHandle>,
}

#[async_trait]
impl RunVerb for AcceptServerVerb<'_> {
    type Output = ();
    const ACCESS: Access = Access::Forward;
    const IN_DOUBT: bool = true;

    fn verb(&self) -> Verb {
        Verb::Doubt
    }

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

pub(super) struct ReportVerb<'a> {
    pub(super) journal: &'a JournalInfo,
    pub(super) known: Option<&'a Known>,
}

#[async_trait]
impl RunVerb for ReportVerb<'_> {
    type Output = ();
    const IN_DOUBT: bool = true;

    fn verb(&self) -> Verb {
        Verb::Report
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        let before = standing(rows).await?;
        let mut after = before.clone();
        after.record_report(self.journal, self.known);
        if after.known != before.known {
            rows.put_note(KNOWN, text(&after.known)?).await?;
        }
        rows.put_note(JOURNALS, text(&after.journals)?).await?;
        Ok(((), true))
    }
}

pub(super) struct StandingVerb;

#[async_trait]
impl RunVerb for StandingVerb {
    type Output = Standing;
    const ACCESS: Access = Access::Read;
    const IN_DOUBT: bool = true;

    fn verb(&self) -> Verb {
        Verb::Standing
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Standing> {
        let others_in_doubt = others_in_doubt(rows).await?;
        Ok((Standing { others_in_doubt, ..standing(rows).await? }, false))
    }
}
