//! Turns at the store, for calls that each caller's request makes of its own.
//!
//! The problem: the store works on calls in the order in which they arrive. A caller that sends
//! thousands at once puts them all ahead of the next call of any other.
//!
//! This module's way: of each client, a few calls are at the store. Its other calls wait here, in
//! order, so a call of another client waits for few.

use std::collections::{HashMap, hash_map};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use snowmint_coord::Source;
use snowmint_wire::error::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Error, Service};
use crate::share::Client;

/// Calls of one client at the store at the same time. With 2 ms each, 4,000 a second.
const AT_ONCE: usize = 8;

/// The turns of all clients that have one, or wait for one.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Client, Entry>>);

#[derive(Debug)]
struct Entry {
    semaphore: Arc<Semaphore>,
    /// Places of this client. The count of the semaphore's owners would not do: a place drops its
    /// own share only after its `drop` has unlocked the map.
    places: usize,
}

/// The right to one call, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Returned first: the place forgets a client without calls.
    _permit: OwnedSemaphorePermit,
    _place: Place,
}

/// Place of a client that has a turn or waits for one.
#[derive(Debug)]
struct Place {
    turns: Arc<Turns>,
    client: Client,
}

impl Turns {
    /// The map is whole after every statement, so a poisoned lock is still usable.
    fn clients(&self) -> MutexGuard<'_, HashMap<Client, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than [`AT_ONCE`] calls of the client are at the store. Returns none only
    /// if the semaphore were closed, which this module never does.
    async fn take(self: &Arc<Self>, client: Client) -> Option<Turn> {
        let (place, semaphore) = self.place(client);
        let permit = semaphore.acquire_owned().await.ok()?;
        Some(Turn { _permit: permit, _place: place })
    }

    fn place(self: &Arc<Self>, client: Client) -> (Place, Arc<Semaphore>) {
        let semaphore = {
            let mut clients = self.clients();
            let new = || Entry { semaphore: Arc::new(Semaphore::new(AT_ONCE)), places: 0 };
            let entry = clients.entry(client.clone()).or_insert_with(new);
            entry.places += 1;
            Arc::clone(&entry.semaphore)
        };
        (Place { turns: Arc::clone(self), client }, semaphore)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let hash_map::Entry::Occupied(mut entry) =
            self.turns.clients().entry(self.client.clone())
        {
            entry.get_mut().places -= 1;
            if entry.get().places == 0 {
                entry.remove();
            }
        }
    }
}

impl Service {
    /// Waits for a turn at the store, for at most `limits.wait_max`. The configuration and peers
    /// need none: all that a peer forwards would be one client. A call takes one turn at most: if
    /// all turns of a client waited for second ones, none would end.
    ///
    /// # Errors
    /// `Overloaded` when the caller's earlier calls last that long.
    pub(crate) async fn turn(&self) -> Result<Option<Turn>, Error> {
        if self.caller.is_of_servers() {
            return Ok(None);
        }
        let client = self.caller.client();
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let turn = tokio::select! {
            biased;
            turn = self.turns.take(client.clone()) => turn,
            () = self.peers().timer().sleep_ms(wait_ms) => None,
        };
        turn.map(Some).ok_or_else(|| {
            let message = format!(
                "{AT_ONCE} calls of {client} were at the store for {wait_ms} ms (limits.wait_max), and more \
                 wait; send fewer at once"
            );
            Error::new(Code::Overloaded, message)
        })
    }

    /// Waits for a turn to call a source, if each of its requests is a call of the store.
    ///
    /// # Errors
    /// Those of [`Service::turn`].
    pub(super) async fn turn_for(&self, source: &Source) -> Result<Option<Turn>, Error> {
        if !source.calls_each_time() {
            return Ok(None);
        }
        // Boxed, so that requests of other sources stay small.
        let turn: BoxFuture<'_, Result<Option<Turn>, Error>> = Box::pin(self.turn());
        turn.await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn turns_of_one_client_are_few_and_do_not_hold_up_others() {
        let turns = Arc::new(Turns::default());
        let (greedy, other) = (Client::token("greedy"), Client::token("other"));
        let mut taken = Vec::new();
        for _ in 0..AT_ONCE {
            taken.push(turns.take(greedy.clone()).now_or_never().flatten().unwrap());
        }
        let mut waiting = Box::pin(turns.take(greedy.clone()));
        assert!((&mut waiting).now_or_never().is_none(), "one more waits");
        let honest = turns.take(other).now_or_never().flatten().unwrap();
        taken.pop();
        let last = waiting.await.unwrap();
        // A caller that gives up while it waits leaves nothing behind.
        drop(turns.take(greedy).now_or_never());
        drop((taken, last, honest));
        assert!(turns.clients().is_empty(), "clients without calls are forgotten");
    }
}
