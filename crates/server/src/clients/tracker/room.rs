//! Order in which connections end when all places are taken.
//!
//! Idle connections without a token end first, then idle ones with a token. Among them, a
//! connection of the client with most ends first, so that no client takes the places of others by
//! opening many. Among clients with equally many, the connection with the longest idle time ends.
//! The new connection is rejected instead if its address has more connections than the client that
//! would lose one.
//!
//! When none of these may end, a connection in use ends: of the client with most, if it keeps at
//! least as many as the new connection's client then has. So no client keeps others out by long
//! requests over all places at once, and clients with equally many take nothing from one another.
//!
//! A scan of ten thousand connections takes milliseconds, so a scan finds several, and they are
//! asked one by one when places are needed.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::connection::TrackedConnection;
use crate::clients::share::Client;

/// Places per connection that a scan finds.
const FOUND_PART: usize = 16;
/// Most clients with counts beyond the number of connections: clients come and go.
const CLIENTS_MORE: usize = 64;

/// Result of the last scans.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Idle connections.
    found: VecDeque<Found>,
    /// Connections in use, where no idle one may end.
    in_use: VecDeque<Found>,
    /// Number of connections of each client, as of the scan, plus newer ones.
    counts: HashMap<Client, usize>,
    /// Time when a scan found no idle connection.
    none_ms: Option<u64>,
    /// Time of the scan for connections in use.
    in_use_ms: Option<u64>,
}

/// A connection that may end.
#[derive(Debug)]
struct Found {
    entry: Arc<TrackedConnection>,
    client: Client,
    moved_ms: u64,
    /// Number of its client's connections, without those that end before it.
    of_client: usize,
}

impl Room {
    /// Returns the connection that ends for one from this client, if any may.
    pub(super) fn make(
        &mut self,
        entries: &HashMap<u64, Arc<TrackedConnection>>,
        client: &Client,
        now_ms: u64,
    ) -> Option<Arc<TrackedConnection>> {
        let found = match self.at_rest(entries, client, now_ms) {
            None => self.in_use(entries, client, now_ms)?,
            Some(found) => found,
        };
        if let Some(count) = self.counts.get_mut(&found.client) {
            *count = count.saturating_sub(1);
        }
        Some(found.entry)
    }

    fn at_rest(
        &mut self,
        entries: &HashMap<u64, Arc<TrackedConnection>>,
        client: &Client,
        now_ms: u64,
    ) -> Option<Found> {
        let still_rests = |found: &Found| {
            entries.contains_key(&found.entry.id) && found.has_done_nothing_since(now_ms)
        };
        while self.found.front().is_some_and(|found| !still_rests(found)) {
            self.found.pop_front();
        }
        if self.found.is_empty() {
            // A new scan finds nothing before time has passed.
            if self.none_ms == Some(now_ms) {
                return None;
            }
            self.scan(entries, now_ms);
        }
        let own = self.count(client);
        let counts = &self.counts;
        self.found.pop_front_if(|found| count_in(counts, &found.client) >= own)
    }

    fn in_use(
        &mut self,
        entries: &HashMap<u64, Arc<TrackedConnection>>,
        client: &Client,
        now_ms: u64,
    ) -> Option<Found> {
        let may_end =
            |found: &Found| entries.contains_key(&found.entry.id) && !found.entry.makes_room();
        while self.in_use.front().is_some_and(|found| !may_end(found)) {
            self.in_use.pop_front();
        }
        // A connection in use may be idle by now, or have ended.
        if self.in_use.is_empty() || self.in_use_ms != Some(now_ms) {
            self.scan_in_use(entries, now_ms);
        }
        let own = self.count(client);
        let counts = &self.counts;
        let has_more = |found: &mut Found| count_in(counts, &found.client) > own.saturating_add(1);
        self.in_use.pop_front_if(has_more)
    }

    fn count(&self, client: &Client) -> usize {
        count_in(&self.counts, client)
    }

