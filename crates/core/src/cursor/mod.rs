//! Numbers from segments that a store has granted, drawn by one counter that all threads share.
//!
//! The hot path is one locked instruction, as in the [generator](crate::Generator). The counter is
//! the next number; a drawn number counts only if it lies inside the segment that was open when the
//! call began. Segments only ever rise, so a switch to the next one is three maxima. Any number of
//! threads may run them at once, finish them for each other, or run them late. No thread waits for
//! a suspended one.
//!
//! CosId's chain and Leaf's double buffer take a lock, or allocate, at each switch; Tinyid and Leaf
//! lose the order of numbers there.

use core::iter;

use crate::sync::{AtomicU64, Ordering, Padded};

/// Maximum number of segments waiting behind the open one.
pub const WAITING_MAX: usize = 16;

/// Counter value of a closed cursor: above every number, with room for all later draws.
const CLOSED: u64 = 1 << 63;

/// A cursor that hands out the numbers of segments, each once and in rising order.
///
/// - **Shared**: any number of threads.
/// - **Increasing**: a number is greater than every number handed out before its call began.
/// - **Never waits**: without numbers it returns `None`.
///
/// ```
/// let cursor = snowmint_core::SegmentCursor::new();
/// cursor.push(1, 3).unwrap();
/// cursor.push(10, 12).unwrap();
/// let numbers: Vec<u64> = std::iter::from_fn(|| cursor.take(|| {})).collect();
/// assert_eq!(numbers, [1, 2, 10, 11]);
/// ```
#[derive(Debug)]
pub struct SegmentCursor {
    /// The next number; at or above `end` when nothing is left.
    next: Padded<AtomicU64>,
    open: Padded<Open>,
    waiting: WaitingSegments,
    /// Numbers that were drawn out of bounds and not returned to the counter.
    lost: AtomicU64,
}

/// The segment that numbers come from. Both bounds only rise.
#[derive(Debug)]
struct Open {
    /// First number of the segment.
    first: AtomicU64,
    /// First number behind the segment. Written after `first`, and read before it.
    end: AtomicU64,
}

/// The segments behind the open one. One thread writes at `tail`; a thread that advances `head` has
/// opened a segment.
#[derive(Debug)]
struct WaitingSegments {
    firsts: [AtomicU64; WAITING_MAX],
    ends: [AtomicU64; WAITING_MAX],
    head: AtomicU64,
    tail: AtomicU64,
    /// Exclusive upper bound of the pushed numbers.
    pushed: AtomicU64,
}

/// The error of a segment that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The segment is empty, does not begin at or above `above`, where the pushed segments end, or
    /// ends above 2^63.
    NotAbove {
        /// The lowest number that may be pushed.
        above: u64,
    },
    /// [`WAITING_MAX`] segments are waiting.
    Full,
}

impl core::fmt::Display for PushError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotAbove { above } => {
                write!(f, "a segment begins at {above} or above, has a number, and ends below 2^63")
            }
            Self::Full => write!(f, "{WAITING_MAX} segments are waiting: push when one was opened"),
        }
    }
}

impl core::error::Error for PushError {}

/// Consecutive numbers: from `first` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first number.
    pub first: u64,
    /// The number after the last.
    pub end: u64,
}

impl Default for SegmentCursor {
    fn default() -> Self {
        Self::new()
    }
}

