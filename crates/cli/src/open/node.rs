//! Construction of a node from a configuration: the one place that combines store, journal, clock
//! and keys.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::process::geteuid;
use snowmint_coord::error::chain;
use snowmint_coord::private;
use snowmint_coord::sources::{DisguiseKeys, Keyrings};
use snowmint_coord::{
    BootTimer, Error, ErrorKind, Node, NodeSettings, Platform, SourceInfo, SourceSpec, Timer as _,
};
use snowmint_core::disguise::KeyBytes;
use snowmint_server::Traces;

use crate::audit::AuditLog;
use crate::config::{Config, Defined};
use crate::open::{clock, store, upstreams};
use crate::system::ntp::Ntp;
use crate::system::secret::{self, Hidden};
use crate::terminal::exit::{Failure, Outcome};

/// Interval of the checks whether a node has joined.
const POLL_MS: u64 = 500;

/// Use of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalUse {
    /// Journal in the data directory, which no other process may be using.
    Locked,
    /// Journal in the data directory, unless another process is using it.
    IfFree,
    /// No journal.
    Without,
}

/// Opens a node for a command by its configuration, and defines its sources.
pub(crate) async fn open(config: &Config, journal: JournalUse) -> Outcome<Node> {
    let audit_log = AuditLog::File(config.server.data_dir.clone());
    open_with_audit(config, journal, (String::new(), None), audit_log).await
}

/// Opens a node for a server: peers reach it at `address`, and `traces` gets spans of store calls.
pub(crate) async fn open_serving(
    config: &Config,
    journal: JournalUse,
    address: String,
    traces: Option<&Traces>,
) -> Outcome<Node> {
    open_with_audit(config, journal, (address, traces), AuditLog::Log).await
}

async fn open_with_audit(
    config: &Config,
    journal: JournalUse,
    (address, traces): (String, Option<&Traces>),
    audit_log: AuditLog,
) -> Outcome<Node> {
    let data_dir = &config.server.data_dir;
    let url = config.store_url();
    let in_data_dir = store::file(url.text()).is_some_and(|file| file.starts_with(data_dir));
    if journal != JournalUse::Without || in_data_dir {
        make_dir(data_dir)?;
    }
    let node_settings =
        settings(config, journal).map_err(|failure| config.places.located(failure))?;
    // A server reports what its journal knows and waits for an operator; a command ends.
    let waits_for_recovery = matches!(audit_log, AuditLog::Log);
    let settings = NodeSettings { address, waits_for_recovery, ..node_settings };
    let parts = || {
        let (clock, observer) = (clock::clock()?, clock::observer());
        Ok::<_, Failure>(Platform { clock, observer, ..Platform::system() })
    };
    let store = match settings.start_without_store {
        true => store::now_or_later(config).await?,
        false => store::configured(config).await?,
    };
    let store = match traces {
        Some(traces) => traces.store(store),
        None => store,
    };
    for warning in store.warnings() {
        tracing::warn!("{warning}");
    }
    let opened = Node::open(Arc::clone(&store), settings.clone(), parts()?).await;
    let node = match opened {
        Err(error)
            if journal == JournalUse::IfFree && matches!(error.kind(), ErrorKind::Locked) =>
        {
            // The holder of the lock has the journal; this process is another member, without a
            // journal.
            Node::open(store, NodeSettings { data_dir: None, ..settings }, parts()?).await?
        }
        opened => opened?,
    };
    if waits_for_recovery {
        // A caller with a token for a name may define others.
        node.set_configured(config.defined.keys().cloned());
    }
    match define_all(&node, &config.defined, &audit_log).await {
        // An earlier process has most likely defined them.
        Err(Undefined { error, .. }) if is_away(&error) && !node.saved_sources().is_empty() => {
            tokio::spawn(define_later(node.clone(), config.defined.clone(), audit_log));
        }
        Err(Undefined { error, .. }) if waits_for_recovery && is_in_doubt(&error) => {
            tokio::spawn(define_later(node.clone(), config.defined.clone(), audit_log));
        }
        defined => defined.map_err(Failure::from)?,
    }
    Ok(node)
}

