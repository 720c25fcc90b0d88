//! Interface of a back end: how the rows of a namespace are read and written in one atomic step,
//! and how such a step begins.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::Incarnation;
use crate::model::catalog::Definition;
use crate::model::history::StoreIdentity;
use crate::model::lease::{Extend, SlotRow};
use crate::model::member::{MemberRow, Presence};
use crate::model::pool::{Pool, SlotDefaults};
use crate::model::segment::{Reserve, Segment};
use crate::platform::random;
use crate::platform::timer::{BootTimer, Timer};
use crate::store::capability::Capabilities;

/// Reason why a verb failed. `E` is the back end's own error.
#[derive(Debug)]
pub enum Failure<E> {
    /// A rule rejected it; the step can be ended normally.
    Rejected(Error),
    /// A value in the store differs from the written one.
    Damaged(String),
    /// Another step ended first; nothing was done, and another attempt may succeed.
    RaceLost,
    /// The back end failed.
    Backend(E),
}

impl<E> Failure<E> {
    /// Converts the failure to an [`Error`]; `map_error` converts the back end's own error.
    pub fn into_error(self, label: &str, map_error: impl FnOnce(E) -> Error) -> Error {
        match self {
            Self::Rejected(error) => error,
            Self::Damaged(found) => Error::corrupt(format!(
                "{label} is damaged: {found}; restore it, then move it forward (snowmint worker \
                 fast-forward)"
            )),
            Self::RaceLost => Error::unavailable(format!("other writers won on {label}; retry")),
            Self::Backend(error) => map_error(error),
        }
    }
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

/// Returns the error for a store with settings under which acknowledged writes may not survive a
/// crash: `found`, which should be `right`.
pub fn set_to_lose(label: &str, found: &str, right: &str) -> Error {
    Error::unsafe_store(format!(
        "{label} has {found}, which can lose acknowledged writes; set it to {right}"
    ))
}

/// Name, in errors, of the process that remembers what this handle has seen.
pub(super) const THIS_PROCESS: &str = "this process";

/// Result of a verb inside its step, and whether it changed anything.
pub type VerbResult<R, T> = Result<(T, bool), Failure<<R as Rows>::Error>>;
/// Result of reading or writing rows.
pub type RowsResult<R, T> = Result<T, Failure<<R as Rows>::Error>>;

/// Purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One consistent read.
    Read,
    /// A write, without other writers until it ends.
    Write,
    /// A write that is also accepted after a store rollback: for recovery by an operator.
    Forward,
}

/// Values of a namespace as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceRow {
    /// Version of the catalog, raised by every change of a definition.
    pub catalog_version: u64,
    /// Defaults for slots without a row.
    pub ground: SlotDefaults,
}

/// The rows of one namespace inside one atomic step. If they are dropped before its end, nothing
/// has happened.
#[async_trait]
pub trait Rows: Send + Sized {
    /// Error type of the back end.
    type Error: Send;
    /// Maximum number of slots that one step may write.
    const WRITES_MAX: usize = usize::MAX;

    /// Returns the store's identity when the step began.
    fn identity(&self) -> &StoreIdentity;
    /// Returns the time of the store's own clock when the step began, if it has one.
    fn clock(&self) -> Option<UnixMillis>;
    /// Rejects rows on another server than the one that wrote them, such as a replica that took
    /// over: it may lack acknowledged writes. A step that writes checks this at its begin; a step
    /// that reads checks it only where the rows lack something, and the step that accepts another
    /// server checks whether there is one. Succeeds where the store has one server, or servers that
    /// cannot be distinguished.
    fn check_server(&self) -> Result<()> {
        Ok(())
    }

    /// Rejects rows of which some are older than others, as in a file that was restored next to the
    /// log of another state. No count of writes tells which of them are. A step that writes checks
    /// this at its begin, but for reports to a store in doubt. The step that puts the store in doubt
    /// ends it, since all rows are suspect then.
    fn check_rows(&self) -> Result<()> {
        Ok(())
    }

