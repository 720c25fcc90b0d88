//! When a kind of call may be made again, and of how many sections at once.

use snowmint_core::ElapsedMillis;

use crate::machine::backoff_ms;

/// How many sections one call takes, extends or lets go.
pub(super) const AT_ONCE: usize = 1_000;
/// How many the first call takes, and the least; calls that take longer than this are for fewer.
const AT_ONCE_FIRST: usize = 64;
const AT_ONCE_MIN: usize = 8;
const SLOW_MS: u64 = 100;

/// When a kind of call may be made again, and of how many sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    busy: bool,
    failures: u32,
    next_at: Option<ElapsedMillis>,
    began_at: ElapsedMillis,
    /// Of how many sections.
    pub(super) at_once: usize,
}

impl Default for Turn {
    fn default() -> Self {
        let (next_at, began_at) = (None, ElapsedMillis::new(0));
        Self { busy: false, failures: 0, next_at, began_at, at_once: AT_ONCE_FIRST }
    }
}

impl Turn {
    pub(super) fn may_begin(self, now: ElapsedMillis) -> bool {
        !self.busy && self.next_at.is_none_or(|at| now >= at)
    }

    pub(super) const fn began(&mut self, now: ElapsedMillis) {
        self.busy = true;
        self.began_at = now;
    }

    pub(super) fn ended(&mut self, now: ElapsedMillis, failed: bool) {
        self.busy = false;
        // Somebody waits for the first of them, and so for them all.
        let took_ms = now.since(self.began_at);
        if took_ms > SLOW_MS {
            self.at_once = (self.at_once / 2).max(AT_ONCE_MIN);
        } else if took_ms < SLOW_MS / 2 {
            self.at_once = (self.at_once * 2).min(AT_ONCE);
        }
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        self.next_at = failed.then(|| now.saturating_add(backoff_ms(self.failures)));
    }

    pub(super) fn in_ms(self, now: ElapsedMillis) -> Option<u64> {
        (!self.busy).then(|| self.next_at.map_or(0, |at| at.since(now)))
    }
}
