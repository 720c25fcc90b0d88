//! Disguise keys: those in a server's configuration, and the key derived for each source.
//!
//! Several sources may name one configured key. If they used it directly, a caller allowed to
//! decode IDs of one source could read those of all of them. So each source gets its own key,
//! derived by HKDF with SHA-256 (RFC 5869). The configured key is the input, and there is no salt.
//! The info is a label, the namespace and the source's name, each after its length, so that no two
//! sources share it. The golden vectors have examples.

use std::collections::BTreeMap;

use hkdf::Hkdf;
use sha2::Sha256;
use snowmint_core::UnixMillis;
use snowmint_core::disguise::{Key, KeyBytes, KeyError, Keyring};

use crate::error::{Error, Result};
use crate::spec::{DisguisePlan, DisguiseVersion, Unique};

/// Keys of a server, by the number that sources use for them.
pub type Keyrings = BTreeMap<u32, DisguiseKeys>;

/// Label before the fields of a key for one source.
const OF_SOURCE: &str = "snowmint disguise 2: source";
/// Label before the field of a key for all sources that are unique in a namespace.
const OF_NAMESPACE: &str = "snowmint disguise 2: namespace";
/// Length of a derived key, in bytes.
const DERIVED_BYTES: usize = 32;

/// Secrets in the order of their use, like a [`Keyring`]'s keys. Configurations have only one.
#[derive(Clone, Debug)]
pub struct DisguiseKeys {
    first: KeyBytes,
    later: Vec<(u8, UnixMillis, KeyBytes)>,
}

impl DisguiseKeys {
    /// Creates keys with one secret, in force from the beginning.
    #[must_use]
    pub const fn new(first: KeyBytes) -> Self {
        Self { first, later: Vec::new() }
    }

    /// Adds a secret, in force from `since` on.
    ///
    /// # Errors
    /// Those of [`Keyring::with`].
    pub fn with(mut self, number: u8, since: UnixMillis, key: KeyBytes) -> Result<Self, KeyError> {
        self.later.push((number, since, key));
        self.ring(|key| Ok(key.key()))?;
        Ok(self)
    }

    fn ring(&self, make: impl Fn(&KeyBytes) -> Result<Key, KeyError>) -> Result<Keyring, KeyError> {
        let mut ring = Keyring::new(make(&self.first)?);
        for (number, since, key) in &self.later {
            ring = ring.with(*number, *since, make(key)?)?;
        }
        Ok(ring)
    }
}

/// Identity of the source that a key belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOf<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) source: &'a str,
    pub(crate) unique: Unique,
}

impl KeyOf<'_> {
    /// Returns the source's keys.
    ///
    /// # Errors
    /// `Invalid` when this server has no key of that number.
    pub(super) fn ring(self, plan: DisguisePlan, keys: &Keyrings) -> Result<Keyring> {
        let number = plan.key;
        let keys = keys.get(&number).ok_or_else(|| {
            Error::invalid(format!(
                "source {:?} needs disguise key {number}, which this server lacks; \
                 add it to disguise.keys",
                self.source
            ))
        })?;
        let ring = match plan.version {
            DisguiseVersion::Shared => keys.ring(|key| Ok(key.key())),
            DisguiseVersion::Derived => keys.ring(|key| derived(key, &self.info())),
        };
        ring.map_err(|error| Error::invalid(format!("disguise key {number}: {error}")))
    }

    /// Returns the info that distinguishes this key from all others.
    fn info(self) -> Vec<u8> {
        match self.unique {
            Unique::Source => encoded(&[OF_SOURCE, self.namespace, self.source]),
            Unique::Namespace => encoded(&[OF_NAMESPACE, self.namespace]),
        }
    }
}

/// Returns each field after its length in 8 bytes, big-endian.
fn encoded(fields: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
        bytes.extend_from_slice(field.as_bytes());
    }
    bytes
}

