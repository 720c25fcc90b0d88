//! Display and execution of a plan.

use std::collections::BTreeMap;

use snowmint_coord::spec::Plan;
use snowmint_coord::{
    Definition, END_MS, Error, ErrorKind, NewStripe, Node, SlotInfo, SourceSpec, SourceState,
};
use snowmint_core::{Layout, UnixMillis};
use tokio::runtime::Runtime;

use super::common::Common;
use super::cut::Cuts;
use super::merge::KeyPart;
use super::plan::{KeyAction, KeyItem};
use super::workers::Workers;
use crate::audit::AuditLog;
use crate::config::Config;
use crate::open::node::{self, JournalUse};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;
use crate::terminal::when;

/// State of this deployment before the import.
#[derive(Debug)]
pub(super) struct ImportContext {
    pub(super) config: Config,
    pub(super) runtime: Runtime,
    /// All sources, by name.
    pub(super) stored: BTreeMap<String, Definition>,
    /// All slots that were ever claimed or excluded.
    pub(super) slots: Vec<SlotInfo>,
    /// Later of this clock's and the store's time.
    pub(super) now: UnixMillis,
}

impl ImportContext {
    /// Reads the state and creates nothing.
    pub(super) fn read_state(common: &Common) -> Outcome<Self> {
        let config = common.config_args.load(Vec::new())?;
        let runtime = store::runtime()?;
        let mut ctx =
            Self { config, runtime, stored: BTreeMap::new(), slots: Vec::new(), now: when::now() };
        let Some(store) = ctx.runtime.block_on(store::existing(&ctx.config))? else {
            return Ok(ctx);
        };
        ctx.runtime.block_on(async {
            let by_name = |definition: Definition| (definition.name.clone(), definition);
            ctx.stored = store.list().await?.definitions.into_iter().map(by_name).collect();
            ctx.now = store.now().await?.unwrap_or(ctx.now).max(ctx.now);
            ctx.slots = store.workers(ctx.now).await?;
            store.close().await
        })?;
        Ok(ctx)
    }

    /// Returns the layouts of the sources with worker numbers, including sources that the next
    /// server defines.
    pub(super) fn layouts(&self) -> Vec<(String, Layout)> {
        let builtin = self.config.sources.builtin.then(|| {
            let name = snowmint_coord::node::BUILTIN_DEFAULT;
            (name.to_owned(), SourceSpec::default())
        });
        let defined = self.config.defined.iter();
        let defined = defined.map(|(name, defined)| (name.clone(), defined.spec.clone()));
        let stored = self.stored.values().filter_map(|stored| {
            let spec = SourceSpec::from_stored(&stored.spec).ok()?;
            (stored.state != SourceState::Deleted).then(|| (stored.name.clone(), spec))
        });
        // A stored definition replaces a built-in one of the same name.
        let builtin = builtin.filter(|(name, _)| !self.stored.contains_key(name));
        let all = builtin.into_iter().chain(defined).chain(stored);
        all.filter_map(|(name, spec)| match spec.check() {
            Ok(Plan::Snowflake(plan)) => Some((name, plan.layout)),
            _ => None,
        })
        .collect()
    }
}

/// Returns `None` where there is no such table.
pub(super) fn present<T>(read: snowmint_coord::Result<T>) -> Outcome<Option<T>> {
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// Plan of a whole import.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) keys: Vec<KeyItem>,
    pub(super) workers: Option<Workers>,
    /// Tables to allocate from or to cut over.
    pub(super) cuts: Cuts,
}

impl Whole {
    /// Shows the plan and, unless it is a dry run, carries it out.
    pub(super) fn finish(&self, common: &Common, ctx: &ImportContext) -> Outcome {
        let mut out = Output::new();
        self.show(common.json, &mut out)?;
        out.flush()?;
        self.refuse()?;
        if common.dry_run {
            complain("nothing was changed (--dry-run)");
        } else {
            ctx.runtime.block_on(self.carry_out(&ctx.config))?;
        }
        warn_of_overlaps(&self.keys)
    }

    fn show(&self, json: bool, out: &mut Output) -> Outcome {
        if !self.keys.is_empty() {
            show(&self.keys, json, out)?;
        }
        match &self.workers {
            Some(workers) => workers.show(json, out),
            None => Ok(()),
        }
    }

    fn refuse(&self) -> Outcome {
        let refused = |item: &&KeyItem| matches!(item.action, KeyAction::Refuse { .. });
        let of_keys = self.keys.iter().filter(refused).count();
        let of_workers = self.workers.as_ref().map_or(0, Workers::refused);
        let what = match (of_keys, of_workers) {
            (0, 0) => return Ok(()),
            (0, workers) => format!("{workers} worker numbers"),
            (keys, _) => format!("{keys} of {} keys", self.keys.len()),
        };
        Err(Failure::refused(format!(
            "nothing was changed: the plan rejects {what}; correct them, or leave them out \
             (--except KEY, --except-worker NUMBER)"
        )))
    }

