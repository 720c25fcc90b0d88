//! Minted IDs, their minters, and whether all is as promised: the one checker of everything that is
//! simulated, and of everything that is done to real processes and servers.

mod check;
mod ledger;
mod numbers;
mod order;

use std::collections::HashMap;
use std::fmt;

pub use check::{Check, Checked, Violation};
pub use ledger::{Ledger, ProcessLife, Resource};
pub use numbers::Numbers;
pub use order::Order;

/// Minter of an ID: the node, its life, and the true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mint {
    /// The node.
    pub node: usize,
    /// Life of the node.
    pub life: u32,
    /// True time in milliseconds since the run began.
    pub at_ms: u64,
}

impl fmt::Display for Mint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} in life {} at {} ms", self.node, self.life, self.at_ms)
    }
}

/// All IDs of a run.
#[derive(Debug, Default)]
pub struct History {
    minted: HashMap<(usize, u64), Mint>,
    /// The last ID of each source, node, life and worker.
    last: HashMap<(usize, usize, u32, u64), u64>,
    /// Digest of all IDs and their mints, in order: two runs of one seed must agree.
    digest: u64,
}

impl History {
    /// Adds an ID of a source. `worker` is given where the IDs of one worker must increase.
    ///
    /// # Errors
    /// The ID was minted before, or is lower than an earlier one.
    pub fn add(&mut self, source: usize, id: u64, by: Mint, worker: Option<u64>) -> Checked {
        for word in [source as u64, id, by.node as u64, u64::from(by.life), by.at_ms] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        if let Some(before) = self.minted.insert((source, id), by) {
            let what = format!("source {source}: {id} was minted by {before}, and by {by}");
            return Err(Check::Unique.broken(what));
        }
        if let Some(worker) = worker {
            let last = self.last.insert((source, by.node, by.life, worker), id);
            if let Some(last) = last.filter(|last| *last > id) {
                let what = format!("source {source}: {id} by {by} came after {last}");
                return Err(Check::Increasing.broken(what));
            }
        }
        Ok(())
    }

    /// Returns the number of IDs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.minted.len()
    }

    /// Returns whether there are no IDs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.minted.is_empty()
    }

    /// Returns a digest of all IDs and their mints, in order.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_comes_twice_or_too_low_is_found() {
        let by = |node, life| Mint { node, life, at_ms: 0 };
        let mut history = History::default();
        history.add(0, 5, by(0, 1), Some(1)).unwrap();
        history.add(0, 7, by(0, 1), Some(1)).unwrap();
        history.add(1, 7, by(1, 1), Some(1)).unwrap();
        let broken = |added: Checked| added.unwrap_err().check;
        assert_eq!(broken(history.add(0, 7, by(1, 1), None)), Check::Unique);
        assert_eq!(broken(history.add(0, 6, by(0, 1), Some(1))), Check::Increasing);
        history.add(0, 4, by(0, 2), Some(1)).unwrap();
        history.add(0, 3, by(0, 1), None).unwrap();
    }
}
