//! Brings the stores of a source up, and keeps an eye on whether they agree.

use std::sync::{Arc, Weak};

use super::Neighbour;
use super::agree::{Has, Verdict, Wanted, judge};
use crate::error::{Error, ErrorKind, chain};
use crate::machine::backoff_ms;
use crate::node::{Node, SourceInfo};
use crate::sources::{Several, Surroundings};
use crate::spec::{Plan, SourceSpec};

/// How often it is looked at while all serve: somebody may give a store another stripe by hand.
const LOOK_MS: u64 = 2_000;
/// How long to wait at most before a store that was away is asked again.
const RETRY_MS_MAX: u64 = 1_000;

pub(super) struct Supply {
    several: Weak<Several>,
    /// The source's definition that this is for.
    generation: u64,
    neighbours: Vec<Arc<Neighbour>>,
    /// What each store shall have.
    wanted: Wanted,
    around: Arc<Surroundings>,
    failures: u32,
    /// The definitions that were found to agree.
    agreed: Vec<SourceSpec>,
}

/// What is known of one store now.
pub(super) struct Reached {
    node: Option<Node>,
    pub(super) has: Has,
    pub(super) error: Option<Error>,
}

/// All stores as they are now, and what follows.
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

    /// Until the source is closed, or its definition changes.
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

    /// Whether all serve, by definitions that were found to agree.
    fn all_as_agreed(&self, several: &Several) -> bool {
        let serving: Vec<_> = several
            .shares()
            .iter()
            .filter_map(|share| share.source())
            .map(|source| source.spec())
            .collect();
        serving.len() == self.neighbours.len() && serving == self.agreed
    }

    /// Asks every store at once, and has those serve that may.
    async fn look(&mut self, several: &Several) {
        let serves = several.shares().iter().any(|share| share.source().is_some());
        let mut now = self.judged(several).await;
        if serves && now.verdict.has_conflict() {
            // What was read of one may be older than what was read of another, over a restripe.
            now = self.judged(several).await;
        }
        let mut refused = Vec::new();
        if !now.verdict.define.is_empty() {
            refused = self.define(several.name(), &now).await;
            // Whoever was faster has defined it: it is looked at before it is used.
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
            // The definition may name others by now.
            let Some(share) = shares.iter().find(|share| share.store == neighbour.name) else {
                continue;
            };
            let served = match (error, reached.error, has, reached.node) {
                (Some(error), ..) => Err(error),
                // It serves from what it has; its chain says what is wrong.
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

    /// Defines the source where it is missing. Those that refused it.
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

    /// Brings the keys that may change up to date, if the source's own were changed here.
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

    /// What each store has now, and what follows.
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
    Error::internal("open source", "a store was not asked")
}

impl Reached {
    fn failed(node: Option<Node>, error: Error) -> Self {
        Self { node, has: Has::Unknown, error: Some(error) }
    }
}

/// What one store has of the source.
pub(super) async fn reach(neighbour: &Arc<Neighbour>, source: &str) -> Reached {
    let node = match neighbour.node().await {
        Ok(node) => node,
        Err(error) => return Reached::failed(None, error),
    };
    match node.definition(source).await {
        Ok(info) => has(node, info),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => {
            Reached { node: Some(node), has: Has::Nothing, error: None }
        }
        Err(error) => Reached::failed(Some(node), error),
    }
}

fn has(node: Node, mut info: SourceInfo) -> Reached {
    info.spec.enabled = None;
    Reached { node: Some(node), has: Has::Source(Box::new(info)), error: None }
}
