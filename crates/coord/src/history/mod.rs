//! The history of a store: what tells an older state of it, and another line of its writes, from the one that was seen.
//!
//! A count of writes alone forgets: a store that was put back counts on, and in the end it has counted further than
//! whoever remembers the lost writes. So a random *start* is left in the store, with the count at which it was left: by
//! every process that begins to write to it, by the step that puts it in doubt, and by a recovery. Whoever remembers the
//! newest start and a count knows for ever whether the store still has all of that: it has the start, and no other
//! between it and the count.
//!
//! Identity, number of recoveries, newest start, and whether the store is in doubt are one text, which every step
//! compares as a whole: `STORE.RECOVERIES.START`, with `!` behind it while the store is in doubt. Stores of versions
//! before have the identity alone.

mod evidence;
mod journals;
mod starts;
#[cfg(test)]
mod tests;

use std::fmt;

pub use evidence::Evidence;
pub(crate) use evidence::check_ends;
pub use journals::{JOURNALS_MAX, JournalInfo, Known, Standing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
pub use starts::{STARTS_MAX, Starts};

use crate::error::{ErrorKind, Result};
use crate::random;
use crate::store::{FastForward, StoreIdentity};

/// The parts of [`StoreIdentity::id`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Which store it is.
    pub store: String,
    /// How often an operator has recovered it.
    pub recoveries: u64,
    /// The newest start; empty before the first.
    pub start: String,
    /// Somebody has seen more than this store has: nobody mints from it until it is recovered.
    pub in_doubt: bool,
}

impl History {
    /// The parts of an identity.
    #[must_use]
    pub fn of(id: &str) -> Self {
        let (text, in_doubt) = id.strip_suffix('!').map_or((id, false), |text| (text, true));
        let mut parts = text.splitn(3, '.');
        let store = parts.next().unwrap_or_default().to_owned();
        let recoveries = parts.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        let start = parts.next().unwrap_or_default().to_owned();
        Self { store, recoveries, start, in_doubt }
    }

    /// Whether an identity says that its store is in doubt.
    #[must_use]
    pub fn says_doubt(id: &str) -> bool {
        id.ends_with('!')
    }

    /// With another start, at random.
    ///
    /// # Errors
    /// `Unavailable` without randomness.
    pub fn started(self) -> Result<Self> {
        Ok(Self { start: format!("{:016x}", random::number()?), ..self })
    }

    /// How often the store was recovered, this time and those that it has lost included.
    #[must_use]
    pub fn recoveries_after(&self, forward: &FastForward) -> u64 {
        self.recoveries.max(forward.recoveries_at_least).saturating_add(1)
    }

    /// After an operator has moved the store forward; `new_id` is what it is called if it is to be another.
    ///
    /// # Errors
    /// `Unavailable` without randomness.
    pub fn recovered(self, forward: &FastForward, new_id: &str) -> Result<Self> {
        let recoveries = self.recoveries_after(forward);
        let store = if forward.new_identity { new_id.to_owned() } else { self.store };
        Self { store, recoveries, start: String::new(), in_doubt: false }.started()
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

/// What a store keeps of its history as a text that a person can read.
pub trait Noted: Sized {
    /// Reads the text.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_note(text: &str) -> Result<Self, String>;

    /// The text.
    ///
    /// # Errors
    /// What has no text.
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

/// How a store stands to what was seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// It has all of that.
    Same,
    /// It lacks some, and an operator has recovered it since: whoever saw more may go on if it was moved past all that
    /// they know.
    Recovered,
}

/// Why a store is in doubt, as it is kept there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// What shows it, and whose it is.
    pub witness: String,
    /// What was seen.
    pub seen: u64,
    /// What there was.
    pub found: u64,
}

impl Doubt {
    /// What an error says, if it says that.
    #[must_use]
    pub fn of(kind: &ErrorKind, who: &str) -> Option<Self> {
        let ErrorKind::StoreWentBack { witness, seen, found } = kind else { return None };
        let witness = format!("{witness} (said by {who})");
        Some(Self { witness, seen: *seen, found: *found })
    }

    /// The refusal for everybody.
    #[must_use]
    pub fn refusal(self) -> ErrorKind {
        let Self { witness, seen, found } = self;
        ErrorKind::StoreWentBack { witness, seen, found }
    }
}

/// Holds a store with these starts against what `who` has seen of it.
///
/// # Errors
/// `OtherStore`, and `StoreWentBack` unless it was recovered since.
pub fn recall(
    who: &str,
    seen: &StoreIdentity,
    found: &StoreIdentity,
    starts: &Starts,
) -> Result<Recalled, ErrorKind> {
    let (known, now) = (History::of(&seen.id), History::of(&found.id));
    if !known.store.is_empty() && known.store != now.store {
        let (expected, found) = (known.store, now.store);
        return Err(ErrorKind::OtherStore { witness: who.to_owned(), expected, found });
    }
    let has_all = starts.have(&known.start, seen.writes);
    if has_all && found.writes >= seen.writes {
        return Ok(Recalled::Same);
    }
    if now.recoveries > known.recoveries {
        return Ok(Recalled::Recovered);
    }
    let witness = if has_all {
        format!("the number of writes that {who} has seen")
    } else {
        format!(
            "the history that {who} has seen, which others have written anew: its number of writes"
        )
    };
    Err(ErrorKind::StoreWentBack { witness, seen: seen.writes, found: found.writes })
}
