//! What tests of several crates share: the contract that every store must keep, throwaway servers to
//! keep it on, and a simulated world.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

pub mod contract;
pub mod servers;
pub mod sim;
