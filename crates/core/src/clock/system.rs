//! The operating system's clock: the only place where this crate reads real time and really waits.
#![allow(clippy::disallowed_methods)]

use core::cell::Cell;
use core::time::Duration;
use std::sync::OnceLock;
use std::thread;
use std::time::{Instant, SystemTime};

use super::{Clock, Pause, Reading};
use crate::time::UnixMillis;

/// The operating system's clock: wall time by `SystemTime`, elapsed time by `Instant`.
///
/// `Instant` does not count the time of a suspended machine, so a resume looks like a step forward.
/// This costs nothing here: elapsed time only paces a held clock and detects steps. Leases use a
/// clock that counts suspend (`snowmint-coord`), because there it would matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The first reading in this process, from which elapsed times count.
static START: OnceLock<Instant> = OnceLock::new();

/// Longest undisturbed reading of wall and elapsed time, in microseconds. A reading takes tens of
/// nanoseconds; a longer one was interrupted, and its two times belong to different moments.
const READ_US_MAX: u64 = 50;

/// Attempts at a reading. The last one is used even if it was interrupted.
const READ_TRIES: u32 = 4;

/// The millisecond that this thread last read, as the times at which it begins and ends. It
/// memoizes a pure function, so it is not shared and cannot go stale.
#[derive(Clone, Copy)]
struct Memo {
    from: SystemTime,
    until: SystemTime,
    ms: UnixMillis,
}

std::thread_local! {
    static MEMO: Cell<Memo> = const {
        Cell::new(Memo {
            from: SystemTime::UNIX_EPOCH,
            until: SystemTime::UNIX_EPOCH,
            ms: UnixMillis::ZERO,
        })
    };
}

impl Memo {
    #[cold]
    fn renewed(now: SystemTime) -> UnixMillis {
        let wall = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let at = |ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms));
        let ms_after = ms.saturating_add(1);
        if let (Some(from), Some(until)) = (at(ms), at(ms_after)) {
            MEMO.set(Self { from, until, ms: UnixMillis::new(ms) });
        }
        UnixMillis::new(ms)
    }
}

impl SystemClock {
    fn elapsed_us() -> u64 {
        let start = START.get_or_init(Instant::now);
        u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn wall() -> Duration {
        // A clock before 1970 reads as 1970; every layout then reports a time before its epoch.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)
    }
}

impl Clock for SystemClock {
    #[inline]
    fn unix_ms(&self) -> UnixMillis {
        let now = SystemTime::now();
        let memo = MEMO.get();
        // Comparing two times is cheaper than subtracting them, and a millisecond is long.
        if memo.from <= now && now < memo.until { memo.ms } else { Memo::renewed(now) }
    }

    fn read(&self) -> Reading {
        let mut before_us = Self::elapsed_us();
        let mut tries: u32 = 1;
        loop {
            let wall_us = u64::try_from(Self::wall().as_micros()).unwrap_or(u64::MAX);
            let after_us = Self::elapsed_us();
            if after_us.saturating_sub(before_us) <= READ_US_MAX || tries == READ_TRIES {
                return Reading { wall_us, elapsed_us: after_us };
            }
            before_us = after_us;
            tries = tries.saturating_add(1);
        }
    }
}

impl Pause for SystemClock {
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        let until = Duration::from_millis(wall.get()).saturating_sub(Self::wall());
        thread::sleep(until.min(Duration::from_millis(at_most_ms)));
    }
}
