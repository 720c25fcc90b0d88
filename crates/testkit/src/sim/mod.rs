//! A simulated world: several machines on one store, a network that fails in every way, clocks that
//! go wrong, disks and processes that die. Everything follows from a seed, so a failure can be
//! replayed.
//!
//! **What fails.** Requests and answers are lost, late (up to minutes, when their sender is long
//! gone), sent twice, overtake each other, or are never answered; one holds all others up for a while. What
//! is only read may be read from a server that lags, as ZooKeeper allows. The store dies and comes back. Its
//! address leads to another store, or to a replica that lags, and back. It is put back to an older state, under
//! nodes that run as well, by an operator who follows the documents; or silently, and then whoever has seen more
//! must refuse it, until an operator recovers it, or for ever. Wall clocks drift, step, freeze and oscillate;
//! elapsed clocks run at different rates, and go on while a process is frozen, for longer than any lease, in the
//! middle of a call too. Processes are killed between any two steps of journal and store, and machines die in
//! the middle of a write. Data directories are copied to other machines, and put back to an older
//! state. Definitions are altered, and a source of numbers gets other stripes, while some do not hear of it; a store that is
//! put back has them as they were.
//!
//! **What is checked,** at every step, has names: [`Check`]. At the end, when the trouble is over, everybody
//! mints again within [`RESUME_MS`], or, where nobody has recovered the store, nobody mints.
//!
//! **What is left out,** because it lies outside the promise: a store and all journals that are
//! rolled back together (segments cannot see that); a store that loses what it acknowledged, under
//! its old identity, and is first reached by a process that has not seen what was lost; a process without a journal
//! that first meets another store at the address of its own; elapsed clocks that differ by more than one part in ten; a whole disk
//! that is cloned with its machine's identity while the original runs; the memory of a process that is cloned; and a
//! journal that is put back, within three seconds of being written, with its times kept. The order over all
//! processes is not checked where the store is put back.

mod dense;
mod disk;
mod door;
mod doubt;
mod elsewhere;
mod happened;
mod heal;
mod keys;
mod lives;
mod machine;
mod many;
mod network;
mod ordeal;
mod passing;
mod planted;
mod random;
mod reclaim;
mod rising;
mod server;
mod sources;
mod store;
mod time;
mod trouble;
mod truth;
mod wall;
mod world;

use std::collections::BTreeMap;

pub use crate::history::{Check, Violation};
pub use many::{Progress, Tally, run_many};
pub use planted::Bug;
use world::World;

/// 2026-06-01T00:00:00Z.
const START_MS: u64 = 1_780_272_000_000;
/// The environment variable that replays one seed.
pub const SEED_VARIABLE: &str = "SNOWMINT_SIM_SEED";
/// How much happens in a run, where nothing else is said.
pub const STEPS: u32 = 200;
/// When the trouble has ended, everybody mints again within this many milliseconds. The longest that
/// a message is late or a window ahead, and some time to ask again.
pub const RESUME_MS: u64 = 240_000;

/// How a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The network fails, processes are killed and frozen, the address of the store leads to another one for a
    /// while; clocks stay within 2 s. Everybody must recover without being restarted.
    Network,
    /// Clocks go wrong besides, by anything up to decades. Who has seen such a clock may have to wait
    /// for it, or be restarted.
    Clocks,
    /// The store is put back to an older state, and so are data directories, or copied; a replica that lags takes
    /// over.
    Restores,
    /// Every slot's mark is pushed ahead, and an operator takes some of them back. Whoever may lead the clock mints at once,
    /// when told that it may lead so far; the others once the clock has come there.
    Poisoned,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Network, Self::Clocks, Self::Restores, Self::Poisoned];
}

/// What became of a run that kept every promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many IDs were minted.
    pub minted: usize,
    /// Of everything that was minted: equal for equal seeds.
    pub digest: u64,
    /// What the seed's generator would say next: equal where as much was left to chance.
    pub chance: u64,
    /// What happened, and how often.
    pub happened: BTreeMap<&'static str, u64>,
}

/// Runs a world from a seed, for `steps` happenings, with a planted bug if one is named: then only the check that must
/// find it ends the run.
///
/// # Errors
/// The promise that was broken.
pub fn try_run(
    seed: u64,
    profile: Profile,
    steps: u32,
    bug: Option<Bug>,
) -> Result<Outcome, Violation> {
    // Nothing comes from outside, so the runtime need not look for it while there is something to run.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.event_interval(u32::MAX).build().unwrap();
    runtime.block_on(World::new(seed, profile, bug).run(steps))
}
