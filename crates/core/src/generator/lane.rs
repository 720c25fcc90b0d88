//! A thread's own stretch of a shared generator.

use core::ops::Deref;

use crate::clock::{Clock, Observer};

use super::refusal::Refusal;
use super::shared::Generator;

/// Takes blocks from a shared generator and counts locally.
///
/// - **Unshared**: one thread each; any number of lanes on one generator.
/// - **Increasing** within the lane. Between lanes, order is by tick.
/// - **Fresh**: an ID's tick is the clock's, as the generator's clock tells it, or that of the span
///   that the generator may lag or lead. What is left of a block when its tick ends is dropped, and
///   counts as spent.
#[derive(Debug)]
pub struct Lane<G> {
    id: u64,
    end: u64,
    open_from_ms: u64,
    block: usize,
    generator: G,
}

impl<G> Lane<G> {
    /// An empty lane on `generator` that takes `block` IDs at a time (at least 1).
    pub const fn new(generator: G, block: usize) -> Self {
        let block = if block == 0 { 1 } else { block };
        Self { id: 0, end: 0, open_from_ms: 0, block, generator }
    }
}

impl<G, C, O> Lane<G>
where
    G: Deref<Target = Generator<C, O>>,
    C: Clock,
    O: Observer,
{
    /// One ID, without ever waiting.
    ///
    /// # Errors
    /// As [`Generator::try_mint`].
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64, Refusal> {
        let id = self.id;
        let wall_ms = self.generator.clock().unix_ms().get();
        if id != self.end
            && wall_ms.wrapping_sub(self.open_from_ms) < self.generator.shape().unit_ms
        {
            self.id = id.wrapping_add(self.generator.shape().stride());
            return Ok(id);
        }
        self.refill()
    }

    /// Drops what is left of the block. It counts as spent.
    pub const fn clear(&mut self) {
        self.end = self.id;
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<u64, Refusal> {
        self.clear();
        let block = self.generator.take_block(self.block)?;
        let shape = self.generator.shape();
        let id = shape.id(block.first.get());
        self.id = id.wrapping_add(shape.stride());
        self.end = id.wrapping_add(block.count.wrapping_mul(shape.stride()));
        self.open_from_ms = block.open_from_ms;
        Ok(id)
    }
}
