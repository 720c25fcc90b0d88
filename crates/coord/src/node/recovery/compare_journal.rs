//! Comparison of a store with a journal, as the next start on the journal makes it.

use snowmint_core::UnixMillis;

use super::days_too_far_ahead;
use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::journal::Record;
use crate::model::history::{Recalled, RecalledBy, StoreIdentity, check_ends, check_recovered};
use crate::store::Store;

/// Compares a store with the knowledge of a journal, and changes nothing. `who` names the journal,
/// and `is_sure` says whether the file is surely as its process left it. The second error is for
/// rows of a store that lie below what the journal knows.
///
/// # Errors
/// As [`Store::recall`]; the store's error when it cannot be read.
pub async fn compare_journal(
    store: &dyn Store,
    (who, record): (&str, &Record),
    is_sure: bool,
    now: UnixMillis,
) -> Result<(Recalled, Option<Error>)> {
    let seen = StoreIdentity { id: record.store.clone(), writes: record.writes };
    let recalled = store.recall(who, &seen).await?;
    let is_program = store.owner_client().is_some();
    // The servers of a store that was not recovered find out for themselves what it lacks. Numbers
    // that an old copy knows may have been given back since.
    if recalled == Recalled::Same && (is_program || !is_sure) {
        return Ok((recalled, None));
    }
    let stored = store.list().await?.definitions;
    if recalled == Recalled::Same {
        let ends = record.segments.iter().map(|(name, end)| (name.clone(), end.get())).collect();
        return Ok((recalled, check_ends(who, &ends, &stored).err()));
    }
    let known = record.known();
    let far_ahead = days_too_far_ahead(UnixMillis::new(known.mark), now).is_some();
    let mark = if is_program { Mark::MAX } else { store.ground().await?.mark };
    let is_left_out = mark.get() < known.mark && {
        let journals = store.standing().await?.journals;
        journals.iter().any(|own| own.id == record.id && own.has_reported_far(known.mark))
    };
    let mark = if is_left_out { Mark::MAX } else { mark };
    let by = RecalledBy { who, secondary: None, is_program, far_ahead, has_journal: true };
    Ok((recalled, check_recovered(&by, &known, &stored, mark).err()))
}
