//! A thread's own stretch of a source's numbers.

use std::fmt;
use std::sync::Arc;

use super::SegmentSource;
use crate::error::Result;

/// Takes runs of numbers from a segment source and counts locally.
///
/// Numbers of one lane increase; between lanes they do not. What is left of a run when the lane goes
/// is used by nobody.
pub struct NumberLane {
    id: u64,
    left: u64,
    increment: u64,
    block: u64,
    segment: Arc<SegmentSource>,
    /// Keeps the node going.
    _alive: Arc<dyn Send + Sync>,
}

impl NumberLane {
    pub(crate) fn new(
        segment: Arc<SegmentSource>,
        block: u64,
        alive: Arc<dyn Send + Sync>,
    ) -> Self {
        let increment = segment.scheme.increment;
        Self { id: 0, left: 0, increment, block: block.max(1), segment, _alive: alive }
    }

    /// The next number, if it is in stock. Never waits.
    ///
    /// # Errors
    /// As [`Source::try_mint`](crate::Source::try_mint).
    #[inline]
    pub fn try_next(&mut self) -> Result<u64> {
        if self.left == 0 {
            (self.id, self.left) = self.segment.block(self.block)?;
        }
        let id = self.id;
        self.left -= 1;
        // Checked for the whole run.
        self.id = id.wrapping_add(self.increment);
        Ok(id)
    }
}

impl SegmentSource {
    /// The first ID of a run of at most `block` numbers, and how many there are.
    #[cold]
    fn block(self: &Arc<Self>, block: u64) -> Result<(u64, u64)> {
        let Some(run) = self.cursor.take_run(block, || self.look_ahead(1)) else {
            return Err(self.dry(1));
        };
        let id = self.scheme.id_of(run.first).ok_or_else(|| self.spent())?;
        let end = run.end.min(self.scheme.number_max.saturating_add(1));
        Ok((id, end - run.first))
    }
}

impl fmt::Debug for NumberLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NumberLane")
            .field("left", &self.left)
            .field("segment", &self.segment)
            .finish_non_exhaustive()
    }
}
