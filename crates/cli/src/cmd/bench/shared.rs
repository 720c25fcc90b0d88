//! What all threads of a run share: how much is left to do, how much is done, when it begins and ends.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmint_coord::BootTimer;

/// Into how many parts what may still be kept is parted.
const KEEP_SHARES: u64 = 64;

/// What all threads share. The numbers order nothing: relaxed everywhere.
#[derive(Debug)]
pub(super) struct Shared {
    /// IDs that may still be asked for; none: no limit.
    left: Option<AtomicU64>,
    /// IDs that may still be kept for the comparison.
    to_keep: AtomicU64,
    /// Requests that came to an end, and IDs that they brought.
    answers: AtomicU64,
    ids: AtomicU64,
    /// When the first request was sent or due, as elapsed time.
    start_ns: OnceLock<u64>,
    /// How long requests are sent; none: until nothing is left.
    lasts_ns: Option<u64>,
    /// Nothing more is sent.
    ended: AtomicBool,
    /// Nothing more is waited for.
    stopped: AtomicBool,
}

impl Shared {
    pub(super) fn new(total: Option<u64>, lasts_ns: Option<u64>, keep_max: u64) -> Self {
        Self {
            left: total.map(AtomicU64::new),
            to_keep: AtomicU64::new(keep_max),
            answers: AtomicU64::new(0),
            ids: AtomicU64::new(0),
            start_ns: OnceLock::new(),
            lasts_ns,
            ended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// How many IDs the next request asks for: none when nothing is left.
    pub(super) fn take(&self, batch: u32) -> Option<u32> {
        let Some(left) = &self.left else { return Some(batch) };
        let rest = |left: u64| left.saturating_sub(u64::from(batch));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| rest(left))
        });
        before.ok().map(|left| u32::try_from(left).map_or(batch, |left| left.min(batch)))
    }

    /// How many of the next IDs may be kept, `most` at a time. Less and less towards the end: what a thread has left
    /// when the run ends is kept by nobody.
    pub(super) fn keep(&self, most: u64) -> u64 {
        let share = |left: u64| (left / KEEP_SHARES).min(most).max(1);
        let taken = self.to_keep.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left - share(left))
        });
        taken.map_or(0, share)
    }

    /// A request came to an end.
    pub(super) fn answered(&self, ids: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.ids.fetch_add(ids, Ordering::Relaxed);
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    pub(super) fn ids(&self) -> u64 {
        self.ids.load(Ordering::Relaxed)
    }

    /// The start of the run, the same for all.
    pub(super) fn start_ns(&self) -> u64 {
        *self.start_ns.get_or_init(|| BootTimer.elapsed_ns())
    }

    /// How long the run has been going on; none before its start.
    pub(super) fn running_ns(&self) -> Option<u64> {
        self.start_ns.get().map(|start| BootTimer.elapsed_ns().saturating_sub(*start))
    }

    /// When no more requests are sent.
    pub(super) fn end_ns(&self) -> u64 {
        self.lasts_ns.map_or(u64::MAX, |lasts| self.start_ns().saturating_add(lasts))
    }

    /// Whether it is the time that ends the run, and nothing else.
    pub(super) const fn has_end(&self) -> bool {
        self.lasts_ns.is_some() && self.left.is_none()
    }

    /// Ends the run early: what is on its way is waited for, and the second time it is not.
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
    fn no_more_is_asked_for_than_was_wanted() {
        let shared = Shared::new(Some(25), None, 300);
        let taken: Vec<_> = std::iter::from_fn(|| shared.take(10)).collect();
        assert_eq!(taken, [10, 10, 5]);
        let kept: Vec<_> =
            std::iter::repeat_with(|| shared.keep(3)).take_while(|n| *n > 0).collect();
        assert_eq!((kept[0], kept.last(), kept.iter().sum::<u64>()), (3, Some(&1), 300));
        let endless = Shared::new(None, Some(7), 0);
        assert_eq!(endless.take(10), Some(10));
        assert_eq!(endless.end_ns(), endless.start_ns() + 7);
        assert_eq!(endless.keep(1), 0);
    }
}
