//! Settings of the compatibility APIs: each is off by default.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use snowmint_coord::catalog::check_name;
use snowmint_core::Layout;

use crate::access::Secret;

/// HTTP interfaces of other systems: their clients move to Snowmint by a change of address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompatSettings {
    /// Meituan Leaf.
    pub leaf: LeafSettings,
    /// Didi Tinyid.
    pub tinyid: TinyidSettings,
    /// CosId's proxy.
    pub cosid: CosIdSettings,
}

/// Sources by key: a key that is not in the table is the name of its source.
pub type KeySources = BTreeMap<String, String>;

/// Compatibility API of Leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSettings {
    /// Whether it is on.
    pub enabled: bool,
    /// Source of every key of `/api/snowflake/get/{key}` that is not in `keys`, since Leaf takes
    /// any key there. Empty: a key is the name of its source.
    pub snowflake: String,
    /// Layout by which `/decodeSnowflakeId` reads. `leaf`.
    pub layout: String,
    /// Time zone of the times that it shows. `UTC`.
    pub zone: String,
    /// Sources by key.
    pub keys: KeySources,
}

impl Default for LeafSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            snowflake: String::new(),
            layout: "leaf".into(),
            zone: "UTC".into(),
            keys: KeySources::new(),
        }
    }
}

/// Compatibility API of Tinyid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TinyidSettings {
    /// Whether it is on.
    pub enabled: bool,
    /// Numbers that a client gets to issue by itself, of a source whose `step.rule` names no
    /// number. 1,000.
    pub segment_length: u64,
    /// Sources by business type.
    pub keys: KeySources,
    /// Business types that each token, or the hash of one, may request: separated by commas, or
    /// `*`. Empty: the server's tokens count.
    #[serde(serialize_with = "merged", deserialize_with = "tokens")]
    pub tokens: BTreeMap<Secret, String>,
}

/// Writes the tokens, for the configuration that merges its layers: a secret has no other written
/// form.
fn merged<S: Serializer>(
    tokens: &BTreeMap<Secret, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tokens.iter().map(|(token, types)| (token.text(), types)))
}

fn tokens<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Secret, String>, D::Error> {
    let tokens = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(tokens.into_iter().map(|(token, types)| (Secret::new(token), types)).collect())
}

impl Default for TinyidSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            segment_length: 1_000,
            keys: KeySources::new(),
            tokens: BTreeMap::new(),
        }
    }
}

/// Compatibility API of CosId's proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CosIdSettings {
    /// Whether it is on.
    pub enabled: bool,
    /// Whether a client may define the segment source that it requests.
    pub define: bool,
    /// Most machine IDs in the store for the clients of one namespace, and for all namespaces that
    /// one token may use. Free machine IDs count, too. 4,096.
    pub machines_max: u64,
    /// Sources by key: `NAMESPACE.NAME` for segments, and a name for IDs.
    pub keys: KeySources,
}

impl Default for CosIdSettings {
    fn default() -> Self {
        Self { enabled: false, define: false, machines_max: 4_096, keys: KeySources::new() }
    }
}

impl CompatSettings {
    /// Checks all settings.
    ///
    /// # Errors
    /// The key whose value is invalid, with the value.
    pub fn check(&self) -> Result<(), String> {
        let Self { leaf, tinyid, cosid } = self;
        for (api, keys) in [("leaf", &leaf.keys), ("tinyid", &tinyid.keys), ("cosid", &cosid.keys)]
        {
            for (key, source) in keys {
                check_name("source", source)
                    .map_err(|error| format!("compat.{api}.keys.{key:?}: {error}"))?;
            }
        }
        if !leaf.snowflake.is_empty() {
            check_name("source", &leaf.snowflake)
                .map_err(|error| format!("compat.leaf.snowflake: {error}"))?;
        }
        leaf.layout()?;
        leaf.zone()?;
        if tinyid.segment_length == 0 {
            let message = "compat.tinyid.segment_length 0 is below the minimum of 1; raise it";
            return Err(message.to_owned());
        }
        if cosid.machines_max == 0 {
            let message = "compat.cosid.machines_max 0 is below the minimum of 1; raise it";
            return Err(message.to_owned());
        }
        if tinyid.tokens.keys().any(|token| token.text().is_empty()) {
            return Err("compat.tinyid.tokens has an empty token; remove it".to_owned());
        }
        Ok(())
    }
}

impl LeafSettings {
    /// Returns the layout of decoded IDs.
    pub(crate) fn layout(&self) -> Result<Layout, String> {
        let text = &self.layout;
        text.parse().map_err(|error| format!("compat.leaf.layout = {text:?}: {error}"))
    }

    /// Returns the time zone of shown times.
    pub(crate) fn zone(&self) -> Result<TimeZone, String> {
        let name = &self.zone;
        TimeZone::get(name).map_err(|_| {
            format!(
                "compat.leaf.zone {name:?} is not a time zone; use UTC, or a name such as \
                 Asia/Shanghai"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_setting_is_named_with_its_key() {
        assert_eq!(CompatSettings::default().check(), Ok(()));
        let with = |change: fn(&mut CompatSettings)| {
            let mut settings = CompatSettings::default();
            change(&mut settings);
            settings.check().unwrap_err()
        };
        for (key, message) in [
            (
                "compat.leaf.keys.\"k\"",
                with(|all| drop(all.leaf.keys.insert("k".into(), "no name".into()))),
            ),
            (
                "compat.tinyid.keys.\"k\"",
                with(|all| drop(all.tinyid.keys.insert("k".into(), String::new()))),
            ),
            (
                "compat.cosid.keys.\"a.b\"",
                with(|all| drop(all.cosid.keys.insert("a.b".into(), "@".into()))),
            ),
            ("compat.leaf.snowflake", with(|all| all.leaf.snowflake = "/".into())),
            ("compat.leaf.layout", with(|all| all.leaf.layout = "time=99".into())),
            ("compat.leaf.zone", with(|all| all.leaf.zone = "Mars/Base".into())),
            ("compat.cosid.machines_max", with(|all| all.cosid.machines_max = 0)),
            ("compat.tinyid.segment_length", with(|all| all.tinyid.segment_length = 0)),
            (
                "compat.tinyid.tokens",
                with(|all| drop(all.tinyid.tokens.insert(Secret::new(""), "*".into()))),
            ),
        ] {
            assert!(message.starts_with(key), "{key}: {message}");
        }
    }
}
