//! Keeping the window of a hand-named worker ahead of the clock.

use snowmint_core::generator::Rollback;
use snowmint_core::{ElapsedMillis, Layout, UnixMillis};

use super::mark_file::MarkFile;
use crate::{Error, ErrorKind, Result};

/// How far ahead of need the mark is kept. After a crash, IDs lead the clock by at most this much and
/// two ticks, or the next process waits for so long.
pub const WINDOW_MS: u64 = 500;
/// A window is extended when this much of it is left.
const MARGIN_MS: u64 = WINDOW_MS / 2;
/// After a failure, how long the early extension is not tried again.
const RETRY_MS: u64 = 100;

const OP: &str = "extend window";

/// Where a clock stood, for comparison with where it stands later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    pub(super) wall: UnixMillis,
    pub(super) elapsed: ElapsedMillis,
}

/// How far a window reaches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) layout: Layout,
    /// By policy, ticks this far ahead of the clock may be needed at any time.
    pub(super) lead_ms: u64,
    /// By policy, ticks this far ahead of the clock may be needed after a step back.
    pub(super) held_ms: u64,
    /// How far the wall clock may run ahead of elapsed time between two extensions.
    pub(super) jump_max_ms: u64,
}

/// Why a window is to be extended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// Half of it is over.
    Soon,
    /// The generator wants a tick past it.
    Spent {
        /// Where it ended when the generator did.
        mark: UnixMillis,
    },
}

/// The window of one worker, under its lock.
#[derive(Debug)]
pub(super) struct Window {
    file: MarkFile,
    pub(super) floor: UnixMillis,
    pub(super) mark: UnixMillis,
    baseline: Baseline,
    closed: bool,
}

impl Reach {
    pub(super) fn new(layout: Layout, rollback: Rollback, jump_max_ms: u64) -> Self {
        let (lead_ms, held_ms) = match rollback {
            Rollback::Borrow { lead_max_ms } => (lead_max_ms, 0),
            Rollback::Hold { lead_max_ms } => (0, lead_max_ms),
            _ => (0, 0),
        };
        Self { layout, lead_ms, held_ms, jump_max_ms }
    }

    /// The mark of a window that serves from `from` on: the end of a tick.
    pub(super) fn mark_after(&self, from: UnixMillis) -> UnixMillis {
        let until = from.saturating_add(self.lead_ms).saturating_add(WINDOW_MS);
        match self.layout.tick_at(until) {
            Ok(tick) => self.layout.start_of(tick).saturating_add(u64::from(self.layout.unit_ms())),
            Err(_) if until < self.layout.epoch() => self.layout.epoch(),
            Err(_) => self.layout.end(),
        }
    }
}

impl Window {
    pub(super) fn new(
        file: MarkFile,
        floor: UnixMillis,
        mark: UnixMillis,
        baseline: Baseline,
    ) -> Self {
        Self { file, floor, mark, baseline, closed: false }
    }

    /// When to look at the window again.
    pub(super) fn attend_from(&self, reach: &Reach) -> UnixMillis {
        self.mark.saturating_sub(reach.lead_ms).saturating_sub(MARGIN_MS)
    }

    /// When to look again after a failure.
    pub(super) fn retry_from(now: UnixMillis) -> UnixMillis {
        now.saturating_add(RETRY_MS)
    }

    /// Raises the mark as far as is needed at `now`, when IDs are taken up to `taken`. Answers the
    /// mark.
    pub(super) fn extend(
        &mut self,
        reach: &Reach,
        need: Need,
        now: Baseline,
        taken: UnixMillis,
    ) -> Result<UnixMillis> {
        if self.closed {
            return Err(Error::new(OP, ErrorKind::Closed { what: "the worker".into() }));
        }
        let done = match need {
            Need::Soon => now.wall < self.attend_from(reach),
            Need::Spent { mark } => mark < self.mark,
        };
        if done {
            return Ok(self.mark);
        }
        self.check_jump(now, reach.jump_max_ms)?;
        let mark = reach.mark_after(self.wanted_from(reach, need, now.wall, taken));
        if mark > self.mark {
            self.file.raise(mark)?;
            self.mark = mark;
        }
        self.baseline = now;
        Ok(self.mark)
    }

    /// The latest time that the generator may need a tick of now.
    fn wanted_from(
        &self,
        reach: &Reach,
        need: Need,
        wall: UnixMillis,
        taken: UnixMillis,
    ) -> UnixMillis {
        let from = std::cmp::max(wall, taken);
        let near =
            from.saturating_add(reach.lead_ms).saturating_add(u64::from(reach.layout.unit_ms()));
        match need {
            // Neither the clock nor the last ID is near the mark: a held clock is ahead of both.
            Need::Spent { mark } if near < mark => wall.saturating_add(reach.held_ms),
            _ => from,
        }
    }

    /// The wall clock must not run away from elapsed time and take the mark with it: what is minted
    /// there is minted for good, and the worker is of no use until the clock gets there again.
    fn check_jump(&self, now: Baseline, jump_max_ms: u64) -> Result<()> {
        let expected = self.baseline.wall.saturating_add(now.elapsed.since(self.baseline.elapsed));
        let ahead_ms = now.wall.since(expected);
        if ahead_ms <= jump_max_ms {
            return Ok(());
        }
        let compared_with = "the time that has elapsed since the last look at it (if the clock is \
                             right now, open the worker again)"
            .into();
        let limit_ms = jump_max_ms;
        Err(Error::new(OP, ErrorKind::ClockAhead { ahead_ms, limit_ms, compared_with }))
    }

    /// Gives back what was not taken, and the lock.
    pub(super) fn close(&mut self, taken: UnixMillis) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let end = std::cmp::min(std::cmp::max(taken, self.floor), self.mark);
        self.file.lower_and_unlock(end)
    }
}
