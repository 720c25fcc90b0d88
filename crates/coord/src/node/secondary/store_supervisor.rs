//! Supervisor that opens the stores of a source, and watches whether they agree.

use std::sync::{Arc, Weak};

use super::SecondaryStores;
use super::agree::judge;
use super::comparison::{Has, StoreComparison, Wanted};
use super::store::SecondaryStore;
use crate::error::{Error, ErrorKind, chain};
use crate::node::source_info::SourceInfo;
use crate::node::state::Node;
use crate::platform::backoff::backoff_ms;
use crate::sources::{MultiStoreSource, NodeContext};
use crate::spec::{Plan, SourceSpec};

/// Interval of polls while all stores serve: an operator may give a store another stripe by hand.
const POLL_MS: u64 = 2_000;
/// Longest wait before an unavailable store is tried again.
const RETRY_MS_MAX: u64 = 1_000;

struct StoreSupervisor {
    multi_store: Weak<MultiStoreSource>,
    /// Generation of the source's definition that this supervisor is for.
    generation: u64,
    secondaries: Vec<Arc<SecondaryStore>>,
    /// Definition that each store should have.
    wanted: Wanted,
    ctx: Arc<NodeContext>,
    failures: u32,
    /// Definitions that were found to agree.
    agreed: Vec<SourceSpec>,
}

/// State of one store.
pub(super) struct Reached {
    node: Option<Node>,
    pub(super) has: Has,
    pub(super) error: Option<Error>,
}

/// State of all stores, and the result of comparing them.
struct Judged {
    reached: Vec<Reached>,
    stores: Vec<Has>,
    comparison: StoreComparison,
}

impl SecondaryStores {
    /// Starts the task that keeps a source served by its stores, until the source is closed.
    pub(in crate::node) fn supply(
        &self,
        ctx: &Arc<NodeContext>,
        multi_store: &Arc<MultiStoreSource>,
        (spec, plan): (&SourceSpec, &Plan),
    ) {
        let names = plan.stores();
        let secondaries = names.into_iter().filter_map(|name| self.secondary(name)).collect();
        let supervisor =
            StoreSupervisor::new(multi_store, secondaries, (spec, plan), Arc::clone(ctx));
        ctx.runtime.spawn(supervisor.run());
    }
}

impl StoreSupervisor {
    fn new(
        multi_store: &Arc<MultiStoreSource>,
        secondaries: Vec<Arc<SecondaryStore>>,
        (spec, plan): (&SourceSpec, &Plan),
        ctx: Arc<NodeContext>,
    ) -> Self {
        let wanted = Wanted::of(spec, plan);
        let (generation, multi_store) = (multi_store.generation(), Arc::downgrade(multi_store));
        Self { multi_store, generation, secondaries, wanted, ctx, failures: 0, agreed: Vec::new() }
    }

    /// Runs until the source is closed, or its definition changes.
    async fn run(mut self) {
        loop {
            let wait_ms = {
                let Some(multi_store) =
                    self.multi_store.upgrade().filter(|multi_store| self.is_for(multi_store))
                else {
                    return;
                };
                if self.all_as_agreed(&multi_store) {
                    self.failures = 0;
                    multi_store.retry();
                    POLL_MS
                } else {
                    self.poll(&multi_store).await;
                    self.failures = self.failures.saturating_add(1);
                    backoff_ms(self.failures).min(RETRY_MS_MAX)
                }
            };
            self.ctx.timer.sleep_ms(wait_ms).await;
        }
    }

    fn is_for(&self, multi_store: &MultiStoreSource) -> bool {
        multi_store.generation() == self.generation && !multi_store.is_closed()
    }

    /// Returns whether all stores serve, by definitions that were found to agree.
    fn all_as_agreed(&self, multi_store: &MultiStoreSource) -> bool {
        let serving: Vec<_> = multi_store
            .store_parts()
            .iter()
            .filter_map(|part| part.source())
            .map(|source| source.spec())
            .collect();
        serving.len() == self.secondaries.len() && serving == self.agreed
    }

