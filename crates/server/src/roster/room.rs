//! Which connections end first when all places are taken.
//!
//! Those that rest and have shown no token, before those that rest and have. Among them those of the client that has
//! most, so that nobody takes the places of others by opening many; among clients that have as many, the one that has
//! rested longest. Whoever comes is refused instead if its address has more connections than the client that would
//! lose one.
//!
//! To look through ten thousand connections takes milliseconds, so a look finds several, and they are asked one by
//! one when places are needed.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use crate::share::Client;

/// A look finds one in so many of the places.
const FOUND_PART: usize = 16;

/// What the last look has found.
#[derive(Debug, Default)]
pub(super) struct Room {
    found: VecDeque<Found>,
    /// How many connections each client has, as far as they were there then or came since.
    counts: HashMap<Client, usize>,
    /// When a look found nothing.
    none_ms: Option<u64>,
}

/// A connection that may end.
#[derive(Debug)]
struct Found {
    entry: Arc<Entry>,
    client: Client,
    moved_ms: u64,
    /// How many its client has, without those that end before it.
    of_client: usize,
}

impl Room {
    /// The connection that ends for one from this client, if any may.
    pub(super) fn make(
        &mut self,
        entries: &HashMap<u64, Arc<Entry>>,
        client: &Client,
        now_ms: u64,
    ) -> Option<Arc<Entry>> {
        let still_rests = |found: &Found| {
            entries.contains_key(&found.entry.id) && found.has_done_nothing_since(now_ms)
        };
        while self.found.front().is_some_and(|found| !still_rests(found)) {
            self.found.pop_front();
        }
        if self.found.is_empty() {
            // Nothing comes of looking again before time has passed.
            if self.none_ms == Some(now_ms) {
                return None;
            }
            self.look(entries, now_ms);
        }
        let count = |client: &Client| self.counts.get(client).copied().unwrap_or_default();
        let own = count(client);
        let found = self.found.pop_front_if(|found| count(&found.client) >= own)?;
        if let Some(count) = self.counts.get_mut(&found.client) {
            *count = count.saturating_sub(1);
        }
        Some(found.entry)
    }

    /// A client has one more.
    pub(super) fn came(&mut self, client: Client) {
        if !self.found.is_empty() {
            *self.counts.entry(client).or_default() += 1;
        }
    }

    fn look(&mut self, entries: &HashMap<u64, Arc<Entry>>, now_ms: u64) {
        let mut by_client = HashMap::<Client, Vec<&Arc<Entry>>>::new();
        for entry in entries.values().filter(|entry| !entry.makes_room()) {
            by_client.entry(entry.client()).or_default().push(entry);
        }
        let mut found = Vec::new();
        for (client, entries) in &by_client {
            found.extend(of_client(client, entries, now_ms));
        }
        found.sort_by_key(|found: &Found| {
            (found.entry.is_known(), Reverse(found.of_client), found.moved_ms, found.entry.id)
        });
        found.truncate((entries.len() / FOUND_PART).max(1));
        self.none_ms = found.is_empty().then_some(now_ms);
        self.found = found.into();
        self.counts =
            by_client.into_iter().map(|(client, entries)| (client, entries.len())).collect();
    }
}

/// Those of one client that may end, and how many it has when it is the turn of each: the longest at rest is the first.
fn of_client(client: &Client, entries: &[&Arc<Entry>], now_ms: u64) -> Vec<Found> {
    let resting = entries.iter().filter(|entry| entry.is_idle(now_ms));
    let found = |entry: &&Arc<Entry>| Found {
        entry: Arc::clone(entry),
        client: client.clone(),
        moved_ms: entry.moved_ms(),
        of_client: 0,
    };
    let mut resting: Vec<_> = resting.map(found).collect();
    resting.sort_by_key(|found| (found.moved_ms, found.entry.id));
    for (found, before) in resting.iter_mut().zip(0..) {
        found.of_client = entries.len().saturating_sub(before);
    }
    resting
}

impl Found {
    fn has_done_nothing_since(&self, now_ms: u64) -> bool {
        let Self { entry, moved_ms, .. } = self;
        entry.moved_ms() == *moved_ms && entry.is_idle(now_ms) && !entry.makes_room()
    }
}
