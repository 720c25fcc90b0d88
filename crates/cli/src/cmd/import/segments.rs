//! `snowmint import leaf`, `tinyid` and `cosid`: numbers of tables become segment sources above them.

use std::collections::BTreeMap;

use clap::Args;
use snowmint_coord::spec::StepRule;
use snowmint_coord::{Definition, NewStripe, Node};
use snowmint_stores::foreign::{Foreign, Peer, Sequence};

use super::plan::{Action, Item, item};
use super::{Common, merge};
use crate::config::Config;
use crate::exit::{Failure, Outcome, complain};
use crate::node::{self, Journal};
use crate::output::Output;
use crate::store;

/// The keys of Meituan Leaf's table `leaf_alloc` become segment sources.
#[derive(Debug, Args)]
pub(super) struct Leaf {
    #[command(flatten)]
    keys: Keys,
}

/// The business types of Didi Tinyid's table `tiny_id_info` become segment sources.
///
/// Name every database, each with a --from of its own: a source of all of them has all numbers, a
/// source of one has its stripe.
#[derive(Debug, Args)]
pub(super) struct Tinyid {
    #[command(flatten)]
    keys: Keys,
}

/// The names of CosId's table `cosid` become segment sources.
#[derive(Debug, Args)]
pub(super) struct Cosid {
    #[command(flatten)]
    keys: Keys,
}

/// Which keys, and what they are called here.
#[derive(Debug, Args)]
struct Keys {
    #[command(flatten)]
    common: Common,
    /// Only this key; may be given several times.
    #[arg(long, value_name = "KEY")]
    only: Vec<String>,
    /// Not this key; may be given several times.
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
    /// What a key is called here, if not as there; may be given several times.
    #[arg(long, value_name = "KEY=SOURCE", value_parser = named)]
    name: Vec<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    let (key, source) = text.rsplit_once('=').ok_or("write KEY=SOURCE")?;
    Ok((key.to_owned(), source.to_owned()))
}

impl Leaf {
    pub(super) fn run(self) -> Outcome {
        self.keys.run(Peer::Leaf, StepRule::Leaf)
    }
}

impl Tinyid {
    pub(super) fn run(self) -> Outcome {
        self.keys.run(Peer::Tinyid, StepRule::Fixed)
    }
}

impl Cosid {
    pub(super) fn run(self) -> Outcome {
        self.keys.run(Peer::Cosid, StepRule::Adaptive)
    }
}

impl Keys {
    fn run(self, peer: Peer, step: StepRule) -> Outcome {
        let config = self.common.chosen.load(Vec::new())?;
        let runtime = store::runtime()?;
        let sequences = self.chosen(runtime.block_on(self.read(peer))?)?;
        let stored = runtime.block_on(stored(&config))?;
        let items = self.items(sequences, step, &stored);
        let mut out = Output::new();
        self.show(&items, &mut out)?;
        out.flush()?;
        refuse(&items)?;
        if self.common.dry_run {
            complain("nothing was changed (--dry-run)");
        } else {
            runtime.block_on(carry_out(&config, &items))?;
        }
        warn_of_overlaps(&items)
    }

    async fn read(&self, peer: Peer) -> Outcome<Vec<Sequence>> {
        let mut all = Vec::new();
        for url in &self.common.from {
            let foreign = Foreign::open(url)?;
            all.extend(foreign.sequences(peer).await?);
            for caution in foreign.cautions().await? {
                complain(caution);
            }
        }
        Ok(merge::merged(all))
    }

    /// Those that were asked for.
    fn chosen(&self, all: Vec<Sequence>) -> Outcome<Vec<Sequence>> {
        let named = self.name.iter().map(|(key, _)| key);
        for key in self.only.iter().chain(&self.except).chain(named) {
            if !all.iter().any(|sequence| sequence.key == *key) {
                return Err(Failure::no(format!("there is no key {key:?} in the other system")));
            }
        }
        let chosen = |sequence: &Sequence| {
            let key = &sequence.key;
            (self.only.is_empty() || self.only.contains(key)) && !self.except.contains(key)
        };
        let chosen: Vec<_> = all.into_iter().filter(chosen).collect();
        if chosen.is_empty() {
            return Err(Failure::no("the other system has no key, or none was chosen"));
        }
        Ok(chosen)
    }

