//! Supervisor that opens the stores of a source, and watches whether they agree.

use std::sync::{Arc, Weak};

use super::Neighbour;
use super::agree::{Has, Verdict, Wanted, judge};
use crate::error::{Error, ErrorKind, chain};
use crate::machine::backoff_ms;
use crate::node::{Node, SourceInfo};
use crate::sources::{Several, Surroundings};
use crate::spec::{Plan, SourceSpec};

/// Interval of polls while all stores serve: an operator may give a store another stripe by hand.
const LOOK_MS: u64 = 2_000;
/// Longest wait before an unavailable store is tried again.
const RETRY_MS_MAX: u64 = 1_000;

pub(super) struct Supply {
    several: Weak<Several>,
    /// Generation of the source's definition that this supervisor is for.
    generation: u64,
    neighbours: Vec<Arc<Neighbour>>,
    /// Definition that each store should have.
    wanted: Wanted,
    around: Arc<Surroundings>,
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
    verdict: Verdict,
}

impl Supply {
    pub(super) fn new(
        several: &Arc<Several>,
        neighbours: Vec<Arc<Neighbour>>,
        (spec, plan): (&SourceSpec, &Plan),
        around: Arc<Surroundings>,
    ) -> Self {
        let wanted = Wanted::of(spec, plan);
        let (generation, several) = (several.generation(), Arc::downgrade(several));
        Self { several, generation, neighbours, wanted, around, failures: 0, agreed: Vec::new() }
    }

    /// Runs until the source is closed, or its definition changes.
    pub(super) async fn run(mut self) {
        loop {
            let wait_ms = {
                let Some(several) = self.several.upgrade().filter(|several| self.is_for(several))
                else {
                    return;
                };
                if self.all_as_agreed(&several) {
                    self.failures = 0;
                    several.retry();
                    LOOK_MS
                } else {
                    self.look(&several).await;
                    self.failures = self.failures.saturating_add(1);
                    backoff_ms(self.failures).min(RETRY_MS_MAX)
                }
            };
            self.around.timer.sleep_ms(wait_ms).await;
        }
    }

    fn is_for(&self, several: &Several) -> bool {
        several.generation() == self.generation && !several.is_closed()
    }

    /// Returns whether all stores serve, by definitions that were found to agree.
    fn all_as_agreed(&self, several: &Several) -> bool {
        let serving: Vec<_> = several
            .shares()
            .iter()
            .filter_map(|share| share.source())
            .map(|source| source.spec())
            .collect();
        serving.len() == self.neighbours.len() && serving == self.agreed
    }

    /// Reads all stores at the same time, and lets those serve that may.
    async fn look(&mut self, several: &Several) {
        let serves = several.shares().iter().any(|share| share.source().is_some());
        let mut now = self.judged(several).await;
        if serves && now.verdict.has_conflict() {
            // Reads before and after a restripe may be mixed: the stores are read again.
            now = self.judged(several).await;
        }
        let mut refused = Vec::new();
        if !now.verdict.define.is_empty() {
            refused = self.define(several.name(), &now).await;
            // Another process may have defined it first: it is read again before it is used.
            now = self.judged(several).await;
        }
        let Judged { reached, stores, verdict: Verdict { mut errors, .. } } = now;
        for (index, error) in refused {
            if matches!(stores.get(index), Some(Has::Nothing))
                && let Some(place) = errors.get_mut(index)
            {
                place.get_or_insert(error);
            }
        }
        let shares = several.shares();
        let mut agreed = Vec::new();
        for (index, ((neighbour, reached), (error, has))) in
            self.neighbours.iter().zip(reached).zip(errors.into_iter().zip(stores)).enumerate()
        {
            // The definition may name other stores by now.
            let Some(share) = shares.iter().find(|share| share.store == neighbour.name) else {
                continue;
            };
            let served = match (error, reached.error, has, reached.node) {
                (Some(error), ..) => Err(error),
                // It keeps serving the numbers that it has; its status shows the error.
                (None, Some(error), ..) if share.source().is_some() => {
                    share.say(Some(error));
                    continue;
                }
                (None, Some(error), ..) => Err(error),
                (None, None, Has::Source(info), Some(node)) => {
                    let spec = self.followed(several.name(), index, &node, *info).await;
                    agreed.push(spec);
                    node.source(several.name()).await
                }
                _ => continue,
            };
            match served {
                Ok(source) => share.serve(source),
                Err(error) => {
                    let why = chain(&error).to_string();
                    if share.suspend(error) {
                        tracing::warn!(source = several.name(), store = %share.store, error = why, "a store does not serve");
                    }
                }
            }
        }
        self.agreed = agreed;
        several.asked();
    }

    /// Defines the source where it is missing. Returns the stores that rejected it.
    async fn define(&self, source: &str, judged: &Judged) -> Vec<(usize, Error)> {
        let mut refused = Vec::new();
        for (index, spec) in &judged.verdict.define {
            let reached = judged.reached.get(*index);
            let Some(node) = reached.and_then(|reached| reached.node.as_ref()) else { continue };
            if let Err(error) = node.define(source, spec).await {
                refused.push((*index, error));
            }
        }
        refused
    }

    /// Updates the keys that may change, if the source itself was altered here.
    async fn followed(
        &self,
        source: &str,
        index: usize,
        node: &Node,
        info: SourceInfo,
    ) -> SourceSpec {
        let wanted = self.wanted.instead_of(index, &info.spec);
        if self.generation == 0 || info.spec == wanted {
            return info.spec;
        }
        match node.alter(source, &wanted, Some(info.version)).await {
            Ok(altered) => SourceSpec { enabled: None, ..altered.spec },
            Err(error) => {
                tracing::warn!(source, error = %chain(&error), "a store does not follow the altered source");
                info.spec
            }
        }
    }

    /// Reads all stores, and compares them.
    async fn judged(&self, several: &Several) -> Judged {
        let mut reached = self.reach(several).await;
        let has = |reached: &mut Reached| std::mem::replace(&mut reached.has, Has::Unknown);
        let names = self.neighbours.iter().map(|neighbour| neighbour.name.as_str());
        let stores: Vec<_> = names.zip(reached.iter_mut().map(has)).collect();
        let verdict = judge(several.name(), &self.wanted, &stores);
        Judged { reached, stores: stores.into_iter().map(|(_, has)| has).collect(), verdict }
    }

    async fn reach(&self, several: &Several) -> Vec<Reached> {
        let mut asked = tokio::task::JoinSet::new();
        for (index, neighbour) in self.neighbours.iter().enumerate() {
            let (neighbour, name) = (Arc::clone(neighbour), several.name().to_owned());
            asked.spawn(async move { (index, reach(&neighbour, &name).await) });
        }
        let mut all: Vec<_> =
            self.neighbours.iter().map(|_| Reached::failed(None, lost())).collect();
        while let Some(answer) = asked.join_next().await {
            if let Ok((index, reached)) = answer
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
pub(super) async fn reach(neighbour: &Arc<Neighbour>, source: &str) -> Reached {
    let node = match neighbour.node().await {
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
