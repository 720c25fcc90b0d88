//! Handles for the hottest loops.

use std::fmt;
use std::sync::Arc;

use snowmint_core::cursor::Run;

use super::SegmentSource;
use crate::error::{Error, Result};
use crate::platform::fork_guard::ForkGuard;
use crate::sources::Source;
use crate::sources::values::NumberBlock;
use crate::spec::Kind;

impl Source {
    /// Returns direct access to the counter of a segment source.
    ///
    /// # Errors
    /// `Invalid` for other kinds, and for disguised sources.
    pub fn numbers(&self) -> Result<SegmentHandle> {
        match self.inner.backing.as_segment() {
            Some(segment) if self.inner.plain => {
                Ok(SegmentHandle::new(segment.now(), self.clone()))
            }
            _ => Err(Error::invalid(format!(
                "source {:?} has no plain numbers of one store; \
                 use kind segment without disguise, or a call that waits",
                self.name()
            ))),
        }
    }

    /// Opens a lane for one thread's hottest loop, which takes `block` numbers of a segment source
    /// at a time and counts locally.
    ///
    /// # Errors
    /// `Invalid` for other kinds, for disguised sources, and for serials.
    pub fn lane(&self, block: u64) -> Result<NumberLane> {
        if self.inner.plain && self.kind() == Kind::Segment {
            return Ok(NumberLane::new(self.clone(), block));
        }
        Err(Error::invalid(format!(
            "source {:?} has no plain numbers; use kind segment without disguise",
            self.name()
        )))
    }
}

/// Direct access to the counter of an undisguised segment source. Clones share it.
#[derive(Clone)]
pub struct SegmentHandle {
    segment: Arc<SegmentSource>,
    /// Called when no number is prefetched; also keeps the node running.
    source: Source,
}

impl SegmentHandle {
    fn new(segment: Arc<SegmentSource>, source: Source) -> Self {
        Self { segment, source }
    }

    /// Takes the next number, if one is prefetched. Never waits. Once the source has another
    /// stripe, this becomes slower: get its [`numbers`](Source::numbers) again.
    ///
    /// # Errors
    /// Those of [`Source::try_mint`].
    #[inline]
    pub fn try_next(&self) -> Result<u64> {
        match self.segment.quick() {
            Some(id) => Ok(id),
            None => self.try_next_cold(),
        }
    }

    #[cold]
    fn try_next_cold(&self) -> Result<u64> {
        self.source.try_mint()
    }

    /// Opens a lane, which takes `block` numbers at a time and counts locally.
    #[must_use]
    pub fn lane(&self, block: u64) -> NumberLane {
        NumberLane::new(self.source.clone(), block)
    }
}

/// Lane that takes runs of numbers from a segment source and counts locally.
///
/// Numbers of one lane increase; with several stores, they increase only within a block, and
/// between lanes not at all. Numbers left in a run when the lane is dropped are never used.
/// Disabling the source ends a lane when its run ends.
#[derive(Debug)]
pub struct NumberLane {
    block: NumberBlock,
    /// Most numbers of a block.
    length: u64,
    fork_guard: ForkGuard,
    source: Source,
}

impl NumberLane {
    fn new(source: Source, length: u64) -> Self {
        let fork_guard = source.inner.ctx.fork_guard.clone();
        Self { block: NumberBlock::EMPTY, length: length.max(1), fork_guard, source }
    }

    /// Takes the next number, if one is prefetched. Never waits.
    ///
    /// # Errors
    /// Those of [`Source::try_mint`].
    #[inline]
    pub fn try_next(&mut self) -> Result<u64> {
        if self.block.next == self.block.end || !self.fork_guard.is_here() {
            // Returned by value, so that a loop that owns the lane keeps its counter in registers.
            self.block = take_block(&self.source, self.length)?;
        }
        let id = self.block.next;
        // Checked for the whole run.
        self.block.next = id.wrapping_add(self.block.increment);
        Ok(id)
    }
}

#[cold]
fn take_block(source: &Source, length: u64) -> Result<NumberBlock> {
    source.inner.block(length)
}

impl SegmentSource {
    /// Takes at most `length` consecutive numbers.
    pub(in crate::sources) fn block(self: &Arc<Self>, length: u64) -> Result<NumberBlock> {
        let run = self.cursor.take_run(length, || self.prefetch(1));
        let Run { first, end } = run.ok_or_else(|| self.dry(1))?;
        let increment = self.stripe.increment();
        let next = self.stripe.id_of(first);
        // May lie above all numbers, where it is never issued.
        let length = (end - first).wrapping_mul(increment);
        Ok(NumberBlock { next, end: next.wrapping_add(length), increment })
    }
}

impl fmt::Debug for SegmentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentHandle").field(&self.segment).finish()
    }
}
