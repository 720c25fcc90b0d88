//! The store: where marks live, spoken to in the words of the domain.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use crate::avoid::Avoid;
use crate::beside::StorePlace;
use crate::capability::Capabilities;
use crate::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState, check_name};
use crate::clock_witness::ClockWitness;
use crate::error::{ErrorKind, Result};
use crate::history::{Doubt, Evidence, History, JournalInfo, Known, Recalled, Standing};
use crate::lease::{ClaimRequest, Extend, Extended, Lease, Mark, Release, check_mark};
use crate::member::{Incarnation, Member, MemberInfo, MemberStatus, Presence};
use crate::ordered::{LetGo, Take, Taken};
use crate::owners::Owners;
use crate::pool::Ground;
use crate::reclaim::{Reclaim, Reclaimed};
use crate::segment::{GiveBack, Reserve, Segment};
use crate::slot::SlotInfo;

/// Which store this is, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Made at random with the store (where namespaces may live on servers of their own, with the
    /// namespace), and anew when an operator says so; with its [`History`], whose parts it has.
    pub id: String,
    /// Raised by every durable change, in the same atomic step, and by nothing that this namespace
    /// can do besides. Whoever remembers a higher one knows that the store was restored from an older
    /// copy.
    pub writes: u64,
}

impl StoreIdentity {
    /// Which store it is, whatever its history.
    #[must_use]
    pub fn store(&self) -> String {
        History::of(&self.id).store
    }
}

/// The highest count that a store is moved to: each counts on from there, in a signed number of 64 bits.
const COUNT_MAX: u64 = Mark::MAX.get() - 1;

/// What an operator moves forward, never back, after a store was restored or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastForward {
    /// No slot of the namespace, claimed before or not, has a lower mark afterwards. (A number of a
    /// pool without reuse that was given out by a lost state can come once more, above this mark.)
    pub marks_at_least: Mark,
    /// No listed source has a lower mark (next number) afterwards. One that the store does not have is kept
    /// like a deleted one: a later `define` goes on above its mark.
    pub segments: Vec<(String, Mark)>,
    /// The store's `writes` are not lower afterwards.
    pub writes_at_least: u64,
    /// The number of the recovery is higher than this.
    pub recoveries_at_least: u64,
    /// The version of the catalog is higher than this afterwards, and than it was: the numbers of versions that were lost
    /// are no other definitions'.
    pub catalog_at_least: u64,
    /// How the store stood when this was planned: it is moved only while it says the same, since a journal may report
    /// meanwhile. None where nothing was looked at.
    pub planned_on: Option<Standing>,
    /// The journals that the store is to forget, by their IDs: nobody comes back with them.
    pub forget_journals: Vec<String>,
    /// Give the store a new identity.
    pub new_identity: bool,
}

impl FastForward {
    /// Checks that every mark can be kept.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<(), ErrorKind> {
        let mut marks = self.segments.iter().map(|(_, mark)| *mark).chain([self.marks_at_least]);
        marks.try_for_each(check_mark)?;
        self.segments.iter().try_for_each(|(name, _)| check_name("source", name))?;
        let counts = [("writes", self.writes_at_least), ("catalog", self.catalog_at_least)];
        match counts.into_iter().find(|(_, count)| *count > COUNT_MAX) {
            None => Ok(()),
            Some((what, count)) => Err(ErrorKind::Invalid {
                what: format!("{what}_at_least is at most {COUNT_MAX}, not {count}"),
            }),
        }
    }
}

