//! `snowmint worker fast-forward`: the way out when a store or a journal is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Args;
use serde_json::json;
use snowmint_coord::catalog::check_name;
use snowmint_coord::journal::{self, DataDir, Record};
use snowmint_coord::node::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use snowmint_coord::spec::{Minted, Plan, SnowflakePlan, SourceSpec};
use snowmint_coord::{ClockOf, ErrorKind, FastForward as Forward, Mark, StoreIdentity, Ticks};
use snowmint_core::{Layout, UnixMillis};

use crate::audit;
use crate::config::{Chosen, Config};
use crate::exit::{Failure, Outcome, complain};
use crate::node::{self, Journal};
use crate::output::Output;
use crate::store;
use crate::when::{self, Zone};

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
  snowmint worker fast-forward --segment invoices=500000 --new-identity")]
pub(crate) struct FastForward {
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
    /// Give the store a new identity, so that whoever knew the old one refuses it.
    #[arg(long)]
    new_identity: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// One JSON object, when all is done.
    #[arg(long)]
    json: bool,
}

/// So far ahead of the clock a mark is named without more ado.
const DAY_MS: u64 = 86_400_000;

/// What a start defines by itself.
const BUILTIN: &[&str] = &[BUILTIN_DEFAULT, BUILTIN_NUMBERS, BUILTIN_COUNTERS];

fn segment(text: &str) -> Result<(String, Mark), String> {
    let (name, number) = text.split_once('=').ok_or("write SOURCE=NUMBER")?;
    check_name("source", name).map_err(|kind| kind.to_string())?;
    let number = number.parse().map_err(|_| format!("{number:?} is no number"))?;
    Ok((name.to_owned(), Mark::new(number)))
}

impl FastForward {
    pub(crate) fn run(self) -> Outcome {
        let config = self.chosen.load(Vec::new())?;
        // Who names no configuration may have meant another file.
        if !self.chosen.has_file() {
            store::check_file(&config)?;
        }
        let data_dir = &config.server.data_dir;
        if !self.dry_run && self.chosen.has_file() {
            node::make_dir(data_dir)?;
        }
        let lock = data_dir.is_dir().then(|| DataDir::lock(data_dir)).transpose()?;
        let journal = self.journal(lock.as_ref())?;
        let mark = self.mark.as_deref().map(|text| Zone::default().read(text)).transpose();
        let mark = mark.map_err(Failure::usage)?;
        self.check_near(mark)?;
        let runtime = store::runtime()?;
        let known = runtime.block_on(Known::look(&config, &journal))?;
        known.check_named(&self.segment)?;
        let forward = plan(&journal, mark, &self.segment, &known.minting, known.reached);
        let forward = Forward { new_identity: self.new_identity, ..forward };

        let mut out = Output::new();
        let mark = Zone::default().show(forward.marks_at_least.unix_millis());
        if !self.json {
            show(&forward, &mark, &mut out)?;
        }
        known.tell_lost(&forward);
        if self.dry_run {
            complain("nothing was changed (--dry-run)");
            return self.told(&forward, &mark, None, &mut out);
        }
        let (before, identity) = runtime.block_on(async {
            let store = store::configured(&config).await?;
            let before = store.identity().await.ok();
            let mut identity = store.fast_forward(&forward).await?;
            if known.lacks_sources() {
                define(&config).await?;
                identity = store.identity().await?;
            }
            store.close().await?;
            Ok::<_, Failure>((before, identity))
        })?;
        let shown = |identity: &StoreIdentity| {
            format!("store {} with {} writes", identity.id, identity.writes)
        };
        let before = before.as_ref().map_or_else(|| "not known".to_owned(), shown);
        let segments: Vec<_> =
            forward.segments.iter().map(|(name, mark)| format!("{name}={mark}")).collect();
        let numbers = segments.join(" ");
        let after =
            format!("{}, worker marks at least {mark}, numbers {numbers}", shown(&identity));
        audit::leave(data_dir, "worker fast-forward", before, after);
        if !self.json {
            out.line(format_args!("store: {} with {} writes", identity.id, identity.writes))?;
            out.flush()?;
        }
        let aside = lock.as_ref().map(journal::set_aside).transpose()?.flatten();
        self.told(&forward, &mark, Some((&identity, aside.as_deref())), &mut out)
    }

