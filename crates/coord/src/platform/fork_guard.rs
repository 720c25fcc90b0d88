//! Fork guard: distinguishes a forked child from the process that opened a handle.
//!
//! A child has a copy of everything that its parent may mint, without the threads that keep it
//! valid. The parent mints every ID that the child would mint from the copy.

use forkguard::atfork::Guard;

use crate::error::{Error, Result};

/// The process that made the value. A check costs one load: the C library counts forks in the
/// child. A child made by a bare `clone` system call goes undetected.
#[derive(Clone, Debug)]
pub struct ForkGuard(Guard);

impl ForkGuard {
    /// Creates a guard for the calling process.
    ///
    /// # Errors
    /// `Unavailable` when the C library has no memory left to register a fork handler.
    pub fn here() -> Result<Self> {
        Guard::try_new().map(Self).map_err(|error| {
            Error::unavailable("fork handler cannot be registered: out of memory; free memory")
                .with_source(error)
        })
    }

    /// Returns whether the caller still runs in that process.
    #[inline]
    #[must_use]
    pub fn is_here(&self) -> bool {
        // A guard reports a fork only once, so the check uses a copy.
        !self.0.clone().detected_fork()
    }
}
