//! Common parts of the measurements of running servers: a server as a process of its own, its
//! resource use, and statistics over rounds in which all servers take turns.

mod apart;
mod client;
mod floor;
mod process;
mod rounds;
mod snowmint;

pub use apart::served;
pub use client::{Client, connect};
pub use floor::{floor_to_be, start_floor};
pub use process::{Process, WakeUps};
pub use rounds::{Plan, median, ratio, rounds};
pub use snowmint::{COUNTERS, Snowmint, WIDE};

/// Fails the run when an ID occurs twice.
///
/// # Panics
/// When an ID occurs twice.
pub fn assert_distinct(what: &str, mut ids: Vec<u64>) {
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{what}: an ID came twice");
}
