//! `snowmint worker fast-forward`, and code shared with `snowmint worker recover`: recovery when a
//! store or a journal is rejected.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use snowmint_coord::catalog::check_name;
use snowmint_coord::error::chain;
use snowmint_coord::journal::{self, DataDir, Inspected};
use snowmint_coord::recovery::{
    Configured, ContinueAt, Recovery, RecoveryRequest, Reports, accept_other_server,
};
use snowmint_coord::sources::Keyrings;
use snowmint_coord::{
    BootTimer, END_MS, ErrorKind, FastForward as Forward, NodeSettings, Store, StoreIdentity,
};
use snowmint_core::Rfc3339;
use snowmint_server::{moved_to, recovery_body};
use snowmint_wire::error::Code;
use snowmint_wire::http;

use super::other_journals;
use super::recovered::{NOTHING_TO_RECOVER, Recovered, VALUES_ONLY};
use crate::audit;
use crate::config::{Config, ConfigArgs};
use crate::open::{node, store};
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::plural::counted;
use crate::terminal::when;

/// Notice before the error of a definition.
const MOVED_WITHOUT_SOURCES: &str = "the store is moved and its journals are set aside, but sources of the configuration \
    could not be defined. Correct the configuration and start: a start defines them";

/// Options of how far a store is moved, and of the journals that are read.
#[derive(Debug, Args)]
pub(super) struct MoveOptions {
    #[command(flatten)]
    pub(super) config_args: ConfigArgs,
    /// Also move worker marks up to this time.
    #[arg(long, value_name = "TIME")]
    mark: Option<String>,
    /// Accept a --mark more than a day ahead of this clock, and a --segment that skips days of
    /// serials or half of a disguised source.
    #[arg(long)]
    far_ahead: bool,
    /// Leave out marks of journals that are more than a day ahead of this clock. Only if no ID in use
    /// has reached --mark: later ones would come again.
    #[arg(long, requires = "mark")]
    no_ids_ahead: bool,
    /// Highest number of any counter, or 0 if none has counted: all counters continue above it.
    /// Subtract counter.start - 1 of its source. Needed unless a journal surely knows of all
    /// recoveries.
    #[arg(long, value_name = "NUMBER")]
    counters_above: Option<u64>,
    /// Segment source, and the first number that may be issued (1 above the highest), or id:ID (or a
    /// serial) for an ID that was; may be given several times.
    #[arg(long, value_name = "SOURCE=NUMBER", value_parser = segment)]
    segment: Vec<(String, ContinueAt)>,
    /// Data directory of a stopped server, to read its journal as well; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub(super) journal: Vec<PathBuf>,
    /// ID of a lost journal, whose process is stopped: numbers that it alone knew may come again;
    /// may be given several times.
    #[arg(long, value_name = "ID")]
    without: Vec<String>,
    /// Confirm that every read journal has all that its server knew, though its file may be an old
    /// copy. True only if the directory was moved or copied while its server was stopped, and no
    /// server ran on the original since; never after a restore from a backup.
    #[arg(long)]
    pub(super) journal_is_complete: bool,
    /// Only show the plan.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub(super) json: bool,
}

/// Move a restored or replaced store past everything ever promised, and set the journal aside.
///
/// Needed when `serve` does not start because the store was rolled back or is another one, or
/// because the journal is a copy or damaged. Stop every server of the store first. Nothing ever
/// moves back. Worker marks move past the journal's marks. They also move past the clock, by as
/// much as servers of this configuration (worker.window, worker.lead_max, clock.skew_max, the
/// sources' lead_max) can have minted ahead of it. Use the servers' configuration, and check that
/// this clock is right. Minting can begin at the printed time. Give numbers of segment sources that
/// only the lost store knew by --segment. Sources of the configuration that the store lacks are
/// defined, and with --config a missing SQLite file is created: a completely lost store is created
/// and moved in one step. A source that only the journal knows is kept like a deleted one: defined
/// again, it continues above its numbers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker fast-forward --dry-run
  snowmint worker fast-forward --config /etc/snowmint.toml
  snowmint worker fast-forward --journal /srv/b --journal /srv/c
  snowmint worker fast-forward --segment invoices=500000 --new-identity")]
