//! Data that CosId keeps in Redis.
//!
//! | key | content |
//! |---|---|
//! | `cosid:{NAMESPACE.NAME}.adder` | the highest number of a name, counted by `INCRBY` |
//! | `cosid:{NAMESPACE}:itc_idx` | a hash: for each instance its machine ID and a time, `7\|1700000000000` |
//! | `cosid:{NAMESPACE}:revert` | a hash: for each released machine ID, the time |

use std::collections::BTreeMap;

use redis::cmd;
use snowmint_coord::{Error, Result};

use super::numbers::{Numbers, Sequence, SequenceState, number};
use super::redis::{CounterState, Counters};
use super::workers::LegacyWorker;

/// Start of every key.
const BEGIN: &str = "cosid:{";
/// End of the keys with numbers.
const ADDER: &str = "}.adder";
/// Ends of the keys with machine IDs: in use and released.
const IN_USE: &str = "}:itc_idx";
const GIVEN_BACK: &str = "}:revert";

/// Returns the state of each name.
pub(super) async fn sequences(counters: &Counters) -> Result<Vec<Sequence>> {
    let names = named(counters, ADDER).await?;
    if names.is_empty() {
        return Err(none(counters, ADDER));
    }
    let mut found = Vec::with_capacity(names.len());
    for (key, name) in names {
        let state = match counters.read_state(&key).await? {
            CounterState::Counts(highest) => {
                SequenceState::At(Numbers { highest, step: None, offset: 1, increment: 1 })
            }
            CounterState::Moved(_) => SequenceState::Moved,
            CounterState::Senseless(reason) => SequenceState::Senseless(reason),
        };
        found.push(Sequence { key: name, state });
    }
    Ok(found)
}

/// Returns all machine IDs with their present or past holders.
pub(super) async fn workers(counters: &Counters) -> Result<Vec<LegacyWorker>> {
    let mut found = Vec::new();
    for (key, namespace) in named(counters, IN_USE).await? {
        for (instance, state) in fields(counters, &key).await? {
            let id = state.split('|').next().map(str::to_owned);
            let holder = format!("{namespace} {instance}");
            let space = Some(namespace.clone());
            found.push(LegacyWorker { number: number("machine ID", id), holder, space });
        }
    }
    for (key, namespace) in named(counters, GIVEN_BACK).await? {
        for id in fields(counters, &key).await?.into_keys() {
            let (holder, space) = (format!("{namespace}, given back"), Some(namespace.clone()));
            found.push(LegacyWorker { number: number("machine ID", Some(id)), holder, space });
        }
    }
    if found.is_empty() { Err(none(counters, IN_USE)) } else { Ok(found) }
}

/// Returns the keys with this end, each with the name inside it.
async fn named(counters: &Counters, end: &str) -> Result<Vec<(Vec<u8>, String)>> {
    let keys = counters.keys(&format!("{BEGIN}*{end}")).await?;
    let of = |key: Vec<u8>| {
        let name = String::from_utf8_lossy(&key).strip_prefix(BEGIN)?.strip_suffix(end)?.to_owned();
        Some((key, name))
    };
    Ok(keys.into_iter().filter_map(of).collect())
}

fn none(counters: &Counters, end: &str) -> Error {
    counters.label.locate(Error::not_found(format!(
        "no key {BEGIN}…{end} in legacy database {}; check the URL's database number",
        counters.label
    )))
}

async fn fields(counters: &Counters, key: &[u8]) -> Result<BTreeMap<String, String>> {
    let mut all = cmd("HGETALL");
    all.arg(key);
    let read = all.query_async::<BTreeMap<Vec<u8>, Vec<u8>>>(&mut counters.link.clone()).await;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let read = read.map_err(|error| counters.map_error(error))?;
    Ok(read.into_iter().map(|(name, value)| (text(name), text(value))).collect())
}
