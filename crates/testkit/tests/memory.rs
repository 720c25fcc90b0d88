//! The memory store keeps the contract, with its callers' clocks and with its own.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{MemoryClock, MemoryStore, Store};
use snowmint_core::UnixMillis;
use snowmint_testkit::contract::{self, Factory};

struct Memory {
    store: MemoryStore,
    clock: Option<MemoryClock>,
}

#[async_trait]
impl Factory for Memory {
    fn name(&self) -> String {
        let clock = if self.clock.is_some() { "its own clock" } else { "its callers' clocks" };
        format!("memory by {clock}")
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        Arc::new(self.store.handle(namespace).expect("a good name"))
    }

    async fn pass_ms(&self, ms: u64) {
        if let Some(clock) = &self.clock {
            clock.set(clock.now().saturating_add(ms));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_store_meets_the_contract_by_callers_clocks() {
    contract::run(Memory { store: MemoryStore::new("all").unwrap(), clock: None }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_store_meets_the_contract_by_its_own_clock() {
    let clock = MemoryClock::new(UnixMillis::new(1_900_000_000_000));
    let store = MemoryStore::with_clock("all", clock.clone()).unwrap();
    contract::run(Memory { store, clock: Some(clock) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn restored_state_is_rejected_by_every_verb() {
    for lost in contract::LostWrites::ALL {
        let store = MemoryStore::new("all").unwrap();
        let backup = std::cell::RefCell::new(None);
        contract::every_verb_is_refused_by_an_older_state(
            Arc::new(store.handle("all").unwrap()),
            async || Arc::new(store.handle("all").unwrap()) as Arc<dyn Store>,
            async || drop(backup.replace(Some(store.backup()))),
            async || store.restore(backup.take().unwrap()),
            lost,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recovery_of_a_replica_needs_its_acceptance() {
    let store = MemoryStore::new("all").unwrap();
    contract::recovery_checks_the_server(
        async || Arc::new(store.handle("all").unwrap()) as Arc<dyn Store>,
        async || store.take_over(store.backup()),
        true,
    )
    .await;
}
