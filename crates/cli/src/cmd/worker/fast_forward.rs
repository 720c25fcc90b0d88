//! `snowmint worker fast-forward` and `snowmint worker recover`: the ways out when a store or a journal is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use snowmint_coord::catalog::check_name;
use snowmint_coord::journal::{self, DataDir, Record};
use snowmint_coord::{ErrorKind, FastForward as Forward, Mark, StoreIdentity};
use snowmint_core::UnixMillis;

use super::journals::read_all;
use super::known::{Known, define, plan};
use crate::audit;
use crate::config::{Chosen, Config};
use crate::exit::{Failure, Outcome, complain};
use crate::node;
use crate::output::Output;
use crate::store;
use crate::when::{self, Zone};

/// How far a store is moved, and by what is known.
#[derive(Debug, Args)]
struct How {
    #[command(flatten)]
    chosen: Chosen,
    /// Also move worker marks up to this time.
    #[arg(long, value_name = "TIME")]
    mark: Option<String>,
    /// The time of --mark is meant, though it is more than a day ahead of this clock.
    #[arg(long, requires = "mark")]
    far_ahead: bool,
    /// The next number of a segment source, at least; may be given several times.
    #[arg(long, value_name = "SOURCE=NUMBER", value_parser = segment)]
    segment: Vec<(String, Mark)>,
    /// The data directory of a server that is stopped, whose journal is read as well; may be given several times.
    #[arg(long, value_name = "DIR")]
    journal: Vec<PathBuf>,
    /// A journal that is lost, by its ID: what it alone knew may come again; may be given several times.
    #[arg(long, value_name = "ID")]
    without: Vec<String>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// One JSON object, when all is done.
    #[arg(long)]
    json: bool,
}

/// Move a restored or replaced store past everything that was ever promised, and set the journal
/// aside.
///
/// Needed when `serve` refuses to start because the store went back, is another one, or because the
/// journal is a copy or damaged. Stop every server of the store first. Nothing is ever moved back.
/// Worker marks go past the journal's marks, and past the clock as far as servers of this configuration
/// (worker.window, worker.lead_max, clock.skew_max, the sources' lead_max) can have minted ahead of it:
/// take theirs, and see that this clock is right. Minting can begin when that time, which is printed, has
/// come. Numbers of segment sources that only the lost store knew must be named with --segment. Sources of the
/// configuration that the store lacks are defined, and with --config a missing file of SQLite is made, so that a
/// store that was lost altogether is made and moved in one step. A source that only the journal knows is kept
/// like a deleted one: defined again, it goes on above its numbers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker fast-forward --dry-run
  snowmint worker fast-forward --config /etc/snowmint.toml
  snowmint worker fast-forward --journal /srv/b --journal /srv/c
  snowmint worker fast-forward --segment invoices=500000 --new-identity")]
pub(crate) struct FastForward {
    #[command(flatten)]
    how: How,
    /// Give the store a new identity, so that whoever knew the old one refuses it.
    #[arg(long)]
    new_identity: bool,
}

/// Move a store that is in doubt past all that the journals of its servers have reported, while they run.
///
/// A server that finds that its store was put back does not mint, and says so there: then no server mints. Each
/// reports what its journal knows. With --dry-run this lists the journals that have reported and those that are missing,
/// and what would be moved where; without, it moves the store, gives it a new history, and the servers go on by
/// themselves. Start a server that is missing, or name its journal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker recover --dry-run
  snowmint worker recover --config /etc/snowmint.toml
  snowmint worker recover --without 5f0c3a1b9d2e4f60718293a4b5c6d7e8 --segment invoices=500000")]
pub(crate) struct Recover {
    #[command(flatten)]
    how: How,
}

/// So far ahead of the clock a mark is named without more ado.
const DAY_MS: u64 = 86_400_000;

fn segment(text: &str) -> Result<(String, Mark), String> {
    let (name, number) = text.split_once('=').ok_or("write SOURCE=NUMBER")?;
    check_name("source", name).map_err(|kind| kind.to_string())?;
    let number = number.parse().map_err(|_| format!("{number:?} is no number"))?;
    Ok((name.to_owned(), Mark::new(number)))
}

impl FastForward {
    pub(crate) fn run(self) -> Outcome {
        let how = &self.how;
        let config = how.chosen.load(Vec::new())?;
        // Who names no configuration may have meant another file.
        if !how.chosen.has_file() {
            store::check_file(&config)?;
        }
        let data_dir = &config.server.data_dir;
        if !how.dry_run && how.chosen.has_file() {
            node::make_dir(data_dir)?;
        }
        let lock = data_dir.is_dir().then(|| DataDir::lock(data_dir)).transpose()?;
        let own = how.own_journal(lock.as_ref())?;
        let step = Step { command: "worker fast-forward", new_identity: self.new_identity, lock };
        how.move_forward(&config, Some(own), &step)
    }
}

impl Recover {
    pub(crate) fn run(self) -> Outcome {
        let config = self.how.chosen.load(Vec::new())?;
        if !self.how.chosen.has_file() {
            store::check_file(&config)?;
        }
        // The servers run, and have their data directories.
        let step = Step { command: "worker recover", new_identity: false, lock: None };
        self.how.move_forward(&config, None, &step)
    }
}

/// One way to move a store.
struct Step {
    command: &'static str,
    new_identity: bool,
    /// The data directory whose journal is set aside.
    lock: Option<DataDir>,
}

