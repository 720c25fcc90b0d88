//! What was minted, by whom, and whether that is as promised.

use std::collections::HashMap;
use std::fmt;

use super::truth::Violation;

/// Who minted an ID: which node, in which of its lives, when in true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mint {
    pub(super) node: usize,
    pub(super) life: u32,
    pub(super) at_ms: u64,
}

impl fmt::Display for Mint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} in life {} at {} ms", self.node, self.life, self.at_ms)
    }
}

/// All IDs of a run.
#[derive(Debug, Default)]
pub(super) struct History {
    minted: HashMap<(usize, u64), Mint>,
    /// The last ID of each source, node, life and worker.
    last: HashMap<(usize, usize, u32, u64), u64>,
    /// Of all IDs and their mints, in their order: two runs of one seed must agree.
    digest: u64,
}

impl History {
    /// An ID of a source. `worker` is given where the IDs of one worker must increase.
    pub(super) fn add(
        &mut self,
        source: usize,
        id: u64,
        by: Mint,
        worker: Option<u64>,
    ) -> Result<(), Violation> {
        for word in [source as u64, id, by.node as u64, u64::from(by.life), by.at_ms] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        if let Some(before) = self.minted.insert((source, id), by) {
            let what = format!("source {source}: {id} was minted by {before}, and by {by}");
            return Err(Violation(what));
        }
        if let Some(worker) = worker {
            let last = self.last.insert((source, by.node, by.life, worker), id);
            if let Some(last) = last.filter(|last| *last > id) {
                let what = format!("source {source}: {id} by {by} came after {last}");
                return Err(Violation(what));
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.minted.len()
    }

    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }
}