pub(crate) struct FastForward {
    #[command(flatten)]
    how: MoveOptions,
    /// Give the store a new identity, so that every server with the old one rejects it, also those of
    /// the other namespaces in a SQL database.
    #[arg(long)]
    new_identity: bool,
}

fn segment(text: &str) -> Result<(String, ContinueAt), String> {
    let (name, number) =
        text.split_once('=').ok_or("no = found; write SOURCE=NUMBER, or SOURCE=id:ID")?;
    check_name("source", name).map_err(|kind| kind.to_string())?;
    let value = ContinueAt::new(number).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value))
}

impl FastForward {
    pub(crate) fn run(self) -> Outcome {
        let how = &self.how;
        let config = how.config_args.load(Vec::new())?;
        // Without a configuration file, the operator may have meant another store.
        if !how.config_args.has_file() {
            store::check_file(&config)?;
        }
        let data_dir = &config.server.data_dir;
        if !how.dry_run && how.config_args.has_file() {
            node::make_dir(data_dir)?;
        }
        let lock = lock_existing(data_dir)?;
        let own = how.own_journal(lock.as_ref())?;
        check_namespace(data_dir, &own, &config.store.namespace)?;
        let (command, new_identity) = ("worker fast-forward", self.new_identity);
        let step = MoveStep { command, other_server: false, new_identity, lock };
        how.move_forward(&config, Some(own), &step)
    }
}

/// Variant of a store's move.
pub(super) struct MoveStep {
    pub(super) command: &'static str,
    /// Whether the server that has the store now is accepted, and nothing is moved.
    pub(super) other_server: bool,
    pub(super) new_identity: bool,
    /// Data directory with the journal to set aside.
    pub(super) lock: Option<DataDir>,
}

impl MoveOptions {
    /// Returns the values of the options.
    pub(super) fn request(&self) -> Outcome<RecoveryRequest> {
        Ok(RecoveryRequest {
            mark: when::utc(self.mark.as_deref())?,
            far_ahead: self.far_ahead,
            no_ids_ahead: self.no_ids_ahead,
            counters_above: self.counters_above,
            segments: self.segment.clone(),
            without: self.without.clone(),
            journals_are_complete: self.journal_is_complete,
        })
    }

    /// Returns the same values for a server.
    pub(super) fn recovery_request(&self) -> Outcome<http::RecoveryRequest> {
        let request = self.request()?;
        let RecoveryRequest { mark, far_ahead, no_ids_ahead, segments, without, .. } = request;
        let segments = segments.into_iter().map(|(name, next)| (name, next.to_string()));
        Ok(http::RecoveryRequest {
            dry_run: self.dry_run,
            mark: mark.map(|mark| Rfc3339(mark).to_string()),
            far_ahead,
            no_ids_ahead,
            counters_above: self.counters_above.map(|above| above.to_string()),
            segments: segments.collect(),
            without,
            secondary: None,
            other_server: false,
        })
    }