impl How {
    fn move_forward(&self, config: &Config, own: Option<Record>, step: &Step) -> Outcome {
        let mark = self.mark.as_deref().map(|text| Zone::default().read(text)).transpose();
        let mark = mark.map_err(Failure::usage)?;
        self.check_near(mark)?;
        let runs = own.is_none();
        let set_aside: Vec<_> = own.iter().map(|own| own.id.clone()).collect();
        let read = own.into_iter().chain(read_all(&self.journal)?).collect();
        let runtime = store::runtime()?;
        let known = runtime.block_on(Known::look(config, read, &self.without))?;
        if runs && !known.journals.is_in_doubt() {
            complain("the store is not in doubt: there is nothing to recover");
            return Ok(());
        }
        known.check_named(&self.segment)?;
        let forward =
            plan(&known.journals.known(), mark, &self.segment, &known.minting, known.reached);
        let forget_journals = self.without.iter().cloned().chain(set_aside).collect();
        let forward = Forward { new_identity: step.new_identity, forget_journals, ..forward };

        let mut out = Output::new();
        let mark = Zone::default().show(forward.marks_at_least.unix_millis());
        if !self.json {
            known.journals.show(&mut out)?;
            show(&forward, &mark, &mut out)?;
        }
        known.tell_lost(&forward);
        if self.dry_run {
            complain("nothing was changed (--dry-run)");
            self.told(&known, &forward, &mark, None, &mut out)?;
            return known.journals.check();
        }
        known.journals.check()?;
        let (before, after) = runtime.block_on(done(config, &known, &forward))?;
        leave_trail(config, step, before.as_ref(), (&forward, &after));
        if !self.json {
            out.line(format_args!("store: {} with {} writes", after.store(), after.writes))?;
            out.flush()?;
        }
        let aside = step.lock.as_ref().map(journal::set_aside).transpose()?.flatten();
        self.told(&known, &forward, &mark, Some((&after, aside.as_deref())), &mut out)
    }

    /// The end of what is printed: everything, where machines read it.
    fn told(
        &self,
        known: &Known,
        forward: &Forward,
        mark: &str,
        done: Option<(&StoreIdentity, Option<&Path>)>,
        out: &mut Output,
    ) -> Outcome {
        let (identity, aside) = done.unzip();
        let aside = aside.flatten().map(|aside| aside.display().to_string());
        if self.json {
            let segments: BTreeMap<_, _> =
                forward.segments.iter().map(|(name, mark)| (name, mark.get())).collect();
            out.json(&json!({
                "journals": known.journals.to_json(),
                "marks_at_least": mark,
                "segments": segments,
                "writes_at_least": forward.writes_at_least,
                "done": identity.is_some(),
                "store": identity.map(|identity| json!({
                    "id": identity.store(),
                    "writes": identity.writes,
                })),
                "journal_set_aside": aside,
            }))?;
        } else if let Some(aside) = aside {
            out.line(format_args!("journal: set aside as {aside}"))?;
        }
        out.flush()
    }

    /// Refuses a slip in a year: nothing lowers a mark again.
    fn check_near(&self, mark: Option<UnixMillis>) -> Outcome {
        let ahead_ms = mark.map_or(0, |mark| mark.since(when::now()));
        if self.far_ahead || ahead_ms <= DAY_MS {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--mark {} is {} days ahead of this clock, where one is the most that is taken for meant: no worker number \
             mints before that time, and nothing lowers a mark again. Set the clock right, name an earlier time, or say \
             --far-ahead as well",
            self.mark.as_deref().unwrap_or_default(),
            ahead_ms / DAY_MS
        )))
    }

    /// What the journal knows; nothing when there is none.
    fn own_journal(&self, lock: Option<&DataDir>) -> Outcome<Record> {
        let Some(lock) = lock else { return Ok(Record::default()) };
        match journal::inspect(lock) {
            Ok(record) => Ok(record),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => {
                Ok(Record::default())
            }
            // What it knew is lost: somebody has to say up to when IDs may have been minted.
            Err(error) if self.mark.is_none() => Err(Failure::usage(format!(
                "the journal cannot be read, so name with --mark a time that no ID has reached: {}",
                error.kind()
            ))),
            Err(_) => Ok(Record::default()),
        }
    }
}

/// What is about to be done, before it is.
fn show(forward: &Forward, mark: &str, out: &mut Output) -> Outcome {
    out.line(format_args!("worker marks: at least {mark}"))?;
    out.line(format_args!("minting by worker numbers can begin at {mark}"))?;
    for (name, mark) in &forward.segments {
        out.line(format_args!("next number of {name}: at least {mark}"))?;
    }
    out.line(format_args!("writes: at least {}", forward.writes_at_least))?;
    out.flush()
}

/// Moves the store. Answers its identity before and after.
async fn done(
    config: &Config,
    known: &Known,
    forward: &Forward,
) -> Outcome<(Option<StoreIdentity>, StoreIdentity)> {
    let store = store::configured(config).await?;
    let before = store.identity().await.ok();
    let mut identity = store.fast_forward(forward).await?;
    if known.lacks_sources() {
        define(config).await?;
        identity = store.identity().await?;
    }
    store.close().await?;
    Ok((before, identity))
}

/// One line for whoever asks later what was done.
fn leave_trail(
    config: &Config,
    step: &Step,
    before: Option<&StoreIdentity>,
    (forward, after): (&Forward, &StoreIdentity),
) {
    let shown = |identity: &StoreIdentity| {
        format!("store {} with {} writes", identity.store(), identity.writes)
    };
    let before = before.map_or_else(|| "not known".to_owned(), shown);
    let numbers: Vec<_> =
        forward.segments.iter().map(|(name, mark)| format!("{name}={mark}")).collect();
    let mark = Zone::default().show(forward.marks_at_least.unix_millis());
    let numbers = numbers.join(" ");
    let after = format!("{}, worker marks at least {mark}, numbers {numbers}", shown(after));
    audit::leave(&config.server.data_dir, step.command, before, after);
}
