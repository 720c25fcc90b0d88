//! One thread's private blocks of a shared generator.

use core::ops::Deref;

use crate::clock::{Clock, Observer};
use crate::time::UnixMillis;

use super::error::MintError;
use super::shared::Generator;

/// A lane takes blocks from a shared generator and counts locally.
///
/// - **Unshared**: one thread each; any number of lanes on one generator.
/// - **Increasing** within the lane. Between lanes, order is by tick.
/// - **Fresh**: an ID's tick is the tick of the generator's clock, or lies within the generator's
///   allowed lag or lead. The rest of a block is dropped when its tick ends, and counts as spent.
#[derive(Debug)]
pub struct Lane<G> {
    id: u64,
    end: u64,
    stride: u64,
    open_from_ms: u64,
    unit_ms: u64,
    block: usize,
    generator: G,
}

impl<C: Clock, O: Observer> Generator<C, O> {
    /// Returns a lane for the calling thread: it takes `block` IDs at a time and counts locally.
    pub fn lane(&self, block: usize) -> Lane<&Self> {
        Lane::new(self, block)
    }
}

impl<G, C, O> Lane<G>
where
    G: Deref<Target = Generator<C, O>>,
    C: Clock,
    O: Observer,
{
    /// Returns an empty lane on `generator` that takes `block` IDs at a time (at least 1, and at
    /// most the rest of a tick).
    pub fn new(generator: G, block: usize) -> Self {
        let (stride, unit_ms) = (generator.shape().stride(), generator.shape().unit_ms);
        Self { id: 0, end: 0, stride, open_from_ms: 0, unit_ms, block: block.max(1), generator }
    }

    /// Mints one ID, without ever waiting.
    ///
    /// # Errors
    /// The same as [`Generator::try_mint`].
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64, MintError> {
        let id = self.id;
        if id != self.end {
            let seen = self.generator.clock().cached_unix_ms();
            let open_ms = seen.get().wrapping_sub(self.open_from_ms);
            // A clock without a cached time is read; otherwise each ID would drop a block.
            if open_ms < self.unit_ms
                || (seen == UnixMillis::ZERO && self.generator.is_open_cold(self.open_from_ms))
            {
                self.id = id.wrapping_add(self.stride);
                return Ok(id);
            }
        }
        // The cold call gets no reference to the lane, so that a loop keeps the lane in registers.
        self.clear();
        let block = self.generator.take_block_cold(self.block, id)?;
        let id = block.first_id;
        self.id = id.wrapping_add(self.stride);
        self.end = id.wrapping_add(block.count.wrapping_mul(self.stride));
        self.open_from_ms = block.open_from_ms;
        Ok(id)
    }

    /// Drops the rest of the block, which counts as spent.
    pub const fn clear(&mut self) {
        self.end = self.id;
    }
}