    pub(super) fn move_forward(
        &self,
        config: &Config,
        own: Option<Inspected>,
        step: &MoveStep,
    ) -> Outcome {
        let request = self.request()?;
        let runs = own.is_none();
        let set_aside: Vec<_> = own.iter().map(|own| own.record.id.clone()).collect();
        let journals = other_journals::read_all(&self.journal, runs, &config.store.namespace)?;
        let live = journals.iter().filter_map(|journal| journal.live.as_ref());
        let read = own.into_iter().chain(live.map(|(_, read)| read.clone())).collect();
        let aside = journals.iter().flat_map(|journal| journal.aside.clone());
        // The user of `worker recover` need not read the directory of a server.
        let here = journal::inspect_set_aside(&config.server.data_dir, other_journals::unread);
        let here = here.unwrap_or_default();
        let aside = aside.chain(here).collect();
        let runtime = store::runtime()?;
        let look = look(config, runs, read, &request, step.other_server);
        let recovery = runtime.block_on(look)?.with_set_aside(aside);
        if runs && recovery.doubt().is_none() && !request.has_values() {
            complain(NOTHING_TO_RECOVER);
            return Ok(());
        }
        let mut forward = recovery.plan(&request)?;
        forward.new_identity = step.new_identity;
        forward.forget_journals.extend(set_aside);
        let leaves_out = |record: &_| recovery.leaves_out(record, &request);
        forward.forget_journals.extend(other_journals::ids(&journals, leaves_out));
        if forward.values_only {
            complain(VALUES_ONLY);
        }
        let mut shown = Recovered::new(self.json);
        let body_of = |forward: &Forward, after: Option<&StoreIdentity>| {
            let mut body = recovery_body(&recovery, forward, after);
            let is_expected =
                |name: &String| store::is_secondary(config) && config.defined.contains_key(name);
            body.undefined.retain(|name| !is_expected(name));
            body.unsaid = recovery.unsaid(&request).filter(|_| after.is_none());
            body
        };
        let body = body_of(&forward, None);
        shown.plan(&body)?;
        if let (true, Some(doubt)) = (step.other_server, &body.doubt) {
            audit::leave(&config.server.data_dir, step.command, "another server", doubt);
            return shown.accepted(&body);
        }
        if self.dry_run {
            return shown.looked(&body);
        }
        if let Some(unsaid) = &body.unsaid {
            return Err(Failure::refused(Code::StoreRolledBack, unsaid));
        }
        let (before, mut after) = runtime.block_on(moved(config, &forward))?;
        let command = match self.journal_is_complete {
            true => format!("{} --journal-is-complete", step.command),
            false => step.command.to_owned(),
        };
        leave_trail(config, &command, before.as_ref(), &after, (&forward, &request));
        // A definition may fail, and the store has moved: without its journal, a start reports it.
        let mut aside: Vec<_> = step
            .lock
            .iter()
            .filter_map(|lock| journal::set_aside(lock).transpose())
            .collect::<Result<_, _>>()?;
        let own = aside.first().cloned();
        if !step.new_identity {
            let store = (!runs).then(|| after.store());
            aside.extend(other_journals::set_aside(&journals, store.as_deref(), leaves_out)?);
        }
        if recovery.lacks_sources() {
            after = runtime.block_on(defined(config))?;
        }
        let body = body_of(&forward, Some(&after));
        shown.stored(&body)?;
        shown.done(&body, &aside, own.as_deref())
    }

    /// Reads the journal; empty if there is none.
    fn own_journal(&self, lock: Option<&DataDir>) -> Outcome<Inspected> {
        let Some(lock) = lock else { return Ok(Inspected::default()) };
        match journal::inspect(lock) {
            Ok(read) => Ok(read),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(Inspected::default()),
            // The journal's content is lost: the operator must give a time up to which IDs may have
            // been minted.
            Err(error) if self.mark.is_none() => Err(Failure::usage(format!(
                "journal cannot be read: {}; name a time that no ID has reached with --mark",
                error.full_message()
            ))),
            Err(_) => Ok(Inspected::default()),
        }
    }
}

/// Rejects the journal of another namespace, whose own recovery needs it.
fn check_namespace(data_dir: &Path, own: &Inspected, namespace: &str) -> Outcome {
    let of = &own.record.namespace;
    if of.is_empty() || of == namespace {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "data directory {data_dir:?} belongs to namespace {of:?}, not to {namespace:?}; name one of a \
         server of {namespace:?} (--data-dir DIR), or a new one if it has none"
    )))
}

