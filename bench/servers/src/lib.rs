//! What the measurements of running servers have in common: a server as a process of its own, what it takes, and
//! sums over rounds in which all take turns.

mod apart;
mod process;
mod rounds;
mod snowmint;

pub use apart::served;
pub use process::{Process, WakeUps};
pub use rounds::{Plan, median, ratio, rounds};
pub use snowmint::{COUNTERS, Snowmint, WIDE};

/// Fails the run when an ID came twice.
///
/// # Panics
/// Then.
pub fn assert_distinct(what: &str, mut ids: Vec<u64>) {
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{what}: an ID came twice");
}
