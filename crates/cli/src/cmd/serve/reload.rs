//! What happens on SIGHUP: the configuration is read anew, what can change meanwhile is changed, and of the
//! rest it is said that it needs a restart.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::config::{Change, Config};
use crate::exit::{Failure, Outcome};

/// A part of the process that follows the configuration while it runs.
#[async_trait]
pub(super) trait Follows: Send + Sync {
    /// Which of its parts a key belongs to; none if it does not see to that key.
    fn part(&self, key: &str, old: &Config, new: &Config) -> Option<String>;

    /// Makes one part as `new` has it, from now on. An error: it stays as it was.
    async fn follow(&self, part: &str, old: &Config, new: &Config) -> Outcome;
}

/// Reads the configuration anew, as it was read at the start.
pub(super) type Read = Box<dyn Fn() -> Outcome<Config> + Send + Sync>;

/// The configuration as it holds now, and who follows it.
pub(super) struct Reload {
    read: Read,
    now: Config,
    followers: Vec<Box<dyn Follows>>,
}

/// What came of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Keys that have another value now.
    pub(super) changed: usize,
    /// Keys that keep theirs.
    pub(super) kept: usize,
}

impl Reload {
    pub(super) fn new(read: Read, now: Config, followers: Vec<Box<dyn Follows>>) -> Self {
        Self { read, now, followers }
    }

    /// Reads and follows. Each key that changed gets one line in the log.
    pub(super) async fn run(&mut self) -> Told {
        let new = match (self.read)() {
            Ok(new) => new,
            Err(failure) => {
                let why = said(&failure);
                tracing::error!(why, "the configuration cannot be taken; all stays as it was");
                return Told::default();
            }
        };
        let mut left = self.now.changes(&new);
        let mut told = Told::default();
        for index in 0..self.followers.len() {
            let mut parts: BTreeMap<String, Vec<Change>> = BTreeMap::new();
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
                let followed = follower.follow(&part, &self.now, &new).await;
                tell(&changes, followed.as_ref().err());
                match followed {
                    Ok(()) => {
                        told.changed += changes.len();
                        self.now.take_over(&new, &changes);
                    }
                    Err(_) => told.kept += changes.len(),
                }
            }
        }
        for Change { key, old, new } in &left {
            tracing::warn!(key, old, new, "not changed: it takes a restart");
        }
        told.kept += left.len();
        tracing::info!(changed = told.changed, kept = told.kept, "the configuration was read anew");
        told
    }
}

/// One line in the log for each key.
fn tell(changes: &[Change], refused: Option<&Failure>) {
    for Change { key, old, new } in changes {
        match refused {
            None => tracing::info!(key, old, new, "changed"),
            Some(failure) => {
                let why = said(failure);
                tracing::warn!(key, old, new, why, "not changed");
            }
        }
    }
}

fn said(failure: &Failure) -> &str {
    match failure {
        Failure::Said { message, .. } => message,
        Failure::ClosedPipe | Failure::SaidNo => "it was refused",
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

    /// Sees to one section, and refuses when it is told to.
    struct Section(&'static str, bool, Arc<Mutex<Vec<String>>>);

    #[async_trait]
    impl Follows for Section {
        fn part(&self, key: &str, _: &Config, _: &Config) -> Option<String> {
            key.starts_with(self.0).then(|| self.0.to_owned())
        }

        async fn follow(&self, part: &str, old: &Config, new: &Config) -> Outcome {
            let batches = (old.limits.batch_max, new.limits.batch_max);
            self.2.lock().unwrap().push(format!("{part} {batches:?}"));
            if self.1 { Err(Failure::usage("no")) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn what_was_followed_is_not_told_again_and_the_rest_is() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let followers: Vec<Box<dyn Follows>> = vec![
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
        assert_eq!(reload.run().await, Told { changed: 1, kept: 3 });
        assert_eq!(*heard.lock().unwrap(), ["limits. (100000, 7)", "log. (7, 7)"]);
        assert_eq!(reload.now.limits.batch_max, 7);
        assert_eq!(reload.now.log.filter, "info");
        // The second time nothing is new but what was refused.
        assert_eq!(reload.run().await, Told { changed: 0, kept: 3 });
        assert_eq!(heard.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_configuration_with_a_mistake_changes_nothing() {
        let read = || Err(Failure::usage("line 3"));
        let mut reload = Reload::new(Box::new(read), config(&[]), Vec::new());
        assert_eq!(reload.run().await, Told::default());
        assert_eq!(reload.now, config(&[]));
    }
}
