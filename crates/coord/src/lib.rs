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

pub mod batcher;
pub mod capability;
pub mod catalog;
pub mod error;
pub mod exclude;
pub mod exclusive;
pub mod external;
pub mod forecast;
mod fork_guard;
pub mod history;
pub mod journal;
pub mod json;
pub mod label;
mod lazy_store;
pub mod lease;
pub mod machine;
pub mod member;
pub mod memory;
mod mint_errors;
pub mod node;
pub mod owner_client;
pub mod pool;
pub mod private;
pub mod random;
mod reads;
pub mod reclaim;
pub mod recovery;
pub mod secondary;
pub mod segment;
pub mod slot;
pub mod sources;
pub mod spec;
pub mod stats;
pub mod store;
pub mod ticks;
mod time_reference;
pub mod timer;
pub mod upstream;
pub mod verbs;
mod waiters;

pub use capability::{Capabilities, ClockOf, PresenceBy};
pub use catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
pub use error::{Error, ErrorKind, ErrorParts, Holder, PoolFull, Result, Retry, Verb};
pub use exclude::Exclude;
pub use exclusive::{Acquire, Acquired, Relinquish, StalledMember};
pub use external::{ExternalClient, ExternalLease, ExternalLeaseStatus};
pub use forecast::{Forecast, PoolUse, forecast};
pub use fork_guard::ForkGuard;
/// A boxed future. Each crate that awaits an `async fn` compiles it again. Long functions that are
/// awaited once, such as opening a store, are compiled once behind this type.
pub use futures_util::future::BoxFuture;
pub use history::{Doubt, Evidence, History, JournalInfo, Known, Recalled, Standing, Starts};
pub use lazy_store::{LazyStore, Opening};
pub use lease::{ClaimRequest, Extend, Extended, Lease, Mark, Preference, Release, SlotRow, Term};
pub use member::{Incarnation, Member, MemberInfo, MemberStatus, Presence, Serves};
pub use memory::{MemoryBackup, MemoryClock, MemoryStore};
pub use node::{
    AfterCrash, DefinedRoom, END_MS, Listed, NewStripe, Node, NodeSettings, OwnSources,
    PermittedPools, Platform, Readiness, Reason, SourceInfo,
};
pub use owner_client::OwnerClient;
pub use pool::{Pool, Reuse, is_worker_pool, pool_of};
pub use reclaim::{Reclaim, Reclaimed};
pub use secondary::StoreConnector;
pub use segment::{Bounds, GiveBack, Reserve, Segment};
pub use slot::SlotInfo;
pub use sources::{
    BOUND_MAX, Decoded, EmptyHook, FullHook, IdBatch, NumberLane, NumberRange, NumberStats,
    PrefillHooks, PrefillStats, RetryPolicy, SectionAssignment, SegmentHandle, Source, SourceStats,
    StoreStatus,
};
pub use spec::SourceSpec;
pub use stats::{NodeStats, StepCount, StoreCalls, Times, TimesSeen};
pub use store::{FastForward, Store, StoreIdentity};
pub use ticks::Ticks;
pub use time_reference::TimeReference;
pub use timer::{BootTimer, ManualTimer, Timer};
pub use upstream::{Upstream, Upstreams};

/// Examples of the README, tested as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
