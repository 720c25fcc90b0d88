//! Handles for the hottest loops.

use std::fmt;
use std::sync::Arc;

use snowmint_core::cursor::Run;

use super::SegmentSource;
use crate::error::Result;
use crate::home::Home;
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

    /// The next number, if it is in stock. Never waits. Once the source has got another stripe, this is the
    /// long way: ask it for its [`numbers`](Source::numbers) again.
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
        NumberLane::new(self.source.clone(), block)
    }
}

/// Numbers that nobody else takes, from one store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The next ID; at `end` there is none. One word says both, so one is written for each number.
    next: u64,
    end: u64,
    increment: u64,
}

impl Block {
    const EMPTY: Self = Self { next: 0, end: 0, increment: 1 };
}

/// Takes runs of numbers from a segment source and counts locally.
///
/// Numbers of one lane increase, those of a source with several stores within a block only; between lanes
/// they do not. What is left of a run when the lane goes is used by nobody; a source that is disabled ends a
/// lane when its run ends.
#[derive(Debug)]
pub struct NumberLane {
    block: Block,
    /// How many numbers a block has at most.
    length: u64,
    home: Home,
    source: Source,
}

impl NumberLane {
    pub(in crate::sources) fn new(source: Source, length: u64) -> Self {
        let home = source.inner.around.home.clone();
        Self { block: Block::EMPTY, length: length.max(1), home, source }
    }

    /// The next number, if it is in stock. Never waits.
    ///
    /// # Errors
    /// As [`Source::try_mint`].
    #[inline]
    pub fn try_next(&mut self) -> Result<u64> {
        if self.block.next == self.block.end || !self.home.is_here() {
            // By value: where a loop has the lane to itself, what it counts in stays in registers.
            self.block = take_block(&self.source, self.length)?;
        }
        let id = self.block.next;
        // Checked for the whole run.
        self.block.next = id.wrapping_add(self.block.increment);
        Ok(id)
    }
}

#[cold]
fn take_block(source: &Source, length: u64) -> Result<Block> {
    source.inner.block(length)
}

impl SegmentSource {
    /// At most so many numbers in a row.
    pub(in crate::sources) fn block(self: &Arc<Self>, length: u64) -> Result<Block> {
        let run = self.cursor.take_run(length, || self.look_ahead(1));
        let Run { first, end } = run.ok_or_else(|| self.dry(1))?;
        let increment = self.stripe.increment();
        let next = self.stripe.id_of(first);
        // May lie behind all numbers, where it is not handed out.
        let length = (end - first).wrapping_mul(increment);
        Ok(Block { next, end: next.wrapping_add(length), increment })
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Numbers").field(&self.segment).finish()
    }
}
