//! State that all threads of a run share: the work left, the work done, begin and end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmint_coord::BootTimer;

/// Number of parts into which the IDs that may still be kept are divided.
const KEEP_SHARES: u64 = 64;

/// State that all threads share. The numbers order no other memory: all accesses are relaxed.
pub(super) struct SharedState {
    /// IDs that may still be requested; `None`: no limit.
    left: Option<AtomicU64>,
    /// IDs that may still be kept for the comparison.
    to_keep: AtomicU64,
    /// Requests that ended, and IDs that they brought.
    responses: AtomicU64,
    ids: AtomicU64,
    /// Time when the first request was sent or due, as elapsed time.
    start_ns: OnceLock<u64>,
    /// Time for which requests are sent; `None`: until no work is left.
    lasts_ns: Option<u64>,
    /// Whether sending has ended.
    ended: AtomicBool,
    /// Whether waiting for responses has ended.
    stopped: AtomicBool,
}

impl SharedState {
    pub(super) fn new(total: Option<u64>, lasts_ns: Option<u64>, keep_max: u64) -> Self {
        Self {
            left: total.map(AtomicU64::new),
            to_keep: AtomicU64::new(keep_max),
            responses: AtomicU64::new(0),
            ids: AtomicU64::new(0),
            start_ns: OnceLock::new(),
            lasts_ns,
            ended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// Returns the number of IDs for the next request; `None` when no work is left.
    pub(super) fn take(&self, batch: u32) -> Option<u32> {
        let Some(left) = &self.left else { return Some(batch) };
        let rest = |left: u64| left.saturating_sub(u64::from(batch));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| rest(left))
        });
        before.ok().map(|left| u32::try_from(left).map_or(batch, |left| left.min(batch)))
    }

    /// Returns how many of the next IDs may be kept, `most` at a time. The number shrinks towards
    /// the end, because IDs that a thread may still keep at the end of the run are lost.
    pub(super) fn keep(&self, most: u64) -> u64 {
        let share = |left: u64| (left / KEEP_SHARES).min(most).max(1);
        let granted = self.to_keep.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left - share(left))
        });
        granted.map_or(0, share)
    }

    /// Records a request that ended.
    pub(super) fn responded(&self, ids: u64) {
        self.responses.fetch_add(1, Ordering::Relaxed);
        self.ids.fetch_add(ids, Ordering::Relaxed);
    }

    pub(super) fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    pub(super) fn ids(&self) -> u64 {
        self.ids.load(Ordering::Relaxed)
    }

    /// Returns the start of the run, the same for all threads.
    pub(super) fn start_ns(&self) -> u64 {
        *self.start_ns.get_or_init(|| BootTimer.elapsed_ns())
    }

    /// Returns the time since the start of the run; `None` before the start.
    pub(super) fn running_ns(&self) -> Option<u64> {
        self.start_ns.get().map(|start| BootTimer.elapsed_ns().saturating_sub(*start))
    }

    /// Returns the time from which no more requests are sent.
    pub(super) fn end_ns(&self) -> u64 {
        self.lasts_ns.map_or(u64::MAX, |lasts| self.start_ns().saturating_add(lasts))
    }

    /// Returns whether the time alone ends the run.
    pub(super) const fn has_end(&self) -> bool {
        self.lasts_ns.is_some() && self.left.is_none()
    }

    /// Ends the run early: the first call lets requests in flight finish, the second does not.
    pub(super) fn end(&self) {
        if self.ended.swap(true, Ordering::Relaxed) {
            self.stop();
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends the run at once.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_never_exceed_the_wanted_count() {
        let shared = SharedState::new(Some(25), None, 300);
        let granted: Vec<_> = std::iter::from_fn(|| shared.take(10)).collect();
        assert_eq!(granted, [10, 10, 5]);
        let kept: Vec<_> =
            std::iter::repeat_with(|| shared.keep(3)).take_while(|n| *n > 0).collect();
        assert_eq!((kept[0], kept.last(), kept.iter().sum::<u64>()), (3, Some(&1), 300));
        let endless = SharedState::new(None, Some(7), 0);
        assert_eq!(endless.take(10), Some(10));
        assert_eq!(endless.end_ns(), endless.start_ns() + 7);
        assert_eq!(endless.keep(1), 0);
    }
}
