//! Settings of the compatibility APIs: each is off by default.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::{Deserialize as _, Deserializer, Serializer};
use snowmint_coord::catalog::check_name;
use snowmint_core::Layout;

use crate::access::Secret;

/// Sources by key: a key that is not in the table is the name of its source.
pub type KeySources = BTreeMap<String, String>;

crate::settings! {
    /// HTTP interfaces of other systems: their clients move to Snowmint by a change of address.
    pub struct CompatSettings {
        /// HTTP interface of Meituan Leaf, on the same port: docs/how-to/move-from-leaf.md.
        pub leaf: LeafSettings,
        /// HTTP interface of Didi Tinyid, with the prefix /tinyid and without.
        pub tinyid: TinyidSettings,
        /// HTTP interface of CosId's proxy.
        pub cosid: CosIdSettings,
    }

    /// Compatibility API of Leaf.
    pub struct LeafSettings {
        /// Whether this interface is open.
        pub enabled: bool,
        /// Source of every key of /api/snowflake/get/{key} that is not in the table of keys, since
        /// Leaf accepts any key there. Empty: a key is the name of its source.
        pub snowflake: String,
        /// Layout by which /decodeSnowflakeId reads.
        pub layout: String = "leaf".into(),
        /// Time zone of the times in its response: UTC, or a name such as Asia/Shanghai.
        pub zone: String = "UTC".into(),
        /// Sources of Leaf's keys: "KEY" = "SOURCE". A key that is not in this table is the name of
        /// its source.
        pub keys: KeySources,
    }

    /// Compatibility API of Tinyid.
    pub struct TinyidSettings {
        /// Whether this interface is open.
        pub enabled: bool,
        /// Numbers that a client gets at once to issue by itself, from a source whose step.rule is
        /// adaptive; with other rules, step.size counts. At most limits.segment_max.
        #[within(1..)]
        pub segment_length: u64 = 1_000,
        /// Sources of Tinyid's business types: "BIZ_TYPE" = "SOURCE". A type that is not in this
        /// table is the name of its source.
        pub keys: KeySources,
        /// Business types that each token may request: "TOKEN" = "BIZ_TYPE, BIZ_TYPE", or "*" for
        /// all. The hash of a token (sha256:HEX, of `snowmint token hash`) may stand for it. If the
        /// table is empty, the tokens of tokens.file count.
        #[serde(serialize_with = "merged", deserialize_with = "tokens")]
        pub tokens: BTreeMap<Secret, String>,
    }

    /// Compatibility API of CosId's proxy.
    pub struct CosIdSettings {
        /// Whether this interface is open.
        pub enabled: bool,
        /// Whether a client that requests segments of a source that does not exist may define it.
        pub define: bool,
        /// Machine IDs, including free ones, that the clients of one CosId namespace may have in
        /// the store. The same limit holds for all namespaces in which one token may reserve,
        /// together.
        ///
        /// All values of `machineBit` count together. Beyond the limit, a client gets only a
        /// machine ID that is free again; if there is none, it gets `M-01`.
        #[within(1..)]
        pub machines_max: u64 = 4_096,
        /// Sources of CosId's names: "NAMESPACE.NAME" = "SOURCE" for segments, "NAME" = "SOURCE"
        /// for single IDs. A name that is not in this table is the name of its source.
        pub keys: KeySources,
    }
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
            (
                "compat.tinyid.tokens",
                with(|all| drop(all.tinyid.tokens.insert(Secret::new(""), "*".into()))),
            ),
        ] {
            assert!(message.starts_with(key), "{key}: {message}");
        }
    }
}
