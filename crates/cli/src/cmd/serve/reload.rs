//! Reload on SIGHUP: the configuration is read again, changes that need no restart are applied, and
//! all others are logged as needing one.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::config::{ChangedKey, Config};
use crate::terminal::exit::{Failure, Outcome};

/// A part of the process that follows the configuration while it runs.
#[async_trait]
pub(super) trait Reloadable: Send + Sync {
    /// Returns the part that a key belongs to; `None` if this follower does not handle the key.
    fn part(&self, key: &str, old: &Config, new: &Config) -> Option<String>;

    /// Applies `new` to one part, and copies the part into `now`. After an error both stay
    /// unchanged.
    async fn follow(&self, part: &str, now: &mut Config, new: &Config) -> Outcome;
}

/// Function that reads the configuration again, as at the start.
pub(super) type ReadConfig = Box<dyn Fn() -> Outcome<Config> + Send + Sync>;

/// The configuration in force, and its followers.
pub(super) struct Reload {
    read: ReadConfig,
    now: Config,
    followers: Vec<Box<dyn Reloadable>>,
}

/// Result of one reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReloadSummary {
    /// Number of keys with a new value in force.
    pub(super) changed: usize,
    /// Number of keys that keep their old value.
    pub(super) kept: usize,
}

impl Reload {
    pub(super) fn new(read: ReadConfig, now: Config, followers: Vec<Box<dyn Reloadable>>) -> Self {
        Self { read, now, followers }
    }

    /// Reads and applies the configuration. Each changed key gets one line in the log.
    pub(super) async fn run(&mut self) -> ReloadSummary {
        let new = match (self.read)() {
            Ok(new) => new,
            Err(failure) => {
                let why = failure.message();
                tracing::error!(why, "reload failed; keeping the current configuration");
                return ReloadSummary::default();
            }
        };
        let mut left = self.now.changes(&new);
        let mut summary = ReloadSummary::default();
        for index in 0..self.followers.len() {
            let mut parts: BTreeMap<String, Vec<ChangedKey>> = BTreeMap::new();
            let part = |key: &str| self.followers.get(index)?.part(key, &self.now, &new);
            left.retain(|change| match part(&change.key) {
                None => true,
                Some(part) => {
                    parts.entry(part).or_default().push(change.clone());
                    false
                }
            });
            for (part, changes) in parts {
                let Some(follower) = self.followers.get(index) else { continue };
                let followed = follower.follow(&part, &mut self.now, &new).await;
                log_changes(&changes, followed.as_ref().err());
                match followed {
                    Ok(()) => summary.changed += changes.len(),
                    Err(_) => summary.kept += changes.len(),
                }
            }
        }
        for ChangedKey { key, old, new } in &left {
            tracing::warn!(key, old, new, "key unchanged until a restart");
        }
        summary.kept += left.len();
        tracing::info!(changed = summary.changed, kept = summary.kept, "configuration reloaded");
        summary
    }
}

/// Logs one line for each key.
fn log_changes(changes: &[ChangedKey], refused: Option<&Failure>) {
    for ChangedKey { key, old, new } in changes {
        match refused {
            None => tracing::info!(key, old, new, "changed"),
            Some(failure) => {
                let why = failure.message();
                tracing::warn!(key, old, new, why, "not changed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::config::Given;

    fn config(given: &[(&'static str, &str)]) -> Config {
        let given = given.iter().map(|(key, value)| Given::flag(key, key, *value)).collect();
        Config::load(None, given).unwrap()
    }

    /// A follower of one section, which fails if the flag is set.
    struct Section(&'static str, bool, Arc<Mutex<Vec<String>>>);

    #[async_trait]
    impl Reloadable for Section {
        fn part(&self, key: &str, _: &Config, _: &Config) -> Option<String> {
            key.starts_with(self.0).then(|| self.0.to_owned())
        }

        async fn follow(&self, part: &str, now: &mut Config, new: &Config) -> Outcome {
            let batches = (now.limits.batch_max, new.limits.batch_max);
            self.2.lock().unwrap().push(format!("{part} {batches:?}"));
            if self.1 {
                return Err(Failure::usage("no"));
            }
            now.limits = new.limits.clone();
            Ok(())
        }
    }

    #[tokio::test]
    async fn applied_changes_are_reported_once_and_the_rest_again() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let followers: Vec<Box<dyn Reloadable>> = vec![
            Box::new(Section("limits.", false, Arc::clone(&heard))),
            Box::new(Section("log.", true, Arc::clone(&heard))),
        ];
        let read = || {
            Ok(config(&[
                ("limits.batch_max", "7"),
                ("log.filter", "debug"),
                ("server.owner", "me"),
                ("store.url", "postgres://secret"),
            ]))
        };
        let mut reload = Reload::new(Box::new(read), config(&[]), followers);
        assert_eq!(reload.run().await, ReloadSummary { changed: 1, kept: 3 });
        assert_eq!(*heard.lock().unwrap(), ["limits. (100000, 7)", "log. (7, 7)"]);
        assert_eq!(reload.now.limits.batch_max, 7);
        assert_eq!(reload.now.log.filter, "info");
        // The second time, only the rejected change is new.
        assert_eq!(reload.run().await, ReloadSummary { changed: 0, kept: 3 });
        assert_eq!(heard.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_configuration_with_a_mistake_changes_nothing() {
        let read = || Err(Failure::usage("line 3"));
        let mut reload = Reload::new(Box::new(read), config(&[]), Vec::new());
        assert_eq!(reload.run().await, ReloadSummary::default());
        assert_eq!(reload.now, config(&[]));
    }
}
