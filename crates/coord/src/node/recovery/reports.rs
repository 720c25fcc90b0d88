//! The reports of a store in doubt that count: those that their processes repeat now.
//!
//! A restore can bring back an earlier doubt with its reports, after that doubt was recovered. The
//! journals know more since. So a report in the store proves nothing unless its process runs, and
//! reports again while a recovery looks.

use crate::error::{Error, ErrorKind, Result};
use crate::model::history::{History, JournalInfo, Standing, StoreIdentity};
use crate::platform::timer::Timer;
use crate::store::Store;

/// Longest wait for reports to be repeated: five times the longest pause of a process that waits
/// for a recovery.
const REPEAT_MS_MAX: u64 = 10_000;
/// Interval of looking for them.
const POLL_MS: u64 = 200;

/// State of a store, and which of its reports count.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// State as the store has it; `None` without a store.
    pub(super) stored: Option<Standing>,
    /// The same, without the reports that do not count.
    pub(super) counted: Standing,
    /// Whether the store's servers may run.
    pub(super) runs: bool,
}

impl Reports {
    /// Waits until each process that has reported reports again, or for ten seconds: then those
    /// that did not count as missing. Returns at once where the store is not in doubt.
    ///
    /// # Errors
    /// `StoreMismatch` where another server has the store than the one that wrote it: its reports
    /// cannot be repeated. Those of [`Store::standing`].
    pub async fn repeated(store: &dyn Store, timer: &dyn Timer) -> Result<Self> {
        let mut before = store.standing().await?;
        check_server(store, &before).await?;
        let begun = timer.elapsed();
        loop {
            let after = store.standing().await?;
            let is_late = timer.elapsed().since(begun) >= REPEAT_MS_MAX;
            let is_other = is_other(&before, &after);
            let reports = Self::between(&before, after.clone());
            if is_late || reports.counted.missing().count() == after.missing().count() {
                return Ok(reports);
            }
            if is_other {
                before = after;
            }
            timer.sleep_ms(POLL_MS).await;
        }
    }

    /// Returns the reports of a store whose servers are stopped: none counts.
    ///
    /// # Errors
    /// Those of [`Store::standing`].
    pub async fn of_stopped(store: &dyn Store) -> Result<Self> {
        let stored = store.standing().await?;
        Ok(Self { runs: false, ..Self::between(&stored, stored.clone()) })
    }

    /// Returns the reports that were made between two looks at a store, the later one included.
    #[must_use]
    pub fn between(before: &Standing, after: Standing) -> Self {
        let mut counted = after.clone();
        let is_other = is_other(before, &after);
        for journal in &mut counted.journals {
            journal.has_reported &= !is_other && is_repeated(before, journal);
        }
        Self { stored: Some(after), counted, runs: true }
    }

    /// Returns the state of the store, without the reports that do not count.
    #[must_use]
    pub const fn counted(&self) -> &Standing {
        &self.counted
    }
}

/// Returns whether a journal has reported since `before`. A clock may stand still, so reports are
/// counted. A process of an earlier version does not count, and drops the counts of all journals
/// when it reports: then the time shows its report, and no other journal's.
fn is_repeated(before: &Standing, report: &JournalInfo) -> bool {
    let mut journals = before.journals.iter();
    let known = journals.find(|known| known.has_reported && known.id == report.id);
    known.is_none_or(|known| match report.reports {
        0 => report.seen_at_ms != known.seen_at_ms,
        reports => reports > known.reports,
    })
}

/// Returns whether the store was exchanged or restored between two looks.
fn is_other(before: &Standing, after: &Standing) -> bool {
    before.doubt != after.doubt || History::of(&before.id).store != History::of(&after.id).store
}

/// Rejects another server than the one that wrote the store, if the store is in doubt: a server
/// that took over is accepted before its reports count. Any other result of the comparison is no
/// concern of a recovery.
async fn check_server(store: &dyn Store, standing: &Standing) -> Result<()> {
    if standing.doubt.is_none() {
        return Ok(());
    }
    let seen = StoreIdentity { id: standing.id.clone(), writes: 0 };
    match store.recall("this recovery", &seen).await {
        Err(error) if is_other_server(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_other_server(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreMismatch)
}