/// Locks a data directory; `None` if it does not exist. One that cannot be read may have a journal,
/// and a move must pass all that this journal knows.
fn lock_existing(dir: &Path) -> Outcome<Option<DataDir>> {
    match std::fs::metadata(dir) {
        Ok(_) => Ok(Some(DataDir::lock(dir)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(format!(
            "data directory {dir:?} cannot be read: {error}; check path and permissions"
        ))),
    }
}

/// Accepts the server that has the store now.
async fn accepted(config: &Config) -> Outcome {
    let Some(store) = store::existing(config).await? else { return Ok(()) };
    accept_other_server(&*store).await?;
    store.close().await?;
    Ok(())
}

/// Reads the state and creates nothing. If the servers run, they have to repeat their reports.
/// Another server of the store is accepted first, where the operator says so.
async fn look(
    config: &Config,
    runs: bool,
    read: Vec<Inspected>,
    request: &RecoveryRequest,
    other_server: bool,
) -> Outcome<Recovery> {
    // The primary store's node gives a secondary store its sources.
    let is_secondary = store::is_secondary(config);
    let sources = if is_secondary { BTreeMap::new() } else { config.specs() };
    let builtin = config.sources.builtin && !is_secondary;
    let keyrings = match request.segments.iter().any(|(_, value)| value.is_issued()) {
        true => node::keyrings(&config.disguise.keys)?,
        false => Keyrings::new(),
    };
    // Counters are in the primary store.
    let secondary = is_secondary.then(String::new);
    let settings = NodeSettings { builtin, keyrings, secondary, ..node::pacing(config) };
    let namespace = &config.store.namespace;
    let configured = Configured { sources: &sources, settings: &settings, namespace };
    // Only now, so that a wrong configuration changes nothing.
    if other_server {
        accepted(config).await?;
    }
    let store = store::existing(config).await?;
    let known = store.as_deref().map(|store| store as &dyn Store);
    let reports = match known {
        Some(store) if runs => Reports::repeated(store, &BootTimer).await?,
        Some(store) => Reports::of_stopped(store).await?,
        None => Reports::default(),
    };
    let look = Recovery::look(known, reports, read, &request.without, configured, when::now());
    let recovery = look.await?;
    if let Some(error) = recovery.unlisted() {
        complain(format_args!(
            "the store's sources cannot be read, so those of the configuration count: {}",
            chain(error)
        ));
    }
    if let Some(store) = store {
        store.close().await?;
    }
    Ok(recovery)
}

/// Moves the store. Returns the store's identity before and after.
async fn moved(
    config: &Config,
    forward: &Forward,
) -> Outcome<(Option<StoreIdentity>, StoreIdentity)> {
    let store = store::configured(config).await?;
    let before = store.identity().await.ok();
    let after = store.fast_forward(forward).await?;
    store.close().await?;
    Ok((before, after))
}

/// Defines the sources that the store lacks, as a start does. Returns the store's identity.
async fn defined(config: &Config) -> Outcome<StoreIdentity> {
    let opened = node::open(config, node::JournalUse::Without).await;
    opened.inspect_err(|_| complain(MOVED_WITHOUT_SOURCES))?.end(END_MS).await?;
    let store = store::configured(config).await?;
    let after = store.identity().await?;
    store.close().await?;
    Ok(after)
}

/// Appends a line to the audit trail.
fn leave_trail(
    config: &Config,
    command: &str,
    before: Option<&StoreIdentity>,
    after: &StoreIdentity,
    (forward, request): (&Forward, &RecoveryRequest),
) {
    let shown = |identity: &StoreIdentity| {
        format!("store {} with {}", identity.store(), counted(identity.writes, "write"))
    };
    let before = before.map_or_else(|| "not known".to_owned(), shown);
    let after = format!("{}, {}", shown(after), moved_to(forward, request));
    let what = match forward.values_only {
        true => format!("{command}: values raised"),
        false => command.to_owned(),
    };
    audit::leave(&config.server.data_dir, &what, before, after);
}
