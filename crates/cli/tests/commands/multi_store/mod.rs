//! A multi-store source: each store has its own stripe of the numbers, or its own worker number.
//! The servers are real, and are away one after the other.
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod ground;
mod minted;
mod numbers;
mod recovered;
mod serials;
mod through;
