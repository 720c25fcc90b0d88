//! Node over the memory store.

mod clocks;
mod contradicted;
mod counted;
mod counters;
mod deleted;
mod disguised;
mod disk;
mod doubted;
mod ends;
mod external;
mod far_marks;
mod faulty;
mod fetches;
mod idle;
mod journals;
mod key_room;
mod kills;
mod leak_audit;
mod lost;
mod many_keys;
mod members;
mod multi_store;
mod namespaces;
mod offline;
mod order;
mod own;
mod per_request;
mod readiness;
mod reads;
mod recovered;
mod restarts;
mod restored;
mod second_process;
mod seen_by_handle;
mod segments;
mod serials;
mod serving;
mod shards;
mod sources;
mod stats;
mod supply;
mod tails;
mod through_servers;
mod unreported;
mod wrong_store;

use std::collections::HashSet;

use snowmint_core::{ManualClock, Observer, UnixMillis};

use super::*;
use crate::error::ErrorKind;
use crate::ids::Mark;
use crate::model::fast_forward::FastForward;
use crate::platform::timer::{ManualTimer, Timer};
use crate::sources::{Decoded, IdBatch, PrefillHooks};
use crate::spec::{SourceSpec, Span};
use crate::store::memory::MemoryStore;
use faulty::Faulty;

/// 2026-06-01T00:00:00Z, well inside the default layout.
pub(super) const START: UnixMillis = UnixMillis::new(1_780_272_000_000);

/// World with clocks that a test moves, and a store that outlives nodes.
pub(super) struct World {
    pub(super) store: MemoryStore,
    pub(super) clock: Arc<ManualClock>,
    pub(super) timer: ManualTimer,
}

impl World {
    pub(super) fn new() -> Self {
        let timer = ManualTimer::new(0);
        Self {
            store: MemoryStore::new("default").unwrap().by_timer(Arc::new(timer.clone())),
            clock: Arc::new(ManualClock::new(START)),
            timer,
        }
    }

    pub(super) fn platform(&self) -> Platform {
        Platform {
            timer: Arc::new(self.timer.clone()) as Arc<dyn Timer>,
            clock: Arc::clone(&self.clock) as _,
            observer: Arc::new(()) as Arc<dyn Observer + Send + Sync>,
            // It does its work at once: the speed of a real disk decides nothing.
            disk: Arc::new(disk::Failing::never()),
        }
    }

    /// Returns a handle with faults for the test to inject.
    fn faulty(&self) -> Faulty {
        Faulty::over(self.store.handle("default").unwrap())
    }

    pub(super) fn handle(&self) -> Arc<dyn Store> {
        Arc::new(self.store.handle("default").unwrap())
    }

    pub(super) async fn open(&self) -> Node {
        self.open_with(NodeSettings::default()).await
    }

    pub(super) async fn open_with(&self, settings: NodeSettings) -> Node {
        Node::open(self.handle(), settings, self.platform()).await.unwrap()
    }

    /// Advances both clocks, in steps that let tasks run in between.
    pub(super) async fn pass(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.clock.advance_ms(Ord::min(ms, 100));
            self.timer.advance_ms(Ord::min(ms, 100));
            settle().await;
        }
    }
}

/// Runs everything that can run without time passing.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn numbers(values: IdBatch) -> Vec<u64> {
    match values {
        IdBatch::Numbers(numbers) => numbers,
        IdBatch::Texts(texts) => panic!("{texts:?}"),
    }
}

fn spec(json: &str) -> SourceSpec {
    SourceSpec::from_json(json).unwrap()
}

/// Returns the recovery that moves a store past all numbers of `bills` that a test took.
fn past_bills() -> FastForward {
    FastForward {
        segments: vec![("bills".into(), Mark::new(1_000))],
        writes_at_least: 1_000,
        ..FastForward::default()
    }
}

/// Enables or disables a source as servers do: by altering its present definition.
async fn switch(node: &Node, name: &str, on: bool) {
    let now = node.definition(name).await.unwrap();
    let wanted = SourceSpec { enabled: Some(on), ..now.spec };
    node.alter(name, &wanted, Some(now.version)).await.unwrap();
}
