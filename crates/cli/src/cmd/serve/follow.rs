//! The parts that reload the configuration while the server runs.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use snowmint_coord::Node;
use snowmint_coord::store::StoreConnector;
use snowmint_server::Service;
use snowmint_wire::error::Code;
use tracing_subscriber::EnvFilter;

use super::reload::Reloadable;
use crate::config::{Config, is_below};
use crate::open::store::ConfiguredConnector;
use crate::terminal::exit::{Failure, Outcome};

/// Function that replaces the log's filter.
pub(super) type SetFilter = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// Filter of the log.
pub(super) struct LogFilter(pub(super) SetFilter);

#[async_trait]
impl Reloadable for LogFilter {
    fn part(&self, key: &str, _: &Config, _: &Config) -> Option<String> {
        (key == "log.filter").then(|| key.to_owned())
    }

    async fn follow(&self, _: &str, now: &mut Config, new: &Config) -> Outcome {
        (self.0)(super::filter(new)?).map_err(Failure::unavailable)?;
        now.log.filter.clone_from(&new.log.filter);
        Ok(())
    }
}

/// Limits of a request, and whether requests get a line in the log.
pub(super) struct RequestLimits(pub(super) Service);

#[async_trait]
impl Reloadable for RequestLimits {
    fn part(&self, key: &str, _: &Config, _: &Config) -> Option<String> {
        (is_below(key, "limits") || key == "log.access").then(|| "requests".to_owned())
    }

    async fn follow(&self, _: &str, now: &mut Config, new: &Config) -> Outcome {
        self.0.set_limits(new.limits.clone());
        self.0.log_access(new.log.access);
        now.limits = new.limits.clone();
        now.log.access = new.log.access;
        Ok(())
    }
}

/// New stores that may serve sources. They come before the sources, which may name them.
pub(super) struct Stores(pub(super) Node);

#[async_trait]
impl Reloadable for Stores {
    /// All stores are one part: the content of their URLs is not shown.
    fn part(&self, key: &str, _: &Config, _: &Config) -> Option<String> {
        (key == "stores").then(|| key.to_owned())
    }

    async fn follow(&self, _: &str, now: &mut Config, new: &Config) -> Outcome {
        if let Some(name) =
            now.stores.keys().find(|name| now.stores.get(*name) != new.stores.get(*name))
        {
            return Err(Failure::no(
                Code::Conflict,
                format!(
                    "stores.{name} was changed or removed, which needs a restart; no store was added"
                ),
            ));
        }
        let added = new.stores.iter().filter(|(name, _)| !now.stores.contains_key(*name));
        for (name, place) in added {
            let key = format!("stores.{name}");
            let place: Arc<dyn StoreConnector> =
                Arc::new(ConfiguredConnector::named(&key, place, new)?);
            self.0
                .add_store(name, &place)
                .map_err(|error| Failure::usage(format!("{key}: {}", error.full_message())))?;
        }
        now.stores.clone_from(&new.stores);
        Ok(())
    }
}

/// Definitions of sources: new sources, and changes that `source alter` allows.
pub(super) struct Sources(pub(super) Service);

#[async_trait]
impl Reloadable for Sources {
    /// Each source is a part by itself.
    fn part(&self, key: &str, old: &Config, new: &Config) -> Option<String> {
        let key = key.strip_prefix("sources.")?;
        let names = new.defined.keys().chain(old.defined.keys());
        // Names may have dots: the longest match wins.
        names.filter(|name| is_below(key, name)).max_by_key(|name| name.len()).cloned()
    }

    async fn follow(&self, name: &str, now: &mut Config, new: &Config) -> Outcome {
        let refused =
            |error: snowmint_server::Error| Failure::coded(error.code(), error.full_message());
        let Some(wanted) = new.defined.get(name) else {
            return Err(Failure::no(
                Code::Conflict,
                "source is no longer in the configuration and stays unchanged; delete it \
                 (snowmint source delete NAME)",
            ));
        };
        match now.defined.get(name) {
            None => self.0.define(name, &wanted.spec).await.map_err(refused)?,
            Some(old) => {
                let mut changes = patch(&old.spec.to_json(), &wanted.spec.to_json());
                // The file no longer enables the source: an operator may have switched it off
                // since, which stays.
                if old.spec.enabled == Some(true) && wanted.spec.enabled.is_none() {
                    changes.remove("enabled");
                }
                self.0.alter(name, &changes, None).await.map_err(refused)?
            }
        };
        self.0.set_configured(new.specs());
        now.defined.insert(name.to_owned(), wanted.clone());
        Ok(())
    }
}

/// Returns the merge patch (RFC 7396) that turns one object into the other.
fn patch(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let mut patch: Map<_, _> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(before), value) if before == value => {}
            (Some(Value::Object(before)), Value::Object(value)) => {
                patch.insert(key.clone(), Value::Object(self::patch(before, value)));
            }
            (_, value) => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_lists_new_and_removed_keys() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let old = object(json!({"a": 1, "b": {"c": 2, "d": 3}, "e": 4}));
        let new = object(json!({"a": 1, "b": {"c": 5, "f": 6}, "g": 7}));
        let expected = json!({"b": {"c": 5, "d": null, "f": 6}, "e": null, "g": 7});
        assert_eq!(Value::Object(patch(&old, &new)), expected);
        assert!(patch(&old, &old).is_empty());
    }
}
