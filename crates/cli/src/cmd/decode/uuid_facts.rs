//! Content of a UUID besides its time.

use serde::Serialize;
use uuid::{Uuid, Variant};

use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Content of a UUID besides its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UuidFacts {
    #[serde(skip)]
    pub(super) version: &'static str,
    /// Standard that defines the layout of the bits.
    pub(super) variant: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clock_sequence: Option<u16>,
    /// Node, in the notation of MAC addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    /// Whether the node is a real network card's address: its multicast bit is clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mac_shows: Option<bool>,
    /// Content of version 2 in place of the low bits of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dce: Option<Dce>,
}

/// Domain and number of a UUID of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Dce {
    pub(super) domain: u8,
    pub(super) number: u32,
}

impl UuidFacts {
    pub(super) fn of(uuid: Uuid, version: usize) -> Self {
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

    pub(super) fn write(&self, out: &mut Output) -> Outcome {
        out.field("kind", Some("UUID"))?;
        out.field("version", Some(self.version))?;
        out.field("variant", Some(self.variant))?;
        if let Some(node) = &self.node {
            let shows = match self.mac_shows {
                Some(true) => "A REAL MAC ADDRESS SHOWS",
                _ => "random, no MAC address shows",
            };
            out.field("node", Some(format_args!("{node} ({shows})")))?;
        }
        out.field("clock", self.clock_sequence)?;
        if let Some(Dce { domain, number }) = self.dce {
            let of = match domain {
                0 => "user",
                1 => "group",
                2 => "organisation",
                _ => "site's own kind",
            };
            out.field("number", Some(format_args!("{number} (domain {domain}: {of})")))?;
        }
        Ok(())
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
