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

pub mod beside;
pub mod capability;
pub mod catalog;
mod clock_witness;
pub mod error;
pub mod exclude;
pub mod forecast;
pub mod history;
mod home;
pub mod journal;
pub mod json;
pub mod label;
mod late;
pub mod lease;
pub mod lend;
pub mod machine;
pub mod member;
pub mod memory;
pub mod node;
pub mod ordered;
pub mod owners;
pub mod pool;
pub mod private;
pub mod random;
mod reads;
pub mod reclaim;
pub mod recovery;
mod refusal;
pub mod relay;
pub mod segment;
pub mod slot;
pub mod sources;
pub mod spec;
pub mod stats;
pub mod store;
pub mod ticks;
pub mod timer;
pub mod upstream;
pub mod verbs;
mod waiters;

pub use capability::{Capabilities, ClockOf, PresenceBy};
pub use catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
pub use clock_witness::ClockWitness;
pub use error::{Error, ErrorKind, ErrorParts, Holder, PoolFull, Result, Retry, Verb};
pub use exclude::Exclude;
pub use forecast::{Forecast, PoolUse, forecast};
/// A boxed future. Each crate that awaits an `async fn` compiles it again. Long functions that are
/// awaited once, such as opening a store, are compiled once behind this type.
pub use futures_util::future::BoxFuture;
pub use history::{Doubt, Evidence, History, JournalInfo, Known, Recalled, Standing, Starts};
pub use home::Home;
pub use late::{LateStore, Opening};
pub use lease::{ClaimRequest, Extend, Extended, Lease, Mark, Preference, Release, SlotRow, Term};
pub use lend::{Borrower, Lent, Loan};
pub use member::{Incarnation, Member, MemberInfo, MemberStatus, Presence, Serves};
pub use memory::{MemoryBackup, MemoryClock, MemoryStore};
pub use node::{
    AfterCrash, DefinedRoom, END_MS, Listed, NewStripe, Node, NodeSettings, OwnSources, Parts,
    Readiness, Reason, Shapes, SourceInfo,
};
pub use ordered::{Acquire, Acquired, Relinquish, Silent};
pub use owners::Owners;
pub use pool::{Pool, Reuse, is_worker_pool, pool_of};
pub use reclaim::{Reclaim, Reclaimed};
pub use segment::{Bounds, GiveBack, Reserve, Segment};
pub use slot::SlotInfo;
pub use sources::{
    BOUND_MAX, Decoded, NumberLane, NumberStats, Numbers, OnEmpty, OnFull, Patience, PrefillHooks,
    PrefillStats, Row, Shares, Source, SourceStats, StoreStatus, Values,
};
pub use spec::SourceSpec;
pub use stats::{NodeStats, StepCount, StoreCalls, Times, TimesSeen};
pub use store::{FastForward, Store, StoreIdentity};
pub use ticks::Ticks;
pub use timer::{BootTimer, ManualTimer, Timer};
pub use upstream::{Upstream, Upstreams};

/// Examples of the README, tested as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
