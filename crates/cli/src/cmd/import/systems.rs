//! The other systems: the options of each, and its plan.

use clap::Args;
use snowmint_coord::spec::StepRule;
use snowmint_stores::legacy::{
    LegacyDatabase, LegacySystem, LegacyWorker, LegacyWorkerSystem, zookeeper_workers,
};
use snowmint_wire::error::Code;

use super::apply::{self, ImportPlan};
use super::common::{Common, ImportContext, present};
use super::keys::Keys;
use super::segments::KeySelection;
use super::tokens;
use super::workers::{BAIDU, COSID, Keeping, LEAF, System, Workers};
use crate::terminal::exit::{Failure, Outcome, complain};

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

/// Selection of worker numbers.
#[derive(Debug, Args)]
pub(super) struct WorkerSelection {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    keeping: Keeping,
}

fn no_table(table: &str) -> Failure {
    Failure::no(
        Code::NotFound,
        format!("table {table} does not exist in the other system; correct --from"),
    )
}

fn keys_of(selection: &KeySelection, peer: LegacySystem, step: StepRule, table: &str) -> Outcome {
    let ctx = ImportContext::read_state(&selection.common)?;
    let items = selection.plan(peer, step, &ctx)?.ok_or_else(|| no_table(table))?;
    let keys = Keys::new(items, peer, selection, &ctx)?;
    finish(&selection.common, &ctx, Some(&keys), None)
}

/// Shows both plans and, unless it is a dry run, carries them out.
fn finish(
    common: &Common,
    ctx: &ImportContext,
    keys: Option<&Keys>,
    workers: Option<&Workers>,
) -> Outcome {
    let of_keys = keys.map(|keys| keys as &dyn ImportPlan);
    let of_workers = workers.map(|workers| workers as &dyn ImportPlan);
    let plans: Vec<_> = of_keys.into_iter().chain(of_workers).collect();
    let way = "correct them, or leave them out (--except KEY, --except-worker NUMBER)";
    apply::finish(&plans, way, common, || {
        ctx.runtime.block_on(async {
            if let Some(workers) = workers {
                workers.carry_out(&ctx.config).await?;
            }
            match keys {
                Some(keys) => keys.carry_out(&ctx.config).await,
                None => Ok(()),
            }
        })
    })?;
    keys.map_or(Ok(()), Keys::warn_of_overlaps)
}

pub(super) fn leaf(keys: &KeySelection) -> Outcome {
    keys_of(keys, LegacySystem::Leaf, StepRule::Leaf, "leaf_alloc")
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
        let items = self.keys.plan(LegacySystem::Cosid, StepRule::Adaptive, &ctx)?;
        if machines.is_none() && items.is_none() {
            return Err(no_table("cosid or cosid_machine"));
        }
        let workers = machines.map(|found| self.keeping.plan(COSID, found, &ctx)).transpose()?;
        let keys = items.map(|items| Keys::new(items, LegacySystem::Cosid, &self.keys, &ctx));
        finish(common, &ctx, keys.transpose()?.as_ref(), workers.as_ref())
    }
}

pub(super) fn leaf_snowflake(selection: &WorkerSelection) -> Outcome {
    let ctx = ImportContext::read_state(&selection.common)?;
    let found = ctx.runtime.block_on(async {
        let mut all = Vec::new();
        for url in &selection.common.from {
            all.extend(zookeeper_workers(url).await?);
        }
        Ok::<_, Failure>(all)
    })?;
    numbers(selection, found, LEAF, &ctx)
}

pub(super) fn uid_generator(selection: &WorkerSelection) -> Outcome {
    let ctx = ImportContext::read_state(&selection.common)?;
    let found = legacy_workers(&selection.common, LegacyWorkerSystem::UidGenerator);
    let found = ctx.runtime.block_on(found)?.ok_or_else(|| no_table("WORKER_NODE"))?;
    numbers(selection, found, BAIDU, &ctx)
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
            Err(Failure::no(
                Code::NotFound,
                format!("{without} has no table of worker numbers, but others do; correct --from"),
            ))
        }
        _ => Ok(all),
    }
}

fn numbers(
    WorkerSelection { common, keeping }: &WorkerSelection,
    found: Vec<LegacyWorker>,
    system: System,
    ctx: &ImportContext,
) -> Outcome {
    if found.is_empty() {
        return Err(Failure::no(Code::NotFound, "other system has no worker number to import"));
    }
    let workers = keeping.plan(system, found, ctx)?;
    finish(common, ctx, None, Some(&workers))
}
