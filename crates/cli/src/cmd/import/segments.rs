//! Numbers of other systems' tables; segment sources begin above them.

use std::collections::BTreeMap;

use clap::Args;
use snowmint_coord::Definition;
use snowmint_coord::spec::StepRule;
use snowmint_stores::legacy::{LegacyDatabase, LegacySystem};
use snowmint_wire::error::Code;

use super::common::{Common, ImportContext, present};
use super::merge::{self, DatabaseRead, Merged};
use super::plan::{ImportOptions, KeyItem, item};
use crate::terminal::exit::{Failure, Outcome, complain};

/// Selection of keys, and their names here.
#[derive(Debug, Args)]
pub(super) struct KeySelection {
    #[command(flatten)]
    pub(super) common: Common,
    /// Import only this key; may be given several times.
    #[arg(long, value_name = "KEY")]
    only: Vec<String>,
    /// Leave this key out; may be given several times.
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
    /// Keep both systems serving: sources allocate from the other system's table, as its own
    /// servers do, until --cut-over. NAME is the entry in the section upstreams by which servers
    /// here reach the table.
    #[arg(long, value_name = "NAME", conflicts_with = "cut_over")]
    pub(super) allocate_from: Option<String>,
    /// End the shared allocation: the other system's table becomes unusable, its servers get
    /// errors, and sources continue with numbers of their own above all numbers ever allocated.
    #[arg(long)]
    cut_over: bool,
    /// Name of a key's source here, if it differs; may be given several times.
    #[arg(long, value_name = "KEY=SOURCE", value_parser = named)]
    name: Vec<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    let (key, source) = text.rsplit_once('=').ok_or("no = found; write KEY=SOURCE")?;
    Ok((key.to_owned(), source.to_owned()))
}

/// Returns the error text for databases that cannot be read.
fn missing(labels: &[String], of: usize) -> String {
    let (count, labels) = (labels.len(), labels.join(", "));
    format!("{count} of {of} databases cannot be read, but all are needed: {labels}")
}

impl KeySelection {
    /// Plans the keys of a system; `None` if it has no table of keys.
    pub(super) fn plan(
        &self,
        peer: LegacySystem,
        step: StepRule,
        ctx: &ImportContext,
    ) -> Outcome<Option<Vec<KeyItem>>> {
        let Some(found) = ctx.runtime.block_on(self.read(peer))? else { return Ok(None) };
        let allocate_from = self.allocate_from.as_deref();
        let how = ImportOptions { peer, step, allocate_from, cut_over: self.cut_over };
        Ok(Some(self.items(self.chosen(found)?, how, &ctx.stored)))
    }

    /// Reads all databases: a part of them does not show which numbers lie above all.
    async fn read(&self, peer: LegacySystem) -> Outcome<Option<Vec<Merged>>> {
        let opened = self.common.from.iter().map(|url| Ok(LegacyDatabase::open(url)?));
        let databases: Vec<LegacyDatabase> = opened.collect::<Outcome<_>>()?;
        let (mut all, mut without, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for database in &databases {
            let label = database.label();
            match present(database.sequences(peer).await) {
                Ok(Some(sequences)) => all.push(DatabaseRead { label, sequences }),
                Ok(None) => without.push(label),
                Err(failure) => failed.push((label, failure)),
            }
        }
        let labels: Vec<_> = failed.iter().map(|(label, _)| label.clone()).collect();
        match failed.into_iter().next() {
            Some((_, failure)) if databases.len() > 1 => {
                return Err(failure.after(&missing(&labels, databases.len())));
            }
            Some((_, failure)) => return Err(failure),
            None => {}
        }
        if all.is_empty() {
            return Ok(None);
        }
        if !without.is_empty() {
            let missing = missing(&without, databases.len());
            return Err(Failure::no(
                Code::NotFound,
                format!("{missing}: table does not exist; correct --from"),
            ));
        }
        for database in &databases {
            database.warnings().await?.into_iter().for_each(complain);
        }
        Ok(Some(merge::merged(all)))
    }

    /// Returns the selected keys.
    fn chosen(&self, all: Vec<Merged>) -> Outcome<Vec<Merged>> {
        let named = self.name.iter().map(|(key, _)| key);
        for key in self.only.iter().chain(&self.except).chain(named) {
            if !all.iter().any(|merged| merged.sequence.key == *key) {
                let message = format!("key {key:?} does not exist in the other system; correct it");
                return Err(Failure::no(Code::NotFound, message));
            }
        }
        let chosen = |merged: &Merged| {
            let key = &merged.sequence.key;
            (self.only.is_empty() || self.only.contains(key)) && !self.except.contains(key)
        };
        let chosen: Vec<_> = all.into_iter().filter(chosen).collect();
        if chosen.is_empty() {
            return Err(Failure::no(Code::NotFound, "other system has no key, or none was chosen"));
        }
        Ok(chosen)
    }

    fn items(
        &self,
        merged: Vec<Merged>,
        how: ImportOptions<'_>,
        stored: &BTreeMap<String, Definition>,
    ) -> Vec<KeyItem> {
        let names: BTreeMap<&str, &str> =
            self.name.iter().map(|(key, source)| (key.as_str(), source.as_str())).collect();
        let mut used: BTreeMap<String, String> = BTreeMap::new();
        let mut items = Vec::with_capacity(merged.len());
        for merged in merged {
            let key = merged.sequence.key.clone();
            let source = names.get(key.as_str()).copied().unwrap_or(&key).to_owned();
            let known = stored.get(&source);
            let mut item = item(merged, source.clone(), how, known);
            if let Some(other) = used.insert(source, key) {
                item.action =
                    Err(format!("key {other:?} has the same source; name another by --name"));
            }
            items.push(item);
        }
        items
    }
}
