//! What a back end has to say: how the rows of a namespace are read and written in one atomic step, and how such a
//! step begins.

use std::fmt;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::Seen;
use crate::capability::Capabilities;
use crate::catalog::Definition;
use crate::error::{Error, ErrorKind, Result};
use crate::lease::{Extend, SlotRow};
use crate::member::{Incarnation, MemberRow, Presence};
use crate::pool::{Ground, Pool};
use crate::random;
use crate::segment::{Reserve, Segment};
use crate::store::StoreIdentity;
use crate::timer::{BootTimer, Timer};

/// Why a verb did not do what it was asked. `E` is the back end's own error.
#[derive(Debug)]
pub enum Failure<E> {
    /// By a rule; the step can be ended in peace.
    Refused(ErrorKind),
    /// A value in the store is not what was written.
    Damaged(String),
    /// By another step that ended first; nothing was done, and another try may succeed.
    Lost,
    /// By the back end.
    Backend(E),
}

impl<E> Failure<E> {
    /// In the words of the domain; `explain` says the back end's own.
    pub fn said(self, op: &'static str, label: &str, explain: impl FnOnce(E) -> Error) -> Error {
        let kind = match self {
            Self::Refused(kind) => kind,
            Self::Damaged(found) => ErrorKind::Corrupt { what: format!("{label} ({found})") },
            Self::Lost => {
                ErrorKind::Unavailable { what: format!("{label}, where others were faster,") }
            }
            Self::Backend(error) => return explain(error),
        };
        Error::new(op, kind)
    }
}

impl<E> From<ErrorKind> for Failure<E> {
    fn from(kind: ErrorKind) -> Self {
        Self::Refused(kind)
    }
}

/// The refusal of a store that has lost everything, its own record too: whoever starts now makes another in its
/// place, and is told by a journal of the old one that it is another. So is who runs.
pub fn emptied(label: &str, what: &str) -> ErrorKind {
    ErrorKind::OtherStore {
        witness: WITNESS.into(),
        expected: "the one that was there".into(),
        found: format!("empty ({label}: {what})"),
    }
}

/// A store that is set in such a way that an answer may not outlive a crash: `found`, which is to be `right`.
pub fn set_to_lose(label: &str, found: &str, right: &str) -> ErrorKind {
    ErrorKind::UnsafeStore {
        what: format!(
            "{label} has {found}, with which it can lose what it acknowledged, and numbers would come again; set it \
             to {right}"
        ),
    }
}

/// Who remembers what this handle has seen.
pub(super) const WITNESS: &str = "this process";

/// What a verb answers inside its step, and whether it changed anything.
pub type Step<R, T> = Result<(T, bool), Failure<<R as Rows>::Error>>;
/// What reading or writing rows answers.
pub type Answer<R, T> = Result<T, Failure<<R as Rows>::Error>>;

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One consistent read.
    Read,
    /// No other writer until it ends.
    Write,
    /// As `Write`, on a store that went backwards too: the operator's way out.
    Forward,
}

/// What a namespace as a whole keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceRow {
    /// Raised by every change of a definition.
    pub catalog_version: u64,
    /// What holds for slots without a row.
    pub ground: Ground,
}

/// The rows of one namespace inside one atomic step. Dropped before its end, nothing of it has
/// happened.
#[async_trait]
pub trait Rows: Send + Sized {
    /// The back end's own error.
    type Error: Send;
    /// How many slots one step may write.
    const WRITES_MAX: usize = usize::MAX;

    /// The store as it was when the step began.
    fn identity(&self) -> &StoreIdentity;
    /// The store's own clock when the step began, if it has one.
    fn clock(&self) -> Option<UnixMillis>;
    /// Refuses rows that another server than the one they were written on has, since it may lack what was acknowledged:
    /// a replica that took over. A step that writes is refused as it begins; one that reads asks only where the rows lack
    /// something. Where there is one server, or none that says who it is, all is well.
    fn check_server(&self) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// All members.
    async fn members(&mut self) -> Answer<Self, Vec<MemberRow>>;
    /// One member.
    async fn member(&mut self, member: Incarnation) -> Answer<Self, Option<MemberRow>>;
    /// Writes a member's row.
    async fn put_member(&mut self, row: &MemberRow) -> Answer<Self, ()>;
    /// Removes a member's row; answers whether there was one.
    async fn remove_member(&mut self, member: Incarnation) -> Answer<Self, bool>;
    /// Lets this step end only if the member is still there and ends no other such step meanwhile.
    /// Where writers queue up, that is so.
    async fn hold_member(&mut self, _member: Incarnation) -> Answer<Self, ()> {
        Ok(())
    }

    /// A pool's shape, and without reuse the first number that nobody had.
    async fn pool(&mut self, name: &str) -> Answer<Self, Option<(Pool, u64)>>;
    /// Writes these.
    async fn put_pool(&mut self, pool: &Pool, next: u64) -> Answer<Self, ()>;

    /// The row of a slot, if it was ever claimed.
    async fn slot(&mut self, pool: &str, slot: u64) -> Answer<Self, Option<SlotRow>>;
    /// The rows of these slots, as far as there are any.
    async fn named_slots(
        &mut self,
        pool: &str,
        slots: &[u64],
    ) -> Answer<Self, Vec<(u64, Option<SlotRow>)>> {
        let mut found = Vec::with_capacity(slots.len());
        for slot in slots {
            found.push((*slot, self.slot(pool, *slot).await?));
        }
        Ok(found)
    }
    /// The rows of a pool, by number.
    async fn slots(&mut self, pool: &str) -> Answer<Self, Vec<SlotRow>>;
    /// The rows of all pools, with their names.
    async fn all_slots(&mut self) -> Answer<Self, Vec<(String, SlotRow)>>;
    /// Those that a member holds.
    async fn held_by(&mut self, member: Incarnation) -> Answer<Self, Vec<(String, SlotRow)>>;
    /// Writes rows of a pool.
    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> Answer<Self, ()>;
    /// Removes rows of a pool, as if nobody had ever claimed them.
    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> Answer<Self, ()>;

