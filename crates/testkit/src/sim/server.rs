//! Servers of keys: how each kind counts, reads, and applies a batch.

use std::collections::BTreeMap;
use std::fmt::Debug;

use snowmint_coord::segment::SegmentRow;
use snowmint_coord::verbs::Failure;
use snowmint_coord::{Error, ErrorKind, Mark};
use snowmint_core::UnixMillis;
use snowmint_stores::keyed::{
    Batch, Counted, CountedRange, Entry, Outcome, ScriptOutcome, ScriptRequest, name,
};

use super::keys::Broken;

/// Time for which requests that only count stand back.
pub(super) const WAY_MS: u64 = 50;

/// Rules by which a kind of server counts and reads.
pub(super) trait Like: Debug + Send + Sync + 'static {
    /// [`Keys::SNAPSHOT`].
    const SNAPSHOT: bool;
    /// [`Keys::COUNTS`].
    const COUNTS: bool;
    /// Whether it counts the changes of other programs, too.
    const COUNTS_OTHERS: bool;
    /// Whether its servers may lag, and a batch stays with a session.
    const LAGS: bool;
    /// [`Keys::version_after`].
    fn version_after(before: u64, writes: u64) -> u64;
}

#[derive(Debug)]
pub(super) struct Redis;

impl Like for Redis {
    const SNAPSHOT: bool = false;
    const COUNTS: bool = true;
    const COUNTS_OTHERS: bool = false;
    const LAGS: bool = false;

    fn version_after(_: u64, writes: u64) -> u64 {
        writes
    }
}

#[derive(Debug)]
pub(super) struct Etcd;

impl Like for Etcd {
    const SNAPSHOT: bool = true;
    const COUNTS: bool = false;
    const COUNTS_OTHERS: bool = true;
    const LAGS: bool = false;

    fn version_after(_: u64, writes: u64) -> u64 {
        writes
    }
}

#[derive(Debug)]
pub(super) struct Zookeeper;

impl Like for Zookeeper {
    const SNAPSHOT: bool = false;
    const COUNTS: bool = false;
    const COUNTS_OTHERS: bool = true;
    const LAGS: bool = true;

    fn version_after(before: u64, _: u64) -> u64 {
        before + 1
    }
}

/// The keys of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// The number of the server or its run, where it has one.
    pub(super) server: Option<u64>,
    /// Count of changes.
    pub(super) writes: u64,
    pub(super) keys: BTreeMap<String, Entry>,
    /// End of the time in which requests that only count stand back.
    pub(super) way_until_ms: u64,
}

/// Returns the name of a server.
pub(super) fn server_name(server: u64) -> String {
    format!("run {server}")
}

/// Applies a batch, if all expected versions stand; `others` are the changes of other programs
/// before it.
pub(super) fn carry_out<L: Like>(
    stored: &mut Stored,
    batch: &Batch,
    others: impl FnOnce() -> u64,
) -> Result<Outcome, Failure<Broken>> {
    let is_server = batch.server == stored.server.map(server_name) || batch.server.is_none();
    // Redis compares its run before, etcd its cluster afterwards.
    if !stands::<L>(stored, batch) || (L::COUNTS && !is_server) {
        return Ok(Outcome::RaceLost);
    }
    let last = stored.keys.get(name::WRITES).map_or(stored.writes, |last| last.version);
    let has_all = last >= batch.after;
    // ZooKeeper has no such comparison, and the version of its key shows it afterwards.
    if !has_all && !L::LAGS {
        return Ok(Outcome::RaceLost);
    }
    if !batch.changes.is_empty() {
        stored.writes += 1 + if L::COUNTS_OTHERS { others() } else { 0 };
        let writes = stored.writes;
        for (key, value) in &batch.changes {
            write::<L>(stored, key, value.clone(), writes);
        }
        if L::COUNTS_OTHERS {
            write::<L>(stored, name::WRITES, Some(String::new()), writes);
        }
    }
    match &batch.server {
        // The change stands, and the caller gets an error.
        Some(expected) if !is_server => Err(Failure::from(Error::store_mismatch(format!(
            "simulated keys are on server {:?}, expected {expected:?}; use that server",
            stored.server.map(server_name).unwrap_or_default()
        )))),
        // ZooKeeper has no count for a batch without changes.
        _ if L::LAGS && batch.changes.is_empty() => Ok(Outcome::Done(0)),
        _ if !has_all => Ok(Outcome::Short(stored.writes)),
        _ => Ok(Outcome::Done(stored.writes)),
    }
}