    /// Counts a new connection of a client, where `connected` are open.
    pub(super) fn came(&mut self, client: Client, connected: usize) {
        if self.found.is_empty() && self.in_use.is_empty() {
            return;
        }
        *self.counts.entry(client).or_default() += 1;
        if self.counts.len() > connected.saturating_mul(2).saturating_add(CLIENTS_MORE) {
            *self = Self::default();
        }
    }

    /// Returns the number of clients with counts.
    #[cfg(test)]
    pub(super) fn clients(&self) -> usize {
        self.counts.len()
    }

    fn scan(&mut self, entries: &HashMap<u64, Arc<TrackedConnection>>, now_ms: u64) {
        let by_client = by_client(entries);
        let mut found = of_all(&by_client, |entry| entry.is_idle(now_ms));
        found.sort_by_key(|found: &Found| {
            (found.entry.is_known(), Reverse(found.of_client), found.moved_ms, found.entry.id)
        });
        found.truncate((entries.len() / FOUND_PART).max(1));
        self.none_ms = found.is_empty().then_some(now_ms);
        self.found = found.into();
        self.counts = counts_of(&by_client);
    }

    fn scan_in_use(&mut self, entries: &HashMap<u64, Arc<TrackedConnection>>, now_ms: u64) {
        let by_client = by_client(entries);
        let mut found = of_all(&by_client, |_| true);
        found.sort_by_key(|found: &Found| {
            (Reverse(found.of_client), found.entry.is_known(), found.moved_ms, found.entry.id)
        });
        found.truncate((entries.len() / FOUND_PART).max(1));
        self.in_use_ms = Some(now_ms);
        self.in_use = found.into();
        self.counts = counts_of(&by_client);
    }
}

fn count_in(counts: &HashMap<Client, usize>, client: &Client) -> usize {
    counts.get(client).copied().unwrap_or_default()
}

/// Groups the connections that are not about to end to make room.
fn by_client(
    entries: &HashMap<u64, Arc<TrackedConnection>>,
) -> HashMap<Client, Vec<&Arc<TrackedConnection>>> {
    let mut by_client = HashMap::<Client, Vec<&Arc<TrackedConnection>>>::new();
    for entry in entries.values().filter(|entry| !entry.makes_room()) {
        by_client.entry(entry.client()).or_default().push(entry);
    }
    by_client
}

fn counts_of(by_client: &HashMap<Client, Vec<&Arc<TrackedConnection>>>) -> HashMap<Client, usize> {
    by_client.iter().map(|(client, entries)| (client.clone(), entries.len())).collect()
}

/// Returns the connections that may end, of all clients.
fn of_all(
    by_client: &HashMap<Client, Vec<&Arc<TrackedConnection>>>,
    may_end: impl Fn(&TrackedConnection) -> bool,
) -> Vec<Found> {
    let mut found = Vec::new();
    for (client, entries) in by_client {
        found.extend(of_client(client, entries, &may_end));
    }
    found
}

/// Returns the connections of one client that may end, with the client's number at the turn of
/// each: the one with the oldest activity is first.
fn of_client(
    client: &Client,
    entries: &[&Arc<TrackedConnection>],
    may_end: impl Fn(&TrackedConnection) -> bool,
) -> Vec<Found> {
    let ending = entries.iter().filter(|&&entry| may_end(entry.as_ref()));
    let found = |entry: &&Arc<TrackedConnection>| Found {
        entry: Arc::clone(entry),
        client: client.clone(),
        moved_ms: entry.moved_ms(),
        of_client: 0,
    };
    let mut ending: Vec<_> = ending.map(found).collect();
    ending.sort_by_key(|found| (found.moved_ms, found.entry.id));
    for (found, before) in ending.iter_mut().zip(0..) {
        found.of_client = entries.len().saturating_sub(before);
    }
    ending
}

impl Found {
    fn has_done_nothing_since(&self, now_ms: u64) -> bool {
        let Self { entry, moved_ms, .. } = self;
        entry.moved_ms() == *moved_ms && entry.is_idle(now_ms) && !entry.makes_room()
    }
}
