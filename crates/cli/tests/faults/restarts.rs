//! Many processes, one after the other, each with a new name.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_coord::{IdBatch, Node, NodeSettings, Platform};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_testkit::audited_store::{AuditedStore, PromiseSink};
use snowmint_testkit::history::Resource;

use super::checker::{Checker, Voice};
use super::ground::{Ground, On, TTL_MS, WINDOW_MS, on_each, rounds};
use super::holder::ORDERS;

/// Number of concurrent processes.
const AT_ONCE: u64 = 8;
/// One in this many processes dies without a release.
const DIES: u64 = 20;

#[test]
fn restarts_with_fresh_names_exhaust_nothing() {
    let fault = "rolling restarts with fresh names on 128 worker numbers, one in 20 a crash";
    on_each(fault, On::All, 7, restarted);
}

/// Reports a node's grants to the checker.
#[derive(Debug)]
struct Tells {
    voice: Voice,
    checker: Arc<Mutex<Checker>>,
}

impl PromiseSink for Tells {
    fn asks(&self, right: &Resource, from: u64, to: u64) {
        self.checker.lock().unwrap().requested(self.voice, right, from, to);
    }

    fn granted(&self, right: &Resource, from: u64, to: u64) {
        self.checker.lock().unwrap().granted(self.voice, right, from, to);
    }

    fn gives_up(&self, right: &Resource, mark: u64) {
        self.checker.lock().unwrap().given_up(self.voice, right, mark);
    }
}

fn restarted(ground: &mut Ground) -> u64 {
    // Each process takes several times as long on the other stores.
    let many = ["SQLite", "Redis"].contains(&ground.name);
    let rounds = rounds(if many { 600 } else { 250 });
    let next = AtomicU64::new(0);
    ground.run(async {
        // All share one connection: the test is about the pool of numbers.
        let store = snowmint_stores::open(&ground.url(), "default").await.unwrap();
        let one_after_another = || async {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= rounds {
                    return;
                }
                let machine = usize::try_from(number).unwrap();
                let voice = Voice { machine, life: 1, journalled: false };
                let checker = Arc::clone(&ground.checker);
                let tells = Tells { voice, checker: Arc::clone(&checker) };
                let settings = NodeSettings {
                    owner: format!("pod-{number}"),
                    window_ms: WINDOW_MS,
                    presence_ttl_ms: TTL_MS,
                    // The time limit suits any busy machine.
                    open_wait_ms: 60_000,
                    ..NodeSettings::default()
                };
                let audited_store = Arc::new(AuditedStore::new(Arc::clone(&store), tells));
                let node = Node::open(audited_store, settings, Platform::system()).await.unwrap();
                // Every process gets a number at all times.
                let orders = node.source(ORDERS).await.unwrap();
                let Ok(IdBatch::Numbers(ids)) = orders.mint(5, None, 10_000).await else {
                    panic!("{}: pod-{number} mints nothing", ground.name)
                };
                checker.lock().unwrap().minted(voice, ORDERS, &ids);
                if !number.is_multiple_of(DIES) {
                    node.close().await.unwrap();
                }
            }
        };
        let rows: Vec<_> = (0..AT_ONCE).map(|_| one_after_another()).collect();
        join_all(rows).await;
        let now = SystemClock.unix_ms();
        let slots = store.workers(now).await.unwrap().len();
        assert!(slots <= 128, "{}: {slots} rows of worker numbers", ground.name);
        // A process that has left leaves no row. A process that died has a row for a day.
        let members = u64::try_from(store.members(now).await.unwrap().len()).unwrap();
        assert!(members <= rounds.div_ceil(DIES), "{}: {members} rows of members", ground.name);
        store.close().await.unwrap();
    });
    rounds
}

/// Waits for all futures, which take turns.
async fn join_all(futures: Vec<impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
