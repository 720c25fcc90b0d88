//! The atomics that the generators use: core's, or loom's when the model checker runs
//! (`--cfg snowmint_loom`, a private name so that no other crate's loom mode is switched on).

#[cfg(not(snowmint_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(snowmint_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Keeps a value on cache lines of its own: two of 64 bytes, because processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
