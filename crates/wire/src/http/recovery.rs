//! Requests and responses of the recovery of a store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The body of `POST /v1/recovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryRequest {
    /// Whether to report the changes without making them.
    pub dry_run: bool,
    /// Time to which all worker marks move at least (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub mark: Option<String>,
    /// Confirms a `mark` more than a day ahead of the clock, and numbers that skip days of serials or
    /// half of a disguised source.
    pub far_ahead: bool,
    /// Leaves out marks of journals that are more than a day ahead of the clock. Needs `mark`: no ID in
    /// use has reached it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_ids_ahead: bool,
    /// Highest number of any counter, or 0: all counters continue above it. Subtract
    /// `counter.start` - 1 of its source. Needed unless a journal surely knows of all recoveries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters_above: Option<String>,
    /// First number that each source may issue, by source name: 1 above the highest; or `id:ID` (or
    /// a serial) for an ID that was issued.
    pub segments: BTreeMap<String, String>,
    /// The IDs of lost journals: IDs that only these journals knew may be issued again.
    pub without: Vec<String>,
    /// The secondary store to recover, by its name in sources; absent: the primary store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<String>,
    /// Accepts the database server that has the store now (a promoted replica, a restarted Redis),
    /// puts the store in doubt so that its journals report, and moves nothing. Only after the
    /// former database server takes no more writes, and not together with `dry_run`.
    pub other_server: bool,
}

/// The known state of a store, and the state to which recovery moves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoveryBody {
    /// Reason that the store is in doubt. Absent when it is not in doubt: then there is nothing to
    /// recover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The journals that have joined the store, by their IDs.
    pub journals: Vec<JournalBody>,
    /// Reason that the store cannot be recovered yet: journals without a report, or a value that
    /// only an operator knows. Absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaid: Option<String>,
    /// The lowest mark of any worker number afterwards: minting by worker numbers begins at this
    /// time. Absent when marks stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks_at_least: Option<String>,
    /// The next number of each source afterwards, at least.
    pub segments: BTreeMap<String, String>,
    /// Sources without a definition, or that could not be defined. Defined again unchanged, they
    /// continue from the numbers in `segments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<String>,
    /// The store's count of writes afterwards, at least. Absent when only values that the request
    /// names are raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{1,20}$"))]
    pub writes_at_least: Option<String>,
    /// Whether the recovery was done.
    pub done: bool,
    /// The store afterwards. Absent when nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<RecoveredBody>,
}

/// A journal that has joined a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JournalBody {
    /// The journal's random ID.
    pub id: String,
    /// The label of the journal's process; may be empty.
    pub owner: String,
    /// The host of the journal's process.
    pub host: String,
    /// Time at which the journal joined or last reported.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub last_seen: String,
    /// `reported`, `read here`, `left out`, or `MISSING`: no report of the journal exists. If the
    /// store has lost the journal's join, `, known only from another journal` follows. `not asked`
    /// in a store that is not in doubt. `, of another store` and `, worker mark TIME` follow if the
    /// journal is of a store that this one replaces, or has a mark more than a day ahead.
    pub state: String,
}

/// A store that was recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoveredBody {
    /// The store's identity.
    pub id: String,
    /// The store's count of writes.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{1,20}$"))]
    pub writes: String,
}
