//! Required settings of a server, so that it keeps acknowledged writes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{RedisResult, from_redis_value};
use snowmint_coord::Error;
use snowmint_coord::verbs::Failure;

use super::lacks_right;
use super::link::Link;

/// The setting for the log of writes.
const LOG: &str = "appendonly";

/// URL parameter by which an operator accepts a server with any settings.
pub(super) const PARAMETER: &str = "persistence=any";

/// Rejects a server that can lose or evict acknowledged writes. `unlogged` remembers a server seen
/// without a log: once logging is switched on, it reports the setting at once, but has the log only
/// after its first rewrite.
pub(super) async fn check(
    link: &mut Link,
    key: &str,
    label: &str,
    unlogged: &AtomicBool,
) -> Result<(), Failure<redis::RedisError>> {
    let found = settings(link, key).await.map_err(Failure::Backend)?;
    let is_replica = is_replica(link, key).await.map_err(Failure::Backend)?;
    if is_replica {
        return Err(Failure::from(Error::unsafe_store(format!(
            "{label} is a replica, which can lose acknowledged writes; name the primary in the URL"
        ))));
    }
    for (name, right) in [
        (LOG, "yes"),
        ("appendfsync", "always"),
        // While a child process rewrites the log, `yes` means no sync at all.
        ("no-appendfsync-on-rewrite", "no"),
        ("maxmemory-policy", "noeviction"),
    ] {
        match found.get(name) {
            Some(value) if value == right => {}
            Some(value) => {
                unlogged.fetch_or(name == LOG, Ordering::Relaxed);
                return Err(Failure::from(Error::unsafe_store(format!(
                    "{label} has {name} {value}, which can lose acknowledged writes; set it to \
                     {right}, or add ?{PARAMETER} to the URL (each restart of the server then \
                     needs snowmint worker fast-forward)"
                ))));
            }
            None => {
                return Err(Failure::from(Error::unsafe_store(format!(
                    "{label} does not report {name}, which must be {right}; permit CONFIG GET, or \
                     add ?{PARAMETER} to the URL (each restart of the server then needs snowmint \
                     worker fast-forward)"
                ))));
            }
        }
    }
    if unlogged.load(Ordering::Relaxed) {
        if is_rewriting(link, key).await.map_err(Failure::Backend)? {
            return Err(Failure::from(Error::unsafe_store(format!(
                "{label} writes its first append-only file and can lose writes until then; wait \
                 for aof_rewrite_in_progress 0 (INFO persistence)"
            ))));
        }
        unlogged.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns whether the server is rewriting its log, or is going to.
async fn is_rewriting(link: &mut Link, key: &str) -> RedisResult<bool> {
    let mut question = redis::cmd("INFO");
    question.arg("persistence");
    let answer: String = from_redis_value(link.ask_server_of(key, question).await?)?;
    let rewriting = ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"];
    Ok(answer.lines().any(|line| rewriting.contains(&line.trim_end())))
}

/// Returns whether the server follows another.
async fn is_replica(link: &mut Link, key: &str) -> RedisResult<bool> {
    let mut question = redis::cmd("INFO");
    question.arg("replication");
    let answer: String = from_redis_value(link.ask_server_of(key, question).await?)?;
    Ok(answer.lines().any(|line| line.trim_end() == "role:slave"))
}

/// Returns the settings that the server reports.
async fn settings(link: &mut Link, key: &str) -> RedisResult<HashMap<String, String>> {
    let mut found = HashMap::new();
    for name in ["append*", "no-appendfsync-on-rewrite", "maxmemory-policy"] {
        let mut question = redis::cmd("CONFIG");
        question.arg("GET").arg(name);
        match link.ask_server_of(key, question).await {
            Ok(answer) => found.extend(from_redis_value::<HashMap<String, String>>(answer)?),
            // Not permitted, or unknown to a server other than Redis's own.
            Err(error) if lacks_right(&error) || error.code() == Some("ERR") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