/// A source of the configuration that differs from the store's.
struct Undefined {
    error: Error,
    name: String,
    origin: String,
}

impl From<Undefined> for Failure {
    fn from(Undefined { error, name, origin }: Undefined) -> Self {
        match error.kind() {
            ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Unsupported => {
                let message = format!("{origin}: sources.{name}: {}", error.full_message());
                Self::coded(store::code_of(&error), message)
            }
            _ => error.into(),
        }
    }
}

async fn define_all(
    node: &Node,
    sources: &BTreeMap<String, Defined>,
    audit_log: &AuditLog,
) -> Result<(), Undefined> {
    let mut before: Option<Vec<SourceInfo>> = None;
    for (name, Defined { spec, origin }) in sources {
        let undefined = |error| Undefined { error, name: name.clone(), origin: origin.to_string() };
        let before = match &mut before {
            Some(before) => before,
            none => none.insert(node.sources().await.map_err(undefined)?.sources),
        };
        let before = before.iter().find(|info| info.name == *name);
        let (how, after) = define(node, name, spec).await.map_err(undefined)?;
        audit_log.changed(how, name, before, Some(&after));
    }
    Ok(())
}

/// Defines the sources of the configuration once the store is reachable.
async fn define_later(node: Node, sources: BTreeMap<String, Defined>, audit_log: AuditLog) {
    loop {
        when_joined(&node).await;
        if let Err(error) = node.define_builtin().await {
            tracing::warn!(error = %chain(&error), "the built-in sources are not defined yet");
            continue;
        }
        match define_all(&node, &sources, &audit_log).await {
            Ok(()) => return,
            Err(Undefined { error, .. }) if is_away(&error) || is_in_doubt(&error) => {}
            Err(Undefined { error, name, origin }) => {
                return tracing::error!(source = name, %origin, error = %chain(&error), "source of the configuration differs from the store's definition");
            }
        }
    }
}

/// Waits until the node is a member of its store.
pub(crate) async fn when_joined(node: &Node) {
    loop {
        BootTimer.sleep_ms(POLL_MS).await;
        if node.incarnation().is_some() {
            return;
        }
    }
}

/// Returns whether an operator must recover the store.
fn is_in_doubt(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreRolledBack { .. })
}

pub(crate) fn is_away(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable)
}

/// Defines a source, and returns the change. The list of its stores depends on the deployment, so
/// it follows the configuration.
async fn define(
    node: &Node,
    name: &str,
    spec: &SourceSpec,
) -> snowmint_coord::Result<(&'static str, SourceInfo)> {
    let refused = match node.define(name, spec).await {
        Err(error) if spec.stores.is_some() => error,
        defined => return Ok(("defined", defined?)),
    };
    let Ok(stored) = node.definition(name).await else { return Err(refused) };
    let but_for_stores = SourceSpec { stores: spec.stores.clone(), ..stored.spec.clone() };
    if stored.spec.stores.is_none() || but_for_stores.canonical().ok() != spec.canonical().ok() {
        return Err(refused);
    }
    Ok(("altered", node.alter(name, &but_for_stores, Some(stored.version)).await?))
}

/// Returns the settings of windows, leads and clocks.
pub(crate) fn pacing(config: &Config) -> NodeSettings {
    NodeSettings {
        after_crash: config.worker.after_crash(),
        reuse: config.worker.reuse(),
        window_ms: config.worker.window.ms(),
        clock_skew_max_ms: config.clock.skew_max.ms(),
        clock_jump_max_ms: config.clock.jump_max.ms(),
        ..NodeSettings::default()
    }
}

