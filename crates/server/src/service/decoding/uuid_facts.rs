//! Content of a UUID, its time included.

use serde::Serialize;
use uuid::{Uuid, Variant};

/// Time from 1582-10-15T00:00:00Z, the origin of versions 1, 2 and 6, to 1970, in steps of 100 ns.
const GREGORIAN_STEPS_TO_1970: i128 = 0x01b2_1dd2_1381_4000;
/// Number of 100 ns steps in a millisecond.
const STEPS_PER_MS: i128 = 10_000;

/// Content of a UUID besides its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UuidFacts {
    /// Version, in words.
    #[serde(skip)]
    pub version: &'static str,
    /// Standard that defines the layout of the bits.
    pub variant: &'static str,
    /// Clock sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_sequence: Option<u16>,
    /// Node, in the notation of MAC addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Whether the node is a real network card's address: its multicast bit is clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_shows: Option<bool>,
    /// Content of version 2 in place of the low bits of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dce: Option<Dce>,
}

/// Domain and number of a UUID of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Dce {
    /// Kind of the number.
    pub domain: u8,
    /// Number of a user or a group.
    pub number: u32,
}

impl UuidFacts {
    /// Returns the content of a UUID of this version; 0 is none.
    #[must_use]
    pub fn of(uuid: Uuid, version: usize) -> Self {
        let bytes = uuid.as_bytes();
        let has_node = matches!(version, 1 | 2 | 6);
        let sequence_bits = u16::from_be_bytes([bytes[8], bytes[9]]) & 0x3fff;
        let node = &bytes[10..];
        Self {
            version: version_name(uuid, version),
            variant: variant_name(uuid),
            clock_sequence: match version {
                1 | 6 => Some(sequence_bits),
                2 => Some(sequence_bits >> 8),
                _ => None,
            },
            node: has_node.then(|| {
                node.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
            }),
            mac_shows: has_node.then_some(node[0] & 1 == 0),
            dce: (version == 2).then(|| Dce {
                domain: bytes[9],
                number: u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            }),
        }
    }
}

fn version_name(uuid: Uuid, version: usize) -> &'static str {
    match (version, uuid.is_nil(), uuid.is_max()) {
        (_, true, _) => "nil: no UUID at all",
        (_, _, true) => "max: the last one of all",
        (1, ..) => "1: time and node",
        (2, ..) => "2: DCE security, not minted here",
        (3, ..) => "3: a name, through MD5",
        (4, ..) => "4: random",
        (5, ..) => "5: a name, through SHA-1",
        (6, ..) => "6: time and node, sortable",
        (7, ..) => "7: Unix time and random, sortable",
        (8, ..) => "8: whatever its maker chose",
        _ => "unknown",
    }
}

fn variant_name(uuid: Uuid) -> &'static str {
    match uuid.get_variant() {
        Variant::NCS => "NCS (before the standard)",
        Variant::RFC4122 => "RFC 9562",
        Variant::Microsoft => "Microsoft",
        _ => "reserved",
    }
}

/// Returns the time when the UUID was made, as far as it contains it.
#[must_use]
pub fn unix_ms(uuid: Uuid, version: usize) -> Option<i64> {
    let bytes = uuid.as_bytes();
    let (high, _) = uuid.as_u64_pair();
    let time_high = u64::from(u16::from_be_bytes([bytes[6] & 0x0f, bytes[7]]));
    let steps = match version {
        1 => time_high << 48 | (high >> 16 & 0xffff) << 32 | high >> 32,
        // The low 32 bits of the time hold a local number: the time is known to 7 minutes only.
        2 => time_high << 48 | (high >> 16 & 0xffff) << 32,
        6 => (high >> 16) << 12 | time_high,
        7 => return i64::try_from(high >> 16).ok(),
        _ => return None,
    };
    i64::try_from((i128::from(steps) - GREGORIAN_STEPS_TO_1970).div_euclid(STEPS_PER_MS)).ok()
}
