//! A server in memory, on which other processes act between the reads of a step.

mod races;
mod round_trips;
mod servers;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use snowmint_coord::verbs::{BackendStore, Rows as _};
use snowmint_coord::{
    Acquire, Capabilities, ClockOf, Incarnation, Lease, Mark, Member, Pool, Presence, PresenceBy,
    Reuse, Store as _,
};

use super::*;

/// Present time of all members.
const NOW: UnixMillis = UnixMillis::new(1_000_000);

const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: false,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// A server: its name, its write count, and its keys.
#[derive(Clone, Debug, Default)]
struct Server {
    name: Option<String>,
    writes: u64,
    /// Writes of other users, which the server counts, too.
    of_others: u64,
    keys: BTreeMap<String, Entry>,
}

/// An action of another process, and the number of reads before it.
type Meanwhile = Arc<Mutex<Option<(u32, Pin<Box<dyn Future<Output = ()> + Send>>)>>>;

/// The keys of a server, read one by one.
#[derive(Clone, Default)]
struct OneByOne {
    server: Arc<Mutex<Server>>,
    closed: Arc<AtomicBool>,
    meanwhile: Meanwhile,
    /// State that reads return until the next write: that of another server, which lags.
    behind: Arc<Mutex<Option<Server>>>,
    /// Whether each step must see the server.
    sees_each: bool,
    /// Count of requests.
    requests: Arc<AtomicU32>,
}

impl fmt::Debug for OneByOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneByOne").finish_non_exhaustive()
    }
}

impl OneByOne {
    async fn open(&self) -> BackendStore<Keyed<Self>> {
        BackendStore::over(Keyed::open(self.clone(), true).await.unwrap()).trying(5)
    }

    /// Opens another handle on the same server.
    async fn another(&self) -> BackendStore<Keyed<Self>> {
        Self { server: Arc::clone(&self.server), ..Self::default() }.open().await
    }

    /// Reads, and then runs the action of the other process if it is due.
    async fn read<T>(&self, read: impl FnOnce(&Server) -> T) -> T {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let found = match &*self.behind.lock().unwrap() {
            Some(behind) => read(behind),
            None => read(&self.server.lock().unwrap()),
        };
        let due = {
            let mut meanwhile = self.meanwhile.lock().unwrap();
            match meanwhile.as_mut().map(|(reads, _)| reads.checked_sub(1)) {
                Some(Some(left)) => {
                    meanwhile.as_mut().unwrap().0 = left;
                    None
                }
                Some(None) => meanwhile.take(),
                None => None,
            }
        };
        if let Some((_, act)) = due {
            act.await;
        }
        found
    }
}

#[async_trait]
impl Keys for OneByOne {
    type Error = Infallible;
    const SNAPSHOT: bool = false;
    const BATCH_MAX: usize = 100;

    fn info(&self) -> StoreInfo<'_> {
        StoreInfo {
            capabilities: CAPABILITIES,
            namespace: "default",
            label: "the store",
            address: None,
        }
    }

    fn may_cache_rows(&self) -> bool {
        !self.sees_each
    }

    async fn head_with(&self, keys: &[String]) -> Result<(Head, Vec<Entry>), Failure<Infallible>> {
        if let Some(key) = keys.iter().find(|key| key.contains("//")) {
            return Err(Failure::from(Error::invalid(format!("{key:?} is not a legal key"))));
        }
        let head = |server: &Server| Head {
            last_write: None,
            writes: server.writes,
            at: server.writes + server.of_others,
            clock: None,
            server: server.name.clone(),
            session: None,
            store: server.keys.get(name::STORE).cloned(),
            namespace: server.keys.get(name::NAMESPACE).cloned(),
        };
        let rows =
            |server: &Server| keys.iter().filter_map(|key| server.keys.get(key).cloned()).collect();
        Ok(self.read(|server| (head(server), rows(server))).await)
    }

    async fn get(&self, key: &str, _: u64) -> Result<Option<Entry>, Failure<Infallible>> {
        Ok(self.read(|server| server.keys.get(key).cloned()).await)
    }

    async fn list(&self, folder: &str, _: u64) -> Result<Vec<Entry>, Failure<Infallible>> {
        let is_in = |entry: &&Entry| name::split(&entry.key).0 == folder;
        let list = |server: &Server| server.keys.values().filter(is_in).cloned().collect();
        Ok(self.read(list).await)
    }

    async fn send(&self, batch: &Batch) -> Result<Outcome, Failure<Infallible>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        *self.behind.lock().unwrap() = None;
        let mut server = self.server.lock().unwrap();
        let version = |key: &String| server.keys.get(key).map_or(0, |entry| entry.version);
        if batch.expected.iter().any(|(key, expected)| version(key) != *expected) {
            return Ok(Outcome::RaceLost);
        }
        let store = server.keys.get(name::STORE).map(|entry| &entry.value);
        if batch.store.is_some() && batch.store.as_ref() != store {
            return Ok(Outcome::RaceLost);
        }
        if batch.server.is_some() && batch.server != server.name {
            return Ok(Outcome::RaceLost);
        }
        let has_all = server.writes >= batch.after;
        // An empty batch only checks that the read rows are unchanged.
        server.writes += u64::from(!batch.changes.is_empty());
        let version = server.writes;
        for (key, value) in &batch.changes {
            match value.clone() {
                Some(value) => server.keys.insert(
                    key.clone(),
                    Entry { key: key.clone(), value, version, written: version },
                ),
                None => server.keys.remove(key),
            };
        }
        Ok(if has_all { Outcome::Done(version) } else { Outcome::Short(version) })
    }

    fn map_error(&self, error: Infallible) -> Error {
        match error {}
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

async fn join(store: &BackendStore<Keyed<OneByOne>>, number: u128) -> Incarnation {
    let incarnation = Incarnation::new(number);
    let (owner, host, address) = (String::new(), String::new(), String::new());
    let member = Member { incarnation, owner, host, process: 1, address };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    store.join(&member, presence, NOW).await.unwrap();
    incarnation
}

fn wanting(member: Incarnation, slots: &[u64]) -> Acquire {
    let pool = Pool { name: "sections".into(), slots: 100, group: 1, reuse: Reuse::Ordered };
    Acquire {
        pool,
        member,
        owner: String::new(),
        slots: slots.to_vec(),
        stalled: Vec::new(),
        supersedes: None,
        length: 10,
        request: 7,
    }
}

fn extending(lease: &Lease, from: Mark, to: Mark) -> Extend {
    let Lease { pool, slot, term, .. } = lease.clone();
    Extend { pool, slot, term, holder: None, from, to, request: to.get(), ahead_max_ms: None }
}
