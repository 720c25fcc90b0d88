//! The client with real servers between it and the store: one program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod between;
mod common;
mod contract;
mod failover;
mod minting;
mod recall;
mod swapped;
mod tokens;
mod versions;
