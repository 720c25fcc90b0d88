//! Start and end of allocation from another system's table, always the very table that a source
//! allocates from.

use std::collections::BTreeMap;

use snowmint_coord::Node;
use snowmint_stores::legacy::{LegacySystem, UpstreamTable};

use super::apply::Step;
use super::common::ImportContext;
use super::plan::{KeyAction, KeyItem};
use super::segments::KeySelection;
use crate::config::Config;
use crate::open::upstreams;
use crate::terminal::exit::{Failure, Outcome};

/// Tables to allocate from or to cut over, by upstream name.
#[derive(Debug, Default)]
pub(super) struct Cuts(BTreeMap<String, UpstreamTable>);

impl Cuts {
    /// Opens the tables of the items that allocate from this upstream or are cut over. With a copy
    /// of the table, both systems would issue the same numbers. So each table is opened where the
    /// configuration's upstream is, and the plan must have been read there.
    pub(super) fn of(
        items: &[KeyItem],
        peer: LegacySystem,
        keys: &KeySelection,
        ctx: &ImportContext,
    ) -> Outcome<Self> {
        // Connections belong to a runtime.
        let _entered = ctx.runtime.enter();
        let allocate_from = keys.allocate_from.as_deref();
        let mut tables = BTreeMap::new();
        for item in items {
            let Some(upstream) = upstream_of(&item.action, allocate_from) else { continue };
            if !tables.contains_key(upstream) {
                tables.insert(upstream.to_owned(), table(upstream, &item.source, &ctx.config)?);
            }
        }
        let [url] = keys.common.from.as_slice() else {
            return match tables.is_empty() {
                true => Ok(Self::default()),
                false => Err(Failure::usage(
                    "several --from given, but tables are allocated from and cut over one by one; \
                     give one",
                )),
            };
        };
        for (name, table) in &tables {
            if !table.is_at(peer, url)? {
                return Err(Failure::usage(format!(
                    "--from is not the table of upstreams.{name}; name the same host, port and \
                     database"
                )));
            }
        }
        Ok(Self(tables))
    }

    /// Ends a table. No server allocates while its row is locked, so the row's state is final. The
    /// store records it, the row then becomes unusable, and only then the source gets numbers of
    /// its own. An interrupted command leaves allocation to both systems, or to neither until the
    /// command runs again.
    pub(super) async fn end(
        &self,
        node: &Node,
        item: &KeyItem,
        upstream: &str,
    ) -> snowmint_coord::Result<()> {
        let Some(table) = self.0.get(upstream) else { return Ok(()) };
        let frozen = table.freeze(&item.key).await?;
        if let Some(highest) = frozen.highest() {
            node.begin_cut_over(&item.source, highest.saturating_add(1)).await?;
        }
        frozen.end().await?;
        node.cut_over(&item.source).await.map(drop)
    }
}

/// Returns the upstream of an item that concerns a table which sources allocate from.
fn upstream_of<'a>(action: &'a Step<KeyAction>, allocate_from: Option<&'a str>) -> Option<&'a str> {
    match action {
        Ok(KeyAction::CutOver { upstream, .. } | KeyAction::Finish { upstream, .. }) => {
            Some(upstream)
        }
        Ok(KeyAction::Define { .. } | KeyAction::Keep { .. }) => allocate_from,
        Ok(KeyAction::Raise { .. }) | Err(_) => None,
    }
}

fn table(name: &str, source: &str, config: &Config) -> Outcome<UpstreamTable> {
    let Some(place) = config.upstreams.get(name) else {
        return Err(Failure::usage(format!(
            "source {source:?} allocates from {name:?}, which is not in [upstreams]; name the \
             servers' configuration with --config"
        )));
    };
    upstreams::table(name, place)
}