impl SegmentCursor {
    /// Returns a cursor without numbers.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next: Padded(zero()),
            open: Padded(Open { first: zero(), end: zero() }),
            waiting: WaitingSegments {
                firsts: core::array::from_fn(|_| zero()),
                ends: core::array::from_fn(|_| zero()),
                head: zero(),
                tail: zero(),
                pushed: zero(),
            },
            lost: zero(),
        }
    }

    /// Takes the next number. Calls `on_switch` if the call opened a segment, so that the caller
    /// can check whether enough segments are waiting.
    #[inline]
    pub fn take(&self, on_switch: impl FnOnce()) -> Option<u64> {
        match self.ticket() {
            Ok(number) => Some(number),
            Err(unused) => self.take_cold(unused, on_switch),
        }
    }

    /// Takes up to `count` consecutive numbers: at least one, and at most the rest of the segment.
    #[inline]
    pub fn take_run(&self, count: u64, on_switch: impl FnOnce()) -> Option<Run> {
        let count = count.max(1);
        self.run(count).or_else(|| self.run_cold(count, on_switch))
    }

    /// Draws a number: `Ok` if it lies in the open segment, else `Err`.
    ///
    /// The bounds are read before the number is drawn. If they are outdated, the number lies above
    /// them and is rejected. A number inside bounds that were ever open is valid, since the counter
    /// never comes back to a used number.
    #[inline]
    fn ticket(&self) -> Result<u64, u64> {
        // In this order: an end is never seen without its first.
        let end = self.open.0.end.load(Ordering::Acquire);
        let first = self.open.0.first.load(Ordering::Acquire);
        let number = self.next.0.fetch_add(1, Ordering::AcqRel);
        if number >= first && number < end { Ok(number) } else { Err(number) }
    }

    /// Draws numbers up to the end of the open segment. It compares and swaps, so that it draws
    /// none behind the end: a later draw by another thread would keep those numbers from being
    /// returned to the counter.
    #[inline]
    fn run(&self, count: u64) -> Option<Run> {
        let end = self.open.0.end.load(Ordering::Acquire);
        let first = self.open.0.first.load(Ordering::Acquire);
        let mut next = self.next.0.load(Ordering::Acquire);
        while next >= first && next < end {
            let run = Run { first: next, end: next.saturating_add(count).min(end) };
            let taken =
                self.next.0.compare_exchange(next, run.end, Ordering::AcqRel, Ordering::Acquire);
            match taken {
                Ok(_) => return Some(run),
                Err(found) => next = found,
            }
        }
        None
    }

    #[cold]
    fn take_cold(&self, unused: u64, on_switch: impl FnOnce()) -> Option<u64> {
        let mut unused = Some(unused);
        let mut switched = false;
        let taken = loop {
            // This segment or another one may have been opened since the bounds were read.
            if let Some(number) = unused.filter(|number| self.is_inside(*number)) {
                break Some(number);
            }
            if self.next.0.load(Ordering::Acquire) >= CLOSED {
                break None;
            }
            unused = unused.filter(|number| !self.try_return(*number));
            match self.open_next() {
                Opened::Here => switched = true,
                Opened::AlreadyOpen => {}
                Opened::None if self.is_dry() => {
                    let number = unused.filter(|number| self.is_inside(*number));
                    self.give_up(unused.filter(|_| number.is_none()));
                    break number;
                }
                // A segment was pushed just now, or numbers were returned to the counter.
                Opened::None => {}
            }
            // The number still held may lie inside the segment that was opened.
            if unused.is_none_or(|number| !self.is_inside(number)) {
                match self.ticket() {
                    Ok(number) => {
                        self.give_up(unused);
                        break Some(number);
                    }
                    Err(drawn) => self.give_up(unused.replace(drawn)),
                }
            }
        };
        if switched {
            on_switch();
        }
        taken
    }

    #[cold]
    fn run_cold(&self, count: u64, on_switch: impl FnOnce()) -> Option<Run> {
        let mut switched = false;
        let taken = loop {
            if self.next.0.load(Ordering::Acquire) >= CLOSED {
                break None;
            }
            match self.open_next() {
                Opened::Here => switched = true,
                Opened::AlreadyOpen => {}
                Opened::None if self.is_dry() => break None,
                Opened::None => {}
            }
            if let Some(run) = self.run(count) {
                break Some(run);
            }
        };
        if switched {
            on_switch();
        }
        taken
    }

    fn is_inside(&self, number: u64) -> bool {
        let end = self.open.0.end.load(Ordering::Acquire);
        let first = self.open.0.first.load(Ordering::Acquire);
        number >= first && number < end
    }

    /// Moves the counter back to an unused number, if none was drawn after it. Returns whether the
    /// number is settled: one below the open segment lies in a gap, and no caller can use it.
    fn try_return(&self, unused: u64) -> bool {
        unused < self.open.0.first.load(Ordering::Acquire)
            || self
                .next
                .0
                .compare_exchange(
                    unused.wrapping_add(1),
                    unused,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Counts an unused number as lost if it cannot be returned to the counter. A number in a gap
    /// is not lost.
    fn give_up(&self, unused: Option<u64>) {
        if unused.is_some_and(|number| !self.try_return(number)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many numbers are lost because two threads drew out of bounds at once. It
    /// excludes a number whose thread did not see the segment yet, and slept until another one was
    /// open.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn is_dry(&self) -> bool {
        let waiting = &self.waiting;
        waiting.head.load(Ordering::Acquire) == waiting.tail.load(Ordering::Acquire)
            && self.next.0.load(Ordering::Acquire) >= self.open.0.end.load(Ordering::Acquire)
    }

    /// Opens the next segment, if the open one is used up.
    fn open_next(&self) -> Opened {
        let waiting = &self.waiting;
        let head = waiting.head.load(Ordering::Acquire);
        if head == waiting.tail.load(Ordering::Acquire) {
            return Opened::None;
        }
        if self.next.0.load(Ordering::Acquire) < self.open.0.end.load(Ordering::Acquire) {
            return Opened::AlreadyOpen;
        }
        let ring_index = ring_index(head);
        let (Some(first), Some(end)) =
            (waiting.firsts.get(ring_index), waiting.ends.get(ring_index))
        else {
            return Opened::None;
        };
        let (first, end) = (first.load(Ordering::Acquire), end.load(Ordering::Acquire));
        if waiting.head.load(Ordering::Acquire) != head {
            // The values read may belong to a later segment.
            return Opened::AlreadyOpen;
        }
        // Maxima: late or repeated, they change nothing.
        self.open.0.first.fetch_max(first, Ordering::AcqRel);
        self.next.0.fetch_max(first, Ordering::AcqRel);
        self.open.0.end.fetch_max(end, Ordering::AcqRel);
        let moved = waiting.head.compare_exchange(
            head,
            head.wrapping_add(1),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if moved.is_ok() { Opened::Here } else { Opened::AlreadyOpen }
    }

    /// Appends a segment, from `first` up to, but without, `end`. Only one thread at a time may
    /// push.
    ///
    /// # Errors
    /// [`PushError`]: the segment is not above all earlier ones, or too many are waiting. The
    /// cursor is unchanged then.
    pub fn push(&self, first: u64, end: u64) -> Result<(), PushError> {
        let waiting = &self.waiting;
        let above = waiting.pushed.load(Ordering::Acquire);
        if first < above || first >= end || end > CLOSED {
            return Err(PushError::NotAbove { above });
        }
        let tail = waiting.tail.load(Ordering::Acquire);
        if tail.wrapping_sub(waiting.head.load(Ordering::Acquire)) >= WAITING_MAX as u64 {
            return Err(PushError::Full);
        }
        let ring_index = ring_index(tail);
        for (array, value) in [(&waiting.firsts, first), (&waiting.ends, end)] {
            if let Some(slot) = array.get(ring_index) {
                slot.store(value, Ordering::Release);
            }
        }
        waiting.pushed.store(end, Ordering::Release);
        waiting.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Returns how many segments wait behind the open one.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let head = self.waiting.head.load(Ordering::Acquire);
        self.waiting.tail.load(Ordering::Acquire).wrapping_sub(head).min(WAITING_MAX as u64)
    }

    /// Closes the cursor: it hands out no more numbers. Returns the first number that was not
    /// handed out; all pushed numbers from there on are unused. A second call returns a number
    /// above all others.
    pub fn close(&self) -> u64 {
        self.next.0.fetch_max(CLOSED, Ordering::AcqRel)
    }

    /// Returns the next number: all lower ones were handed out, or lie in a gap. Other threads may
    /// be taking higher ones at this moment.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// Returns about how many numbers are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        let waiting = &self.waiting;
        let next = self.next.0.load(Ordering::Acquire);
        let open = self.open.0.end.load(Ordering::Acquire).saturating_sub(next);
        let head = waiting.head.load(Ordering::Acquire);
        let count = self.waiting();
        let more = iter::successors(Some(head), |index| Some(index.wrapping_add(1)))
            .zip(0..count)
            .map(|(index, _)| self.waiting_at(ring_index(index)));
        more.fold(open, u64::saturating_add)
    }

    fn waiting_at(&self, ring_index: usize) -> u64 {
        let value = |array: &[AtomicU64; WAITING_MAX]| {
            array.get(ring_index).map_or(0, |slot| slot.load(Ordering::Acquire))
        };
        value(&self.waiting.ends).saturating_sub(value(&self.waiting.firsts))
    }
}

/// The result of opening a segment.
enum Opened {
    /// This thread opened it.
    Here,
    /// Another thread opened it, or the open segment still has numbers.
    AlreadyOpen,
    /// No segment is waiting.
    None,
}

#[allow(clippy::cast_possible_truncation, reason = "below WAITING_MAX")]
const fn ring_index(index: u64) -> usize {
    index.rem_euclid(WAITING_MAX as u64) as usize
}

#[cfg(all(test, snowmint_loom))]
mod interleavings;
#[cfg(all(test, not(snowmint_loom)))]
mod tests;
