//! Decisions about members, leases and windows, without any I/O.
//!
//! Time and events are arguments; the result is the list of actions. One file of the
//! [`node`](crate::node) drives the machines. Tests drive them through many orders of events, with
//! clocks that step and stores that respond late, twice, or never.

mod clock_quorum;
pub(crate) mod demand;
mod guard;
mod lease;
mod presence;
pub mod section_assignment;
mod sections;
mod serving;
#[cfg(test)]
mod tests;
mod window;
mod window_policy;

use snowmint_core::{ElapsedMillis, MIX_STEP, UnixMillis, mixed};

pub(crate) use clock_quorum::{ClockQuorum, IDLE_POLL_MS, QuorumResult};
pub use guard::ClockGuard;
pub(crate) use guard::compare_clocks;
pub use lease::{Granted, LeaseAction, LeaseEvent, LeaseMachine};
pub use presence::{PresenceAction, PresenceMachine};
pub(crate) use sections::{Actor, SectionChange, SectionsAction, SectionsMachine};
pub(crate) use serving::{Serving, WithdrawalReasons};
pub use window::{Position, WindowAction, WindowMachine};
pub use window_policy::{JournalPolicy, WindowPolicy};

/// Inputs of one decision: both kinds of time, and randomness.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall time, from which marks are made. Vetted by a [`ClockGuard`] where the store cannot do
    /// so.
    pub wall: UnixMillis,
    /// Elapsed time, from which waits are made.
    pub elapsed: ElapsedMillis,
    /// Source of a random number for each request number. It is called only when there is a
    /// request: a copy of this process's memory that runs elsewhere gets another number, so the
    /// store does not take its requests for repeats of ours.
    pub chance: fn() -> u64,
}

/// Request numbers: different in each machine, and in each call of one machine.
#[derive(Clone, Copy, Debug)]
struct RequestNumbers {
    state: u64,
}

impl RequestNumbers {
    const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number: never 0, and below 2^63, so that every store can keep it. The
    /// algorithm is SplitMix64, which would visit every number once before it repeats one;
    /// randomness is mixed in.
    fn next(&mut self, chance: fn() -> u64) -> u64 {
        self.state = self.state.wrapping_add(MIX_STEP);
        (mixed(self.state ^ chance()) >> 1).max(1)
    }
}
