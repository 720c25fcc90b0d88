//! Numbers from segments that a store has granted, by one counter that all threads share.
//!
//! The hot path is one locked instruction, as in the [generator](crate::Generator): the counter is the
//! next number, and a number that was taken counts only if it lies inside the segment that was open
//! when it was asked for. Segments only ever rise, so a switch from one to the next is three maxima,
//! which any number of threads may do at once, finish for each other, or do too late: nobody waits for
//! a thread that was put to sleep in the middle. CosId's chain and Leaf's double buffer take a lock, or
//! an allocation, at each switch; Tinyid and Leaf lose the order of numbers there.

use core::iter;

use crate::sync::{AtomicU64, Ordering, Padded};

/// How many segments may wait behind the open one.
pub const WAITING_MAX: usize = 16;

/// Where the counter goes when the cursor is closed: above every number, with room for all that will
/// ever be asked for afterwards.
const CLOSED: u64 = 1 << 63;

/// How often a stray is tried to be put back before it is a gap. One number is not worth more.
const PUT_BACK_TRIES: u32 = if cfg!(snowmint_loom) { 1 } else { 64 };

/// Hands out the numbers of segments, each once and in rising order.
///
/// - **Shared**: any number of threads.
/// - **Increasing**: a number is greater than every number that was handed out before it was asked for.
/// - **Never waits.** Without numbers it says so.
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
    /// The next number; above `end` when nothing is left.
    next: Padded<AtomicU64>,
    open: Padded<Open>,
    waiting: Waiting,
}

/// The segment that numbers come from. Both only rise.
#[derive(Debug)]
struct Open {
    /// Its first number.
    first: AtomicU64,
    /// The first number behind it. Written after `first`, and read before it.
    end: AtomicU64,
}

/// The segments behind the open one. One thread writes at `tail`; who moves `head` on has opened one.
#[derive(Debug)]
struct Waiting {
    firsts: [AtomicU64; WAITING_MAX],
    ends: [AtomicU64; WAITING_MAX],
    head: AtomicU64,
    tail: AtomicU64,
    /// Above every number that was pushed.
    pushed: AtomicU64,
}

/// Why a segment was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// It has no number, or is not wholly above all that were pushed before, which end at `above`.
    NotAbove {
        /// The first number that may be pushed.
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

/// Numbers that follow one another: from `first` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
}

impl Default for SegmentCursor {
    fn default() -> Self {
        Self::new()
    }
}

