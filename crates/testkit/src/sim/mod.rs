//! A simulated world: several machines on one store, a network that fails in every way, clocks that
//! go wrong, disks and processes that die. Everything follows from a seed, so a failure can be
//! replayed.
//!
//! **Failures.** Requests and responses get lost, come late (up to minutes, when their sender is
//! long gone), come twice, overtake each other, or stay without a response. One request delays all
//! others for a while. Reads may come from a server that lags, as ZooKeeper allows. The store dies
//! and returns. Its address leads to another store, or to a lagging replica, and back. The store is
//! restored to an older state, also under running nodes, by an operator who follows the documents.
//! After a silent restore, each process that has seen more must reject it, until an operator
//! recovers it, or for ever. Wall clocks drift, step, freeze and oscillate. Elapsed clocks run at
//! different rates, and continue while a process is frozen, for longer than any lease, also in the
//! middle of a call. Processes are killed between any two steps of journal and store, and machines
//! die in the middle of a write. Data directories are copied to other machines, and restored to an
//! older state. Definitions are altered, and a source of numbers gets other stripes, while some
//! nodes do not learn of it; a restored store has the former definitions.
//!
//! **Checks** are made at every step, and have names: [`Check`]. At the end, when the trouble is
//! over, all processes mint again within [`RESUME_MS`]; or none mints, where no operator has
//! recovered the store.
//!
//! **Left out,** because it lies outside the promise:
//! - a store and all journals that are rolled back together (segments cannot see it);
//! - a store that loses what it acknowledged, under its old identity, and is first reached by a
//!   process that has not seen the lost writes;
//! - a process without a journal that first meets another store at the address of its own;
//! - elapsed clocks that differ by more than one part in ten;
//! - a whole disk that is cloned with its machine's identity while the original runs;
//! - the memory of a process that is cloned;
//! - a journal that is restored, within three seconds of being written, with its times kept.
//!
//! The order over all processes is not checked where the store is restored.

mod common_faults;
mod counting;
mod density;
mod disk;
mod doubt;
mod forwarding;
mod happened;
mod keys;
mod lives;
mod machine;
mod many;
mod monotonicity;
mod network;
mod oracle;
mod other_store;
mod planted;
mod random;
mod rare_faults;
mod reclaim;
mod recording_store;
mod recovery;
mod server;
mod sources;
mod store;
mod time;
mod wall;
mod world;

use std::collections::BTreeMap;

pub use crate::history::{Check, Violation};
pub use many::{Progress, Tally, run_many};
pub use planted::Bug;
use world::World;

/// Start of the wall clock: 2026-06-01T00:00:00Z.
const START_MS: u64 = 1_780_272_000_000;
/// The environment variable that replays one seed.
pub const SEED_VARIABLE: &str = "SNOWMINT_SIM_SEED";
/// Default number of events in a run.
pub const STEPS: u32 = 200;
/// Time in milliseconds after the end of the trouble within which all processes mint again: the
/// longest delay of a message or lead of a window, and some time for retries.
pub const RESUME_MS: u64 = 240_000;

/// Kind of trouble in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The network fails, processes are killed and frozen, the address of the store leads to
    /// another one for a while; clocks stay within 2 s. All processes must recover without a
    /// restart.
    Network,
    /// Clocks go wrong, too, by anything up to decades. A process that has seen such a clock may
    /// have to wait for it, or be restarted.
    Clocks,
    /// The store is restored to an older state; data directories are restored, too, or copied; a
    /// lagging replica takes over.
    Restores,
    /// Every slot's mark is pushed ahead, and an operator lowers some of them. Processes that may
    /// lead the clock mint at once, when allowed such a lead; the others mint once the clock has
    /// reached the mark.
    Poisoned,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Network, Self::Clocks, Self::Restores, Self::Poisoned];
}

/// Result of a run that kept every promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// Number of minted IDs.
    pub minted: usize,
    /// Digest of all minted IDs: equal for equal seeds.
    pub digest: u64,
    /// Next number of the seed's generator: equal where as much was left to chance.
    pub next_random: u64,
    /// Events and their counts.
    pub happened: BTreeMap<&'static str, u64>,
}

/// Runs a world from a seed for `steps` events. With a planted bug, only the check that must find
/// it ends the run.
///
/// # Errors
/// The broken promise.
pub fn try_run(
    seed: u64,
    profile: Profile,
    steps: u32,
    bug: Option<Bug>,
) -> Result<RunOutcome, Violation> {
    // Nothing comes from outside, so the runtime need not poll for it while there is a task to run.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.event_interval(u32::MAX).build().unwrap();
    runtime.block_on(World::new(seed, profile, bug).run(steps))
}
