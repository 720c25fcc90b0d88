//! Required settings of a server, so that it keeps acknowledged writes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{RedisResult, from_redis_value};
use snowmint_coord::verbs::{Failure, set_to_lose};
use snowmint_coord::{Error, ErrorKind};

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
    let refused = |error: Error| {
        let what = format!(
            "{}; or add ?{PARAMETER} to its URL, after which each restart of the server is taken for another \
             store, which an operator must move forward",
            error.message()
        );
        Err(Failure::from(ErrorKind::UnsafeStore { what }))
    };
    if is_replica {
        let what = format!(
            "{label} is a replica, which takes back what was written to it when it follows its primary anew; name \
             the primary in the URL"
        );
        return Err(Failure::from(ErrorKind::UnsafeStore { what }));
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
                return refused(set_to_lose(label, &format!("{name} {value}"), right));
            }
            None => {
                let what = format!(
                    "{label} does not say what {name} is, which must be {right}; let this user ask for it \
                     (CONFIG GET)"
                );
                return refused(Error::unsafe_store(what));
            }
        }
    }
    if unlogged.load(Ordering::Relaxed) {
        if is_rewriting(link, key).await.map_err(Failure::Backend)? {
            let what = format!(
                "{label} has been told {LOG} yes, and loses what it acknowledges until its log is first written \
                 (INFO persistence: aof_rewrite_in_progress 0); wait for that"
            );
            return Err(Failure::from(ErrorKind::UnsafeStore { what }));
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
