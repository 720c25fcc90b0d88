//! The verbs of a store, written once over rows.
//!
//! A back end says how the rows of a namespace are read and written in one atomic step ([`Rows`]),
//! and how such a step begins ([`Backend`]). What a verb reads, decides and writes is the same for
//! all of them: [`StoreOver`] makes a [`Store`](snowmint_coord::Store) of any back end.

mod at_once;
mod avoid;
mod forward;
mod history;
mod lineage;
mod members;
mod ordered;
mod slots;
mod sources;
mod store;

use std::fmt;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use snowmint_coord::member::MemberRow;
use snowmint_coord::pool::Ground;
use snowmint_coord::{
    BootTimer, Capabilities, Definition, Error, ErrorKind, Extend, Incarnation, Pool, Presence,
    Reserve, Result, Segment, SlotRow, StoreIdentity, Timer as _, random,
};
use snowmint_core::UnixMillis;
use tokio::sync::Mutex;

pub(crate) use at_once::Seen;
pub(crate) use history::STARTS;
use lineage::Lineage;
#[cfg(feature = "keyed")]
pub(crate) use slots::Extends;

/// Why a verb did not do what it was asked. `E` is the back end's own error.
#[derive(Debug)]
pub(crate) enum Failure<E> {
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
    pub(crate) fn said(
        self,
        op: &'static str,
        label: &str,
        explain: impl FnOnce(E) -> Error,
    ) -> Error {
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
#[cfg(any(feature = "keyed", feature = "postgres", feature = "mysql"))]
pub(crate) fn emptied(label: &str, what: &str) -> ErrorKind {
    ErrorKind::OtherStore {
        witness: WITNESS.into(),
        expected: "the one that was there".into(),
        found: format!("empty ({label}: {what})"),
    }
}

/// Who remembers what this handle has seen.
const WITNESS: &str = "this process";

/// What a verb answers inside its step, and whether it changed anything.
pub(crate) type Step<R, T> = Result<(T, bool), Failure<<R as Rows>::Error>>;
/// What reading or writing rows answers.
pub(crate) type Answer<R, T> = Result<T, Failure<<R as Rows>::Error>>;

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// One consistent read.
    Read,
    /// No other writer until it ends.
    Write,
    /// As `Write`, on a store that went backwards too: the operator's way out.
    Forward,
}

/// What a namespace as a whole keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceRow {
    /// Raised by every change of a definition.
    pub(crate) catalog_version: u64,
    /// What holds for slots without a row.
    pub(crate) ground: Ground,
}

/// What a step took is doubled as often before another try, at most: the wait is random below that.
/// So many writers may meet and few of them meet again, on a slow machine too.
const TRY_DOUBLINGS_MAX: u32 = 6;
/// Longest wait before another try, in milliseconds.
const TRY_WAIT_MS_MAX: u64 = 1_000;

/// The rows of one namespace inside one atomic step. Dropped before its end, nothing of it has
/// happened.
#[async_trait]
pub(crate) trait Rows: Send + Sized {
    /// The back end's own error.
    type Error: Send;
    /// How many slots one step may write.
    const WRITES_MAX: usize = usize::MAX;

    /// The store as it was when the step began.
    fn identity(&self) -> &StoreIdentity;
    /// The store's own clock when the step began, if it has one.
    fn clock(&self) -> Option<UnixMillis>;

    async fn members(&mut self) -> Answer<Self, Vec<MemberRow>>;
    async fn member(&mut self, member: Incarnation) -> Answer<Self, Option<MemberRow>>;
    async fn put_member(&mut self, row: &MemberRow) -> Answer<Self, ()>;
    async fn remove_member(&mut self, member: Incarnation) -> Answer<Self, bool>;
    /// Lets this step end only if the member is still there and ends no other such step meanwhile.
    /// Where writers queue up, that is so.
    async fn hold_member(&mut self, _member: Incarnation) -> Answer<Self, ()> {
        Ok(())
    }

    async fn pool(&mut self, name: &str) -> Answer<Self, Option<(Pool, u64)>>;
    async fn put_pool(&mut self, pool: &Pool, next: u64) -> Answer<Self, ()>;

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
    async fn slots(&mut self, pool: &str) -> Answer<Self, Vec<SlotRow>>;
    async fn all_slots(&mut self) -> Answer<Self, Vec<(String, SlotRow)>>;
    async fn held_by(&mut self, member: Incarnation) -> Answer<Self, Vec<(String, SlotRow)>>;
    async fn put_slots(&mut self, pool: &str, rows: &[SlotRow]) -> Answer<Self, ()>;
    async fn remove_slots(&mut self, pool: &str, slots: &[u64]) -> Answer<Self, ()>;

    async fn namespace(&mut self) -> Answer<Self, NamespaceRow>;
    async fn put_namespace(&mut self, row: NamespaceRow) -> Answer<Self, ()>;

    async fn definition(&mut self, name: &str) -> Answer<Self, Option<Definition>>;
    async fn definitions(&mut self) -> Answer<Self, Vec<Definition>>;
    async fn put_definition(&mut self, definition: &Definition) -> Answer<Self, ()>;

