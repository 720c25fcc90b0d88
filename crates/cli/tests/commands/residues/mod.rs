//! One source that several stores serve, each its own residue of the numbers or under its own worker number:
//! real servers, of which one after the other is away.
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod ground;
mod minted;
mod numbers;
mod recovered;
mod serials;
mod through;