impl SegmentCursor {
    /// One without numbers.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next: Padded(zero()),
            open: Padded(Open { first: zero(), end: zero() }),
            waiting: Waiting {
                firsts: core::array::from_fn(|_| zero()),
                ends: core::array::from_fn(|_| zero()),
                head: zero(),
                tail: zero(),
                pushed: zero(),
            },
        }
    }

    /// Takes the next number. `on_switch` is called when that opened a segment: the moment to look
    /// whether enough are waiting.
    #[inline]
    pub fn take(&self, on_switch: impl FnOnce()) -> Option<u64> {
        match self.ticket() {
            Ok(number) => Some(number),
            Err(stray) => Some(self.take_cold(stray, 1, on_switch)?.first),
        }
    }

    /// Takes up to `count` numbers that follow one another: as many as the segment has, at least one.
    #[inline]
    pub fn take_run(&self, count: u64, on_switch: impl FnOnce()) -> Option<Run> {
        match self.run(count) {
            Some(run) => Some(run),
            None => self.take_cold(Run { first: 0, end: 0 }, count, on_switch),
        }
    }

    /// Takes a run inside the open segment. It draws no more than there is: numbers that are drawn beyond
    /// the end can be given back only as long as nobody has drawn after them, and are a gap otherwise.
    #[inline]
    fn run(&self, count: u64) -> Option<Run> {
        let mut number = self.next.0.load(Ordering::Acquire);
        loop {
            // In this order: an end is never seen without its first.
            let end = self.open.0.end.load(Ordering::Acquire);
            let first = self.open.0.first.load(Ordering::Acquire);
            if number < first || number >= end {
                return None;
            }
            let last = number.saturating_add(count.max(1)).min(end);
            match self.next.0.compare_exchange_weak(
                number,
                last,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(Run { first: number, end: last }),
                Err(now) => number = now,
            }
        }
    }

    /// Draws a number, and says whether it counts: one inside the open segment, or a stray.
    ///
    /// The bounds are read before the number is drawn. They may be older than it, and then the number
    /// lies above them and is a stray: a number inside bounds that were ever open is a good one, since
    /// the counter never comes back to a number that was used.
    #[inline]
    fn ticket(&self) -> Result<u64, Run> {
        // In this order: an end is never seen without its first.
        let end = self.open.0.end.load(Ordering::Acquire);
        let first = self.open.0.first.load(Ordering::Acquire);
        let number = self.next.0.fetch_add(1, Ordering::AcqRel);
        let drawn = Run { first: number, end: number.wrapping_add(1) };
        if number >= first && drawn.end <= end { Ok(number) } else { Err(drawn) }
    }

    #[cold]
    fn take_cold(&self, stray: Run, count: u64, on_switch: impl FnOnce()) -> Option<Run> {
        let mut stray = stray;
        let mut switched = false;
        let taken = loop {
            // The segment may have been opened, or lengthened, since the bounds were read.
            if let Some(run) = self.inside(stray) {
                break Some(run);
            }
            if self.next.0.load(Ordering::Acquire) >= CLOSED {
                break None;
            }
            if self.put_back(stray) {
                stray = Run { first: 0, end: 0 };
            }
            match self.open_next() {
                Opened::Here => switched = true,
                Opened::Elsewhere => {}
                Opened::None if self.is_dry() => {
                    self.leave(stray);
                    break None;
                }
                // One came just now, or numbers were given back.
                Opened::None => {}
            }
            // What is still held may lie inside the segment that was opened.
            if self.inside(stray).is_none()
                && let Some(run) = self.run(count)
            {
                self.leave(stray);
                break Some(run);
            }
        };
        if switched {
            on_switch();
        }
        taken
    }

    /// The part of drawn numbers that lies inside the open segment.
    fn inside(&self, drawn: Run) -> Option<Run> {
        let end = self.open.0.end.load(Ordering::Acquire);
        let first = self.open.0.first.load(Ordering::Acquire);
        let run = Run { first: drawn.first.max(first), end: drawn.end.min(end) };
        (run.first < run.end).then_some(run)
    }

    /// Gives drawn numbers back that nobody used, if none was drawn after them. Answers whether they
    /// need no further thought: those below the open segment lie in a gap, and nobody can use them.
    fn put_back(&self, drawn: Run) -> bool {
        drawn.first == drawn.end
            || drawn.end <= self.open.0.first.load(Ordering::Acquire)
            || self
                .next
                .0
                .compare_exchange(drawn.end, drawn.first, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Gives up a stray that could not be put back at once: whoever has drawn after it is about to put
    /// theirs back. In vain it is a gap of one number.
    fn leave(&self, stray: Run) {
        for _ in 0..PUT_BACK_TRIES {
            if self.put_back(stray) {
                return;
            }
            core::hint::spin_loop();
        }
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
            return Opened::Elsewhere;
        }
        let place = place(head);
        let (Some(first), Some(end)) = (waiting.firsts.get(place), waiting.ends.get(place)) else {
            return Opened::None;
        };
        let (first, end) = (first.load(Ordering::Acquire), end.load(Ordering::Acquire));
        if waiting.head.load(Ordering::Acquire) != head {
            // What was read may belong to a later one.
            return Opened::Elsewhere;
        }
        // Maxima: too late, or done twice, they change nothing.
        self.open.0.first.fetch_max(first, Ordering::AcqRel);
        self.next.0.fetch_max(first, Ordering::AcqRel);
        self.open.0.end.fetch_max(end, Ordering::AcqRel);
        let moved = waiting.head.compare_exchange(
            head,
            head.wrapping_add(1),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if moved.is_ok() { Opened::Here } else { Opened::Elsewhere }
    }

    /// Appends a segment, from `first` up to, but without, `end`. One thread at a time may push.
    ///
    /// # Errors
    /// [`PushError`]: it is not above all that were pushed before, or too many are waiting. Nothing has
    /// changed then.
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
        let place = place(tail);
        for (array, value) in [(&waiting.firsts, first), (&waiting.ends, end)] {
            if let Some(slot) = array.get(place) {
                slot.store(value, Ordering::Release);
            }
        }
        waiting.pushed.store(end, Ordering::Release);
        waiting.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// How many segments wait behind the open one.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let head = self.waiting.head.load(Ordering::Acquire);
        self.waiting.tail.load(Ordering::Acquire).wrapping_sub(head).min(WAITING_MAX as u64)
    }

    /// Ends it: nothing is handed out any more. Answers the first number that was not handed out; all
    /// pushed numbers from there on are unused. A second call answers a number above all.
    pub fn close(&self) -> u64 {
        self.next.0.fetch_max(CLOSED, Ordering::AcqRel)
    }

    /// The next number: all below were handed out, or lie in a gap. Those from there on may be taken at this
    /// very moment.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// About how many numbers are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        let waiting = &self.waiting;
        let next = self.next.0.load(Ordering::Acquire);
        let open = self.open.0.end.load(Ordering::Acquire).saturating_sub(next);
        let head = waiting.head.load(Ordering::Acquire);
        let count = self.waiting();
        let more = iter::successors(Some(head), |index| Some(index.wrapping_add(1)))
            .zip(0..count)
            .map(|(index, _)| self.waiting_at(place(index)));
        more.fold(open, u64::saturating_add)
    }

    fn waiting_at(&self, place: usize) -> u64 {
        let value = |array: &[AtomicU64; WAITING_MAX]| {
            array.get(place).map_or(0, |slot| slot.load(Ordering::Acquire))
        };
        value(&self.waiting.ends).saturating_sub(value(&self.waiting.firsts))
    }
}

/// What became of opening a segment.
enum Opened {
    /// This thread did it.
    Here,
    /// Another did, or the open one still has numbers.
    Elsewhere,
    /// None is waiting.
    None,
}

#[allow(clippy::cast_possible_truncation, reason = "below WAITING_MAX")]
const fn place(index: u64) -> usize {
    index.rem_euclid(WAITING_MAX as u64) as usize
}

#[cfg(all(test, snowmint_loom))]
mod interleavings;
#[cfg(all(test, not(snowmint_loom)))]
mod tests;
