//! UUIDs. No MAC address is ever read: versions 1 and 6 use a random node, marked as such.

use std::sync::{Mutex, PoisonError};

use snowmint_core::text::Format;
use uuid::{ContextV7, Timestamp, Uuid};

use crate::error::{Error, Result};
use crate::platform::clock::NodeClock;
use crate::platform::random;
use crate::sources::defined::Defined;
use crate::sources::id_batch::Decoded;
use crate::sources::id_codec::quoted;
use crate::sources::source_kind::SourceKind;
use crate::spec::UuidPlan;

/// 100 ns ticks from 1582-10-15, the Gregorian calendar's start, to 1970-01-01 (RFC 9562, 5.1).
const GREGORIAN_TICKS: u64 = 0x01b2_1dd2_1381_4000;
/// Longest name that versions 3 and 5 hash, in bytes; also limits version 8's hexadecimal data.
const NAME_BYTES_MAX: usize = 4_096;

/// A source of UUIDs of one version.
pub(super) struct UuidSource {
    plan: UuidPlan,
    clock: NodeClock,
    /// Random node with the multicast bit, which no network card has (RFC 9562, 6.10).
    node: [u8; 6],
    /// Random clock sequence; distinguishes this process from others with the same node.
    sequence: u16,
    state: Mutex<UuidState>,
}

struct UuidState {
    /// The last 100 ns tick used: time never goes back or stands still.
    tick: u64,
    v7: ContextV7,
}

impl UuidSource {
    pub(super) fn new(plan: UuidPlan, clock: NodeClock) -> Result<Self> {
        let bits = random::number()?.to_be_bytes();
        let [first, b, c, d, e, f, sequence @ ..] = bits;
        Ok(Self {
            plan,
            clock,
            node: [first | 1, b, c, d, e, f],
            sequence: u16::from_be_bytes(sequence) & 0x3fff,
            state: Mutex::new(UuidState { tick: 0, v7: ContextV7::new() }),
        })
    }

    /// Mints one UUID. `name` is the name that versions 3 and 5 hash, or version 8's own data.
    pub(super) fn mint(&self, name: Option<&str>) -> Result<Uuid> {
        let needs_name = matches!(self.plan, UuidPlan::V3(_) | UuidPlan::V5(_));
        if let Some(name) = name.filter(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Error::invalid(format!(
                "name has {} bytes, maximum {NAME_BYTES_MAX}; shorten it",
                name.len()
            )));
        }
        if name.is_some() && !needs_name && self.plan != UuidPlan::V8 {
            return Err(Error::invalid(format!(
                "UUID version {} takes no key; leave it out",
                self.plan.version()
            )));
        }
        match (self.plan, name) {
            (UuidPlan::V1, _) => Ok(Uuid::new_v1(self.gregorian(), &self.node)),
            (UuidPlan::V6, _) => Ok(Uuid::new_v6(self.gregorian(), &self.node)),
            (UuidPlan::V4, _) => Ok(Uuid::new_v4()),
            (UuidPlan::V7, _) => Ok(self.v7()),
            (UuidPlan::V3(namespace), Some(name)) => Ok(Uuid::new_v3(&namespace, name.as_bytes())),
            (UuidPlan::V5(namespace), Some(name)) => Ok(Uuid::new_v5(&namespace, name.as_bytes())),
            (UuidPlan::V3(_) | UuidPlan::V5(_), None) => Err(Error::invalid(format!(
                "UUID version {} hashes a name; give it as the key",
                self.plan.version()
            ))),
            (UuidPlan::V8, None) => Ok(Uuid::new_v8(*Uuid::new_v4().as_bytes())),
            (UuidPlan::V8, Some(data)) => {
                Uuid::try_parse(data).map(|data| Uuid::new_v8(*data.as_bytes())).map_err(|_| {
                    Error::invalid(format!(
                        "key of {} bytes is not 32 hexadecimal digits, which UUID version 8 \
                         needs; correct it",
                        data.len()
                    ))
                })
            }
        }
    }

    /// Returns a time that no UUID of this source had before, whatever the clock does.
    fn gregorian(&self) -> Timestamp {
        let wall_us = self.clock.read().wall_us;
        let now = GREGORIAN_TICKS.saturating_add(wall_us.saturating_mul(10));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tick = now.max(state.tick.saturating_add(1));
        Timestamp::from_gregorian_time(state.tick, self.sequence)
    }

    /// Mints version 7. The context keeps the order within this source even if the clock is set
    /// back.
    fn v7(&self) -> Uuid {
        let wall_us = self.clock.read().wall_us;
        // Below 10^9.
        let nanos = u32::try_from(wall_us % 1_000_000 * 1_000).unwrap_or(0);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(Timestamp::from_unix(&state.v7, wall_us / 1_000_000, nanos))
    }
}

