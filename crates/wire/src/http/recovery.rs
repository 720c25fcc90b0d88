//! What an operator asks and is told when a store is recovered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The body of `POST /v1/recovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryRequest {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Worker marks go at least to this time (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub mark: Option<String>,
    /// That time is meant, though it is more than a day ahead of the clock.
    pub far_ahead: bool,
    /// The next number of sources, at least, by their names.
    pub segments: BTreeMap<String, String>,
    /// The IDs of journals that are lost: what they alone knew may come again.
    pub without: Vec<String>,
    /// The secondary store that is meant, by the name that sources call it by; absent: the server's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<String>,
}

/// What is known of a store, and where it is or would be moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoveryBody {
    /// Why the store is in doubt. Absent when it is not: then there is nothing to recover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The journals that have joined the store, by their IDs.
    pub journals: Vec<JournalBody>,
    /// Why the store cannot be recovered yet: journals that have not said what they know. Absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaid: Option<String>,
    /// No worker number has an earlier mark afterwards: minting by worker numbers begins at this time.
    pub marks_at_least: String,
    /// The next number of each source afterwards, at least.
    pub segments: BTreeMap<String, String>,
    /// The sources that nobody defines, or that could not be defined: defined again as they were, they go on there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<String>,
    /// The store's count of writes afterwards, at least.
    pub writes_at_least: String,
    /// Whether it was done.
    pub done: bool,
    /// The store afterwards. Absent when nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<RecoveredBody>,
}

/// A journal that has joined a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JournalBody {
    /// Its own name, at random.
    pub id: String,
    /// The label of the process that has it; may be empty.
    pub owner: String,
    /// Where that runs.
    pub host: String,
    /// When it joined or reported last.
    pub last_seen: String,
    /// `reported`, `read here`, `left out`, or `MISSING`: nobody has said what it knows. Behind it stands `, known only
    /// from another journal` where the store has lost its join.
    pub state: String,
}

/// A store that was recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoveredBody {
    /// Its identity.
    pub id: String,
    /// Its count of writes.
    pub writes: String,
}
