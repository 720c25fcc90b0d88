//! Plan for keys: shown, and carried out.

use snowmint_coord::{END_MS, Node};
use snowmint_stores::legacy::LegacySystem;
use snowmint_wire::error::Code;

use super::apply::{ImportPlan, refused_keys, stopped};
use super::common::ImportContext;
use super::cut::Cuts;
use super::merge::KeyPart;
use super::plan::{KeyAction, KeyItem};
use super::segments::KeySelection;
use crate::audit::AuditLog;
use crate::config::Config;
use crate::open::node::{self, JournalUse};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

/// Plan for all keys.
pub(super) struct Keys {
    items: Vec<KeyItem>,
    /// Tables to allocate from or to cut over.
    cuts: Cuts,
}

impl Keys {
    pub(super) fn new(
        items: Vec<KeyItem>,
        peer: LegacySystem,
        keys: &KeySelection,
        ctx: &ImportContext,
    ) -> Outcome<Self> {
        let cuts = Cuts::of(&items, peer, keys, ctx)?;
        Ok(Self { items, cuts })
    }

    pub(super) async fn carry_out(&self, config: &Config) -> Outcome {
        let is_done = |item: &KeyItem| matches!(item.action, Ok(KeyAction::Keep { .. }));
        if self.items.iter().all(is_done) {
            return Ok(());
        }
        let audit_log = AuditLog::File(config.server.data_dir.clone());
        let node = node::open(config, JournalUse::Without).await?;
        for (done, item) in self.items.iter().enumerate().filter(|(_, item)| !is_done(item)) {
            let acted = self.act(&node, item, &audit_log).await;
            acted.map_err(|error| stopped(error, done, self.items.len(), &item.key))?;
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
        let (Ok(action), source) = (&item.action, &item.source) else { return Ok(()) };
        let before = node.definition(source).await.ok();
        let (how, done) = match action {
            KeyAction::Define { spec, .. } => {
                ("defined (import)", node.define(source, spec).await.map(drop))
            }
            KeyAction::Raise { to, .. } => {
                ("raised (import)", node.restripe(source, *to).await.map(drop))
            }
            KeyAction::CutOver { upstream, .. } | KeyAction::Finish { upstream, .. } => {
                ("cut over (import)", self.cuts.end(node, item, upstream).await)
            }
            KeyAction::Keep { .. } => return Ok(()),
        };
        if let Ok(after) = node.definition(source).await {
            audit_log.changed(how, source, before.as_ref(), Some(&after));
        }
        done
    }

    /// Warns of overlaps, which raising a source does not undo.
    pub(super) fn warn_of_overlaps(&self) -> Outcome {
        let both: Vec<_> = self
            .items
            .iter()
            .filter_map(|item| {
                let [first, last] = item.overlap?;
                Some(format!("{first} to {last} of {}", item.source))
            })
            .collect();
        if both.is_empty() {
            return Ok(());
        }
        Err(Failure::no(
            Code::Conflict,
            format!(
                "both systems may have issued these numbers: {}; compare the stored numbers, since these \
             may occur twice",
                both.join(", ")
            ),
        ))
    }
}

impl ImportPlan for Keys {
    fn show(&self, json: bool, out: &mut Output) -> Outcome {
        let items = &self.items;
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
                Ok(KeyAction::Define { first, .. }) => format!("define, from {first} on"),
                Ok(KeyAction::Raise { next, first, .. }) => format!("raise from {next} to {first}"),
                Ok(KeyAction::CutOver { highest, .. }) => {
                    format!("cut over, above {highest} or its number at that time")
                }
                Ok(KeyAction::Finish { next, .. }) => {
                    format!("finish the cut-over: continue from {next}")
                }
                Ok(KeyAction::Keep { next }) => format!("nothing to do: next number {next}"),
                Err(reason) => format!("REFUSED: {reason}"),
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

    fn refused(&self) -> Option<String> {
        refused_keys(self.items.iter().map(|item| &item.action))
    }
}