impl SourceKind for UuidSource {
    fn mint_texts(&self, count: u32, key: Option<&str>) -> Option<Result<Vec<String>>> {
        Some((0..count).map(|_| self.mint(key).map(|id| id.to_string())).collect())
    }

    fn decode(&self, _: &str, _: &Defined, text: &str, _: Option<Format>) -> Result<Decoded> {
        Uuid::try_parse(text).map(|uuid| Decoded::Uuid { uuid }).map_err(|error| {
            let text = quoted(text);
            Error::invalid(format!("{text} is not a UUID: {error}; check the text"))
        })
    }
}

crate::opaque_debug!(UuidSource: plan);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use snowmint_core::{ManualClock, UnixMillis};
    use uuid::{Variant, Version};

    use super::*;

    const NOW: UnixMillis = UnixMillis::new(1_800_000_000_123);

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(NOW))
    }

    fn source(plan: UuidPlan, clock: &Arc<ManualClock>) -> UuidSource {
        UuidSource::new(plan, Arc::clone(clock) as NodeClock).unwrap()
    }

    #[test]
    fn every_uuid_shows_its_version() {
        let clock = clock();
        let dns = Uuid::NAMESPACE_DNS;
        for (plan, version, name) in [
            (UuidPlan::V1, Version::Mac, None),
            (UuidPlan::V3(dns), Version::Md5, Some("example.com")),
            (UuidPlan::V4, Version::Random, None),
            (UuidPlan::V5(dns), Version::Sha1, Some("example.com")),
            (UuidPlan::V6, Version::SortMac, None),
            (UuidPlan::V7, Version::SortRand, None),
            (UuidPlan::V8, Version::Custom, None),
        ] {
            let id = source(plan, &clock).mint(name).unwrap();
            assert_eq!(id.get_version(), Some(version), "{plan:?}");
            assert_eq!(id.get_variant(), Variant::RFC4122, "{plan:?}");
        }
    }

    /// The examples of RFC 9562's appendix: version 3 and 5 of www.example.com.
    #[test]
    fn uuid_names_hash_by_the_standard() {
        let clock = clock();
        let dns = Uuid::NAMESPACE_DNS;
        let name = Some("www.example.com");
        let v3 = source(UuidPlan::V3(dns), &clock).mint(name).unwrap();
        let v5 = source(UuidPlan::V5(dns), &clock).mint(name).unwrap();
        assert_eq!(v3.to_string(), "5df41881-3aed-3515-88a7-2f4a814cf09e");
        assert_eq!(v5.to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
    }

    #[test]
    fn time_based_uuids_differ_under_a_frozen_clock() {
        for plan in [UuidPlan::V1, UuidPlan::V6, UuidPlan::V7] {
            let clock = clock();
            let source = source(plan, &clock);
            let mut seen = HashSet::new();
            for round in 0..3_000 {
                assert!(seen.insert(source.mint(None).unwrap()), "{plan:?} {round}");
                if round % 1_000 == 500 {
                    clock.step_back_ms(10_000);
                }
            }
        }
    }

    #[test]
    fn sortable_uuids_increase_whatever_the_clock_does() {
        let clock = clock();
        let sources = [UuidPlan::V6, UuidPlan::V7].map(|plan| source(plan, &clock));
        let mut last = [Uuid::nil(); 2];
        for round in 0..5_000_u32 {
            let next = [0, 1].map(|at: usize| sources[at].mint(None).unwrap());
            assert!(next[0] > last[0] && next[1] > last[1], "{round}");
            last = next;
            match round % 10 {
                3 => clock.advance_ms(1),
                7 => clock.step_back_ms(5),
                _ => {}
            }
        }
    }

    #[test]
    fn no_network_address_shows() {
        let clock = clock();
        for plan in [UuidPlan::V1, UuidPlan::V6] {
            let id = source(plan, &clock).mint(None).unwrap();
            assert_eq!(id.get_node_id().unwrap()[0] & 1, 1, "the multicast bit says random");
        }
    }

    #[test]
    fn keys_are_accepted_only_where_meaningful() {
        let clock = clock();
        let dns = Uuid::NAMESPACE_DNS;
        assert!(source(UuidPlan::V5(dns), &clock).mint(None).is_err());
        assert!(source(UuidPlan::V4, &clock).mint(Some("x")).is_err());
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(source(UuidPlan::V5(dns), &clock).mint(Some(&long)).is_err());
        assert!(source(UuidPlan::V5(dns), &clock).mint(Some(&long[1..])).is_ok());
        let v8 = source(UuidPlan::V8, &clock);
        assert!(v8.mint(Some("no digits")).is_err());
        let id = v8.mint(Some("00112233445566778899aabbccddeeff")).unwrap();
        assert_eq!(id.to_string(), "00112233-4455-8677-8899-aabbccddeeff");
    }
}
