//! Common parts of the tests of several crates: the contract that every store must keep, throwaway
//! servers to run it on, and a network that fails. Also a simulated world, and the checker of
//! minted IDs.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

pub mod audited_store;
pub mod children;
pub mod contract;
pub mod history;
pub mod programs;
pub mod proxy;
pub mod servers;
pub mod sim;
