//! The other systems: the options of each, and its plan.

use clap::Args;
use snowmint_coord::spec::StepRule;
use snowmint_stores::foreign::{Crew, Foreign, Peer, Worker, tree_workers};

use super::Common;
use super::apply::{Around, Whole, present};
use super::cut::Cuts;
use super::plan::Item;
use super::segments::Keys;
use super::tokens;
use super::workers::{BAIDU, COSID, Here, Keeping, LEAF, System, Workers};
use crate::exit::{Failure, Outcome, complain};

/// Turn the keys of Meituan Leaf's table `leaf_alloc` into segment sources.
#[derive(Debug, Args)]
pub(super) struct Leaf {
    #[command(flatten)]
    keys: Keys,
}

/// Turn the business types of Didi Tinyid's table `tiny_id_info` into segment sources.
///
/// Give every database with a --from of its own: a source from all databases has all numbers, a
/// source from one has its stripe.
#[derive(Debug, Args)]
pub(super) struct Tinyid {
    #[command(flatten)]
    keys: Keys,
    /// Only print [compat.tinyid.tokens] for the configuration, from the table `tiny_id_token`: the
    /// hash of each token, and its business types. Changes nothing.
    #[arg(
        long,
        conflicts_with_all = ["only", "except", "name", "allocate_from", "cut_over", "dry_run"]
    )]
    tokens: bool,
}

/// Turn the names in CosId's table `cosid` into segment sources, and exclude the worker numbers in
/// its table `cosid_machine`; either table may be missing.
#[derive(Debug, Args)]
pub(super) struct Cosid {
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    keeping: Keeping,
}

/// Exclude the worker numbers in the ZooKeeper tree of Meituan Leaf, or of an application that
/// keeps /servers and /instances (as Twitter's and its heirs do).
///
/// The path of the URL is the application's, or that of all applications; default /snowflake.
#[derive(Debug, Args)]
pub(super) struct LeafSnowflake {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    keeping: Keeping,
}

/// Exclude the worker numbers of Baidu's uid-generator, up to the highest in its table
/// `WORKER_NODE`.
///
/// A process that borrowed time may have minted far ahead of any clock: consider this before giving
/// --stopped. That option is rejected until --layout gives the epoch of its IDs: the shipped epoch
/// has run out, and a layout with a later epoch repeats its IDs.
#[derive(Debug, Args)]
pub(super) struct UidGenerator {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    keeping: Keeping,
}

fn no_table(table: &str) -> Failure {
    Failure::no(format!("table {table} does not exist in the other system; correct --from"))
}

fn keys_of(keys: &Keys, peer: Peer, step: StepRule, table: &str) -> Outcome {
    let around = Around::look(&keys.common)?;
    let keys_found = keys.plan(peer, step, &around)?.ok_or_else(|| no_table(table))?;
    let cuts = cuts(&keys_found, peer, keys, &around)?;
    Whole { keys: keys_found, workers: None, cuts }.finish(&keys.common, &around)
}

fn cuts(items: &[Item], peer: Peer, keys: &Keys, around: &Around) -> Outcome<Cuts> {
    // Connections belong to a runtime.
    let _entered = around.runtime.enter();
    Cuts::of(items, peer, (&keys.common, keys.allocate_from.as_deref()), &around.config)
}

impl Leaf {
    pub(super) fn run(self) -> Outcome {
        keys_of(&self.keys, Peer::Leaf, StepRule::Leaf, "leaf_alloc")
    }
}

impl Tinyid {
    pub(super) fn run(self) -> Outcome {
        if self.tokens {
            return tokens::print(&self.keys.common);
        }
        keys_of(&self.keys, Peer::Tinyid, StepRule::Fixed, "tiny_id_info")
    }
}

impl Cosid {
    pub(super) fn run(self) -> Outcome {
        let common = &self.keys.common;
        let around = Around::look(common)?;
        let machines = around.runtime.block_on(crew(common, Crew::Cosid))?;
        let keys = self.keys.plan(Peer::Cosid, StepRule::Adaptive, &around)?;
        if machines.is_none() && keys.is_none() {
            return Err(no_table("cosid or cosid_machine"));
        }
        let workers = machines.map(|found| planned(&self.keeping, COSID, found, &around));
        let (keys, workers) = (keys.unwrap_or_default(), workers.transpose()?);
        let cuts = cuts(&keys, Peer::Cosid, &self.keys, &around)?;
        Whole { keys, workers, cuts }.finish(common, &around)
    }
}

impl LeafSnowflake {
    pub(super) fn run(self) -> Outcome {
        let around = Around::look(&self.common)?;
        let found = around.runtime.block_on(async {
            let mut all = Vec::new();
            for url in &self.common.from {
                all.extend(tree_workers(url).await?);
            }
            Ok::<_, Failure>(all)
        })?;
        numbers(&self.common, &self.keeping, found, LEAF, &around)
    }
}

impl UidGenerator {
    pub(super) fn run(self) -> Outcome {
        let around = Around::look(&self.common)?;
        let found = around.runtime.block_on(crew(&self.common, Crew::UidGenerator))?;
        let found = found.ok_or_else(|| no_table("WORKER_NODE"))?;
        numbers(&self.common, &self.keeping, found, BAIDU, &around)
    }
}

/// Returns the worker numbers of all databases; `None` if no database has such a table.
async fn crew(common: &Common, crew: Crew) -> Outcome<Option<Vec<Worker>>> {
    let mut all: Option<Vec<Worker>> = None;
    let mut without = Vec::new();
    for url in &common.from {
        let foreign = Foreign::open(url)?;
        match present(foreign.workers(crew).await)? {
            Some(found) => all.get_or_insert_default().extend(found),
            None => without.push(foreign.label()),
        }
        for warning in foreign.warnings().await? {
            complain(warning);
        }
    }
    match &all {
        // A database without the table may be the wrong one.
        Some(_) if !without.is_empty() => {
            let without = without.join(", ");
            Err(Failure::no(format!(
                "{without} has no table of worker numbers, but others do; correct --from"
            )))
        }
        _ => Ok(all),
    }
}

fn numbers(
    common: &Common,
    keeping: &Keeping,
    found: Vec<Worker>,
    system: System,
    around: &Around,
) -> Outcome {
    if found.is_empty() {
        return Err(Failure::no("other system has no worker number to import"));
    }
    let workers = planned(keeping, system, found, around)?;
    let keys: Vec<Item> = Vec::new();
    Whole { keys, workers: Some(workers), cuts: Cuts::default() }.finish(common, around)
}

fn planned(
    keeping: &Keeping,
    system: System,
    found: Vec<Worker>,
    around: &Around,
) -> Outcome<Workers> {
    let (reuse, layouts) = (around.config.worker.reuse(), around.layouts());
    let here = Here { reuse, slots: &around.slots, layouts: &layouts, now: around.now };
    keeping.plan(system, found, here)
}
