//! Brings the stores of a source up, and keeps an eye on whether they agree.

use std::sync::{Arc, Weak};

use super::Neighbour;
use super::agree::{Has, Verdict, judge};
use crate::error::{Error, ErrorKind};
use crate::machine::backoff_ms;
use crate::node::{Node, SourceInfo};
use crate::sources::{Several, Surroundings};
use crate::spec::SourceSpec;

/// How often it is looked at while all serve: somebody may give a store another stripe by hand.
const LOOK_MS: u64 = 2_000;
/// How long to wait at most before a store that was away is asked again.
const RETRY_MS_MAX: u64 = 1_000;

pub(super) struct Supply {
    several: Weak<Several>,
    /// The source's definition that this is for.
    generation: u64,
    neighbours: Vec<Arc<Neighbour>>,
    /// What each store has, but for the stripe.
    wanted: SourceSpec,
    around: Arc<Surroundings>,
    failures: u32,
    /// The definitions that were found to agree.
    agreed: Vec<SourceSpec>,
}

/// What is known of one store now.
struct Reached {
    node: Option<Node>,
    has: Has,
    error: Option<Error>,
}

impl Supply {
    pub(super) fn new(
        several: &Arc<Several>,
        neighbours: Vec<Arc<Neighbour>>,
        wanted: SourceSpec,
        around: Arc<Surroundings>,
    ) -> Self {
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
        let (mut reached, mut stores, mut verdict) = self.judged(several).await;
        if serves && verdict.has_conflict() {
            // What was read of one may be older than what was read of another, over a restripe.
            (reached, stores, verdict) = self.judged(several).await;
        }
        match verdict {
            Verdict::Define(specs) => {
                for (index, spec) in specs {
                    let Some(node) = reached.get(index).and_then(|reached| reached.node.as_ref())
                    else {
                        continue;
                    };
                    // Whoever was faster has given the residues; they are looked at before they are used.
                    if let Err(error) = node.define(several.name(), &spec).await {
                        tracing::warn!(source = several.name(), %error, "a store was not given its residue");
                    }
                }
                // Once more, and judged as they are now.
                self.failures = 0;
            }
            Verdict::Serve(errors) => {
                let shares = several.shares();
                let mut agreed = Vec::new();
                for ((share, reached), (error, has)) in
                    shares.iter().zip(reached).zip(errors.into_iter().zip(stores))
                {
                    let served = match (error, reached.error, has, reached.node) {
                        (Some(error), ..) => Err(error),
                        // It serves from what it has; its chain says what is wrong.
                        (None, Some(error), ..) if share.source().is_some() => {
                            share.say(Some(error));
                            continue;
                        }
                        (None, Some(error), ..) => Err(error),
                        (None, None, Has::Source(info), Some(node)) => {
                            let spec = self.followed(several.name(), &node, *info).await;
                            agreed.push(spec);
                            node.source(several.name()).await
                        }
                        _ => continue,
                    };
                    match served {
                        Ok(source) => share.serve(source),
                        Err(error) => {
                            tracing::warn!(source = several.name(), store = %share.store, %error, "a store does not serve");
                            share.suspend(error);
                        }
                    }
                }
                self.agreed = agreed;
                several.asked();
            }
        }
    }

    /// Brings the keys that may change up to date, if the source's own were changed here.
    async fn followed(&self, source: &str, node: &Node, info: SourceInfo) -> SourceSpec {
        let spec = &info.spec;
        let stripe = (spec.offset, spec.increment, spec.first, spec.first_at, spec.until);
        let (offset, increment, first, first_at, until) = stripe;
        let wanted =
            SourceSpec { offset, increment, first, first_at, until, ..self.wanted.clone() };
        if self.generation == 0 || *spec == wanted {
            return info.spec;
        }
        match node.alter(source, &wanted, Some(info.version)).await {
            Ok(altered) => SourceSpec { enabled: None, ..altered.spec },
            Err(error) => {
                tracing::warn!(source, %error, "a store does not follow the altered source");
                info.spec
            }
        }
    }

    /// What each store has now, and what follows.
    async fn judged(&self, several: &Several) -> (Vec<Reached>, Vec<Has>, Verdict) {
        let mut reached = self.reach(several).await;
        let has = |reached: &mut Reached| std::mem::replace(&mut reached.has, Has::Unknown);
        let names = self.neighbours.iter().map(|neighbour| neighbour.name.as_str());
        let stores: Vec<_> = names.zip(reached.iter_mut().map(has)).collect();
        let verdict = judge(several.name(), &self.wanted, &stores);
        (reached, stores.into_iter().map(|(_, has)| has).collect(), verdict)
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

async fn reach(neighbour: &Arc<Neighbour>, source: &str) -> Reached {
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
