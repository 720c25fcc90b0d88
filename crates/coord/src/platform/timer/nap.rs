//! Waits of less than a millisecond.
//!
//! A runtime's own timers use whole milliseconds and are up to two late, which costs a task that
//! waits for the next tick that tick and one more. A sleeping thread is late by some 0.06 ms. All
//! waiting tasks share one thread: they wait for the next millisecond of the same clock.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Tasks that wait together.
#[derive(Debug)]
pub(super) struct Nap {
    /// Whether a thread sleeps for all tasks, or will.
    is_watched: AtomicBool,
    over: Notify,
}

/// Value owned by the thread. When it is dropped, for whatever reason, all tasks wake up.
struct NapWatch(&'static Nap);

impl Nap {
    pub(super) const fn new() -> Self {
        Self { is_watched: AtomicBool::new(false), over: Notify::const_new() }
    }

    /// Waits for `us` microseconds, or for as long as the tasks that wait already, but no longer
    /// than `at_most`. The latter ends the wait when all threads for blocking work are busy, or
    /// when a fork has left the thread behind.
    pub(super) async fn wait(&'static self, us: u64, at_most: impl Future<Output = ()>) {
        let mut over = std::pin::pin!(self.over.notified());
        // This must precede the check for a sleeping thread: a thread that ends in between then
        // wakes this task.
        over.as_mut().enable();
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            let watch = NapWatch(self);
            // The task is detached: its starter may give up, or not be polled, and the other tasks
            // wake up all the same.
            drop(tokio::task::spawn_blocking(move || watch.sleep(us)));
        }
        tokio::select! {
            biased;
            () = over => {}
            () = at_most => {}
        }
    }
}

impl NapWatch {
    #[allow(clippy::disallowed_methods, reason = "this is the home of waiting")]
    fn sleep(self, us: u64) {
        std::thread::sleep(Duration::from_micros(us));
    }
}

impl Drop for NapWatch {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Ordering::Release);
        self.0.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn all_tasks_wake_when_the_first_gives_up() {
        static NAP: Nap = Nap::new();
        let mut first = Box::pin(NAP.wait(50_000, pending()));
        assert!(first.as_mut().now_or_never().is_none());
        let others = join_all((0..3).map(|_| NAP.wait(3_600_000_000, pending())));
        drop(first);
        others.await;
        // The next call starts a new nap.
        NAP.wait(1, pending()).await;
    }

    #[tokio::test]
    async fn nap_ends_without_its_thread() {
        static NAP: Nap = Nap::new();
        NAP.is_watched.store(true, Ordering::Release);
        NAP.wait(1, ready(())).await;
        assert!(NAP.wait(1, pending()).now_or_never().is_none());
    }
}