    /// The end of what is printed: everything, where machines read it.
    fn told(
        &self,
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
                "marks_at_least": mark,
                "segments": segments,
                "writes_at_least": forward.writes_at_least,
                "done": identity.is_some(),
                "store": identity.map(|identity| json!({
                    "id": identity.id.to_string(),
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
    fn journal(&self, lock: Option<&DataDir>) -> Outcome<Record> {
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

/// What is known before anything is moved.
#[derive(Debug)]
struct Known {
    /// Up to when servers of this configuration may have been granted time by now.
    reached: UnixMillis,
    /// The sources that the store itself mints.
    minting: Vec<(String, Layout)>,
    /// All sources of the store, also those that were deleted; none if it does not say.
    sources: Option<BTreeSet<String>>,
    /// The sources that a start with this configuration defines.
    configured: BTreeSet<String>,
    /// The sources that the journal has seen numbers of.
    journalled: BTreeSet<String>,
}

impl Known {
    /// Looks, and makes nothing.
    async fn look(config: &Config, journal: &Record) -> Outcome<Self> {
        let mut plans = configured_plans(config);
        let (mut minting, mut sources) = (Vec::new(), Some(BTreeSet::new()));
        let (mut clock, mut now) = (ClockOf::Caller, when::now());
        if let Some(store) = store::existing(config).await? {
            clock = store.capabilities().clock;
            // What the store has lost it does not say; what is left of it helps.
            match store.list().await {
                Ok(catalog) => {
                    sources = Some(
                        catalog.definitions.iter().map(|stored| stored.name.clone()).collect(),
                    );
                    for stored in &catalog.definitions {
                        let spec = SourceSpec::from_json(&stored.spec).ok();
                        let Some(plan) = spec.as_ref().and_then(snowflake) else { continue };
                        if matches!(plan.minted, Minted::Store { .. }) {
                            minting.push((stored.name.clone(), plan.layout));
                        }
                        plans.push(plan);
                    }
                }
                Err(error) => {
                    sources = None;
                    complain(format_args!(
                        "the store's sources cannot be read, so those of the configuration count: {error}"
                    ));
                }
            }
            if let Ok(Some(theirs)) = store.now().await {
                now = now.max(theirs);
            }
            store.close().await?;
        }
        let reached = now.saturating_add(node::pacing(config).reach_ms(&plans, clock));
        // What is only going to be defined goes past the same time.
        let stored = |name: &String| sources.as_ref().is_none_or(|stored| stored.contains(name));
        let new = config.defined.iter().filter(|(name, _)| !stored(name));
        minting.extend(new.filter_map(|(name, defined)| {
            let plan = snowflake(&defined.spec)?;
            matches!(plan.minted, Minted::Store { .. }).then(|| (name.clone(), plan.layout))
        }));
        let configured = defined(config).map(str::to_owned).collect();
        let journalled = journal.segments.keys().cloned().collect();
        Ok(Self { reached, minting, sources, configured, journalled })
    }

    /// Refuses a name that was given by hand and that nothing here knows, before anything is changed: a slip
    /// would leave the source that was meant where it is.
    fn check_named(&self, named: &[(String, Mark)]) -> Outcome {
        let is_seen = |name: &String| self.journalled.contains(name) || self.has(name);
        match named.iter().find(|(name, _)| !is_seen(name)) {
            None => Ok(()),
            Some((name, mark)) => Err(Failure::no(format!(
                "there is no source {name:?} that could go on at {mark}, neither in the store nor in the \
                 configuration or the journal: define it in a file as it was ([sources.{name}]), and name that \
                 file with --config"
            ))),
        }
    }

    /// Says which sources are moved that nobody defines.
    fn tell_lost(&self, forward: &Forward) {
        for (name, mark) in forward.segments.iter().filter(|(name, _)| !self.has(name)) {
            complain(format_args!(
                "the journal has seen numbers of source {name:?}, which neither the store nor the configuration \
                 has: its name is kept like that of a deleted one, and if it is defined again (as it was, with \
                 the same first, offset and increment), it goes on at {mark}"
            ));
        }
    }

    /// Whether the store has a source, or the configuration defines it.
    fn has(&self, name: &String) -> bool {
        let is_stored = self.sources.as_ref().is_none_or(|stored| stored.contains(name));
        is_stored || self.configured.contains(name)
    }

    /// Whether the configuration defines what the store does not have.
    fn lacks_sources(&self) -> bool {
        let stored = self.sources.as_ref();
        stored.is_some_and(|stored| !self.configured.is_subset(stored))
    }
}

/// The sources that a start with this configuration defines.
fn defined(config: &Config) -> impl Iterator<Item = &str> {
    let builtin = if config.sources.builtin { BUILTIN } else { &[] };
    builtin.iter().copied().chain(config.defined.keys().map(String::as_str))
}

/// Defines the sources of the configuration, as a start does.
async fn define(config: &Config) -> Outcome {
    let node = node::open(config, Journal::Without).await?;
    node.close().await?;
    Ok(node.store().close().await?)
}

/// The snowflake sources that the configuration defines.
fn configured_plans(config: &Config) -> Vec<SnowflakePlan> {
    let builtin = SourceSpec::default();
    let defined = config.defined.values().map(|defined| &defined.spec);
    defined.chain(config.sources.builtin.then_some(&builtin)).filter_map(snowflake).collect()
}

fn snowflake(spec: &SourceSpec) -> Option<SnowflakePlan> {
    match spec.check() {
        Ok(Plan::Snowflake(plan)) => Some(plan),
        _ => None,
    }
}

/// What must be moved, and how far.
fn plan(
    journal: &Record,
    mark: Option<UnixMillis>,
    segments: &[(String, Mark)],
    minting: &[(String, Layout)],
    reached: UnixMillis,
) -> Forward {
    let leases = journal.leases.iter().map(|lease| lease.mark);
    let named = mark.map(Mark::from);
    let marks_at_least =
        leases.chain(named).fold(Mark::from(reached), |highest, mark| highest.max(mark));
    let mut all = journal.segments.clone();
    // What the store mints goes past the same time: its marks are numbers of ticks.
    let times = minting.iter().map(|(name, layout)| {
        let ticks = Ticks::of(layout, 0, 0, reached);
        let time = marks_at_least.unix_millis().since(layout.epoch());
        let next = (time / u64::from(layout.unit_ms())).saturating_add(1);
        (name.clone(), Mark::new(ticks.first_of(next.min(ticks.tick_max))))
    });
    for (name, mark) in segments.iter().cloned().chain(times) {
        let known = all.entry(name).or_insert(mark);
        *known = (*known).max(mark);
    }
    Forward {
        marks_at_least,
        segments: all.into_iter().collect(),
        writes_at_least: journal.writes,
        new_identity: false,
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::Term;
    use snowmint_coord::journal::JournalLease;

    use super::*;

    #[test]
    fn everything_known_is_passed() {
        let reached = UnixMillis::new(1_000_000);
        let lease = |mark| JournalLease {
            pool: "workers-10".into(),
            slot: 0,
            term: Term::new(1),
            mark: Mark::new(mark),
            released: false,
            granted: Mark::ZERO,
        };
        let journal = Record {
            writes: 7,
            leases: vec![lease(5), lease(9_000_000)],
            segments: [("a".to_owned(), Mark::new(50))].into(),
            ..Record::default()
        };
        let named = [("a".to_owned(), Mark::new(40)), ("b".to_owned(), Mark::new(3))];
        let forward = plan(&journal, None, &named, &[], reached);
        assert_eq!(forward.marks_at_least, Mark::new(9_000_000));
        assert_eq!(forward.writes_at_least, 7);
        assert_eq!(forward.segments, [("a".into(), Mark::new(50)), ("b".into(), Mark::new(3))]);
        let bare = plan(&Record::default(), None, &[], &[], reached);
        assert_eq!(bare.marks_at_least, Mark::from(reached));
        let late = Some(UnixMillis::new(u64::MAX >> 1));
        let named = plan(&Record::default(), late, &[], &[], reached);
        assert_eq!(named.marks_at_least, Mark::new(u64::MAX >> 1));
    }

    #[test]
    fn what_the_store_mints_goes_past_the_same_time() {
        let layout = Layout::REDIS;
        let reached = layout.epoch().saturating_add(5_000);
        let minting = [("orders".to_owned(), layout)];
        let forward = plan(&Record::default(), None, &[], &minting, reached);
        assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(5_001 << 10))]);
        let late = Some(UnixMillis::new(u64::MAX >> 1));
        let forward = plan(&Record::default(), late, &[], &minting, reached);
        let last = layout.tick_max().get() << 10;
        assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(last))], "and no further");
    }
}
