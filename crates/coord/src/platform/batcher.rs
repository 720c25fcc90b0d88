//! Forwarding of requests for global-order IDs, in batches, to the server that mints them.
//!
//! Requests that wait while a call is in flight are combined in the next call. A request gets its
//! IDs from a call that was sent after the request arrived, so they are greater than all IDs
//! returned before. IDs for a request that was abandoned are thrown away: a later request must not
//! get them.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::lock::lock;

/// Transport of the calls to other servers.
pub trait Forward: Send + Sync + 'static {
    /// Error of a call.
    type Error: Clone + Send + fmt::Debug + 'static;

    /// Returns exactly `count` IDs of a source from the server at this address. Each is greater
    /// than the one before, and none was minted before the call was sent.
    fn ask(
        &self,
        source: &str,
        address: &str,
        count: u64,
    ) -> impl Future<Output = Result<Vec<u64>, Self::Error>> + Send;

    /// Returns the maximum number of IDs of one call.
    fn batch_max(&self) -> u32;

    /// Returns the error for waiting requests when this process ends.
    fn ends(&self) -> Self::Error;
}

/// Forwards requests in batches. Clones share the batches.
pub struct Batcher<A: Forward> {
    forward: Arc<A>,
    /// One queue for each source.
    queues: Arc<Mutex<HashMap<String, Queue<A::Error>>>>,
}

/// Requests that wait for IDs of one source.
struct Queue<E> {
    /// Whether a call is in flight.
    busy: bool,
    waiting: Vec<WaitingCall<E>>,
}

struct WaitingCall<E> {
    address: String,
    count: u32,
    reply: oneshot::Sender<Result<Vec<u64>, E>>,
}

impl<A: Forward> Batcher<A> {
    /// Creates a batcher over this transport.
    pub fn new(forward: A) -> Self {
        Self { forward: Arc::new(forward), queues: Arc::default() }
    }

    /// Returns `count` IDs of a source from the server at this address.
    ///
    /// # Errors
    /// The error of the call that was sent for this request and others.
    pub async fn fetch(
        &self,
        source: &str,
        address: String,
        count: u32,
    ) -> Result<Vec<u64>, A::Error> {
        let (reply, received) = oneshot::channel();
        let is_first = {
            let mut queues = lock(&self.queues);
            let none = || Queue { busy: false, waiting: Vec::new() };
            let queue = queues.entry(source.to_owned()).or_insert_with(none);
            queue.waiting.push(WaitingCall { address, count, reply });
            !std::mem::replace(&mut queue.busy, true)
        };
        if is_first {
            tokio::spawn(self.clone().serve(source.to_owned()));
        }
        received.await.unwrap_or_else(|_| Err(self.forward.ends()))
    }