    fn items(
        &self,
        sequences: Vec<Sequence>,
        step: StepRule,
        stored: &BTreeMap<String, Definition>,
    ) -> Vec<Item> {
        let names: BTreeMap<&str, &str> =
            self.name.iter().map(|(key, source)| (key.as_str(), source.as_str())).collect();
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        let mut items = Vec::with_capacity(sequences.len());
        for sequence in sequences {
            let key = sequence.key.clone();
            let source = names.get(key.as_str()).copied().unwrap_or(&key).to_owned();
            let known = stored.get(&source);
            let mut item = item(sequence, source.clone(), step, known);
            if let Some(other) = taken.insert(source, key) {
                let reason = format!("key {other:?} has the same source: one key, one source");
                item.action = Action::Refuse { reason };
            }
            items.push(item);
        }
        items
    }

    fn show(&self, items: &[Item], out: &mut Output) -> Outcome {
        if self.common.json {
            return items.iter().try_for_each(|item| out.json(item));
        }
        let width = |text: fn(&Item) -> &str| {
            items.iter().map(|item| text(item).chars().count()).max().unwrap_or(0).max(6)
        };
        let (keys, sources) = (width(|item| &item.key), width(|item| &item.source));
        out.line(format_args!("{:<keys$}  {:<sources$}  PLAN", "KEY", "SOURCE"))?;
        for Item { key, source, action, .. } in items {
            let plan = match action {
                Action::Define { first, .. } => format!("define, from {first} on"),
                Action::Raise { next, first, .. } => format!("raise from {next} to {first}"),
                Action::Keep { next } => format!("nothing to do: is at {next}"),
                Action::Refuse { reason } => format!("REFUSED: {reason}"),
            };
            out.line(format_args!("{key:<keys$}  {source:<sources$}  {plan}"))?;
        }
        Ok(())
    }
}

/// What sources there are, by name.
async fn stored(config: &Config) -> Outcome<BTreeMap<String, Definition>> {
    let Some(store) = store::existing(config).await? else { return Ok(BTreeMap::new()) };
    let catalog = store.list().await?;
    store.close().await?;
    let by_name = |definition: Definition| (definition.name.clone(), definition);
    Ok(catalog.definitions.into_iter().map(by_name).collect())
}

fn refuse(items: &[Item]) -> Outcome {
    let refused = |item: &&Item| matches!(item.action, Action::Refuse { .. });
    match items.iter().filter(refused).count() {
        0 => Ok(()),
        count => Err(Failure::refused(format!(
            "nothing was changed: {count} of {} keys are refused, as the plan says; put them right, or \
             leave them out by --except KEY",
            items.len()
        ))),
    }
}

async fn carry_out(config: &Config, items: &[Item]) -> Outcome {
    let idle = items.iter().all(|item| matches!(item.action, Action::Keep { .. }));
    if idle {
        return Ok(());
    }
    let node = node::open(config, Journal::Without, String::new()).await?;
    for (done, item) in items.iter().enumerate() {
        act(&node, item).await.map_err(|error| {
            Failure::from(error).after(&format!(
                "{done} of {} keys are done, and {} is not; give this command again",
                items.len(),
                item.key
            ))
        })?;
    }
    Ok(node.close().await?)
}

async fn act(node: &Node, item: &Item) -> snowmint_coord::Result<()> {
    match &item.action {
        Action::Define { spec, .. } => node.define(&item.source, spec).await.map(drop),
        Action::Raise { first, stripe, .. } => {
            let wanted = NewStripe {
                offset: stripe.offset,
                increment: stripe.increment,
                first: Some(*first),
                if_version: Some(stripe.version),
            };
            node.restripe(&item.source, wanted).await.map(drop)
        }
        Action::Keep { .. } | Action::Refuse { .. } => Ok(()),
    }
}

/// What cannot be made undone by raising a source.
fn warn_of_overlaps(items: &[Item]) -> Outcome {
    let both: Vec<_> = items
        .iter()
        .filter_map(|item| {
            let [first, last] = item.overlap?;
            Some(format!("{first} to {last} of {}", item.source))
        })
        .collect();
    if both.is_empty() {
        return Ok(());
    }
    Err(Failure::no(format!(
        "both systems may have handed out: {}. The sources are above the other system now, or the plan \
         says how they get there, but these numbers may be there twice: compare what was stored of them",
        both.join(", ")
    )))
}
