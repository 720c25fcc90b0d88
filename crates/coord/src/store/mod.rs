//! The store: it holds the marks, and its verbs speak the language of the domain.

pub(crate) mod call;
pub mod capability;
pub(crate) mod lazy_store;
pub mod memory;
pub mod owner_client;
pub(crate) mod reads;
pub(crate) mod time_reference;
pub mod upstream;
pub mod verbs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use snowmint_core::UnixMillis;

use crate::error::{Result, Verb, VerbKind, VerbRow};
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
use crate::model::exclude::Exclude;
use crate::model::exclusive::{Acquire, Acquired, Relinquish};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, Evidence, JournalInfo, Known, Recalled, Standing, StoreIdentity,
};
use crate::model::lease::{Extend, Extended, Lease, Release};
use crate::model::member::{Member, MemberInfo, MemberStatus, Presence};
use crate::model::pool::{ClaimRequest, SlotDefaults};
use crate::model::reclaim::{Reclaim, Reclaimed};
use crate::model::segment::{GiveBack, Reserve, Segment};
use crate::model::slot::SlotInfo;
use crate::store::call::{Argument, store_calls};
use crate::store::capability::Capabilities;
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;

/// Location of a store. The store is opened when a source needs it, with retries until it responds:
/// its absence does not prevent a start.
#[async_trait]
pub trait StoreConnector: fmt::Debug + Send + Sync {
    /// Opens the store.
    ///
    /// # Errors
    /// The store's own error.
    async fn open(&self) -> Result<Arc<dyn Store>>;
}

/// Store locations, by the names that sources use.
pub type StoreConnectors = BTreeMap<String, Arc<dyn StoreConnector>>;

