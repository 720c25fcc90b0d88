//! What a service that has the library inside relies on: one program, so that it is linked once. Tests that count
//! allocations, or fork, have programs of their own.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;
mod embedding;
mod processes;
mod real_time;
mod stored;
mod tails;
mod worker;