/// One namespace of one store.
///
/// Every verb is one atomic step: either all of it has happened or nothing, whoever else calls at
/// the same time from wherever. Each says how the call may be repeated when its outcome is unknown
/// ([`ErrorKind::Unavailable`]).
///
/// `now` is the caller's wall clock. A store with a clock of its own ([`now`](Self::now) answers a
/// time) ignores it; the others take it as the time.
///
/// No verb has a default implementation: a type that wraps a store could forget to pass it on, and nobody would
/// notice.
///
/// The rules are pure functions in [`lease`](crate::lease), [`pool`](crate::pool),
/// [`segment`](crate::segment) and [`catalog`](crate::catalog); a store loads what they need, calls
/// them, and writes what they answer, in one atomic step. The contract suite of the test kit holds
/// every store to them.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// The namespace that this handle acts in.
    fn namespace(&self) -> &str;

    /// What this handle must do without, such as a right or a setting that the store could use: full
    /// sentences for an operator. Empty when all is as it should be.
    fn cautions(&self) -> Vec<String>;

    /// The largest [`group`](crate::Pool::group) that can be claimed here: the clock values of one
    /// worker are taken in one atomic step. `u32::MAX` where there is no limit.
    fn group_max(&self) -> u32;

    /// The servers that answer for counters and sources of global order instead of this process. None, as a
    /// rule: each process answers for what it takes.
    fn owners(&self) -> Option<Arc<dyn Owners>>;

    /// Where a store beside this one is, whose name sources call it by, as far as this one leads there. As a
    /// rule it does not.
    fn beside(&self, name: &str) -> Option<Arc<dyn StorePlace>>;

    /// A clock to hold one's own against where the store has none. As a rule there is none.
    fn clock_witness(&self) -> Option<Arc<dyn ClockWitness>>;

    /// What this handle has seen of the store last, for whoever remembers it; none before the first step, and
    /// where it keeps nothing in mind. It stays as it was while the store lacks some of it.
    fn seen(&self) -> Option<StoreIdentity>;

    /// Has this handle compare the store with what an earlier process has seen of it, from its first step on: the address
    /// may lead elsewhere before the store is [recalled](Self::recall). Nothing where it has seen the store itself, where
    /// `seen` is empty, and where it keeps nothing in mind.
    fn remember(&self, seen: &StoreIdentity);

    /// The store's own clock, if it has one.
    ///
    /// Atomicity: none needed. Whose clock: the store's. On retry: repeat freely.
    async fn now(&self) -> Result<Option<UnixMillis>>;

    /// Which store this is, and how many durable changes it has seen.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    async fn identity(&self) -> Result<StoreIdentity>;

    /// Whether the store has all that `who` has seen of it, `seen`; an empty identity saw nothing.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    ///
    /// Refuses with `OtherStore`, and with `StoreWentBack` when the store lacks some of it, or is in doubt.
    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled>;

    /// Puts the store in doubt, since somebody has seen more than it has: every verb that hands out, moves or
    /// renews anything is refused with `StoreWentBack` from then on, whoever asks, until an operator has
    /// [moved it forward](Self::fast_forward). One that is in doubt stays as it is, and so does one whose identity, in its
    /// history, is not the one that the evidence was found of, which may have been recovered since; and one that has all
    /// that the evidence, or this handle, has seen: the address may have led elsewhere, and back. The step leaves a start, so
    /// what was seen before and is missing stays missing, however far reports count on.
    ///
    /// Atomicity: the store's identity, and all that the evidence is compared with. Whose clock: none. On retry: repeat freely.
    ///
    /// `Unsupported` through servers, where the server doubts for itself.
    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()>;

    /// Makes a journal known, and what it knows if that is said. One without an ID is not listed: it is a process that
    /// keeps none, and says what it has seen.
    ///
    /// Atomicity: the journal's record. Whose clock: the caller's. On retry: repeat freely.
    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()>;

    /// Whether the store is in doubt, the journals that have joined, and what they have reported.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    async fn standing(&self) -> Result<Standing>;

    /// Makes a member known, or renews it if it is.
    ///
    /// Atomicity: the member's record. Whose clock: the store's, else `now`, is when it renewed.
    /// On retry: repeat freely; one that comes after a later renewal changes nothing.
    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()>;

    /// Says that a member is still there: once a period and process, however many slots it holds.
    /// A lapsed presence is live again, but slots that passed on meanwhile stay lost.
    ///
    /// Atomicity: the member's record. Whose clock: the store's, else `now`, is when it renewed.
    /// On retry: repeat freely; one that comes after a later one changes nothing. `NotFound`: forgotten or
    /// left; join again, then claim again what was lost.
    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()>;

    /// Says what the others are to know of a member: what it answers for, and whom it cannot reach.
    ///
    /// Atomicity: the member's record. Whose clock: none. On retry: repeat freely; one of an earlier revision
    /// changes nothing. `NotFound`: forgotten or left.
    ///
    /// `Unsupported` through servers: who comes so answers for nobody.
    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()>;

    /// Says that a member is gone. Slots that it still holds pass on at once, their marks left
    /// where they are and their terms raised; release them before, at finer marks.
    ///
    /// Atomicity: the member's record and all its slots. Whose clock: the store's, else `now`, is
    /// when the slots were given up. On retry: repeat freely; leaving twice is no error.
    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()>;

    /// All members that are known, live or lapsed, in the order of their incarnations.
    ///
    /// Atomicity: one consistent read. Whose clock: the store's, else `now`, decides who is live.
    /// On retry: repeat freely.
    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>>;

    /// Claims slots that no live member holds, as [`pool::choose`](crate::pool::choose) says:
    /// raises the term of each by one, sets its floor to its mark, and makes the member its holder.
    /// Answers one lease for each slot of the groups chosen.
    ///
    /// Atomicity: presence of all holders, choice, and write. Whose clock: the store's, else `now`,
    /// decides who is live. On retry: repeat with the same request number.
    ///
    /// Refuses with `PoolFull`; `Exhausted` for a pool whose numbers are never used again;
    /// `NotFound` when the member has not joined; `Conflict` when the pool has another shape; `Fenced` when what
    /// this very request took was given up since.
    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>>;

    /// Moves marks forward: each only by the newest term, from exactly where it is. One answer for
    /// each item, in order; one item's refusal touches no other.
    ///
    /// Atomicity: each item, the comparison with the clock included. All that succeed are durable
    /// when the call answers. Whose clock: the store's, else `now`, for
    /// [`Extend::ahead_max_ms`]. On retry: repeat with the same request numbers; what was done is
    /// recognised.
    ///
    /// Items are refused with `Fenced`, `MarkMoved`, `ClockAhead`, `StoreWentBack`, `Invalid`, or
    /// `NotFound` for a slot that was never claimed.
    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>>;

    /// Gives a slot up: raises its term and lowers its mark to the end of everything taken. The
    /// only verb by which a holder lowers a mark. Stop minting from it first, for good.
    ///
    /// Atomicity: the slot. Whose clock: the store's, else `now`, is when it was given up. On
    /// retry: repeat freely; a release that was done is recognised while nobody has claimed since,
    /// and is `Fenced` afterwards. One that says where it saw the mark ([`Release::from`]) is refused
    /// with `MarkMoved` when that is elsewhere.
    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()>;

    /// Takes ordered slots by name, as [`ordered::decide_take`](crate::ordered::decide_take) says:
    /// those that nobody has, and those of members that are silent still, whose records it removes.
    /// Nobody's presence counts, and no clock.
    ///
    /// Atomicity: renewal counts, choice and write, for as many slots at once as the store can write in
    /// one step. Whose clock: the store's, else `now`, for the listing only. On retry: repeat with the
    /// same request number; or with another, which takes them anew.
    ///
    /// Refuses with `NotFound` when the member has not joined; `Conflict` when the pool has another
    /// shape; `Invalid`. A slot that somebody has is no error: see [`Taken::held`].
    async fn take(&self, take: &Take, now: UnixMillis) -> Result<Taken>;

    /// Gives ordered slots up, their marks left where they are and their terms raised. Stop answering
    /// from them first. Also numbers that are lent ([`lend`](crate::lend)), which their marks keep: unlike a
    /// release, it can come late, and lowers nothing.
    ///
    /// Atomicity: each slot. Whose clock: the store's, else `now`, is when they were given up. On retry:
    /// repeat freely; slots that the member does not hold (any more) are passed over.
    async fn let_go(&self, let_go: &LetGo, now: UnixMillis) -> Result<()>;

    /// Keeps slots away from everybody, as [`avoid::decide_avoid`](crate::avoid::decide_avoid) says: sets
    /// their marks to `until` or leaves them above, and raises their terms.
    ///
    /// Atomicity: each slot, the presence of its holder included; of a pool without reuse, its next
    /// number. Whose clock: the store's, else `now`, decides who is live. On retry: repeat freely; what
    /// was done is left as it is.
    ///
    /// Refuses with `Conflict` for a slot that a live member holds, or a pool of another shape; `Invalid`.
    async fn avoid(&self, avoid: &Avoid, now: UnixMillis) -> Result<()>;

    /// The operator's way out when marks of worker numbers lie far ahead of the clock: lowers them, to where nodes that
    /// keep the rules cannot have come, and raises their terms. An operator vouches for it that no ID from the new
    /// mark on is in use. Answers those that were lowered.
    ///
    /// Atomicity: each slot, the presence of its holder and the comparison with the clock included. Whose clock: the
    /// later of the store's and `now`. On retry: repeat freely; a mark that is not far ahead stays as it is.
    ///
    /// Refuses with `NotFound` for a pool or a slot that nobody has had; `Conflict` for one that is avoided, was claimed or
    /// given up since it was looked at, or that a live member holds, unless that is meant; `Invalid` for numbers that
    /// are lent or never used again, and for what are no worker numbers.
    ///
    /// `Unsupported` through servers.
    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>>;

    /// All slots that were ever claimed and are remembered, by pool and slot.
    ///
    /// Atomicity: one consistent read. Whose clock: the store's, else `now`, decides who is live.
    /// On retry: repeat freely.
    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>>;

    /// Takes the next numbers of a source: exactly as many as asked for, or an error; fewer only where
    /// they are bounded ([`Reserve::within`]), or where servers give the caller no more at once.
    ///
    /// Atomicity: definition, mark and version of the source, and the comparison with the clock. Whose
    /// clock: the store's, else the caller's, for [`Bounds::Now`](crate::Bounds::Now); else none. On
    /// retry: a repeat takes other numbers; the first ones, if there were any, are lost (a gap, never a
    /// duplicate).
    ///
    /// Refuses with `NotFound`, `Disabled`, `Conflict` when the definition has changed since the
    /// caller read it, `Exhausted`, `Invalid`; by the clock also with `TickFull`, `ClockBehind` and
    /// `EpochSpent`.
    async fn reserve(&self, reserve: &Reserve) -> Result<Segment>;

    /// Gives the unused end of the newest segment back and answers the new version.
    ///
    /// Atomicity: mark and version of the source. Whose clock: none. On retry: repeat freely; a
    /// repeat of one that was done is `MarkMoved`. Either way, never use these numbers again.
    ///
    /// Refuses with `MarkMoved` when anything was reserved or given back since.
    async fn give_back(&self, back: &GiveBack) -> Result<u64>;

    /// Defines a source, or answers the definition that there is when it is the same.
    ///
    /// Atomicity: comparison and write. Whose clock: none. On retry: repeat freely.
    ///
    /// Refuses with `Conflict`, which shows both sides. A deleted source can be defined again with
    /// the identity that it had, and goes on above its old numbers; `Invalid` when it is told to end below them.
    async fn define(&self, new: &NewDefinition) -> Result<Definition>;

    /// Changes keys of a source that are not part of its identity; with `if_version`, only if
    /// nobody has changed it since.
    ///
    /// Atomicity: comparison and write, the comparison of the mark with where the source is told to end (`until`)
    /// included. Whose clock: none. On retry: repeat freely without `if_version`; with it, a repeat of one that was
    /// done is a `Conflict`.
    ///
    /// Refuses with `Conflict`, `NotFound`, and `Invalid` for an end below what was handed out.
    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition>;

    /// Gives a segment source another identity from a number on, which becomes its mark: its other
    /// stripe. [`decide_restripe`](crate::catalog::decide_restripe) says when.
    ///
    /// Atomicity: comparison of version and mark, definition, and mark. Whose clock: none. On retry: a
    /// repeat of one that was done is a `Conflict`.
    ///
    /// Refuses with `Conflict`, `MarkMoved`, `NotFound`, `Invalid`.
    async fn restripe(&self, restripe: &Restripe) -> Result<Definition>;

    /// Enables, disables or deletes a source. A deleted one leaves a tombstone with its mark and
    /// identity, and comes back by [`define`](Self::define) only.
    ///
    /// Atomicity: the definition. Whose clock: none. On retry: repeat freely.
    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition>;

    /// One definition; `NotFound` for one that was never made or has been deleted.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    async fn get(&self, name: &str) -> Result<Definition>;

    /// All definitions by name, the deleted too, and the version of them all.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    async fn list(&self) -> Result<Catalog>;

    /// The operator's way out after a store was restored: moves marks, numbers and `writes` forward
    /// and never back, and fences every holder, so that nothing that was promised by the lost state
    /// can be promised again. Gives the store a new history, ends its doubt, and forgets what was reported.
    ///
    /// Atomicity: the namespace, and the store's identity. Whose clock: none. On retry: repeat
    /// freely (every repeat fences again).
    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity>;

    /// The operator's way out when a pool is full because marks lie ahead of the clocks: marks up to
    /// `until` are allowed to claims from here on, whatever their own limit, where there is nothing
    /// better. No mark moves. `until` takes the place of what was accepted before; zero: nothing.
    ///
    /// Atomicity: the namespace. Whose clock: none. On retry: repeat freely.
    async fn accept_lead(&self, until: Mark) -> Result<()>;

    /// What holds for the slots of the namespace that nobody has had yet, which [`workers`](Self::workers) does not
    /// list: `Unsupported` where it is not told, as through servers.
    ///
    /// Atomicity: one consistent read. Whose clock: none. On retry: repeat freely.
    async fn ground(&self) -> Result<Ground>;

    /// Writes out what is buffered and gives files and connections back. Later calls are refused
    /// with `Closed`.
    ///
    /// On retry: closing twice is no error.
    async fn close(&self) -> Result<()>;
}

/// What a wrapper of a store answers as the one in its field `$store` does: all but the calls, which each wrapper has
/// its own way with. Goes into its `impl Store`.
#[macro_export]
macro_rules! as_inner {
    ($store:ident) => {
        fn capabilities(&self) -> $crate::Capabilities {
            self.$store.capabilities()
        }

        fn namespace(&self) -> &str {
            self.$store.namespace()
        }

        fn cautions(&self) -> Vec<String> {
            self.$store.cautions()
        }

        fn seen(&self) -> Option<$crate::StoreIdentity> {
            self.$store.seen()
        }

        fn remember(&self, seen: &$crate::StoreIdentity) {
            self.$store.remember(seen);
        }

        fn group_max(&self) -> u32 {
            self.$store.group_max()
        }

        fn owners(&self) -> Option<std::sync::Arc<dyn $crate::Owners>> {
            self.$store.owners()
        }

        fn beside(&self, name: &str) -> Option<std::sync::Arc<dyn $crate::beside::StorePlace>> {
            self.$store.beside(name)
        }

        fn clock_witness(&self) -> Option<std::sync::Arc<dyn $crate::ClockWitness>> {
            self.$store.clock_witness()
        }
    };
}
