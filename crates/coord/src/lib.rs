//! Rights to mint: members, leases and segments, and the store that keeps their marks.
//!
//! The problem: two processes that believe they own the same worker number, or the same range of
//! numbers, mint the same IDs, and no generator can notice. The easy solutions (a number in a
//! configuration file, a session, an ephemeral node, a lock with a time limit) all trust something
//! that can pause, expire or be copied.
//!
//! The solution: before a process mints, a [`Store`] has durably promised it a range that no other
//! process will ever get. Each right to mint has a **mark**, below which everything is promised,
//! and a **term**, which every change of holder raises. Only the newest term moves the mark, and
//! only from exactly where it is. Clocks and presence decide when a right changes hands; uniqueness
//! does not depend on them.
//!
//! The limits: this crate names no database ([`verbs`] are written over any, and [`MemoryStore`]
//! over none) and no protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod error;
pub mod ids;
pub mod journal;
pub mod machine;
pub mod model;
pub mod node;
pub mod platform;
pub mod sources;
pub mod spec;
pub mod stats;
pub mod store;

/// The rooms' public modules, by the paths that other crates use.
pub use error::label;
pub use model::{
    catalog, exclude, exclusive, external, history, lease, member, pool, reclaim, segment, slot,
    ticks,
};
pub use node::recovery;
pub use platform::{batcher, private, random, timer};
pub use store::{memory, owner_client, upstream, verbs};

pub use error::{Error, ErrorKind, ErrorParts, Holder, PoolFull, Result, Retry, Verb, VerbKind};
/// A boxed future. Each crate that awaits an `async fn` compiles it again. Long functions that are
/// awaited once, such as opening a store, are compiled once behind this type.
pub use futures_util::future::BoxFuture;
pub use ids::{Incarnation, Mark, Term};
pub use model::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
pub use model::exclude::Exclude;
pub use model::exclusive::{Acquire, Acquired, Relinquish, StalledMember};
pub use model::external::{ExternalClient, ExternalLease, ExternalLeaseStatus};
pub use model::fast_forward::FastForward;
pub use model::history::{
    Doubt, Evidence, History, JournalInfo, Known, OthersInDoubt, Proof, Recalled, Standing, Starts,
    StoreIdentity,
};
pub use model::lease::{Extend, Extended, Lease, Release, SlotRow};
pub use model::member::{Member, MemberInfo, MemberStatus, Presence, Serves};
pub use model::pool::{ClaimRequest, Pool, Preference, Reuse, is_worker_pool, pool_of};
pub use model::reclaim::{Reclaim, Reclaimed};
pub use model::segment::{Bounds, GiveBack, Reserve, Segment};
pub use model::slot::SlotInfo;
pub use model::ticks::Ticks;
pub use node::forecast::{Forecast, PoolUse, forecast};
pub use node::{
    AfterCrash, DefinedRoom, END_MS, Listed, NewStripe, Node, NodeSettings, OwnSources,
    PermittedPools, Platform, Readiness, Reason, SourceInfo,
};
pub use platform::fork_guard::ForkGuard;
pub use platform::lock::lock;
pub use platform::timer::{BootTimer, ManualTimer, Timer, within};
pub use sources::{
    BOUND_MAX, Decoded, EmptyHook, FullHook, IdBatch, NumberLane, NumberRange, NumberStats,
    PrefillHooks, PrefillStats, RetryPolicy, SectionAssignment, SegmentHandle, Source, SourceStats,
    StoreStatus,
};
pub use spec::SourceSpec;
pub use stats::{NodeStats, StepCount, StoreCalls, Times, TimesSeen};
pub use store::capability::{Capabilities, ClockOf, PresenceBy};
pub use store::lazy_store::{LazyStore, Opening};
pub use store::memory::{MemoryBackup, MemoryClock, MemoryStore};
pub use store::owner_client::OwnerClient;
pub use store::time_reference::TimeReference;
pub use store::upstream::{Upstream, Upstreams};
pub use store::{Store, StoreCall, StoreConnector, StoreReply};

/// Examples of the README, tested as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
