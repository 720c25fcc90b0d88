//! The other systems: the options of each, and its plan.

use clap::Args;
use snowmint_coord::spec::StepRule;
use snowmint_stores::legacy::{
    LegacyDatabase, LegacySystem, LegacyWorker, LegacyWorkerSystem, zookeeper_workers,
};

use super::apply::{ImportContext, Whole, present};
use super::common::Common;
use super::cut::Cuts;
use super::plan::KeyItem;
use super::segments::KeySelection;
use super::tokens;
use super::workers::{BAIDU, COSID, Here, Keeping, LEAF, System, Workers};
use crate::terminal::exit::{Failure, Outcome, complain};

/// Turn the keys of Meituan Leaf's table `leaf_alloc` into segment sources.
#[derive(Debug, Args)]
pub(super) struct Leaf {
    #[command(flatten)]
    keys: KeySelection,
}

/// Turn the business types of Didi Tinyid's table `tiny_id_info` into segment sources.
///
/// Give every database with a --from of its own: a source from all databases has all numbers, a
/// source from one has its stripe.
#[derive(Debug, Args)]
pub(super) struct Tinyid {
    #[command(flatten)]
    keys: KeySelection,
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
    keys: KeySelection,
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

fn keys_of(keys: &KeySelection, peer: LegacySystem, step: StepRule, table: &str) -> Outcome {
    let ctx = ImportContext::read_state(&keys.common)?;
    let keys_found = keys.plan(peer, step, &ctx)?.ok_or_else(|| no_table(table))?;
    let cuts = cuts(&keys_found, peer, keys, &ctx)?;
    Whole { keys: keys_found, workers: None, cuts }.finish(&keys.common, &ctx)
}

fn cuts(
    items: &[KeyItem],
    peer: LegacySystem,
    keys: &KeySelection,
    ctx: &ImportContext,
) -> Outcome<Cuts> {
    // Connections belong to a runtime.
    let _entered = ctx.runtime.enter();
    Cuts::of(items, peer, (&keys.common, keys.allocate_from.as_deref()), &ctx.config)
}

impl Leaf {
    pub(super) fn run(self) -> Outcome {
        keys_of(&self.keys, LegacySystem::Leaf, StepRule::Leaf, "leaf_alloc")
    }
}

impl Tinyid {
    pub(super) fn run(self) -> Outcome {
        if self.tokens {
            return tokens::print(&self.keys.common);
        }
        keys_of(&self.keys, LegacySystem::Tinyid, StepRule::Fixed, "tiny_id_info")
    }
}

impl Cosid {
    pub(super) fn run(self) -> Outcome {
        let common = &self.keys.common;
        let ctx = ImportContext::read_state(common)?;
        let machines = ctx.runtime.block_on(legacy_workers(common, LegacyWorkerSystem::Cosid))?;
        let keys = self.keys.plan(LegacySystem::Cosid, StepRule::Adaptive, &ctx)?;
        if machines.is_none() && keys.is_none() {
            return Err(no_table("cosid or cosid_machine"));
        }
        let workers = machines.map(|found| planned(&self.keeping, COSID, found, &ctx));
        let (keys, workers) = (keys.unwrap_or_default(), workers.transpose()?);
        let cuts = cuts(&keys, LegacySystem::Cosid, &self.keys, &ctx)?;
        Whole { keys, workers, cuts }.finish(common, &ctx)
    }
}

impl LeafSnowflake {
    pub(super) fn run(self) -> Outcome {
        let ctx = ImportContext::read_state(&self.common)?;
        let found = ctx.runtime.block_on(async {
            let mut all = Vec::new();
            for url in &self.common.from {
                all.extend(zookeeper_workers(url).await?);
            }
            Ok::<_, Failure>(all)
        })?;
        numbers(&self.common, &self.keeping, found, LEAF, &ctx)
    }
}

impl UidGenerator {
    pub(super) fn run(self) -> Outcome {
        let ctx = ImportContext::read_state(&self.common)?;
        let found =
            ctx.runtime.block_on(legacy_workers(&self.common, LegacyWorkerSystem::UidGenerator))?;
        let found = found.ok_or_else(|| no_table("WORKER_NODE"))?;
        numbers(&self.common, &self.keeping, found, BAIDU, &ctx)
    }
}

/// Returns the worker numbers of all databases; `None` if no database has such a table.
async fn legacy_workers(
    common: &Common,
    system: LegacyWorkerSystem,
) -> Outcome<Option<Vec<LegacyWorker>>> {
    let mut all: Option<Vec<LegacyWorker>> = None;
    let mut without = Vec::new();
    for url in &common.from {
        let database = LegacyDatabase::open(url)?;
        match present(database.workers(system).await)? {
            Some(found) => all.get_or_insert_default().extend(found),
            None => without.push(database.label()),
        }
        for warning in database.warnings().await? {
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
    found: Vec<LegacyWorker>,
    system: System,
    ctx: &ImportContext,
) -> Outcome {
    if found.is_empty() {
        return Err(Failure::no("other system has no worker number to import"));
    }
    let workers = planned(keeping, system, found, ctx)?;
    let keys: Vec<KeyItem> = Vec::new();
    Whole { keys, workers: Some(workers), cuts: Cuts::default() }.finish(common, ctx)
}

fn planned(
    keeping: &Keeping,
    system: System,
    found: Vec<LegacyWorker>,
    ctx: &ImportContext,
) -> Outcome<Workers> {
    let (reuse, layouts) = (ctx.config.worker.reuse(), ctx.layouts());
    let here = Here { reuse, slots: &ctx.slots, layouts: &layouts, now: ctx.now };
    keeping.plan(system, found, here)
}
