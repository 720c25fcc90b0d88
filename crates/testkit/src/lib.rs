//! What tests of several crates share: the contract that every store must keep, throwaway servers to
//! keep it on, a network that fails, a simulated world, and the checker of what was minted.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

pub mod children;
pub mod contract;
pub mod history;
pub mod programs;
pub mod proxy;
pub mod servers;
pub mod sim;
pub mod watched;
