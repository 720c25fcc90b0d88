//! Handles for the hottest loops.

use std::fmt;
use std::sync::Arc;

use super::SegmentSource;
use crate::error::Result;
use crate::sources::Source;

/// A segment source without a disguise, straight to its counter. Clones share it.
#[derive(Clone)]
pub struct Numbers {
    segment: Arc<SegmentSource>,
    /// What is asked when there is nothing to take, and what keeps the node going.
    source: Source,
}

impl Numbers {
    pub(crate) fn new(segment: Arc<SegmentSource>, source: Source) -> Self {
        Self { segment, source }
    }

    /// The next number, if it is in stock. Never waits.
    ///
    /// # Errors
    /// As [`Source::try_mint`].
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        match self.segment.quick() {
            Some(id) => Ok(id),
            None => self.ask(),
        }
    }

    #[cold]
    fn ask(&self) -> Result<u64> {
        self.source.try_mint()
    }

    /// A lane, which takes `block` numbers at a time and counts locally.
    #[must_use]
    pub fn lane(&self, block: u64) -> NumberLane {
        let increment = self.segment.scheme.increment;
        NumberLane { id: 0, left: 0, increment, block: block.max(1), numbers: self.clone() }
    }
}

/// Takes runs of numbers from a segment source and counts locally.
///
/// Numbers of one lane increase; between lanes they do not. What is left of a run when the lane goes
/// is used by nobody; a source that is disabled ends a lane when its run ends.
#[derive(Debug)]
pub struct NumberLane {
    id: u64,
    left: u64,
    increment: u64,
    block: u64,
    numbers: Numbers,
}

impl NumberLane {
    /// The next number, if it is in stock. Never waits.
    ///
    /// # Errors
    /// As [`Source::try_mint`].
    #[inline]
    pub fn try_next(&mut self) -> Result<u64> {
        if self.left == 0 {
            (self.id, self.left) = self.numbers.block(self.block)?;
        }
        let id = self.id;
        self.left -= 1;
        // Checked for the whole run.
        self.id = id.wrapping_add(self.increment);
        Ok(id)
    }
}

impl Numbers {
    /// The first ID of a run of at most `block` numbers, and how many there are.
    #[cold]
    fn block(&self, block: u64) -> Result<(u64, u64)> {
        self.source.inner.check_enabled()?;
        let segment = &self.segment;
        let run = segment.cursor.take_run(block, || segment.look_ahead(1));
        let run = run.ok_or_else(|| segment.dry(1))?;
        Ok((segment.scheme.id_of(run.first), run.end - run.first))
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Numbers").field(&self.segment).finish()
    }
}
