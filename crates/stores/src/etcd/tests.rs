//! The documented capabilities, and the sizes of transactions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use snowmint_coord::verbs::Rows as _;
use snowmint_testkit::contract::largest_steps_are_carried_out;

use super::*;
use crate::keyed::Step;

#[test]
fn the_docs_show_the_capabilities() {
    assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
}

/// Keys in memory, as etcd has them.
#[derive(Debug, Default)]
struct Kept {
    revision: u64,
    keys: BTreeMap<String, Entry>,
    /// Most comparisons, and most operations, of a transaction so far.
    largest: (usize, usize),
}

impl Kept {
    fn carry_out(&mut self, batch: &Batch) -> Outcome {
        let version = |key: &String| self.keys.get(key).map_or(0, |entry| entry.version);
        if batch.expected.iter().any(|(key, expected)| version(key) != *expected) {
            return Outcome::RaceLost;
        }
        if batch.changes.is_empty() {
            return Outcome::Done(self.revision);
        }
        self.revision += 1;
        let written = (name::WRITES.to_owned(), Some(String::new()));
        for (key, value) in batch.changes.iter().chain([(&written.0, &written.1)]) {
            match value.clone() {
                Some(value) => {
                    let (key, version) = (key.clone(), self.revision);
                    let entry = Entry { key: key.clone(), value, version, written: version };
                    self.keys.insert(key, entry);
                }
                None => drop(self.keys.remove(key)),
            }
        }
        Outcome::Done(self.revision)
    }
}

/// A handle on keys in memory, which measures the transaction of each batch.
#[derive(Debug)]
struct Measured {
    kept: Arc<Mutex<Kept>>,
    closed: AtomicBool,
}

impl Measured {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

#[async_trait]
impl Keys for Measured {
    type Error = Status;
    const SNAPSHOT: bool = true;
    const BATCH_MAX: usize = <Etcd as Keys>::BATCH_MAX;

    fn info(&self) -> StoreInfo<'_> {
        StoreInfo {
            capabilities: CAPABILITIES,
            namespace: "default",
            label: "keys in memory",
            address: None,
        }
    }

    async fn head_with(&self, keys: &[String]) -> KeysResult<(Head, Vec<Entry>)> {
        let kept = self.kept();
        let find = |key: &str| kept.keys.get(key).cloned();
        let writes = find(name::WRITES).map_or(0, |entry| entry.version);
        let head = Head {
            writes,
            at: kept.revision,
            last_write: Some(writes),
            clock: None,
            server: None,
            session: None,
            store: find(name::STORE),
            namespace: find(name::NAMESPACE),
        };
        Ok((head, keys.iter().filter_map(|key| find(key)).collect()))
    }

    async fn get(&self, key: &str, _: u64) -> KeysResult<Option<Entry>> {
        Ok(self.kept().keys.get(key).cloned())
    }

    async fn list(&self, folder: &str, _: u64) -> KeysResult<Vec<Entry>> {
        let is_in = |entry: &&Entry| name::split(&entry.key).0 == folder;
        Ok(self.kept().keys.values().filter(is_in).cloned().collect())
    }

    async fn send(&self, batch: &Batch) -> KeysResult<Outcome> {
        let TxnRequest { compare, success } = transaction("/snowmint/default/", batch);
        let (compares, operations) = (compare.len(), success.len());
        let most = Self::BATCH_MAX;
        assert!(compares <= most && operations <= most, "{compares} {operations}: {batch:?}");
        let mut kept = self.kept();
        kept.largest = (kept.largest.0.max(compares), kept.largest.1.max(operations));
        Ok(kept.carry_out(batch))
    }

    fn map_error(&self, error: Status) -> Error {
        map_error("keys in memory", error)
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

/// etcd rejects a transaction with more comparisons or more operations than `--max-txn-ops`.
#[tokio::test]
async fn largest_steps_fit_into_one_transaction() {
    let kept = Arc::<Mutex<Kept>>::default();
    largest_steps_are_carried_out(async || {
        let keys = Measured { kept: Arc::clone(&kept), closed: AtomicBool::new(false) };
        Arc::new(BackendStore::over(Keyed::open(keys, true).await.unwrap())) as Arc<dyn Store>
    })
    .await;
    let (compares, operations) = kept.lock().unwrap().largest;
    let rows = Step::<Measured>::WRITES_MAX;
    assert!(compares > rows && operations > rows, "{compares} {operations}: no full step was sent");
}
