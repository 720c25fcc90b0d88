//! Sources of global order: whoever does not mint himself asks the one who does, in batches.
//!
//! What waits while a question is on its way is asked for together by the next. A request gets its IDs from
//! a question that was sent after it had come: so they are greater than all that was answered before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::{Source, Values};
use snowmint_wire::error::Code;
use tokio::sync::oneshot;

use super::passed::{Failure, Other};
use super::{Error, Minted, Service};
use crate::access::Right;
use crate::live::Live;
use crate::peers::Peers;

/// How soon somebody asks again who was sent to one who does not mint any more, or not yet.
const ASK_AGAIN_MS: u64 = 20;

/// Asks those who mint. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    peers: Peers,
    /// Of these: the most IDs of one question, and how long a whole answer may take.
    live: Live,
    /// One for each source.
    queues: Arc<Mutex<HashMap<String, Queue>>>,
}

/// Who waits for IDs of one source.
#[derive(Debug, Default)]
struct Queue {
    /// A question is on its way.
    busy: bool,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    address: String,
    count: u32,
    reply: oneshot::Sender<Result<Vec<u64>, Error>>,
}

impl Service {
    /// As [`Service::mint`], and where another server mints for all, from there.
    ///
    /// # Errors
    /// As [`Service::mint`]; `Unavailable` or `Elsewhere` when nobody could be reached who mints, within
    /// the limit for a wait.
    pub async fn mint_anywhere(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        self.admit(Right::Mint, name, count).await?;
        let timer = self.relay.peers.timer();
        let deadline =
            timer.elapsed().saturating_add(self.live.limit(|limits| limits.wait_max.ms()));
        loop {
            let refusal = match self.mint_here(name, count, key).await {
                Err(refusal) if refusal.code() == Code::Elsewhere => refusal,
                answer => return answer,
            };
            let source = self.opened(name).await?;
            let address = refusal.elsewhere().and_then(|there| there.reach.http.clone());
            // Who counts for a key is asked by the protocols, each in its way.
            let (true, Some(address)) = (source.is_ordered(), address) else {
                return Err(refusal);
            };
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let hold = self.hold(count)?;
            match self.relay.fetch(name, address, count).await {
                Ok(ids) => {
                    return Ok((source, Minted { values: Values::Numbers(ids), hold }));
                }
                // It may have lost the order to another, or have died.
                Err(error) if matches!(error.code(), Code::Elsewhere | Code::Unavailable) => {
                    let left_ms = deadline.since(timer.elapsed());
                    if left_ms == 0 {
                        return Err(error);
                    }
                    timer.sleep_ms(left_ms.min(ASK_AGAIN_MS)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Relay {
    pub(super) fn new(peers: Peers, live: Live) -> Self {
        Self { peers, live, queues: Arc::default() }
    }

    pub(super) const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// How long the whole answer of another server may take: those who came meanwhile wait for it.
    pub(super) fn within_ms(&self) -> u64 {
        // Whoever is asked may wait for as long as we may; the rest is for the way there and back.
        self.live.limit(|limits| limits.wait_max.ms()).saturating_mul(2)
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `count` IDs of a source from the server at this address.
    async fn fetch(&self, source: &str, address: String, count: u32) -> Result<Vec<u64>, Error> {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut queues = self.queues();
            let queue = queues.entry(source.to_owned()).or_default();
            queue.waiting.push(Waiting { address, count, reply });
            !std::mem::replace(&mut queue.busy, true)
        };
        if is_first {
            tokio::spawn(self.clone().serve(source.to_owned()));
        }
        answer.await.unwrap_or_else(|_| Err(not_reached("the server stops")))
    }

    /// Asks until nobody waits.
    async fn serve(self, source: String) {
        while let Some(batch) = self.next_batch(&source) {
            // Whoever stopped waiting needs no IDs.
            let batch: Vec<_> =
                batch.into_iter().filter(|waiting| !waiting.reply.is_closed()).collect();
            let Some(address) = batch.last().map(|waiting| waiting.address.clone()) else {
                continue;
            };
            let count = batch.iter().map(|waiting| u64::from(waiting.count)).sum();
            match self.ask(&source, &address, count).await {
                Ok(ids) => {
                    let mut ids = ids.into_iter();
                    for Waiting { count, reply, .. } in batch {
                        let count = usize::try_from(count).unwrap_or(usize::MAX);
                        let _ = reply.send(Ok(ids.by_ref().take(count).collect()));
                    }
                }
                Err(error) => {
                    for Waiting { reply, .. } in batch {
                        let _ = reply.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// Those who wait, in order: as many as one question has room for. None when nobody does; then
    /// whoever comes next is the first.
    fn next_batch(&self, source: &str) -> Option<Vec<Waiting>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(source)?;
        let mut room = self.live.limit(|limits| limits.batch_max);
        let fits = |waiting: &&Waiting| match room.checked_sub(waiting.count) {
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
        // One that is too large for every question is answered so by whoever is asked.
        Some(queue.waiting.drain(..count.max(1)).collect())
    }

    async fn ask(&self, source: &str, address: &str, count: u64) -> Result<Vec<u64>, Error> {
        let other = Other { peers: &self.peers, address, within_ms: self.within_ms() };
        other.ids(source, count, None).await.map_err(|failure| match failure {
            Failure::Refused(error) => error,
            Failure::NoAnswer(why) => {
                tracing::warn!(%source, %address, why, "whoever orders a source could not be asked");
                not_reached(&why)
            }
        })
    }
}

fn not_reached(why: &str) -> Error {
    let message = format!("the server that orders this source did not answer: {why}");
    Error::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use crate::config::Limits;
    use std::time::Duration;

    use snowmint_coord::BootTimer;
    use snowmint_coord::spec::Span;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Somebody who begins an answer and never ends it keeps nobody waiting for ever.
    #[tokio::test]
    async fn who_does_not_answer_in_time_is_not_waited_for() {
        for said in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"ids\":["] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let stalls = tokio::spawn(async move {
                let mut held = Vec::new();
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let mut head = [0; 16];
                    stream.read_exact(&mut head).await.unwrap();
                    stream.write_all(said.as_bytes()).await.unwrap();
                    held.push(stream);
                }
            });
            let limits = Limits { wait_max: Span::from_ms(100), ..Limits::default() };
            let peers = Peers::new(Arc::new(BootTimer), 60_000, None, None, None);
            let relay = Relay::new(peers, Live::new(limits, false, None));
            let fetch = || relay.fetch("orders", address.clone(), 1);
            let both = async { tokio::join!(fetch(), fetch()) };
            let (one, other) = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
            for refused in [one.unwrap_err(), other.unwrap_err()] {
                assert_eq!(refused.code(), Code::Unavailable, "{said:?}: {refused}");
            }
            stalls.abort();
        }
    }
}