    /// Returns all members.
    async fn members(&mut self) -> RowsResult<Self, Vec<MemberRow>>;
    /// Returns one member.
    async fn member(&mut self, member: Incarnation) -> RowsResult<Self, Option<MemberRow>>;
    /// Writes a member's row.
    async fn put_member(&mut self, row: &MemberRow) -> RowsResult<Self, ()>;
    /// Removes a member's row; returns whether it existed.
    async fn remove_member(&mut self, member: Incarnation) -> RowsResult<Self, bool>;
    /// Makes this step fail if the member is removed, or ends another such step, before this step
    /// ends. Back ends that queue writers need nothing.
    async fn hold_member(&mut self, _member: Incarnation) -> RowsResult<Self, ()> {
        Ok(())
    }

    /// Returns a pool's shape and, without reuse, the first number never used.
    async fn pool(&mut self, name: &str) -> RowsResult<Self, Option<(Pool, u64)>>;
    /// Writes a pool's shape and next number.
    async fn put_pool(&mut self, pool: &Pool, next: u64) -> RowsResult<Self, ()>;

    /// Returns the row of a slot, if it was ever claimed.
    async fn slot(&mut self, pool: &str, slot: u64) -> RowsResult<Self, Option<SlotRow>>;
    /// Returns the rows of these slots, where they exist.
    async fn named_slots(
        &mut self,
        pool: &str,
        slots: &[u64],
    ) -> RowsResult<Self, Vec<(u64, Option<SlotRow>)>> {
        let mut found = Vec::with_capacity(slots.len());
        for slot in slots {
            found.push((*slot, self.slot(pool, *slot).await?));
        }
        Ok(found)
    }
    /// Returns the rows of a pool, by number.
    async fn slots(&mut self, pool: &str) -> RowsResult<Self, Vec<SlotRow>>;
    /// Returns the rows of all pools, with their names.
    async fn all_slots(&mut self) -> RowsResult<Self, Vec<(String, SlotRow)>>;
    /// Returns at most `max` rows that a member holds.
    async fn held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> RowsResult<Self, Vec<(String, SlotRow)>>;
    /// Writes rows of a pool.
    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> RowsResult<Self, ()>;
    /// Removes rows of a pool, as if the slots had never been claimed.
    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> RowsResult<Self, ()>;

    /// Returns the values of the namespace as a whole.
    async fn namespace(&mut self) -> RowsResult<Self, NamespaceRow>;
    /// Writes the values of the namespace as a whole.
    async fn put_namespace(&mut self, row: NamespaceRow) -> RowsResult<Self, ()>;

    /// Returns a source, deleted or not.
    async fn definition(&mut self, name: &str) -> RowsResult<Self, Option<Definition>>;
    /// Returns all sources, deleted ones included.
    async fn definitions(&mut self) -> RowsResult<Self, Vec<Definition>>;
    /// Writes a source's row.
    async fn put_definition(&mut self, definition: &Definition) -> RowsResult<Self, ()>;

    /// Returns a note, a text of the whole namespace. The number is the count of writes of the step
    /// that wrote it, where [`begins_alone`](Self::begins_alone) returns `None`.
    async fn note(&mut self, name: &str) -> RowsResult<Self, Option<(String, u64)>>;
    /// Writes a note. Its name has at most 63 bytes, as columns of SQL stores require.
    async fn put_note(&mut self, name: &str, text: String) -> RowsResult<Self, ()>;
    /// Removes a note.
    async fn remove_note(&mut self, name: &str) -> RowsResult<Self, ()>;
    /// Makes this step fail if another step writes meanwhile. Returns the lowest count of writes
    /// that this step and later ones can have; `None` where that is the step's own count, known
    /// only at its end.
    fn begins_alone(&mut self) -> Option<u64>;
    /// Sets the store's [`id`](StoreIdentity::id).
    fn name(&mut self, id: String) -> RowsResult<Self, ()>;
    /// Writes a note to all namespaces that share the store's identity.
    async fn put_note_everywhere(&mut self, name: &str, text: String) -> RowsResult<Self, ()> {
        self.put_note(name, text).await
    }
    /// Returns the names of other namespaces that share the store's identity and have this note, in
    /// order, at most `max`.
    async fn other_namespaces_with(
        &mut self,
        _name: &str,
        _max: usize,
    ) -> RowsResult<Self, Vec<String>> {
        Ok(Vec::new())
    }

    /// Accepts the rows, however old, as the newest state of a store with this identity.
    async fn accept(&mut self, identity: StoreIdentity) -> RowsResult<Self, ()>;

