//! Platform: time, randomness, files for their owner alone, forks and tasks.

pub(crate) mod backoff;
pub mod batcher;
pub mod clock;
pub(crate) mod fork_guard;
pub mod lock;
mod opaque_debug;
pub mod private;
pub mod random;
pub mod timer;
pub(crate) mod waiters;
