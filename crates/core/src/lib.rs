//! Distributed IDs, and how to mint unique ones.
//!
//! The problem: a 64-bit ID made of time, worker and sequence is small, sortable and needs no
//! coordination per ID. The easy implementation trusts a clock. It repeats IDs when the clock steps
//! back, when a tick is full, or when a process restarts too early.
//!
//! The solution: every decision is one pure function, [`advance`], over plain values. It never
//! moves backwards, never wraps, and never leaves the [`Window`] that an authority granted. The
//! generators only retry it. Clocks decide how fresh an ID's time is, never whether it is unique.
//!
//! The limit: this crate grants no windows. A worker number that two processes use at once makes
//! duplicates, here as anywhere; `snowmint-coord` prevents this.
//!
//! `no_std`, no dependencies, no `unsafe`, no allocation. The feature `std` (on by default) adds
//! the system clock, its refresher thread and blocking waits.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![warn(
    clippy::std_instead_of_core,
    clippy::alloc_instead_of_core,
    clippy::arithmetic_side_effects
)]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod advance;
mod civil;
pub mod clock;
pub mod cursor;
pub mod disguise;
pub mod generator;
pub mod layout;
mod sync;
pub mod text;
mod time;

pub use advance::{Advance, Ordinal, Rules, SequenceStart, State, TickWindow, advance};
#[doc(hidden)]
pub use advance::{MIX_STEP, mixed};
pub use civil::{Rfc3339, TimeError};
pub use clock::{CachedClock, Clock, ClockStep, ManualClock, Observer, Pause};
#[cfg(feature = "std")]
pub use clock::{Refresher, SystemClock};
pub use cursor::SegmentCursor;
pub use generator::{
    ClockSequence, Generator, Lane, LocalGenerator, MintError, Ring, Rollback, Settings, Short,
};
pub use layout::{Layout, LayoutError, OutOfRange, Parts};
pub use time::{ElapsedMillis, Tick, UnixMillis, Window};

/// The examples of the README, tested together with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