fn derived(key: &KeyBytes, info: &[u8]) -> Result<Key, KeyError> {
    let mut bytes = [0; DERIVED_BYTES];
    // Only a key of more than 8,160 bytes cannot be derived.
    let made = Hkdf::<Sha256>::new(None, key.as_bytes()).expand(info, &mut bytes);
    made.map_err(|_| KeyError::Length { bytes: DERIVED_BYTES })?;
    Key::from_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::Value;
    use snowmint_core::disguise::Disguise;

    use super::*;
    use crate::spec::Hides;

    fn of<'a>(namespace: &'a str, source: &'a str, unique: Unique) -> KeyOf<'a> {
        KeyOf { namespace, source, unique }
    }

    fn disguise(of: KeyOf<'_>, version: DisguiseVersion, key: &str, bits: u8) -> Disguise {
        let keys = Keyrings::from([(1, DisguiseKeys::new(key.parse().unwrap()))]);
        let plan = DisguisePlan { key: 1, version, hides: Hides::All { bits: Some(bits) } };
        Disguise::full_numbers(of.ring(plan, &keys).unwrap(), bits, bits).unwrap()
    }

    const KEY: &str = "000102030405060708090a0b0c0d0e0f";

    /// The vectors were computed independently of this code.
    #[test]
    fn keys_are_derived_as_written() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../../../vectors/disguise_keys.json")).unwrap();
        let lines = vectors.as_array().unwrap();
        assert!(lines.len() >= 8, "{}", lines.len());
        for line in lines {
            let text = |key: &str| line[key].as_str().unwrap();
            let unique = if line["source"].is_null() { Unique::Namespace } else { Unique::Source };
            let source = line["source"].as_str().unwrap_or("any");
            let of = of(text("namespace"), source, unique);
            let key: KeyBytes = text("key").parse().unwrap();
            let hex =
                |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert_eq!(hex(&of.info()), text("info"), "{line}");
            let wanted: Key = text("derived").parse().unwrap();
            assert!(derived(&key, &of.info()).unwrap() == wanted, "{line}");
            let disguise = disguise(of, DisguiseVersion::Derived, text("key"), 53);
            let (id, shown): (u64, u64) =
                (text("id").parse().unwrap(), text("disguised").parse().unwrap());
            assert_eq!(disguise.apply(id), Ok(shown), "{line}");
            assert_eq!(disguise.undo(shown), Ok(id), "{line}");
        }
    }

    #[test]
    fn version_1_uses_the_configured_key_for_every_name() {
        let plain = Disguise::full_numbers(Keyring::new(KEY.parse().unwrap()), 53, 53).unwrap();
        for of in [of("a", "b", Unique::Source), of("c", "d", Unique::Namespace)] {
            let shared = disguise(of, DisguiseVersion::Shared, KEY, 53);
            for id in [0, 1, 77, (1 << 53) - 1] {
                assert_eq!(shared.apply(id), plain.apply(id));
            }
        }
    }

    /// Characters at the boundary of two fields belong to exactly one of them.
    #[test]
    fn no_two_sources_have_the_same_info() {
        let names = ["a", "ab", "b", "", "a.b", "source", "a\0b"];
        let mut seen = BTreeSet::new();
        for namespace in names {
            assert!(seen.insert(of(namespace, "any", Unique::Namespace).info()));
            for source in names {
                assert!(seen.insert(of(namespace, source, Unique::Source).info()));
            }
        }
    }

    #[test]
    fn all_that_are_unique_in_a_namespace_share_its_key() {
        let shown = |of| disguise(of, DisguiseVersion::Derived, KEY, 63).apply(12_345).unwrap();
        let (one, other) = (of("n", "a", Unique::Namespace), of("n", "b", Unique::Namespace));
        assert_eq!(shown(one), shown(other));
        assert_ne!(shown(one), shown(of("n", "a", Unique::Source)));
        assert_ne!(shown(one), shown(of("m", "a", Unique::Namespace)));
    }

    #[test]
    fn keys_that_follow_one_another_are_each_derived() {
        let since = UnixMillis::new(5_000);
        let keys = DisguiseKeys::new(KEY.parse().unwrap());
        let keys = keys.with(1, since, "ff".repeat(16).parse().unwrap()).unwrap();
        assert!(keys.clone().with(1, since, KEY.parse().unwrap()).is_err(), "the number is taken");
        let shown = format!("{keys:?}");
        assert_eq!(shown.matches("KeyBytes(secret)").count(), 2, "{shown}");
        let plan = DisguisePlan {
            key: 1,
            version: DisguiseVersion::Derived,
            hides: Hides::All { bits: Some(53) },
        };
        let ring = of("n", "a", Unique::Source).ring(plan, &Keyrings::from([(1, keys)])).unwrap();
        assert_eq!(ring.newest_number(), 1);
        let missing =
            of("n", "a", Unique::Source).ring(DisguisePlan { key: 2, ..plan }, &Keyrings::new());
        assert!(missing.unwrap_err().to_string().contains("key 2"));
    }

    proptest! {
        /// A source decodes its own IDs, and no other source does.
        #[test]
        fn no_source_reads_what_another_shows(
            key in any::<[u8; 32]>(),
            one in "[a-z]{1,8}",
            other in "[a-z]{1,8}",
            ids in proptest::collection::vec(0_u64..1 << 53, 8),
        ) {
            prop_assume!(one != other);
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let made = |source: &str| {
                disguise(of("n", source, Unique::Source), DisguiseVersion::Derived, &key, 53)
            };
            let (own, guest) = (made(&one), made(&other));
            let mut read = 0;
            for id in &ids {
                let shown = own.apply(*id).unwrap();
                prop_assert_eq!(own.undo(shown), Ok(*id));
                read += u32::from(guest.undo(shown) == Ok(*id));
            }
            // By chance, one in 2^53 would be read.
            prop_assert_eq!(read, 0);
        }
    }

    #[test]
    fn a_derived_key_is_a_bijection() {
        let disguise = disguise(of("n", "a", Unique::Source), DisguiseVersion::Derived, KEY, 16);
        let shown: BTreeSet<u64> = (0..1 << 16).map(|id| disguise.apply(id).unwrap()).collect();
        assert_eq!((shown.len(), shown.last()), (1 << 16, Some(&0xFFFF)));
    }
}
