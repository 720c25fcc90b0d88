//! History of a store: it distinguishes the state that was seen from an older state and from
//! another line of writes.
//!
//! A count of writes is not enough: a store that was rolled back counts on, and finally exceeds the
//! count that a process with the lost writes remembers. Therefore a random *start* is left in the
//! store, with the count at that step, by every process that begins to write, by the step that puts
//! the store in doubt, and by a recovery. A process that was out of touch with the store leaves
//! another, since it may have slept through a restore. A process that remembers the newest start and a count can always check whether
//! the store still has all of those writes. If it does, it has the start, and no other start between
//! it and the count.
//!
//! Identity, number of recoveries, newest start, and the doubt are one text, which every step
//! compares as a whole: `STORE.RECOVERIES.START`, followed by `!` while the store is in doubt.
//! Stores of earlier versions have the identity alone.

mod evidence;
mod journals;
mod others;
mod starts;
#[cfg(test)]
mod tests;

use std::fmt;

pub use evidence::{Evidence, Proof};
pub(crate) use evidence::{RecalledBy, check_ends, check_recovered};
pub use journals::{JOURNALS_MAX, JournalInfo, Known, Standing};
pub use others::OthersInDoubt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
pub use starts::{STARTS_MAX, Starts};

use crate::error::{Error, ErrorKind, Result};

/// Identity of a store, and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Random identifier of the store (of the namespace, where namespaces may live on separate
    /// servers), renewed when an operator demands it. Includes the store's [`History`].
    pub id: String,
    /// Count of durable changes, raised in the same atomic step, and by nothing else in this
    /// namespace. A process that remembers a higher count knows that the store was restored.
    pub writes: u64,
}

impl StoreIdentity {
    /// Returns the store's own identifier, without its history.
    #[must_use]
    pub fn store(&self) -> String {
        History::of(&self.id).store
    }
}

/// Parts of [`StoreIdentity::id`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Identity of the store.
    pub store: String,
    /// Number of recoveries by an operator.
    pub recoveries: u64,
    /// Newest start; empty before the first.
    pub start: String,
    /// Whether the store is in doubt: a member saw more than the store has, and nothing is minted
    /// until its recovery.
    pub in_doubt: bool,
}

impl History {
    /// Splits an identity into its parts.
    #[must_use]
    pub fn of(id: &str) -> Self {
        let (text, in_doubt) = id.strip_suffix('!').map_or((id, false), |text| (text, true));
        let mut parts = text.splitn(3, '.');
        let store = parts.next().unwrap_or_default().to_owned();
        let recoveries = parts.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let start = parts.next().unwrap_or_default().to_owned();
        Self { store, recoveries, start, in_doubt }
    }

    /// Returns whether an identity marks its store as in doubt.
    #[must_use]
    pub fn says_doubt(id: &str) -> bool {
        id.ends_with('!')
    }

    /// Returns the history with a new start, a random number.
    #[must_use]
    pub fn started(self, start: u64) -> Self {
        Self { start: format!("{start:016x}"), ..self }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, recoveries, start, in_doubt } = self;
        f.write_str(store)?;
        if !start.is_empty() || *recoveries > 0 {
            write!(f, ".{recoveries}.{start}")?;
        }
        f.write_str(if *in_doubt { "!" } else { "" })
    }
}

/// Part of a store's history, stored as readable text.
pub trait Noted: Sized {
    /// Reads the text.
    ///
    /// # Errors
    /// The defect of the text.
    fn from_note(text: &str) -> Result<Self, String>;

    /// Returns the text.
    ///
    /// # Errors
    /// The part that has no text form.
    fn to_note(&self) -> Result<String, String>;
}

impl<T: Serialize + DeserializeOwned> Noted for T {
    fn from_note(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn to_note(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }
}

/// Comparison of a store with what a process saw of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// The store has all of it.
    Same,
    /// The store lacks some of it, and an operator has recovered it since. A process that saw more
    /// may continue if the store was moved past everything that it knows.
    Recovered,
}

/// History of a store, as stored: the part that its identity does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredHistory {
    /// Starts of its history.
    pub starts: Starts,
    /// [Number of recoveries](History::recoveries) after the last one of this namespace; 0 before
    /// the first. Namespaces may share a history, and the recovery of another one collects nothing
    /// of what the processes of this one know. Earlier versions did not keep it.
    pub recovered: u64,
}

/// Reason why a store is in doubt, as stored there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Evidence, and the process that reported it; stored as `witness`.
    #[serde(rename = "witness")]
    pub evidence: String,
    /// Value seen before.
    pub seen: u64,
    /// Value found.
    pub found: u64,
}

impl Doubt {
    /// Returns the doubt that an error reports, or `None` for other errors.
    #[must_use]
    pub fn of(kind: &ErrorKind, who: &str) -> Option<Self> {
        let ErrorKind::StoreRolledBack { evidence, seen, found } = kind else { return None };
        let evidence = format!("{evidence} (reported by {who})");
        Some(Self { evidence, seen: *seen, found: *found })
    }

    /// Returns the doubt about a store with this count of writes that another server has taken
    /// over, by an operator's word.
    #[must_use]
    pub fn of_other_server(writes: u64) -> Self {
        let evidence =
            "write count of a server that another has replaced (accepted by an operator)";
        Self { evidence: evidence.into(), seen: writes, found: writes }
    }

    /// Returns the error for all callers.
    #[must_use]
    pub fn into_error(self) -> Error {
        Error::store_rolled_back(self.evidence, self.seen, self.found)
    }
}

/// Compares a store with this past to the state that `who` has seen.
///
/// # Errors
/// `StoreMismatch` for another identity; `StoreRolledBack` unless the namespace was recovered
/// since.
pub fn recall(
    who: &str,
    seen: &StoreIdentity,
    found: &StoreIdentity,
    past: &StoredHistory,
) -> Result<Recalled> {
    let (known, now) = (History::of(&seen.id), History::of(&found.id));
    if !known.store.is_empty() && known.store != now.store {
        return Err(Error::store_mismatch(format!(
            "store is {}, but {who} belongs to {}; to use it in its place, move it forward \
             (snowmint worker fast-forward)",
            now.store, known.store
        )));
    }
    let has_all = past.starts.have(&known.start, seen.writes);
    if has_all && found.writes >= seen.writes {
        return Ok(Recalled::Same);
    }
    if past.recovered > known.recoveries {
        return Ok(Recalled::Recovered);
    }
    let evidence = if has_all {
        format!("write count seen by {who}")
    } else {
        format!("write count seen by {who}, of writes that the store has lost")
    };
    Err(Error::store_rolled_back(evidence, seen.writes, found.writes))
}