    /// Makes calls until no request waits.
    async fn serve(self, source: String) {
        while let Some(batch) = self.next_batch(&source) {
            // A request that was abandoned needs no IDs.
            let batch: Vec<_> =
                batch.into_iter().filter(|waiting| !waiting.reply.is_closed()).collect();
            let Some(address) = batch.last().map(|waiting| waiting.address.clone()) else {
                continue;
            };
            let count = batch.iter().map(|waiting| u64::from(waiting.count)).sum();
            match self.forward.ask(&source, &address, count).await {
                Ok(ids) => {
                    let mut ids = ids.into_iter();
                    for WaitingCall { count, reply, .. } in batch {
                        let count = usize::try_from(count).unwrap_or(usize::MAX);
                        let _ = reply.send(Ok(ids.by_ref().take(count).collect()));
                    }
                }
                Err(error) => {
                    for WaitingCall { reply, .. } in batch {
                        let _ = reply.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// Returns the waiting requests in order, as many as one call has room for. Returns `None` when
    /// no request waits; the next request then starts a new task.
    fn next_batch(&self, source: &str) -> Option<Vec<WaitingCall<A::Error>>> {
        let mut queues = lock(&self.queues);
        let queue = queues.get_mut(source)?;
        let mut room = self.forward.batch_max();
        let fits = |waiting: &&WaitingCall<A::Error>| match room.checked_sub(waiting.count) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let count = queue.waiting.iter().take_while(fits).count();
        if queue.waiting.is_empty() {
            queues.remove(source);
            return None;
        }
        // The called server rejects a request that is too large for any call.
        Some(queue.waiting.drain(..count.max(1)).collect())
    }
}

impl<A: Forward> Clone for Batcher<A> {
    fn clone(&self) -> Self {
        Self { forward: Arc::clone(&self.forward), queues: Arc::clone(&self.queues) }
    }
}

impl<A: Forward> fmt::Debug for Batcher<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// Mints consecutive numbers, and returns when the test permits it.
    struct Counts {
        lets: Arc<Semaphore>,
        next: Arc<Mutex<u64>>,
        requests: Arc<Mutex<Vec<(String, u64)>>>,
    }

    impl Forward for Counts {
        type Error = String;

        async fn ask(&self, _: &str, address: &str, count: u64) -> Result<Vec<u64>, String> {
            self.requests.lock().unwrap().push((address.into(), count));
            let first = {
                let mut next = self.next.lock().unwrap();
                *next += count;
                *next - count
            };
            self.lets.acquire().await.unwrap().forget();
            if address == "absent" {
                Err("refused".into())
            } else {
                Ok((first..first + count).collect())
            }
        }

        fn batch_max(&self) -> u32 {
            10
        }

        fn ends(&self) -> String {
            "the end".into()
        }
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn late_request_gets_nothing_of_an_earlier_call() {
        let (lets, next, requests) =
            (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(1)), Arc::<Mutex<Vec<_>>>::default());
        let counts = Counts {
            lets: Arc::clone(&lets),
            next: Arc::clone(&next),
            requests: Arc::clone(&requests),
        };
        let batcher = Batcher::new(counts);
        let fetch = |address: &str, count| {
            let (batcher, address) = (batcher.clone(), address.to_owned());
            tokio::spawn(async move { batcher.fetch("orders", address, count).await })
        };
        let first = fetch("a", 1);
        settle().await;
        // These wait while the first call is in flight.
        let gives_up = fetch("a", 3);
        let second = fetch("b", 2);
        settle().await;
        assert_eq!(*requests.lock().unwrap(), [("a".into(), 1)]);
        lets.add_permits(1);
        assert_eq!(first.await.unwrap(), Ok(vec![1]));
        settle().await;
        assert_eq!(requests.lock().unwrap()[1], ("b".into(), 5), "the last owner gets the call");
        // While the call is in flight, one of the two requests is abandoned and another arrives: no
        // request gets the IDs for the abandoned one.
        gives_up.abort();
        let late = fetch("b", 3);
        settle().await;
        // Meanwhile another caller calls the owner directly.
        let highest = std::mem::replace(&mut *next.lock().unwrap(), 100);
        lets.add_permits(2);
        assert_eq!(second.await.unwrap(), Ok(vec![5, 6]));
        let late = late.await.unwrap().unwrap();
        assert!(late.iter().all(|id| *id >= 100 && *id > highest), "{late:?} after {highest}");
        assert_eq!(requests.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn batch_is_bounded_and_shares_an_error() {
        let (lets, requests) = (Arc::new(Semaphore::new(1_000)), Arc::<Mutex<Vec<_>>>::default());
        let counts = Counts {
            lets: Arc::clone(&lets),
            next: Arc::default(),
            requests: Arc::clone(&requests),
        };
        let batcher = Batcher::new(counts);
        let fetch = |count| batcher.fetch("orders", "a".into(), count);
        let batches = tokio::join!(fetch(1), fetch(6), fetch(4), fetch(11));
        assert_eq!(batches.1.unwrap().len(), 6);
        assert_eq!(batches.3.unwrap().len(), 11, "who is asked may have more room");
        let counts: Vec<_> = requests.lock().unwrap().iter().map(|(_, count)| *count).collect();
        assert!([vec![1, 10, 11], vec![7, 4, 11]].contains(&counts), "{counts:?}");
        let unreachable = || batcher.fetch("orders", "absent".into(), 1);
        let refused = tokio::join!(unreachable(), unreachable());
        assert_eq!(refused, (Err("refused".into()), Err("refused".into())));
    }
}
