//! One call at a time for all callers with the same query.
//!
//! A caller that arrives while a call is in flight gets the result of the next call, never of that
//! one: it may have begun before the caller's own writes. So however many callers arrive, one call
//! is in flight, and one more serves all that came meanwhile.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use snowmint_core::UnixMillis;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::model::history::StoreIdentity;
use crate::platform::lock::lock;
use crate::platform::waiters::Waiters;

/// Maximum difference, in milliseconds, between two times that share one call.
const SAME_TIME_MS: u64 = 5_000;

/// A query of callers.
pub(super) trait Query: fmt::Debug + Send + Sync + 'static {
    /// Returns whether the result for `self` also serves `other`; if so, `self` becomes the query
    /// of both.
    fn takes_in(&mut self, other: &Self) -> bool;
}

impl Query for () {
    fn takes_in(&mut self, (): &Self) -> bool {
        true
    }
}

impl Query for String {
    fn takes_in(&mut self, other: &Self) -> bool {
        *self == *other
    }
}

/// The caller's name, and the store state that it has seen.
impl Query for (String, StoreIdentity) {
    fn takes_in(&mut self, other: &Self) -> bool {
        *self == *other
    }
}

/// A query as of the caller's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsOf {
    /// Time of the first caller.
    first: UnixMillis,
    /// Latest time of all callers.
    pub(super) now: UnixMillis,
}

impl AsOf {
    pub(super) const fn new(now: UnixMillis) -> Self {
        Self { first: now, now }
    }
}

impl Query for AsOf {
    fn takes_in(&mut self, other: &Self) -> bool {
        let apart_ms = self.first.since(other.now).max(other.now.since(self.first));
        let is_near = apart_ms <= SAME_TIME_MS;
        if is_near {
            self.now = self.now.max(other.now);
        }
        is_near
    }
}

/// Result that all callers with the same query share.
type SharedResult<T> = Result<Arc<T>>;

/// Calls of one kind.
#[derive(Debug)]
pub(super) struct Flights<Q, T>(Arc<Mutex<PendingQueries<Q, T>>>);

/// Callers that wait for the next calls.
#[derive(Debug)]
struct PendingQueries<Q, T> {
    /// Whether a call for all callers is in flight.
    is_in_flight: bool,
    next: VecDeque<(Q, Waiters<SharedResult<T>>)>,
}

impl<Q, T> Default for Flights<Q, T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(PendingQueries { is_in_flight: false, next: VecDeque::new() })))
    }
}

impl<Q: Query, T: fmt::Debug + Send + Sync + 'static> Flights<Q, T> {
    /// Returns the number of different queries that wait for the call in flight.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.0).next.len()
    }

    /// Returns the result of a query, from a call that begins after this. The call continues when
    /// the caller gives up: an abandoned call may still occupy the store, and the next one would
    /// add to it.
    pub(super) async fn ask<F>(
        &self,
        runtime: &Handle,
        query: Q,
        call: impl Fn(Q) -> F + Send + Sync + 'static,
    ) -> SharedResult<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (sender, reply) = oneshot::channel();
        if self.waits(query, sender) {
            let mut flight = Flight { pending: Arc::clone(&self.0), is_over: false };
            runtime.spawn(async move {
                while let Some((query, mut waiters)) = flight.next() {
                    let result = call(query).await.map(Arc::new);
                    waiters.notify(&result);
                }
            });
        }
        reply.await.unwrap_or_else(|_| {
            Err(Error::unavailable("shared store call ended without a result; retry"))
        })
    }

    /// Waits for the next call. Returns whether the caller must start it, because none is in
    /// flight.
    fn waits(&self, query: Q, sender: oneshot::Sender<SharedResult<T>>) -> bool {
        let mut pending = lock(&self.0);
        let found = pending
            .next
            .iter_mut()
            .find_map(|(waiting, waiters)| waiting.takes_in(&query).then_some(waiters));
        match found {
            Some(waiters) => waiters.add(sender),
            None => {
                let mut waiters = Waiters::default();
                waiters.add(sender);
                pending.next.push_back((query, waiters));
            }
        }
        !std::mem::replace(&mut pending.is_in_flight, true)
    }
}

/// Calls made one after the other, until no caller waits.
struct Flight<Q, T> {
    pending: Arc<Mutex<PendingQueries<Q, T>>>,
    is_over: bool,
}

impl<Q, T> Flight<Q, T> {
    fn next(&mut self) -> Option<(Q, Waiters<SharedResult<T>>)> {
        let mut pending = lock(&self.pending);
        let next = pending.next.pop_front();
        if next.is_none() {
            pending.is_in_flight = false;
            self.is_over = true;
        }
        next
    }
}

