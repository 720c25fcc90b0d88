//! Drawing and its end: of the very table that a source draws from.

use std::collections::BTreeMap;

use snowmint_coord::Node;
use snowmint_stores::foreign::{Peer, Shared};

use super::Common;
use super::plan::{Action, Item};
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::origins;

/// The tables that are drawn from or cut over, by the names under which sources draw from them.
#[derive(Debug, Default)]
pub(super) struct Cuts(BTreeMap<String, Shared>);

impl Cuts {
    /// Those of the items that draw from `draw`, or are to be cut over. Whoever drew from a copy of the table, or
    /// ended one, would have both hand out the same numbers, so it is opened where the configuration says that
    /// servers draw from it, and the plan has to have been read from there.
    pub(super) fn of(
        items: &[Item],
        peer: Peer,
        (common, draw): (&Common, Option<&str>),
        config: &Config,
    ) -> Outcome<Self> {
        let mut tables = BTreeMap::new();
        for item in items {
            let Some(origin) = origin_of(&item.action, draw) else { continue };
            if !tables.contains_key(origin) {
                tables.insert(origin.to_owned(), table(origin, &item.source, config)?);
            }
        }
        let [url] = common.from.as_slice() else {
            return match tables.is_empty() {
                true => Ok(Self::default()),
                false => Err(Failure::usage(
                    "tables are drawn from and cut over one at a time: give --from once",
                )),
            };
        };
        for (name, table) in &tables {
            if !table.is_at(peer, url)? {
                return Err(Failure::usage(format!(
                    "--from is not the table that is drawn from: name what origins.{name} does, with the same \
                     host, port and database"
                )));
            }
        }
        Ok(Self(tables))
    }

    /// While the row is locked nobody draws, so what it says then is the end. The store is told of it, then the
    /// row is left as nobody can use it, and only then the source has numbers of its own: a command that is cut
    /// off leaves both to draw, or neither until it is given again.
    pub(super) async fn end(
        &self,
        node: &Node,
        item: &Item,
        origin: &str,
    ) -> snowmint_coord::Result<()> {
        let Some(table) = self.0.get(origin) else { return Ok(()) };
        let frozen = table.freeze(&item.key).await?;
        if let Some(highest) = frozen.highest() {
            node.begin_cut_over(&item.source, highest.saturating_add(1)).await?;
        }
        frozen.end().await?;
        node.cut_over(&item.source).await.map(drop)
    }
}

/// The origin whose table an item is about, if it is about one that sources draw from.
fn origin_of<'a>(action: &'a Action, draw: Option<&'a str>) -> Option<&'a str> {
    match action {
        Action::CutOver { origin, .. } | Action::Finish { origin, .. } => Some(origin),
        Action::Define { .. } | Action::Keep { .. } => draw,
        Action::Raise { .. } | Action::Refuse { .. } => None,
    }
}

fn table(name: &str, source: &str, config: &Config) -> Outcome<Shared> {
    let Some(place) = config.origins.get(name) else {
        return Err(Failure::usage(format!(
            "source {source} draws from the origin {name:?}, which this configuration does not know: give the \
             one of the servers (--config), which names it under [origins]"
        )));
    };
    origins::table(name, place)
}