/// Returns the settings of a node.
fn settings(config: &Config, journal: JournalUse) -> Outcome<NodeSettings> {
    let mut settings = NodeSettings {
        builtin: config.sources.builtin,
        keyrings: keyrings(&config.disguise.keys)?,
        upstreams: upstreams::all(&config.upstreams)?,
        secondary_stores: store::ConfiguredConnector::all(config)?,
        data_dir: (journal != JournalUse::Without).then(|| config.server.data_dir.clone()),
        presence_ttl_ms: config.counters.lease.ms(),
        counter_bytes_max: config.counters.memory_max_bytes,
        prefill_ids_max: config.limits.prefill_ids_max,
        idle_after_ms: Some(config.worker.idle_after.ms()),
        start_without_store: config.worker.start_without_store && journal == JournalUse::Locked,
        time_reference: Ntp::at(&config.clock.ntp).map(|ntp| Arc::new(ntp) as _),
        ..pacing(config)
    };
    settings.worker = config.worker.number_on(&settings.host)?;
    settings.owner = match config.server.owner.as_str() {
        "" => settings.host.clone(),
        owner => owner.to_owned(),
    };
    Ok(settings)
}

pub(crate) fn make_dir(dir: &Path) -> Outcome {
    let failed = |deed: &str, error: &io::Error| {
        Failure::unavailable(format!(
            "data directory {dir:?} cannot be {deed}: {error}; check path and permissions"
        ))
    };
    private::make_directory(dir).map_err(|error| failed("created", &error))?;
    let found = std::fs::metadata(dir).map_err(|error| failed("read", &error))?;
    match others_in(dir, &found) {
        Others::None => Ok(()),
        Others::Few(warning) => {
            tracing::warn!("{warning}");
            Ok(())
        }
        Others::EveryUser(reason) => Err(Failure::usage(reason)),
    }
}

/// Other users who can write in a data directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Others {
    None,
    /// The owner, or the group, which may have this user only.
    Few(String),
    EveryUser(String),
}

/// Checks owner and permissions of a data directory: a user who can write in it can take the lock,
/// and restore an older state.
pub(crate) fn others_in(dir: &Path, found: &Metadata) -> Others {
    others(dir, geteuid().as_raw(), found.uid(), found.permissions().mode() & 0o7777)
}

/// Returns who else than the user `own` can write in a directory of this owner and mode. The owner
/// can always set the permission; root needs none.
fn others(dir: &Path, own: u32, owner: u32, mode: u32) -> Others {
    let shown = dir.display();
    let writable =
        |who: &str| format!("data directory {shown} is writable by {who} (mode {mode:04o})");
    if mode & 0o002 != 0 {
        let reason = writable("every user");
        return Others::EveryUser(format!(
            "{reason}; run chmod 700, or name a new directory in it"
        ));
    }
    if owner != own && owner != 0 {
        return Others::Few(format!(
            "data directory {shown} belongs to user {owner}, who can write in it (mode \
             {mode:04o}); chown it to the server's user"
        ));
    }
    if mode & 0o020 != 0 {
        return Others::Few(format!("{}; run chmod g-w", writable("its group")));
    }
    Others::None
}

/// Reads the keys of `[disguise.keys]` from their places.
pub(crate) fn keyrings(keys: &BTreeMap<String, Hidden>) -> Outcome<Keyrings> {
    let mut rings = Keyrings::new();
    for (number, place) in keys {
        let wrong_name = "disguise.keys has a name that is not a whole number; use one as the name";
        let number: u32 = number.parse().map_err(|_| Failure::usage(wrong_name))?;
        let digits =
            secret::at(&format!("disguise.keys.{number}"), place).map_err(Failure::usage)?;
        // The error must not show the key.
        let key: KeyBytes = digits.trim().parse().map_err(|error| {
            Failure::usage(format!("disguise.keys.{number} has an invalid key: {error}"))
        })?;
        rings.insert(number, DisguiseKeys::new(key));
    }
    Ok(rings)
}

#[cfg(test)]
mod tests {
    use snowmint_coord::AfterCrash;

