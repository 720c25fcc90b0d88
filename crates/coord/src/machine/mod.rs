//! The decisions about members, leases and windows, without any I/O.
//!
//! Time and events are arguments, what is to be done is the answer. One file of the
//! [`node`](crate::node) drives them; the tests drive them through every order of events that they can
//! think of, with clocks that step and stores that answer late, twice, or never.

mod guard;
mod lease;
mod pace;
mod presence;
mod sections;
mod serving;
#[cfg(test)]
mod tests;
mod voices;
mod window;

use snowmint_core::{ElapsedMillis, UnixMillis};

use crate::error::Retry;

pub use guard::ClockGuard;
pub(crate) use guard::compare_clocks;
pub use lease::{Granted, LeaseAction, LeaseEvent, LeaseMachine};
pub use pace::{JournalPace, Pace};
pub use presence::{PresenceAction, PresenceMachine};
pub(crate) use sections::{Actor, SectionChange, SectionsAction, SectionsMachine};
pub(crate) use serving::{Reasons, Serving};
pub(crate) use voices::{LOOK_AT_REST_MS, Verdict, Voices};
pub use window::{Position, WindowAction, WindowMachine};

/// What one decision is given from outside: both kinds of time, and chance.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall time, which marks are made of. Vetted by a [`ClockGuard`] where the store cannot do so.
    pub wall: UnixMillis,
    /// Elapsed time, which waits are made of.
    pub elapsed: ElapsedMillis,
    /// Draws a random number, which a request number is made of. Only when there is a request: a copy of this
    /// process's memory that runs elsewhere draws another, so that its requests are not taken for
    /// repeats of ours.
    pub chance: fn() -> u64,
}

/// How long to wait before a store is asked again: longer after each failure in a row, up to 2 s, so
/// that a store that comes back is found soon and one that struggles is left alone.
pub(crate) fn backoff_ms(failures: u32) -> u64 {
    const FIRST_MS: u64 = 50;
    const LAST_MS: u64 = 2_000;
    let doublings = failures.saturating_sub(1).min(6);
    (FIRST_MS << doublings).min(LAST_MS)
}

/// The same, and no sooner than the store said, unless that is very long.
pub(crate) fn retry_ms(failures: u32, said: Retry) -> u64 {
    const SAID_MS_MAX: u64 = 60_000;
    let said_ms = match said {
        Retry::AfterMs(ms) => ms.min(SAID_MS_MAX),
        Retry::Now | Retry::Never => 0,
    };
    backoff_ms(failures).max(said_ms)
}

/// Request numbers: different in each machine, and in each call of one machine.
#[derive(Clone, Copy, Debug)]
struct Requests {
    state: u64,
}

impl Requests {
    const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number: never 0, and below 2^63, so that every store can keep it. SplitMix64, which
    /// would visit every number once before it repeats one, moved by chance.
    fn next(&mut self, chance: fn() -> u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state ^ chance();
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 1).max(1)
    }
}
