//! Telling a forked child from the process that opened a handle.
//!
//! A child has a copy of everything its parent may mint, and not the threads that keep it true. What it
//! would mint from the copy, the parent mints too.

use forkguard::atfork::Guard;

use crate::error::{Error, ErrorKind, Result};

/// The process that it was made in. Asking costs one load: the C library counts forks in the child.
/// A child that a bare `clone` system call makes is not seen.
#[derive(Clone, Debug)]
pub struct Home(Guard);

impl Home {
    /// The calling process.
    ///
    /// # Errors
    /// `Unavailable` when the C library has no memory left to be told what to do at a fork.
    pub fn here() -> Result<Self> {
        Guard::try_new().map(Self).map_err(|error| {
            let what = "the C library's list of what to do at a fork".into();
            Error::new("open", ErrorKind::Unavailable { what }).with_source(error)
        })
    }

    /// Whether this is still that process.
    #[inline]
    #[must_use]
    pub fn is_here(&self) -> bool {
        // The guard forgets the fork that it has told of once: ask a copy.
        !self.0.clone().detected_fork()
    }
}
