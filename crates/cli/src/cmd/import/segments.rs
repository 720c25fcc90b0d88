//! Numbers of other systems' tables, which become segment sources above them.

use std::collections::BTreeMap;

use clap::Args;
use snowmint_coord::Definition;
use snowmint_coord::spec::StepRule;
use snowmint_stores::foreign::{Foreign, Peer, Sequence};

use super::apply::{Around, present};
use super::plan::{Action, How, Item, item};
use super::{Common, merge};
use crate::exit::{Failure, Outcome, complain};

/// Which keys, and what they are called here.
#[derive(Debug, Args)]
pub(super) struct Keys {
    #[command(flatten)]
    pub(super) common: Common,
    /// Only this key; may be given several times.
    #[arg(long, value_name = "KEY")]
    only: Vec<String>,
    /// Not this key; may be given several times.
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
    /// Both systems go on serving: sources draw their numbers from the other system's table, as its own
    /// servers do, until --cut-over. NAME is the entry in the section origins by which servers here reach it.
    #[arg(long, value_name = "NAME", conflicts_with = "cut_over")]
    draw: Option<String>,
    /// End that: nobody can draw from the other system's table any more, its servers get errors, and
    /// sources have numbers of their own above all that was ever drawn.
    #[arg(long)]
    pub(super) cut_over: bool,
    /// What a key is called here, if not as there; may be given several times.
    #[arg(long, value_name = "KEY=SOURCE", value_parser = named)]
    name: Vec<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    let (key, source) = text.rsplit_once('=').ok_or("write KEY=SOURCE")?;
    Ok((key.to_owned(), source.to_owned()))
}

impl Keys {
    /// What is to become of the keys of a system; none where it has no table of them.
    pub(super) fn plan(
        &self,
        peer: Peer,
        step: StepRule,
        around: &Around,
    ) -> Outcome<Option<Vec<Item>>> {
        let Some(found) = around.runtime.block_on(self.read(peer))? else { return Ok(None) };
        Ok(Some(self.items(self.chosen(found)?, step, &around.stored)))
    }

    async fn read(&self, peer: Peer) -> Outcome<Option<Vec<Sequence>>> {
        let mut all = Vec::new();
        for url in &self.common.from {
            let foreign = Foreign::open(url)?;
            let Some(found) = present(foreign.sequences(peer).await)? else { return Ok(None) };
            all.extend(found);
            for caution in foreign.cautions().await? {
                complain(caution);
            }
        }
        Ok(Some(merge::merged(all)))
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
            let how = How { step, draw: self.draw.as_deref(), cut_over: self.cut_over };
            let mut item = item(sequence, source.clone(), how, known);
            if let Some(other) = taken.insert(source, key) {
                let reason = format!("key {other:?} has the same source: one key, one source");
                item.action = Action::Refuse { reason };
            }
            items.push(item);
        }
        items
    }
}