/// Wakes all waiting callers when the task ends early.
impl<Q, T> Drop for Flight<Q, T> {
    fn drop(&mut self) {
        if !self.is_over {
            let mut pending = lock(&self.pending);
            pending.is_in_flight = false;
            pending.next.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// A call that waits for a permit each time, and returns how often it was made.
    #[derive(Clone)]
    struct Held {
        calls: Arc<AtomicU32>,
        gate: Arc<Semaphore>,
    }

    impl Held {
        fn new() -> Self {
            Self { calls: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
        }

        fn calls(&self) -> u32 {
            self.calls.load(Ordering::SeqCst)
        }

        async fn called(&self, times: u32) {
            while self.calls() < times {
                tokio::task::yield_now().await;
            }
        }

        fn ask<Q: Query>(
            &self,
            flights: &Arc<Flights<Q, u32>>,
            query: Q,
        ) -> tokio::task::JoinHandle<SharedResult<u32>> {
            let (flights, held) = (Arc::clone(flights), self.clone());
            tokio::spawn(async move {
                let call = move |_: Q| {
                    let held = held.clone();
                    async move {
                        let number = held.calls.fetch_add(1, Ordering::SeqCst) + 1;
                        held.gate.acquire().await.unwrap().forget();
                        Ok(number)
                    }
                };
                flights.ask(&Handle::current(), query, call).await
            })
        }
    }

    async fn waits_for<Q: Query>(flights: &Flights<Q, u32>, waiting: usize) {
        while flights.waiting() < waiting {
            tokio::task::yield_now().await;
        }
    }

    /// Checks that all of these wait for the next call, whatever their queries.
    async fn all_wait(pending: &[tokio::task::JoinHandle<SharedResult<u32>>]) {
        for _ in 0..10 * pending.len() {
            tokio::task::yield_now().await;
        }
        assert!(pending.iter().all(|task| !task.is_finished()));
    }

    #[tokio::test]
    async fn callers_during_a_call_share_the_next_one() {
        let (flights, held) = (Arc::new(Flights::<(), u32>::default()), Held::new());
        let first = held.ask(&flights, ());
        held.called(1).await;
        let others: Vec<_> = (0..500).map(|_| held.ask(&flights, ())).collect();
        all_wait(&others).await;
        assert_eq!(held.calls(), 1, "one is in flight");
        held.gate.add_permits(1);
        assert_eq!(*first.await.unwrap().unwrap(), 1);
        held.called(2).await;
        held.gate.add_permits(1);
        for reply in join_all(others).await {
            assert_eq!(*reply.unwrap().unwrap(), 2, "begun after the question");
        }
        assert_eq!(held.calls(), 2);
        // Afterwards a new call begins.
        held.gate.add_permits(1);
        assert_eq!(*held.ask(&flights, ()).await.unwrap().unwrap(), 3);
    }

    /// A client that opens requests and abandons them at once must not queue a call for each.
    #[tokio::test]
    async fn abandoned_call_stays_the_only_one_in_flight() {
        let (flights, held) = (Arc::new(Flights::<(), u32>::default()), Held::new());
        let first = held.ask(&flights, ());
        held.called(1).await;
        first.abort();
        assert!(first.await.is_err());
        let others: Vec<_> = (0..50).map(|_| held.ask(&flights, ())).collect();
        all_wait(&others).await;
        assert_eq!(held.calls(), 1);
        others.iter().for_each(tokio::task::JoinHandle::abort);
        let last = held.ask(&flights, ());
        held.gate.add_permits(3);
        let number = *last.await.unwrap().unwrap();
        // One more call is possible if it began for the callers that had given up.
        assert!((2..=3).contains(&number), "{number}");
    }

    #[tokio::test]
    async fn different_queries_run_one_after_the_other() {
        let (flights, held) = (Arc::new(Flights::<String, u32>::default()), Held::new());
        let first = held.ask(&flights, "a".into());
        held.called(1).await;
        let second = held.ask(&flights, "a".into());
        waits_for(&flights, 1).await;
        let third = held.ask(&flights, "b".into());
        waits_for(&flights, 2).await;
        let fourth = held.ask(&flights, "a".into());
        all_wait(&[first, second, third, fourth]).await;
        assert_eq!((held.calls(), flights.waiting()), (1, 2));
    }

    #[tokio::test]
    async fn failed_call_leaves_no_caller_waiting() {
        let (flights, resume) =
            (Arc::new(Flights::<(), u32>::default()), Arc::new(Semaphore::new(0)));
        let asks = || {
            let (flights, resume) = (Arc::clone(&flights), Arc::clone(&resume));
            tokio::spawn(async move {
                let call = move |()| {
                    let resume = Arc::clone(&resume);
                    async move {
                        drop(resume.acquire().await);
                        // A panic, which a store must not cause.
                        Ok(u32::MAX.checked_add(1).unwrap())
                    }
                };
                flights.ask(&Handle::current(), (), call).await
            })
        };
        // The first caller has a call in flight, and the second waits for the next.
        let first = asks();
        while !lock(&flights.0).is_in_flight || flights.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        let second = asks();
        while flights.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        resume.add_permits(1);
        for task in [first, second] {
            let ended = tokio::time::timeout(Duration::from_secs(60), task).await;
            let error = ended.unwrap().unwrap().unwrap_err();
            assert_eq!(error.message(), "shared store call ended without a result; retry");
        }
        let held = Held::new();
        held.gate.add_permits(1);
        assert_eq!(*held.ask(&flights, ()).await.unwrap().unwrap(), 1);
    }

    #[test]
    fn times_that_are_near_are_one_and_the_latest_counts() {
        let at = |ms| AsOf::new(UnixMillis::new(ms));
        let mut query = at(100_000);
        assert!(query.takes_in(&at(104_000)) && query.takes_in(&at(96_000)));
        assert_eq!(query.now, UnixMillis::new(104_000));
        assert!(!query.takes_in(&at(105_001)) && !query.takes_in(&at(94_999)));
        assert_eq!(query.now, UnixMillis::new(104_000));
    }
}