    /// What the namespace as a whole keeps.
    async fn namespace(&mut self) -> Answer<Self, NamespaceRow>;
    /// Writes that.
    async fn put_namespace(&mut self, row: NamespaceRow) -> Answer<Self, ()>;

    /// A source, deleted or not.
    async fn definition(&mut self, name: &str) -> Answer<Self, Option<Definition>>;
    /// All sources, the deleted too.
    async fn definitions(&mut self) -> Answer<Self, Vec<Definition>>;
    /// Writes a source's row.
    async fn put_definition(&mut self, definition: &Definition) -> Answer<Self, ()>;

    /// A text of the namespace as a whole, and the count of writes of the step that wrote it, where
    /// [`begins_alone`](Self::begins_alone) says none.
    async fn note(&mut self, name: &str) -> Answer<Self, Option<(String, u64)>>;
    /// Writes such a text.
    async fn put_note(&mut self, name: &str, text: String) -> Answer<Self, ()>;
    /// Removes it.
    async fn remove_note(&mut self, name: &str) -> Answer<Self, ()>;
    /// Lets this step end only if nobody else writes meanwhile, and answers the lowest count of writes that it and what
    /// comes after it can have; none where that is the step's own count, which only its end says.
    fn begins_alone(&mut self) -> Option<u64>;
    /// Keeps this as the store's [`id`](StoreIdentity::id).
    fn name(&mut self, id: String) -> Answer<Self, ()>;
    /// Puts this note into all namespaces that share the store's identity.
    async fn put_note_everywhere(&mut self, name: &str, text: String) -> Answer<Self, ()> {
        self.put_note(name, text).await
    }
    /// Whether another namespace that shares the store's identity has this note.
    async fn is_elsewhere(&mut self, _name: &str) -> Answer<Self, bool> {
        Ok(false)
    }

    /// Takes the rows as they are, however old, for the newest, in a store of this identity.
    async fn accept(&mut self, identity: StoreIdentity) -> Answer<Self, ()>;

    /// Makes all of it durable, and counts one more write. Answers the identity after it.
    async fn commit(self) -> Answer<Self, StoreIdentity>;
    /// Ends a step that changed nothing, and answers what it has read.
    async fn unchanged(self) -> Answer<Self, ()> {
        self.roll_back().await
    }
    /// Ends a step that was refused.
    async fn roll_back(self) -> Answer<Self, ()>;

    /// The time that counts, when the caller's is `now`.
    fn time(&self, now: UnixMillis) -> UnixMillis {
        self.clock().unwrap_or(now)
    }
}

/// One namespace of a store, reached by one handle.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Its steps.
    type Rows: Rows;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// The namespace.
    fn namespace(&self) -> &str;
    /// The store, for messages; no secrets.
    fn label(&self) -> String;
    /// [`Store::cautions`](crate::store::Store::cautions).
    fn cautions(&self) -> Vec<String> {
        Vec::new()
    }
    /// Timer of the waits after a step that lost to another.
    fn timer(&self) -> &dyn Timer {
        &BootTimer
    }
    /// Draws a random number, by which steps that lost to each other part.
    ///
    /// # Errors
    /// As [`random::number`].
    fn random(&self) -> Result<u64> {
        random::number()
    }
    /// Refuses a store that is set to lose what it acknowledged. An operator may set it so at any time, so it is
    /// asked with each join and renewal.
    async fn check_settings(&self) -> Result<(), Failure<<Self::Rows as Rows>::Error>> {
        Ok(())
    }
    /// Begins an atomic step.
    async fn begin(
        &self,
        access: Access,
    ) -> Result<Self::Rows, Failure<<Self::Rows as Rows>::Error>>;
    /// The verb `reserve` in a step of the back end's own, where it has one. None where rows must be looked at,
    /// which say what is wrong, if something is.
    async fn reserve(
        &self,
        _reserve: &Reserve,
        _seen: &Seen,
    ) -> Result<Option<Segment>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// The verb `extend` for one slot in a step of the back end's own, where it has one: the count of writes
    /// after it. None where rows must be looked at, which say what is wrong, or of a newer catalog.
    async fn extend(
        &self,
        _item: &Extend,
        _now: UnixMillis,
        _seen: &Seen,
    ) -> Result<Option<u64>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// The verb `renew`, likewise.
    async fn renew(
        &self,
        _member: Incarnation,
        _presence: Presence,
        _now: UnixMillis,
        _seen: &Seen,
    ) -> Result<Option<u64>, Failure<<Self::Rows as Rows>::Error>> {
        Ok(None)
    }
    /// Sees to it that the next step sees all that was acknowledged to anybody, where steps that only read may not.
    async fn catch_up(&self) -> Result<(), Failure<<Self::Rows as Rows>::Error>> {
        Ok(())
    }
    /// Has those who count in steps of the back end's own stand back for a moment. For nothing but speed.
    async fn make_way(&self) {}
    /// Says the back end's own error in the words of the domain.
    fn explain(&self, op: &'static str, error: <Self::Rows as Rows>::Error) -> Error;
    /// Gives connections back. Later steps are refused.
    async fn close(&self) -> Result<()>;
}
