//! UUID sources: their keys, checked, and back.

use crate::spec::error::{SpecError, needs, value};
use crate::spec::kind::Kind;
use crate::spec::source_spec::{SourceSpec, UuidSpec};

/// UUID version, with its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UuidPlan {
    /// Gregorian time, with a random node instead of a MAC address.
    V1,
    /// The MD5 of a name in a namespace.
    V3(uuid::Uuid),
    /// Random.
    V4,
    /// The SHA-1 of a name in a namespace.
    V5(uuid::Uuid),
    /// Version 1 with the bits in an order that sorts.
    V6,
    /// Unix milliseconds, a counter, and random bits.
    V7,
    /// 122 bits of the caller's own, or random.
    V8,
}

impl UuidPlan {
    /// Returns the version number.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V3(_) => 3,
            Self::V4 => 4,
            Self::V5(_) => 5,
            Self::V6 => 6,
            Self::V7 => 7,
            Self::V8 => 8,
        }
    }

    pub(super) fn to_spec(self) -> SourceSpec {
        let namespace = match self {
            Self::V3(namespace) | Self::V5(namespace) => Some(namespace.to_string()),
            _ => None,
        };
        let uuid = UuidSpec { version: Some(self.version()), namespace };
        SourceSpec { uuid: Some(uuid), ..SourceSpec::of(Kind::Uuid) }
    }
}

pub(super) fn uuid(spec: &SourceSpec) -> Result<UuidPlan, SpecError> {
    let keys = spec.uuid.clone().unwrap_or_default();
    let version = keys.version.unwrap_or(7);
    let named = matches!(version, 3 | 5);
    needs("uuid.namespace", keys.namespace.is_some() && !named, "uuid.version = 3 or 5")?;
    let namespace = match keys.namespace.as_deref() {
        None if named => {
            return Err(SpecError::Missing {
                key: "uuid.namespace",
                reason: "versions 3 and 5 hash a name in a namespace: dns, url, oid, x500 or a UUID",
            });
        }
        None => uuid::Uuid::nil(),
        Some("dns") => uuid::Uuid::NAMESPACE_DNS,
        Some("url") => uuid::Uuid::NAMESPACE_URL,
        Some("oid") => uuid::Uuid::NAMESPACE_OID,
        Some("x500") => uuid::Uuid::NAMESPACE_X500,
        Some(written) => uuid::Uuid::try_parse(written)
            .map_err(|_| value("uuid.namespace", written, "take dns, url, oid, x500 or a UUID"))?,
    };
    match version {
        1 => Ok(UuidPlan::V1),
        3 => Ok(UuidPlan::V3(namespace)),
        4 => Ok(UuidPlan::V4),
        5 => Ok(UuidPlan::V5(namespace)),
        6 => Ok(UuidPlan::V6),
        7 => Ok(UuidPlan::V7),
        8 => Ok(UuidPlan::V8),
        2 => Err(value("uuid.version", 2, "version 2 is recognised, not minted")),
        other => Err(value("uuid.version", other, "take 1, 3, 4, 5, 6, 7 or 8")),
    }
}
