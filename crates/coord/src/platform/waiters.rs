//! Tasks that wait for one result.

use tokio::sync::oneshot;

/// Minimum length of a list before it is searched for waiters that have given up.
const LENGTH_MIN: usize = 16;

/// All tasks that wait for one result. Tasks that have given up are dropped before the list grows
/// further; tasks that still wait when the list is dropped learn that no result comes.
#[derive(Debug)]
pub(crate) struct Waiters<T> {
    waiting: Vec<oneshot::Sender<T>>,
    /// Length at which the list is searched for waiters that have given up.
    prune_at: usize,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), prune_at: LENGTH_MIN }
    }
}

impl<T: Clone> Waiters<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn add(&mut self, waiter: oneshot::Sender<T>) {
        if self.waiting.len() >= self.prune_at {
            self.waiting.retain(|waiter| !waiter.is_closed());
            // Each search costs as much as the additions since the last.
            self.prune_at = self.waiting.len().saturating_mul(2).max(LENGTH_MIN);
        }
        self.waiting.push(waiter);
    }

    /// Adds the waiters of another list.
    pub(crate) fn add_all(&mut self, others: Self) {
        others.waiting.into_iter().for_each(|waiter| self.add(waiter));
    }

    pub(crate) fn notify(&mut self, value: &T) {
        for waiter in self.waiting.drain(..) {
            // A task that has given up needs no result.
            let _ = waiter.send(value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_waiters_get_the_result_or_its_absence() {
        for notifies in [true, false] {
            let mut waiters = Waiters::default();
            let mut receivers = Vec::new();
            for _ in 0..100 {
                let (sender, receiver) = oneshot::channel();
                waiters.add(sender);
                receivers.push(receiver);
            }
            if notifies {
                waiters.notify(&7);
                assert!(waiters.is_empty());
            }
            drop(waiters);
            for receiver in receivers {
                assert_eq!(receiver.await.ok(), notifies.then_some(7));
            }
        }
    }

    #[test]
    fn abandoned_waiter_is_dropped() {
        let mut waiters = Waiters::<()>::default();
        let mut patient = Vec::new();
        for number in 0..100_000 {
            let (sender, receiver) = oneshot::channel();
            waiters.add(sender);
            if number % 1_000 == 0 {
                patient.push(receiver);
            }
        }
        assert!(waiters.waiting.len() <= 2 * patient.len() + 1, "{}", waiters.waiting.len());
    }
}
