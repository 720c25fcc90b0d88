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
        let increment = self.segment.stripe.increment();
        let home = self.segment.home.clone();
        NumberLane { id: 0, left: 0, home, increment, block: block.max(1), numbers: self.clone() }
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
    home: Home,
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
        if self.left == 0 || !self.home.is_here() {
            self.take_block()?;
        }
        let id = self.id;
        self.left -= 1;
        // Checked for the whole run.
        self.id = id.wrapping_add(self.increment);
        Ok(id)
    }
}

impl NumberLane {
    #[cold]
    fn take_block(&mut self) -> Result<()> {
        self.numbers.source.inner.check_enabled()?;
        let taken = self.numbers.run(self.block);
        let run = match taken {
            // The source goes on by another stripe.
            Err(_) if self.numbers.is_left_behind() => {
                self.numbers = self.numbers.source.numbers()?;
                self.numbers.run(self.block)?
            }
            taken => taken?,
        };
        let stripe = self.numbers.segment.stripe;
        self.increment = stripe.increment();
        (self.id, self.left) = (stripe.id_of(run.first), run.end - run.first);
        Ok(())
    }
}

impl Numbers {
    /// A run of at most so many numbers.
    fn run(&self, block: u64) -> Result<Run> {
        let segment = &self.segment;
        let run = segment.cursor.take_run(block, || segment.look_ahead(1));
        run.ok_or_else(|| segment.dry(1))
    }

    fn is_left_behind(&self) -> bool {
        self.source.numbers().is_ok_and(|now| !Arc::ptr_eq(&now.segment, &self.segment))
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Numbers").field(&self.segment).finish()
    }
}