fn stands<L: Like>(stored: &Stored, batch: &Batch) -> bool {
    let store = stored.keys.get(name::STORE).map(|entry| &entry.value);
    let is_store = batch.store.is_none() || batch.store.as_ref() == store;
    is_store
        && batch.expected.iter().all(|(key, expected)| {
            let version = stored.keys.get(key).map_or(0, |entry| entry.version);
            // ZooKeeper cannot check that a key is missing, only create it.
            let is_unchecked = L::LAGS && *expected == 0 && !batch.changes.contains_key(key);
            is_unchecked || version == *expected
        })
}

/// Writes one key, or removes it.
pub(super) fn write<L: Like>(stored: &mut Stored, key: &str, value: Option<String>, writes: u64) {
    let before = stored.keys.get(key).map_or(0, |entry| entry.version);
    let version = L::version_after(before, writes);
    match value {
        Some(value) => {
            let entry = Entry { key: key.to_owned(), value, version, written: writes };
            stored.keys.insert(key.to_owned(), entry);
        }
        None => drop(stored.keys.remove(key)),
    }
}

/// Takes numbers of a source. Without `looks`, the server takes any store for the one that the
/// request names.
pub(super) fn count(
    stored: &mut Stored,
    request: &ScriptRequest<'_>,
    now: UnixMillis,
    looks: bool,
) -> ScriptOutcome {
    let is_store = stored.keys.get(name::STORE) == Some(request.store);
    let is_server = stored.server.map(server_name).as_deref() == request.server;
    if (looks && !(is_store && is_server)) || stored.writes < request.writes_at_least {
        return ScriptOutcome::Differs;
    }
    let key = format!("{}/{}", name::SOURCES, request.reserve.source);
    let value = stored.keys.get(&key).map(|entry| entry.value.clone()).unwrap_or_default();
    let Some((before, row)) = numbers(&value, &request.before_mark) else {
        return ScriptOutcome::Differs;
    };
    // A clock that steps back prolongs this for no request.
    if (1..=WAY_MS).contains(&stored.way_until_ms.saturating_sub(now.get())) {
        return ScriptOutcome::Backoff;
    }
    let decided = request.reserve.decide(&row, Some(now), 0);
    let range = match decided.map_err(|error| error.kind().clone()) {
        Ok((after, _)) => {
            stored.writes += 1;
            let (writes, first, end) = (stored.writes, after.floor.get(), after.mark.get());
            let version = after.version;
            let value = format!(r#"{before}{end},"floor":{first},"segment_version":{version}}}"#);
            let entry = Entry { key: key.clone(), value, version: writes, written: writes };
            stored.keys.insert(key, entry);
            Some(CountedRange { writes, first, end })
        }
        Err(ErrorKind::MarkMoved { .. } | ErrorKind::TickFull { .. }) => None,
        Err(_) => return ScriptOutcome::Differs,
    };
    let namespace = stored.keys.get(name::NAMESPACE).map(|entry| entry.value.clone());
    let namespace = namespace.unwrap_or_default();
    ScriptOutcome::Counted(Counted { row, clock: Some(now), namespace, range })
}

/// Splits a definition's value before its mark, and reads the numbers from there on.
fn numbers<'a>(value: &'a str, before_mark: &str) -> Option<(&'a str, SegmentRow)> {
    let at = value.rfind(before_mark)? + before_mark.len();
    let (before, rest) = value.split_at(at);
    let (mark, rest) = rest.strip_suffix('}')?.split_once(r#","floor":"#)?;
    let (floor, version) = rest.split_once(r#","segment_version":"#)?;
    let number = |text: &str| text.parse::<u64>().ok();
    let row = SegmentRow {
        mark: Mark::new(number(mark)?),
        floor: Mark::new(number(floor)?),
        version: number(version)?,
    };
    Some((before, row))
}