    use super::*;
    use crate::config::Given;

    fn node_settings(keys: &[(&'static str, &str)]) -> NodeSettings {
        let given = keys.iter().map(|(key, value)| Given::flag(key, key, *value)).collect();
        settings(&Config::load(None, given).unwrap(), JournalUse::Without).unwrap()
    }

    #[test]
    fn directory_of_another_user_is_warned_about() {
        let found = |owner, mode| others(Path::new("data"), 7, owner, mode);
        for owner in [7, 0] {
            for mode in [0o700, 0o755, 0o1750] {
                assert_eq!(found(owner, mode), Others::None, "{owner} {mode:04o}");
            }
        }
        // The owner can change the mode.
        for mode in [0o700, 0o755, 0o500, 0o770] {
            let Others::Few(warning) = found(1000, mode) else { panic!("{mode:04o}") };
            assert!(warning.contains("belongs to user 1000, who can write in it"), "{warning}");
            assert!(warning.ends_with("chown it to the server's user"), "{warning}");
        }
        let Others::Few(warning) = found(7, 0o770) else { panic!("the group can write") };
        assert!(warning.contains("its group (mode 0770); run chmod g-w"), "{warning}");
        for owner in [7, 0, 1000] {
            assert!(matches!(found(owner, 0o777), Others::EveryUser(_)), "{owner}");
        }
    }

    #[test]
    fn node_settings_follow_the_configuration() {
        let (unconfigured, default) = (node_settings(&[]), NodeSettings::default());
        assert_eq!(unconfigured.after_crash, default.after_crash);
        let times = |settings: &NodeSettings| {
            [settings.window_ms, settings.clock_skew_max_ms, settings.clock_jump_max_ms]
        };
        assert_eq!(times(&unconfigured), times(&default));
        let changed = node_settings(&[
            ("worker.window", "5m"),
            ("clock.skew_max", "250ms"),
            ("clock.jump_max", "2h"),
            ("worker.lead_max", "7s"),
        ]);
        assert_eq!(times(&changed), [300_000, 250, 7_200_000]);
        for (text, meant) in [
            ("other-worker", AfterCrash::OtherWorker),
            ("wait", AfterCrash::Wait),
            ("lead", AfterCrash::Lead { max_ms: 7_000 }),
            ("refuse", AfterCrash::Refuse),
        ] {
            let keys = [("worker.after_crash", text), ("worker.lead_max", "7s")];
            assert_eq!(node_settings(&keys).after_crash, meant, "{text}");
        }
        assert_eq!(node_settings(&[("server.owner", "me")]).owner, "me");
        assert_eq!(node_settings(&[("worker.number", "7")]).worker, Some(7));
        assert_eq!((unconfigured.worker, unconfigured.reuse), (default.worker, default.reuse));
        assert_eq!(node_settings(&[("worker.reuse", "never")]).reuse, snowmint_coord::Reuse::Never);
    }

    fn error_of(place: &str) -> String {
        match keyrings(&[("1".to_owned(), place.into())].into()) {
            Err(Failure::Explained { exit, message, .. }) if exit as u8 == 2 => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_are_read_from_files_and_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let place = format!("file:{}", file.display());
        std::fs::write(&file, format!("{}\n", "0123456789abcdef".repeat(2))).unwrap();
        let rings = keyrings(&[("7".to_owned(), place.clone().into())].into()).unwrap();
        assert_eq!(rings.keys().copied().collect::<Vec<_>>(), [7]);

        std::fs::write(&file, "secret but short").unwrap();
        let message = error_of(&place);
        assert!(message.starts_with("disguise.keys.1"), "{message}");
        assert!(!message.contains("secret"), "{message}");
        for place in ["0123", "file:/nonexistent", "env:SNOWMINT_NO_SUCH_KEY", ""] {
            error_of(place);
        }
        assert!(keyrings(&[("first".to_owned(), place.into())].into()).is_err());
    }
}
