//! Tests of the guarantees to a service with the library inside: one program, so that it is linked
//! once. Tests that count allocations, or fork, have separate programs.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;
mod embedding;
mod processes;
mod real_time;
mod stored;
mod tails;
mod worker;