    /// Makes all changes durable, and counts one more write. Returns the identity after it.
    async fn commit(self) -> RowsResult<Self, StoreIdentity>;
    /// Ends a step that changed nothing, and confirms its reads.
    async fn unchanged(self) -> RowsResult<Self, ()> {
        self.roll_back().await
    }
    /// Ends a step that failed.
    async fn roll_back(self) -> RowsResult<Self, ()>;

    /// Returns the time that the step uses, when the caller's is `now`.
    fn time(&self, now: UnixMillis) -> UnixMillis {
        self.clock().unwrap_or(now)
    }
}

/// State of the store that a handle has seen so far. A step of the back end's own compares it with
/// the store, atomically, and does nothing where the store is another one, or has counted fewer
/// writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Identity of the store, with its history.
    pub id: Arc<str>,
    /// Highest count of writes.
    pub writes: u64,
    /// Version of the namespace's catalog that the last extend found.
    pub catalog_version: u64,
}

/// Row that a verb reads first.
#[derive(Clone, Copy, Debug)]
pub enum FirstRow<'a> {
    /// A member.
    Member(Incarnation),
    /// A slot: its pool, and its number.
    Slot(&'a str, u64),
    /// The definition of the source with this name.
    Definition(&'a str),
}

/// Description of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreInfo<'a> {
    /// Capabilities of the store.
    pub capabilities: Capabilities,
    /// The namespace.
    pub namespace: &'a str,
    /// The store's name for messages, such as its product: every caller may read it, so it has no
    /// address.
    pub label: &'a str,
    /// The store's address for operators, without secrets, such as `at postgres://db/ids`.
    pub address: Option<&'a str>,
}

/// One namespace of a store, reached by one handle.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Rows of its steps.
    type Rows: Rows;

    /// Returns what the store is.
    fn info(&self) -> StoreInfo<'_>;
    /// Returns [`Store::warnings`](crate::store::Store::warnings).
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the timer for the waits after a step that lost to another.
    fn timer(&self) -> &dyn Timer {
        &BootTimer
    }
    /// Returns a random number, which separates steps that collided.
    ///
    /// # Errors
    /// As [`random::number`].
    fn random(&self) -> Result<u64> {
        random::number()
    }
    /// Rejects a store with settings under which it can lose acknowledged writes. An operator may
    /// change these at any time, so each join and renewal checks them.
    async fn check_settings(&self) -> Result<(), Failure<<Self::Rows as Rows>::Error>> {
        Ok(())
    }
    /// Begins an atomic step.
    async fn begin(
        &self,
        access: Access,
    ) -> Result<Self::Rows, Failure<<Self::Rows as Rows>::Error>>;
    /// Begins an atomic step, and also reads this row where that takes no further request.
    async fn begin_reading(
        &self,
        access: Access,
        _first: Option<FirstRow<'_>>,
    ) -> Result<Self::Rows, Failure<<Self::Rows as Rows>::Error>> {
        self.begin(access).await
    }
    /// Runs the verb `reserve` in a step of the back end's own, where it has one. Returns `None`
    /// where the rows must be read, which also give the reason for an error.
    async fn reserve(
        &self,
        _reserve: &Reserve,
        _seen: &Seen,
    ) -> Result<Option<Segment>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// Runs the verb `extend` for one slot in a step of the back end's own, where it has one, and
    /// returns the count of writes after it. Returns `None` where the rows must be read, which give
    /// the reason for an error, or the catalog is newer.
    async fn extend(
        &self,
        _item: &Extend,
        _now: UnixMillis,
        _seen: &Seen,
    ) -> Result<Option<u64>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// Runs the verb `renew`, likewise.
    async fn renew(
        &self,
        _member: Incarnation,
        _presence: Presence,
        _now: UnixMillis,
        _seen: &Seen,
    ) -> Result<Option<u64>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// Ensures that the next step sees everything that was acknowledged to any caller, where
    /// read-only steps may not.
    async fn catch_up(&self) -> Result<(), Failure<<Self::Rows as Rows>::Error>> {
        Ok(())
    }
    /// Makes reserves in steps of the back end's own pause for a moment. Affects only speed.
    async fn yield_to_writers(&self) {}
    /// Converts the back end's own error to an [`Error`].
    fn map_error(&self, error: <Self::Rows as Rows>::Error) -> Error;
    /// Closes connections. Later steps fail.
    async fn close(&self) -> Result<()>;
}
