//! The real binary on free ports, with real clients: curl, redis-cli and redis-benchmark.
//!
//! A missing client fails the test: `ci/setup` installs all of them.
// Tests panic on errors, and wait in real time for real processes.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod altered;
mod by_hand;
mod clients;
mod compat;
mod connections;
mod counters;
mod crashes;
mod data;
mod embedded;
mod faketime;
mod floods;
mod frozen;
mod giving_up;
mod grpc;
mod idle;
mod metrics;
mod minting;
mod offline;
mod order;
mod recovery;
mod recovery_again;
mod recovery_from_here;
mod recovery_of_mixed_rows;
mod recovery_of_namespaces;
mod recovery_of_programs;
mod recovery_unnoticed;
mod recovery_without;
mod security;
mod server;
mod top;
mod traces;