    /// A text of the namespace as a whole, and the count of writes of the step that wrote it, where
    /// [`begins_alone`](Self::begins_alone) says none.
    async fn note(&mut self, name: &str) -> Answer<Self, Option<(String, u64)>>;
    async fn put_note(&mut self, name: &str, text: String) -> Answer<Self, ()>;
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
pub(crate) trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Its steps.
    type Rows: Rows;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// The namespace.
    fn namespace(&self) -> &str;
    /// The store, for messages; no secrets.
    fn label(&self) -> String;
    /// [`Store::cautions`](snowmint_coord::Store::cautions).
    fn cautions(&self) -> Vec<String> {
        Vec::new()
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

/// A verb with its arguments.
#[async_trait]
pub(crate) trait Verb: Sync {
    /// What it answers.
    type Answer: Send;
    /// Its name in errors.
    const OP: &'static str;
    /// What it does to the store.
    const ACCESS: Access = Access::Write;
    /// Whether it looks at a store in doubt, too, and whatever this handle has seen of it.
    const IN_DOUBT: bool = false;
    /// Whether those who only count numbers make way for it when it has lost to others.
    const HAS_WAY: bool = true;

    /// Reads, decides and writes.
    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Self::Answer>;
}

/// A store: the verbs over a back end, and what this handle remembers of it.
#[derive(Debug)]
pub(crate) struct StoreOver<B> {
    backend: B,
    /// What this handle has seen of the store's history.
    lineage: Lineage,
    /// The version of the catalog that an extend found last.
    catalog_seen: AtomicU64,
    /// One claim at a time.
    claims: Mutex<()>,
    /// How often a step is tried that other steps overtake; at least once.
    tries: u32,
}

/// A store that is set in such a way that an answer may not outlive a crash: `found`, which is to be `right`.
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
pub(crate) fn set_to_lose(label: &str, found: &str, right: &str) -> ErrorKind {
    ErrorKind::UnsafeStore {
        what: format!(
            "{label} has {found}, with which it can lose what it acknowledged, and numbers would come again; set it \
             to {right}"
        ),
    }
}

impl<B: Backend> StoreOver<B> {
    pub(crate) const fn new(backend: B) -> Self {
        Self {
            backend,
            lineage: Lineage::new(),
            catalog_seen: AtomicU64::new(0),
            claims: Mutex::const_new(()),
            tries: 1,
        }
    }

    /// The same, which tries a step so often.
    #[cfg(feature = "keyed")]
    pub(crate) fn trying(self, tries: u32) -> Self {
        Self { tries: tries.max(1), ..self }
    }

    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) const fn backend(&self) -> &B {
        &self.backend
    }

    /// One atomic step, and the store's `writes` after it.
    async fn run<V: Verb>(&self, verb: V) -> Result<(V::Answer, u64)> {
        self.tried(&verb).await.map_err(|failure| self.said(V::OP, failure))
    }

    fn said(&self, op: &'static str, failure: Failure<<B::Rows as Rows>::Error>) -> Error {
        failure.said(op, &self.backend.label(), |error| self.backend.explain(op, error))
    }

    /// A step that loses to another is begun anew, a bounded number of times.
    async fn tried<V: Verb>(&self, verb: &V) -> Answer<B::Rows, (V::Answer, u64)> {
        for tried in 1..=self.tries {
            let begun = BootTimer.elapsed();
            match self.step(verb).await {
                Err(Failure::Lost) if tried < self.tries => {
                    if V::HAS_WAY {
                        self.backend.make_way().await;
                    }
                    let_others_end(tried, BootTimer.elapsed().since(begun)).await?;
                }
                Err(Failure::Lost) => break,
                ended => return ended,
            }
        }
        let (label, tries) = (self.backend.label(), self.tries);
        let what = format!("{label}, where {tries} tries lost to other writers (store.tries),");
        Err(Failure::Refused(ErrorKind::Unavailable { what }))
    }

    async fn step<V: Verb>(&self, verb: &V) -> Answer<B::Rows, (V::Answer, u64)> {
        // Read before the step begins: steps of this handle may overlap.
        let seen = self.lineage.seen();
        let mut rows = self.backend.begin(V::ACCESS).await?;
        let answer = self.in_step(verb, &mut rows, seen.as_deref()).await;
        let (answer, identity, begins) = match answer {
            Ok((answer, true, begins)) => (answer, rows.commit().await?, begins),
            Ok((answer, false, begins)) => {
                let identity = rows.identity().clone();
                rows.unchanged().await?;
                (answer, identity, begins)
            }
            Err(Failure::Refused(kind)) => {
                rows.roll_back().await?;
                return Err(Failure::Refused(kind));
            }
            // Dropped with its connection.
            Err(failure) => return Err(failure),
        };
        let writes = identity.writes;
        if !V::IN_DOUBT {
            self.lineage.saw(identity, V::ACCESS, begins);
        }
        Ok((answer, writes))
    }

    /// Holds the store against what was seen, and runs the verb; the first that writes leaves a start. Answers also
    /// whether anything was changed, and whether a start was left.
    async fn in_step<V: Verb>(
        &self,
        verb: &V,
        rows: &mut B::Rows,
        seen: Option<&StoreIdentity>,
    ) -> Answer<B::Rows, (V::Answer, bool, bool)> {
        if V::ACCESS != Access::Forward && !V::IN_DOUBT {
            self.lineage.check(rows, V::ACCESS, seen, &self.backend.label()).await?;
        }
        let (answer, is_changed) = verb.run(rows).await?;
        let begins = is_changed && V::ACCESS == Access::Write && !V::IN_DOUBT;
        let begins = begins && self.lineage.begin(rows).await?;
        Ok((answer, is_changed, begins))
    }
}

/// Waits for a random while before try `tried` + 1, when the last took `took_ms`.
async fn let_others_end(tried: u32, took_ms: u64) -> Result<(), ErrorKind> {
    let doubled_ms = took_ms.clamp(1, TRY_WAIT_MS_MAX) << tried.min(TRY_DOUBLINGS_MAX);
    let number = random::number().map_err(|error| error.kind().clone())?;
    BootTimer.sleep_ms(number % doubled_ms.min(TRY_WAIT_MS_MAX)).await;
    Ok(())
}