    /// Reads all stores at the same time, and lets those serve that may.
    async fn poll(&mut self, multi_store: &MultiStoreSource) {
        let serves = multi_store.store_parts().iter().any(|part| part.source().is_some());
        let mut now = self.judged(multi_store).await;
        if serves && now.comparison.has_conflict() {
            // Reads before and after a restripe may be mixed: the stores are read again.
            now = self.judged(multi_store).await;
        }
        let mut refused = Vec::new();
        if !now.comparison.define.is_empty() {
            refused = self.define(multi_store.name(), &now).await;
            // Another process may have defined it first: it is read again before it is used.
            now = self.judged(multi_store).await;
        }
        let Judged { reached, stores, comparison: StoreComparison { mut errors, .. } } = now;
        for (index, error) in refused {
            if matches!(stores.get(index), Some(Has::Nothing))
                && let Some(place) = errors.get_mut(index)
            {
                place.get_or_insert(error);
            }
        }
        let store_parts = multi_store.store_parts();
        let mut agreed = Vec::new();
        for (index, ((secondary, reached), (error, has))) in
            self.secondaries.iter().zip(reached).zip(errors.into_iter().zip(stores)).enumerate()
        {
            // The definition may name other stores by now.
            let Some(part) = store_parts.iter().find(|part| part.store == secondary.name) else {
                continue;
            };
            let mut behind = None;
            let served = match (error, reached.error, has, reached.node) {
                (Some(error), ..) => Err(error),
                // It keeps serving the numbers that it has; its status shows the error.
                (None, Some(error), ..) if part.source().is_some() => {
                    part.set_error(Some(error));
                    continue;
                }
                (None, Some(error), ..) => Err(error),
                (None, None, Has::Source(info), Some(node)) => {
                    let (spec, error) =
                        self.followed(multi_store.name(), index, &node, *info).await;
                    agreed.push(spec);
                    behind = error;
                    node.source(multi_store.name()).await
                }
                _ => continue,
            };
            match served {
                Ok(source) => {
                    part.serve(source);
                    if let Some(error) = behind {
                        part.set_error(Some(error));
                    }
                }
                Err(error) => {
                    let text = chain(&error).to_string();
                    if part.suspend(error) {
                        tracing::warn!(source = multi_store.name(), store = %part.store, error = text, "store does not serve");
                    }
                }
            }
        }
        self.agreed = agreed;
        multi_store.set_all_tried();
    }

    /// Defines the source where it is missing. Returns the stores that rejected it.
    async fn define(&self, source: &str, judged: &Judged) -> Vec<(usize, Error)> {
        let mut refused = Vec::new();
        for (index, spec) in &judged.comparison.define {
            let reached = judged.reached.get(*index);
            let Some(node) = reached.and_then(|reached| reached.node.as_ref()) else { continue };
            if let Err(error) = node.define(source, spec).await {
                refused.push((*index, error));
            }
        }
        refused
    }

    /// Updates the keys that may change, if the source itself was altered here. Returns the
    /// definition that the store is to have, and the error where it does not have it yet.
    async fn followed(
        &self,
        source: &str,
        index: usize,
        node: &Node,
        info: SourceInfo,
    ) -> (SourceSpec, Option<Error>) {
        let wanted = self.wanted.instead_of(index, &info.spec);
        if self.generation == 0 || info.spec == wanted {
            return (info.spec, None);
        }
        match node.alter(source, &wanted, Some(info.version)).await {
            Ok(altered) => (SourceSpec { enabled: None, ..altered.spec }, None),
            Err(error) => {
                tracing::warn!(source, error = %chain(&error), "failed to apply a changed definition to a secondary store");
                (wanted, Some(error))
            }
        }
    }

    /// Reads all stores, and compares them.
    async fn judged(&self, multi_store: &MultiStoreSource) -> Judged {
        let mut reached = self.reach(multi_store).await;
        let has = |reached: &mut Reached| std::mem::replace(&mut reached.has, Has::Unknown);
        let names = self.secondaries.iter().map(|secondary| secondary.name.as_str());
        let stores: Vec<_> = names.zip(reached.iter_mut().map(has)).collect();
        let comparison = judge(multi_store.name(), &self.wanted, &stores);
        Judged { reached, stores: stores.into_iter().map(|(_, has)| has).collect(), comparison }
    }

    async fn reach(&self, multi_store: &MultiStoreSource) -> Vec<Reached> {
        let mut queried = tokio::task::JoinSet::new();
        for (index, secondary) in self.secondaries.iter().enumerate() {
            let (secondary, name) = (Arc::clone(secondary), multi_store.name().to_owned());
            queried.spawn(async move { (index, reach(&secondary, &name).await) });
        }
        let mut all: Vec<_> =
            self.secondaries.iter().map(|_| Reached::failed(None, lost())).collect();
        while let Some(result) = queried.join_next().await {
            if let Ok((index, reached)) = result
                && let Some(place) = all.get_mut(index)
            {
                *place = reached;
            }
        }
        all
    }
}

fn lost() -> Error {
    Error::internal("internal error: store was not read; please report it")
}

impl Reached {
    fn failed(node: Option<Node>, error: Error) -> Self {
        Self { node, has: Has::Unknown, error: Some(error) }
    }
}

/// Reads the source's definition from one store.
pub(super) async fn reach(secondary: &Arc<SecondaryStore>, source: &str) -> Reached {
    let node = match secondary.node().await {
        Ok(node) => node,
        Err(error) => return Reached::failed(None, error),
    };
    match node.definition(source).await {
        Ok(info) => has(node, info),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
            Reached { node: Some(node), has: Has::Nothing, error: None }
        }
        Err(error) => Reached::failed(Some(node), error),
    }
}

fn has(node: Node, mut info: SourceInfo) -> Reached {
    info.spec.enabled = None;
    Reached { node: Some(node), has: Has::Source(Box::new(info)), error: None }
}
