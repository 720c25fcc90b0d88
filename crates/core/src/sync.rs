//! The atomics of the generators: core's, or loom's when the model checker runs
//! (`--cfg snowmint_loom`, a private name that switches on the loom mode of no other crate).

#[cfg(not(snowmint_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(snowmint_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A value on cache lines of its own: two of 64 bytes, because processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