    async fn carry_out(&self, config: &Config) -> Outcome {
        if let Some(workers) = self.workers.as_ref().filter(|workers| !workers.is_done()) {
            let store = store::configured(config).await?;
            workers.carry_out(&*store, &config.server.data_dir).await?;
            store.close().await?;
        }
        let is_done = |item: &KeyItem| matches!(item.action, KeyAction::Keep { .. });
        if self.keys.iter().all(is_done) {
            return Ok(());
        }
        let audit_log = AuditLog::File(config.server.data_dir.clone());
        let node = node::open(config, JournalUse::Without).await?;
        for (done, item) in self.keys.iter().enumerate() {
            self.act(&node, item, &audit_log).await.map_err(|error: Error| {
                Failure::from(error).after(&format!(
                    "{done} of {} keys are done, and {} is not; correct this error and repeat the \
                     command",
                    self.keys.len(),
                    item.key
                ))
            })?;
        }
        Ok(node.end(END_MS).await?)
    }

    /// Records an interrupted action, too: it may have changed a source.
    async fn act(
        &self,
        node: &Node,
        item: &KeyItem,
        audit_log: &AuditLog,
    ) -> snowmint_coord::Result<()> {
        let how = match &item.action {
            KeyAction::Define { .. } => "defined (import)",
            KeyAction::Raise { .. } => "raised (import)",
            KeyAction::CutOver { .. } | KeyAction::Finish { .. } => "cut over (import)",
            KeyAction::Keep { .. } | KeyAction::Refuse { .. } => return Ok(()),
        };
        let before = node.definition(&item.source).await.ok();
        let done = act(node, item, &self.cuts).await;
        if let Ok(after) = node.definition(&item.source).await {
            audit_log.changed(how, &item.source, before.as_ref(), Some(&after));
        }
        done
    }
}

async fn act(node: &Node, item: &KeyItem, cuts: &Cuts) -> snowmint_coord::Result<()> {
    match &item.action {
        KeyAction::Define { spec, .. } => node.define(&item.source, spec).await.map(drop),
        KeyAction::Raise { first, stripe, .. } => {
            let wanted = NewStripe {
                offset: stripe.offset,
                increment: stripe.increment,
                first: Some(*first),
                if_version: Some(stripe.version),
            };
            node.restripe(&item.source, wanted).await.map(drop)
        }
        KeyAction::CutOver { upstream, .. } | KeyAction::Finish { upstream, .. } => {
            cuts.end(node, item, upstream).await
        }
        KeyAction::Keep { .. } | KeyAction::Refuse { .. } => Ok(()),
    }
}

/// Warns of overlaps, which raising a source does not undo.
fn warn_of_overlaps(items: &[KeyItem]) -> Outcome {
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
        "both systems may have issued these numbers: {}; compare the stored numbers, since these \
         may occur twice",
        both.join(", ")
    )))
}

fn show(items: &[KeyItem], json: bool, out: &mut Output) -> Outcome {
    if json {
        return items.iter().try_for_each(|item| out.json(item));
    }
    let width = |text: fn(&KeyItem) -> &str| {
        items.iter().map(|item| text(item).chars().count()).max().unwrap_or(0).max(6)
    };
    let (keys, sources) = (width(|item| &item.key), width(|item| &item.source));
    out.line(format_args!("{:<keys$}  {:<sources$}  PLAN", "KEY", "SOURCE"))?;
    for KeyItem { key, source, action, parts, .. } in items {
        let plan = match action {
            KeyAction::Define { first, .. } => format!("define, from {first} on"),
            KeyAction::Raise { next, first, .. } => format!("raise from {next} to {first}"),
            KeyAction::CutOver { highest, .. } => {
                format!("cut over, above {highest} or its number at that time")
            }
            KeyAction::Finish { next, .. } => format!("finish the cut-over: continue from {next}"),
            KeyAction::Keep { next } => format!("nothing to do: next number {next}"),
            KeyAction::Refuse { reason } => format!("REFUSED: {reason}"),
        };
        out.line(format_args!("{key:<keys$}  {source:<sources$}  {plan}"))?;
        for KeyPart { from, highest, offset, increment } in parts {
            let stripe = match increment {
                1 => String::new(),
                _ => format!(", stripe {offset} of {increment}"),
            };
            let indent = keys + sources + 6;
            out.line(format_args!("{:indent$}in {from}: up to {highest}{stripe}", ""))?;
        }
    }
    Ok(())
}
