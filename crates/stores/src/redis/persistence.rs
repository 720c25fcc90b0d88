//! Required settings of a server, so that it keeps acknowledged writes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{RedisResult, from_redis_value};
use snowmint_coord::Error;
use snowmint_coord::verbs::Failure;

use super::address::PARAMETER;
use super::failure::lacks_permission;
use super::link::RedisLink;

/// The setting for the log of writes.
const LOG: &str = "appendonly";

/// Rejects a server that can lose or evict acknowledged writes. `unlogged` remembers a server seen
/// without a log: once logging is switched on, it reports the setting at once, but has the log only
/// after its first rewrite.
pub(super) async fn check(
    link: &mut RedisLink,
    key: &str,
    label: &str,
    unlogged: &AtomicBool,
) -> Result<(), Failure<redis::RedisError>> {
    let found = settings(link, key).await.map_err(Failure::Backend)?;
    check_role(&info(link, key, "replication").await.map_err(Failure::Backend)?, label)?;
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
                     needs snowmint worker recover --other-server)"
                ))));
            }
            None => {
                return Err(Failure::from(Error::unsafe_store(format!(
                    "{label} does not report {name}, which must be {right}; permit CONFIG GET, or \
                     add ?{PARAMETER} to the URL (each restart of the server then needs snowmint \
                     worker recover --other-server)"
                ))));
            }
        }
    }
    if unlogged.load(Ordering::Relaxed) {
        let persistence = info(link, key, "persistence").await.map_err(Failure::Backend)?;
        if is_rewriting(&persistence, label)? {
            return Err(Failure::from(Error::unsafe_store(format!(
                "{label} writes its first append-only file and can lose writes until then; wait \
                 for aof_rewrite_in_progress 0 (INFO persistence)"
            ))));
        }
        unlogged.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns a section of the server's information.
async fn info(link: &mut RedisLink, key: &str, section: &str) -> RedisResult<String> {
    let mut query = redis::cmd("INFO");
    query.arg(section);
    Ok(from_redis_value(link.send_to_server_of(key, query).await?)?)
}

/// Returns a value in a server's information.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
}

/// Rejects a server that follows another, or that does not report whether it does.
fn check_role(replication: &str, label: &str) -> Result<(), Error> {
    match field(replication, "role") {
        Some("slave") => Err(Error::unsafe_store(format!(
            "{label} is a replica, which can lose acknowledged writes; name the primary in the URL"
        ))),
        Some(_) => Ok(()),
        None => Err(Error::unsafe_store(format!(
            "{label} does not report role (INFO replication), by which a replica is noticed; use a \
             server that reports it"
        ))),
    }
}

/// Returns whether the server is rewriting its log, or is going to. A server that does not report
/// it may be.
fn is_rewriting(persistence: &str, label: &str) -> Result<bool, Error> {
    let mut rewrites = false;
    for name in ["aof_rewrite_in_progress", "aof_rewrite_scheduled"] {
        let Some(value) = field(persistence, name) else {
            return Err(Error::unsafe_store(format!(
                "{label} was seen without append-only file, and does not report {name} (INFO \
                 persistence); restart it with appendonly yes, then this process"
            )));
        };
        rewrites |= value != "0";
    }
    Ok(rewrites)
}

/// Returns the settings that the server reports.
async fn settings(link: &mut RedisLink, key: &str) -> RedisResult<HashMap<String, String>> {
    let mut found = HashMap::new();
    for name in ["append*", "no-appendfsync-on-rewrite", "maxmemory-policy"] {
        let mut query = redis::cmd("CONFIG");
        query.arg("GET").arg(name);
        match link.send_to_server_of(key, query).await {
            Ok(reply) => found.extend(from_redis_value::<HashMap<String, String>>(reply)?),
            // Not permitted, or unknown to a server other than Redis's own.
            Err(error) if lacks_permission(&error) || error.code() == Some("ERR") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreported_role_is_rejected() {
        for (info, wanted) in [
            ("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n", None),
            ("# Replication\r\nrole:slave\r\n", Some("is a replica")),
            ("# Replication\r\nconnected_slaves:0\r\n", Some("does not report role")),
            ("", Some("does not report role")),
        ] {
            let refused = check_role(info, "it").err();
            assert_eq!(refused.is_some(), wanted.is_some(), "{info}: {refused:?}");
            if let (Some(refused), Some(wanted)) = (refused, wanted) {
                assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
                assert!(refused.to_string().contains(wanted), "{refused}");
            }
        }
    }

    #[test]
    fn unreported_rewrite_is_rejected() {
        let both = |running: u8, scheduled: u8| {
            format!("aof_rewrite_in_progress:{running}\r\naof_rewrite_scheduled:{scheduled}\r\n")
        };
        for (running, scheduled) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let found = is_rewriting(&both(running, scheduled), "it").unwrap();
            assert_eq!(found, running + scheduled > 0, "{running} {scheduled}");
        }
        for info in ["", "aof_enabled:1\r\n", "aof_rewrite_in_progress:0\r\n"] {
            let refused = is_rewriting(info, "it").unwrap_err();
            assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
        }
    }
}
