//! The history of a store, and doubts about it, as notes among its rows.

use super::rows::{Failure, Rows, RowsResult, THIS_PROCESS};
use crate::error::{Error, ErrorKind, Result};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, History, Noted, OthersInDoubt, Recalled, Standing, Starts, StoredHistory,
};
use crate::platform::random;

/// Name of the note with the starts.
pub const STARTS: &str = "starts";
/// Name of the note with [`StoredHistory::recovered`].
const RECOVERED: &str = "recovered";
/// Name of the note with the reason for the doubt.
pub(super) const DOUBT: &str = "doubt";
/// Name of the note with the journals that have joined.
pub(super) const JOURNALS: &str = "journals";
/// Name of the note with their reports.
pub(super) const KNOWN: &str = "known";

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
    let start = random::number()?;
    let history = History::of(&rows.identity().id).started(start);
    put_start_of(rows, &history, lost_from).await?;
    Ok(history)
}

/// Writes the start of a history. See [`put_start`]. Among rows of different ages, nothing of any
/// earlier history counts as kept.
async fn put_start_of<R: Rows>(
    rows: &mut R,
    history: &History,
    lost_from: Option<u64>,
) -> RowsResult<R, ()> {
    let (starts, from) = match rows.check_rows() {
        Ok(()) => (read_starts(rows).await?, lost_from.or_else(|| rows.begins_alone())),
        // A process that has seen nothing lacks nothing.
        Err(_) => (Starts::default(), Some(1)),
    };
    rows.put_note(STARTS, starts.with(&history.start, from)).await
}

async fn read<R: Rows, T: Noted>(rows: &mut R, name: &str) -> RowsResult<R, Option<T>> {
    let Some((text, _)) = rows.note(name).await? else { return Ok(None) };
    let read = T::from_note(&text);
    read.map(Some).map_err(|wrong| Failure::Damaged(format!("note {name} cannot be read: {wrong}")))
}

pub(super) fn text<E>(value: &impl Noted) -> Result<String, Failure<E>> {
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
/// A step that accepts another server, or rows of different ages, puts all other namespaces in
/// doubt: the move has applied nothing that their processes know, and the store may lack some of it.
pub(super) async fn end_doubt<R: Rows>(rows: &mut R, forward: &FastForward) -> RowsResult<R, bool> {
    let mut standing = standing(rows).await?;
    standing.end(forward);
    let other_server = rows.check_server().err();
    let other_server = other_server.map(|_| Doubt::of_other_server(rows.identity().writes));
    let old_rows = rows.check_rows().err();
    let old_rows = old_rows.and_then(|error| Doubt::of(error.kind(), THIS_PROCESS));
    if let Some(doubt) = other_server.or(old_rows) {
        rows.put_note_everywhere(DOUBT, text(&doubt)?).await?;
    }
    rows.remove_note(DOUBT).await?;
    rows.remove_note(KNOWN).await?;
    rows.put_note(JOURNALS, text(&standing.journals)?).await?;
    Ok(!rows.other_namespaces_with(DOUBT, 1).await?.is_empty())
}

pub(super) async fn standing<R: Rows>(rows: &mut R) -> RowsResult<R, Standing> {
    // Among rows of different ages, the note may be an old one.
    let in_doubt = History::says_doubt(&rows.identity().id);
    Ok(Standing {
        id: rows.identity().id.clone(),
        doubt: if in_doubt { read(rows, DOUBT).await? } else { None },
        journals: read(rows, JOURNALS).await?.unwrap_or_default(),
        known: read(rows, KNOWN).await?.unwrap_or_default(),
        others_in_doubt: OthersInDoubt::default(),
    })
}

/// Returns the other namespaces of the store that are in doubt.
pub(super) async fn others_in_doubt<R: Rows>(rows: &mut R) -> RowsResult<R, OthersInDoubt> {
    // The identity is that of all of them.
    if !History::says_doubt(&rows.identity().id) {
        return Ok(OthersInDoubt::default());
    }
    let names = rows.other_namespaces_with(DOUBT, OthersInDoubt::NAMED_MAX + 1).await?;
    Ok(OthersInDoubt::of(names))
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

pub(super) fn is_rolled_back(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreRolledBack { .. })
}
