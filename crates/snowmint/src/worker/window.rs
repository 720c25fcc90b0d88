//! Extension of the window of a worker that the program named, ahead of the clock.

use snowmint_core::generator::Rollback;
use snowmint_core::{ElapsedMillis, Layout, UnixMillis};

use super::mark_file::MarkFile;
use snowmint_coord::{Error, Result};

/// Milliseconds by which the mark is kept ahead of need. After a crash, IDs lead the clock by at
/// most this much and two ticks, or the next process waits that long.
pub const WINDOW_MS: u64 = 500;
/// Rest of a window, in milliseconds, at which it is extended.
const MARGIN_MS: u64 = WINDOW_MS / 2;
/// Time after a failed early extension before the next try, in milliseconds.
const RETRY_MS: u64 = 100;

/// A reading of the clock for later comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    pub(super) wall: UnixMillis,
    pub(super) elapsed: ElapsedMillis,
}

/// The extent of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSize {
    pub(super) layout: Layout,
    /// Lead over the clock, by policy, of ticks that may be needed at any time.
    pub(super) lead_ms: u64,
    /// Lead over the clock, by policy, of ticks that may be needed after a clock step back.
    pub(super) held_ms: u64,
    /// Longest lead of the wall clock over elapsed time between two extensions.
    pub(super) jump_max_ms: u64,
}

/// Reason for an extension.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// Half of the window is over.
    Soon,
    /// The generator wants a tick past the window.
    Spent {
        /// End of the window when the generator reported it.
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

impl WindowSize {
    pub(super) fn new(layout: Layout, rollback: Rollback, jump_max_ms: u64) -> Self {
        let lead_max_ms = rollback.lead_max_ms();
        let (lead_ms, held_ms) = match rollback {
            Rollback::Borrow { .. } => (lead_max_ms, 0),
            _ => (0, lead_max_ms),
        };
        Self { layout, lead_ms, held_ms, jump_max_ms }
    }

    /// Returns the mark of a window that serves from `from` on: the end of a tick.
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

    /// Returns the wall time from which the window must be checked again.
    pub(super) fn check_from(&self, window_size: &WindowSize) -> UnixMillis {
        self.mark.saturating_sub(window_size.lead_ms).saturating_sub(MARGIN_MS)
    }

    /// Returns the wall time of the next check after a failure.
    pub(super) fn retry_from(now: UnixMillis) -> UnixMillis {
        now.saturating_add(RETRY_MS)
    }

    /// Raises the mark as far as needed at `now`, with IDs taken up to `minted_until`. Returns the
    /// mark.
    pub(super) fn extend(
        &mut self,
        window_size: &WindowSize,
        need: Need,
        now: Baseline,
        minted_until: UnixMillis,
    ) -> Result<UnixMillis> {
        if self.closed {
            return Err(Error::closed("worker is closed; open it again"));
        }
        let done = match need {
            Need::Soon => now.wall < self.check_from(window_size),
            Need::Spent { mark } => mark < self.mark,
        };
        if done {
            return Ok(self.mark);
        }
        self.check_jump(now, window_size.jump_max_ms)?;
        let mark =
            window_size.mark_after(self.wanted_from(window_size, need, now.wall, minted_until));
        if mark > self.mark {
            self.file.raise(mark)?;
            self.mark = mark;
        }
        self.baseline = now;
        Ok(self.mark)
    }

    /// Returns the latest time at which the generator may need a tick now.
    fn wanted_from(
        &self,
        window_size: &WindowSize,
        need: Need,
        wall: UnixMillis,
        minted_until: UnixMillis,
    ) -> UnixMillis {
        let from = std::cmp::max(wall, minted_until);
        let near = from
            .saturating_add(window_size.lead_ms)
            .saturating_add(u64::from(window_size.layout.unit_ms()));
        match need {
            // Clock and last ID are both far from the mark, so a held clock is ahead of both.
            Need::Spent { mark } if near < mark => wall.saturating_add(window_size.held_ms),
            _ => from,
        }
    }

    /// Rejects a wall clock that runs away from elapsed time, because it would take the mark with
    /// it: ticks there would be used up, and the worker useless until the clock reaches them again.
    fn check_jump(&self, now: Baseline, jump_max_ms: u64) -> Result<()> {
        let expected = self.baseline.wall.saturating_add(now.elapsed.since(self.baseline.elapsed));
        let ahead_ms = now.wall.since(expected);
        if ahead_ms <= jump_max_ms {
            return Ok(());
        }
        let message = format!(
            "clock jumped ahead by {ahead_ms} ms more than time passed, limit {jump_max_ms} ms; if \
             it is right now, open the worker again"
        );
        Err(Error::clock_ahead(ahead_ms, jump_max_ms, message))
    }

    /// Releases the ticks that were not taken, and the lock.
    pub(super) fn close(&mut self, minted_until: UnixMillis) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let end = std::cmp::min(std::cmp::max(minted_until, self.floor), self.mark);
        self.file.lower_and_unlock(end)
    }
}
