//! First read of a step, and the batch of writes that it sends.

use std::collections::BTreeMap;

use snowmint_coord::verbs::Failure;
use snowmint_core::UnixMillis;

/// [`Head::server`] of a server that follows another and has no other name.
pub const REPLICA: &str = "replica";

/// A key's present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name below the namespace's own prefix.
    pub key: String,
    /// The row.
    pub value: String,
    /// Changes with every write of the key; never 0.
    pub version: u64,
    /// Write count of the server at the last write of the key.
    pub written: u64,
}

/// First rows of every step, read at one moment.
#[derive(Clone, Debug)]
pub struct Head {
    /// Count of the namespace's last write; rises with every batch. Between two batches, a server
    /// that also counts the writes of others may skip numbers.
    pub writes: u64,
    /// Moment of this head, for reads as of the same moment, if reads are snapshots.
    pub at: u64,
    /// Version of the key [`name::WRITES`](super::name::WRITES), 0 if there is none; none if the
    /// write count belongs to this namespace alone.
    pub last_write: Option<u64>,
    /// The server's own clock, if it has one.
    pub clock: Option<UnixMillis>,
    /// Name of the server, or of its present run, if another server may lack writes that this one
    /// acknowledged; [`REPLICA`] if it follows another that has no such name.
    pub server: Option<String>,
    /// Session of the read, if a session stays with its server and a batch cannot require a key's
    /// value.
    pub session: Option<i64>,
    /// The key [`name::STORE`](super::name::STORE).
    pub store: Option<Entry>,
    /// The key [`name::NAMESPACE`](super::name::NAMESPACE).
    pub namespace: Option<Entry>,
}

/// Changes that a step requests.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Keys with the version that each must still have; 0 if the key must not exist.
    pub expected: BTreeMap<String, u64>,
    /// Keys with their new value, none to delete. All are among the expected.
    pub changes: BTreeMap<String, Option<String>>,
    /// Last write that the server must have: [`Head::last_write`], or [`Head::writes`] where there
    /// is none. A restored server may lack it, and the batch would hide that: it counts, too.
    pub after: u64,
    /// Earliest time that the server's clock must show, if it has one.
    pub not_before: UnixMillis,
    /// Required server, if another may lack writes that it acknowledged.
    pub server: Option<String>,
    /// Required value of the key [`name::STORE`](super::name::STORE): another store may have equal
    /// versions.
    pub store: Option<String>,
    /// Required session; see [`Head::session`].
    pub session: Option<i64>,
}

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Applied, as durably as the store can; the count of this batch, or 0 if it changes nothing.
    Done(u64),
    /// The same, but the server lacks a write that came before the batch ([`Batch::after`]).
    Short(u64),
    /// An expected key had another version, it was too early, or a write is missing; nothing was
    /// done.
    RaceLost,
}

/// Rejects a reply that has another number of rows than were requested: which row belongs to which
/// key would be unknown.
///
/// # Errors
/// `Damaged`, with both numbers.
pub fn check_rows<E>(found: usize, expected: usize) -> Result<(), Failure<E>> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Damaged(format!("reply has {found} rows, expected {expected}")))
}