store_calls! {
    /// One namespace of one store.
    ///
    /// Every verb is one atomic step; some take several for many slots. Either all of a step
    /// happens or nothing, whichever other calls are made meanwhile. Each verb documents how a call
    /// may be repeated when its outcome is unknown
    /// ([`Unavailable`](crate::ErrorKind::Unavailable)).
    ///
    /// `now` is the caller's wall clock. A store with a clock of its own ([`now`](Self::now)
    /// returns a time) ignores it; the other stores take it as the time.
    ///
    /// The function of a verb only makes a [`call`](Self::call), and returns its reply. A store
    /// implements `call` alone: a verb with another body would do something else when it is called
    /// through a store that wraps this one.
    ///
    /// The rules are pure functions in [`model`](crate::model). A store loads the rows that they
    /// need, calls them, and writes their results, in one atomic step. The contract suite of the
    /// test kit checks every store against the rules.
    trait Store {
        /// Returns the capabilities of this store.
        fn capabilities(&self) -> Capabilities;

        /// Returns the namespace that this handle acts in.
        fn namespace(&self) -> &str;

        /// Returns warnings for an operator, in full sentences: features that this handle lacks,
        /// such as a permission or a setting that the store could use. Empty when nothing is
        /// missing.
        fn warnings(&self) -> Vec<String>;

        /// Returns the largest [`group`](crate::Pool::group) that can be claimed here: the clock
        /// values of one worker are claimed in one atomic step. `u32::MAX` where it is unlimited.
        fn group_max(&self) -> u32;

        /// Returns a client of the servers that own counter sections and global-order sources
        /// instead of this process. Usually `None`: each process owns the slots that it acquires.
        fn owner_client(&self) -> Option<Arc<dyn OwnerClient>>;

        /// Returns the location of the secondary store that sources call `name`, if this store
        /// provides it. Usually `None`.
        fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>>;

        /// Returns a time reference for nodes, where the store has no clock. Usually `None`.
        fn time_reference(&self) -> Option<Arc<dyn TimeReference>>;

        /// Returns the store state that this handle saw last, for the caller to remember. `None`
        /// before the first step, and for handles that remember nothing. It stays unchanged while
        /// the store lacks some of that state.
        fn seen(&self) -> Option<StoreIdentity>;

        /// Makes this handle compare the store with the state that an earlier process saw, from its
        /// first step on: the address may lead to another store before the store is
        /// [recalled](Self::recall). Does nothing where the handle has seen the store itself, where
        /// `seen` is empty, and for handles that remember nothing.
        fn remember(&self, seen: &StoreIdentity);

        /// Carries out a call, and returns the reply of its verb.
        fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>>;

        /// Writes out buffers and closes files and connections. Later calls fail with `Closed`. On
        /// retry: repeat freely.
        fn close(&self) -> BoxFuture<'_, Result<()>>;
    }

    /// Returns the time of the store's own clock, if it has one.
    ///
    /// Atomicity: none needed. Clock: the store's. On retry: repeat freely.
    Now(Read): fn now() -> Option<UnixMillis>;

    /// Returns the identity of this store, and its count of durable changes.
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    Identity(Read): fn identity() -> StoreIdentity;

    /// Checks whether the store has everything that `who` saw of it (`seen`; empty: nothing).
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    ///
    /// Fails with `StoreMismatch`; `StoreRolledBack` when something is missing, or in doubt.
    Recall(Read): fn recall(who: &'a str, seen: &'a StoreIdentity) -> Recalled;

    /// Puts the store in doubt, after a process saw more than the store has. From then on, every
    /// verb that issues, moves or renews anything fails with `StoreRolledBack` for every caller,
    /// until an operator has [moved the store forward](Self::fast_forward). The step also leaves a
    /// start: the missing state stays detectable. [`Evidence::proof`] says what else is a reason.
    ///
    /// The call changes nothing in three cases. The store is in doubt already. Its identity, in its
    /// history, differs from the identity in the evidence, so it may have been recovered since. Or
    /// it has everything that is compared, and that this handle saw: the address may have led
    /// elsewhere and back.
    ///
    /// Atomicity: the store's identity, and all data compared. Clock: none. On retry: repeat
    /// freely.
    ///
    /// `Unsupported` through servers: the server itself detects store rollbacks.
    Doubt(Write): fn doubt(doubt: &'a Doubt, evidence: &'a Evidence) -> ();

    /// Records a journal, and its knowledge if the caller sends it. A report without an ID is not
    /// listed: it comes from a process without a journal.
    ///
    /// Atomicity: the journal's record. Clock: the caller's. On retry: repeat freely.
    Report(Write): fn report(journal: &'a JournalInfo, known: Option<&'a Known>) -> ();

    /// Returns whether the store is in doubt, the journals that have joined, and their reports.
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    Standing(Read): fn standing() -> Standing;

    /// Records a member, or renews it if it is known.
    ///
    /// Atomicity: the member's record. Clock: the store's, else `now`, gives the time of the
    /// renewal. On retry: repeat freely; a call that arrives after a later renewal changes nothing.
    Join(Write): fn join(member: &'a Member, presence: Presence, now: UnixMillis) -> ();

    /// Renews a member's presence: once a period for each process, however many slots it holds. An
    /// expired presence is live again, but slots that changed hands meanwhile stay lost.
    ///
    /// Atomicity: the member's record. Clock: the store's, else `now`, gives the time of the
    /// renewal. On retry: repeat freely; a call that arrives after a later one changes nothing.
    /// `NotFound`: removed or left; join again, then claim the lost slots again.
    Renew(Write): fn renew(member: Incarnation, presence: Presence, now: UnixMillis) -> ();

    /// Publishes a member's status: work that it is available for, and unreachable peers.
    ///
    /// Atomicity: the member's record. Clock: none. On retry: repeat freely; a status of an earlier
    /// revision changes nothing. `NotFound`: the member was removed or has left.
    ///
    /// `Unsupported` through servers: members that join there never own sections.
    Announce(Write): fn announce(member: Incarnation, status: &'a MemberStatus) -> ();

    /// Removes a member. Slots that it still holds become free at once, with their marks unchanged
    /// and their terms raised; release them before, at finer marks.
    ///
    /// Atomicity: each slot; the member's record goes with the last ones. Clock: the store's, else
    /// `now`, dates the releases. On retry: repeat freely.
    Leave(Write): fn leave(member: Incarnation, now: UnixMillis) -> ();

    /// Returns all known members, live or expired, in the order of their incarnations.
    ///
    /// Atomicity: one consistent read. Clock: the store's, else `now`, decides which are live. On
    /// retry: repeat freely.
    Members(Read): fn members(now: UnixMillis) -> Vec<MemberInfo>;

    /// Claims slots that no live member holds, by the rules of
    /// [`pool::choose`](crate::model::pool::choose): raises the term of each by one, sets its floor to its
    /// mark, and makes the member its holder. Returns one lease for each slot of the chosen groups.
    ///
    /// Atomicity: presence of all holders, choice, and write. Clock: the store's, else `now`,
    /// decides which members are live. On retry: repeat with the same request number.
    ///
    /// Fails with `PoolFull`; `Exhausted` for a pool without reuse; `NotFound` when the member has
    /// not joined; `Conflict` when the pool has another shape; `Fenced` when this request's slots
    /// were given up since.
    Claim(Grant): fn claim(request: &'a ClaimRequest, now: UnixMillis) -> Vec<Lease>;

    /// Moves marks forward: each only by the newest term, from exactly where it is. Returns one
    /// result for each item, in order; an item's failure does not affect the others.
    ///
    /// Atomicity: each item, the comparison with the clock included. All successful items are
    /// durable when the call returns. Clock: the store's, else `now`, for [`Extend::ahead_max_ms`].
    /// On retry: repeat with the same request numbers; done moves are recognised.
    ///
    /// Items fail with `Fenced`, `MarkMoved`, `ClockAhead`, `StoreRolledBack`, `Invalid`, or
    /// `NotFound` for a slot never claimed.
    Extend(Grant): fn extend(items: &'a [Extend], now: UnixMillis) -> Vec<Result<Extended>>;

    /// Releases a slot: raises its term and lowers its mark to the end of everything used. No other
    /// verb lets a holder lower a mark. Stop minting from the slot first, for good.
    ///
    /// Atomicity: the slot. Clock: the store's, else `now`, gives the time of the release. On
    /// retry: repeat freely; a completed release is recognised until the slot is claimed again, and
    /// is `Fenced` afterwards. A release with the mark that the caller saw ([`Release::from`])
    /// fails with `MarkMoved` when the mark is above, and with `StoreRolledBack` when it is below.
    Release(Write): fn release(release: &'a Release, now: UnixMillis) -> ();

    /// Acquires exclusive slots by name, by the rules of
    /// [`exclusive::decide_acquire`](crate::model::exclusive::decide_acquire): free slots, and slots of
    /// members still stalled, with removal of their records. Presences and clocks do not count.
    ///
    /// Atomicity: renewal counts, choice and write, for at most 500 slots at once, or for as many as
    /// the store writes in one step. Clock: the store's, else `now`, for the listing only. On retry:
    /// repeat with the same request number; or with another, which acquires them again.
    ///
    /// Fails with `NotFound` when the member has not joined; `Conflict` when the pool has another
    /// shape; `Invalid`. A slot of another holder causes no error: see [`Acquired::held`].
    Acquire(Grant): fn acquire(acquire: &'a Acquire, now: UnixMillis) -> Acquired;

    /// Relinquishes exclusive slots, with their marks unchanged and their terms raised. Stop
    /// responding from them first. Also relinquishes numbers of external leases
    /// ([`external`](crate::model::external)), which their marks protect: unlike a release, the call can
    /// arrive late, and lowers nothing.
    ///
    /// Atomicity: each slot. Clock: the store's, else `now`, dates the releases. On retry: repeat
    /// freely; slots that the member does not hold (any more) are skipped.
    Relinquish(Write): fn relinquish(relinquish: &'a Relinquish, now: UnixMillis) -> ();

    /// Excludes slots, by the rules of [`exclude::decide_exclude`](crate::model::exclude::decide_exclude):
    /// raises their marks to `until`, leaves higher marks unchanged, and raises their terms.
    ///
    /// Atomicity: each slot, the presence of its holder included; of a pool without reuse, its next
    /// number. Clock: the store's, else `now`, decides which members are live. On retry: repeat
    /// freely; completed exclusions stay unchanged.
    ///
    /// Fails with `Conflict` for a slot that a live member holds, or a pool of another shape;
    /// `Invalid`.
    Exclude(Operate): fn exclude(exclude: &'a Exclude, now: UnixMillis) -> ();

    /// Reclaims worker numbers with marks far ahead of the clock: lowers the marks to where nodes
    /// that keep the rules cannot have come, and raises their terms. An operator vouches that no ID
    /// from the new mark on is in use. Returns the lowered numbers.
    ///
    /// Atomicity: each slot, the presence of its holder and the comparison with the clock included.
    /// Clock: the later of the store's and `now`. On retry: repeat freely; a mark that is not far
    /// ahead stays unchanged.
    ///
    /// Fails with `NotFound` for an unknown pool or a slot that was never claimed. Fails with
    /// `Conflict` for a slot that is excluded, that changed hands since the operator read it, or
    /// that a live member holds, unless the request includes these. `Invalid` for external leases,
    /// pools without reuse, and slots of other kinds. `Unsupported` through servers.
    Reclaim(Operate): fn reclaim(reclaim: &'a Reclaim, now: UnixMillis) -> Vec<Reclaimed>;

    /// Returns all slots that were ever claimed and are remembered, by pool and slot.
    ///
    /// Atomicity: one consistent read. Clock: the store's, else `now`, decides which are live. On
    /// retry: repeat freely.
    Workers(Read): fn workers(now: UnixMillis) -> Vec<SlotInfo>;

    /// Reserves the next numbers of a source: exactly the requested count, or an error. Fewer only
    /// where they are bounded ([`Reserve::within`]), or where servers give the caller no more at
    /// once.
    ///
    /// Atomicity: definition, mark and version of the source, and the comparison with the clock.
    /// Clock: the store's, else the caller's, for [`Bounds::Now`](crate::Bounds::Now) alone. On
    /// retry: a repeat takes other numbers; the first ones, if any, are lost (a gap, never a
    /// duplicate).
    ///
    /// Fails with `NotFound`, `Disabled`, `Exhausted`, `Invalid`; `Conflict` when the definition
    /// changed since the caller read it; by the clock also with `TickFull`, `ClockBehind`,
    /// `EpochSpent`.
    Reserve(Grant): fn reserve(reserve: &'a Reserve) -> Segment;

    /// Gives the unused end of the newest segment back and returns the new version.
    ///
    /// Atomicity: mark and version of the source. Clock: none. On retry: repeat freely; a repeat of
    /// a completed call is `MarkMoved`. Either way, never use these numbers again.
    ///
    /// Fails with `MarkMoved` when anything was reserved or given back since.
    GiveBack(Write): fn give_back(back: &'a GiveBack) -> u64;

    /// Defines a source, or returns the existing definition when it is the same.
    ///
    /// Atomicity: comparison and write. Clock: none. On retry: repeat freely.
    ///
    /// Fails with `Conflict`, which shows both sides. A deleted source can be defined again with
    /// its former identity, and continues above its old numbers; `Invalid` when its end (`until`)
    /// lies below them.
    Define(Write): fn define(new: &'a NewDefinition) -> Definition;

    /// Changes keys of a source that are not part of its identity; with `if_version`, only if the
    /// source is unchanged since that version.
    ///
    /// Atomicity: comparison and write, the comparison of the mark with the source's end (`until`)
    /// included. Clock: none. On retry: repeat freely without `if_version`; with it, a repeat of a
    /// completed call is a `Conflict`.
    ///
    /// Fails with `Conflict`, `NotFound`, and `Invalid` for an end below issued numbers.
    Alter(Write): fn alter(new: &'a NewDefinition, if_version: Option<u64>) -> Definition;

    /// Gives a segment source another identity, its new stripe, from a number on, which becomes its
    /// mark. [`decide_restripe`](crate::model::catalog::decide_restripe) has the conditions.
    ///
    /// Atomicity: comparison of version and mark, definition, and mark. Clock: none. On retry: a
    /// repeat of a completed call is a `Conflict`.
    ///
    /// Fails with `Conflict`, `MarkMoved`, `NotFound`, `Invalid`.
    Restripe(Write): fn restripe(restripe: &'a Restripe) -> Definition;

    /// Enables, disables or deletes a source. A deleted source leaves a tombstone with its mark and
    /// identity; only [`define`](Self::define) restores it.
    ///
    /// Atomicity: the definition. Clock: none. On retry: repeat freely.
    SetState(Write): fn set_state(name: &'a str, state: SourceState) -> Definition;

    /// Returns one definition; `NotFound` for a source never defined, or deleted.
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    Get(Read): fn get(name: &'a str) -> Definition;

    /// Returns all definitions by name, deleted ones included, and the catalog's version.
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    List(Read): fn list() -> Catalog;

    /// Recovers the store after a restore: moves marks, numbers and `writes` forward and never
    /// back, and fences every holder. After it, nothing that the lost state promised can be
    /// promised again. Gives the store a new history, ends its doubt, and removes the reports.
    ///
    /// With [`values_only`](FastForward::values_only) it raises values and fences no holder, like any
    /// other write: a store in doubt rejects it, and one that lacks what this handle has seen.
    ///
    /// Atomicity: the namespace, and the store's identity. Clock: none. On retry: repeat freely;
    /// each repeat fences again.
    ///
    /// Fails with `Unsupported` for a recovery through servers.
    FastForward(Operate): fn fast_forward(forward: &'a FastForward) -> StoreIdentity;

    /// Accepts a lead of IDs over the clocks, when a pool is full because marks lie ahead. From now
    /// on claims may use marks up to `until`, whatever their own limit, where no better slot is
    /// free. No mark moves. `until` replaces the lead accepted before; zero accepts none.
    ///
    /// Atomicity: the namespace. Clock: none. On retry: repeat freely.
    AcceptLead(Operate): fn accept_lead(until: Mark) -> ();

    /// Returns the defaults for the namespace's slots that were never claimed, which
    /// [`workers`](Self::workers) does not list. `Unsupported` through servers.
    ///
    /// Atomicity: one consistent read. Clock: none. On retry: repeat freely.
    Ground(Read): fn ground() -> SlotDefaults;
}

/// Implements the methods that a store's wrapper takes from the store in its field `$store`: all
/// except `call`, which each wrapper implements itself. Goes into its `impl Store`.
#[macro_export]
macro_rules! as_inner {
    ($store:ident) => {
        fn capabilities(&self) -> $crate::Capabilities {
            self.$store.capabilities()
        }

        fn namespace(&self) -> &str {
            self.$store.namespace()
        }

        fn warnings(&self) -> Vec<String> {
            self.$store.warnings()
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

        fn owner_client(&self) -> Option<std::sync::Arc<dyn $crate::OwnerClient>> {
            self.$store.owner_client()
        }

        fn secondary_store(
            &self,
            name: &str,
        ) -> Option<std::sync::Arc<dyn $crate::StoreConnector>> {
            self.$store.secondary_store(name)
        }

        fn time_reference(&self) -> Option<std::sync::Arc<dyn $crate::TimeReference>> {
            self.$store.time_reference()
        }

        fn close(&self) -> $crate::BoxFuture<'_, $crate::Result<()>> {
            self.$store.close()
        }
    };
}
