//! Generators: whatever the clock does, each ID is minted once.
//!
//! | type | shared by threads | order | for |
//! |---|---|---|---|
//! | [`Generator`] | yes, lock-free | strictly increasing | almost everything |
//! | [`Lane`] | one thread each, on one generator | increasing within the lane | the hottest loops |
//! | [`LocalGenerator`] | no | strictly increasing | a worker number that one thread owns |
//! | [`ClockSequence`] | yes, lock-free | increasing until a clock rollback | layouts with clock bits (article 000) |
//! | [`Ring`] | yes, lock-free | increasing until a clock rollback | the last IDs of 200 ticks (article 003) |
//!
//! None of them is persistent: a lease grants the [`Window`](crate::Window) that a restart needs.

mod clock_sequence;
mod engine;
mod error;
mod lane;
mod local;
mod ring;
mod settings;
mod shape;
mod shards;
mod shared;
mod wait;
mod wait_policy;

pub use clock_sequence::ClockSequence;
pub use error::{MintError, Short};
pub use lane::Lane;
pub use local::LocalGenerator;
pub use ring::{RING_CELLS, Ring};
pub use settings::{
    BORROW_LEAD_MAX_MS, HOLD_LEAD_MAX_MS, MINT_WAIT_MAX_MS, Rollback, Settings, WAIT_FIXED_MS,
    WAIT_OFFSET_MAX_MS, WaitFor,
};
pub use shape::GRANT_MAX;
pub use shards::{ShardsError, check_shards, shards_max};
pub use shared::{Generator, Stats};
pub use wait_policy::{WaitPolicy, WaitStep};

#[cfg(all(test, snowmint_loom))]
mod interleavings;
#[cfg(all(test, not(snowmint_loom)))]
mod tests;
