//! Disguises: their keys, checked, and back.

use snowmint_core::Layout;

use crate::spec::error::{SpecError, needs, value};
use crate::spec::kind::DisguiseMode;
use crate::spec::source_spec::DisguiseSpec;

/// Disguise of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisguisePlan {
    /// Number of the key ring.
    pub key: u32,
    /// Derivation of the source's key from the key ring's.
    pub version: DisguiseVersion,
    /// Bits that are hidden.
    pub hides: Hides,
}

/// Bits that a disguise hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// All bits: 63 or 53 for numbers; `None` for a layout, whose own width is kept.
    All {
        /// Number of bits.
        bits: Option<u8>,
    },
    /// Worker and sequence bits, keyed by tick.
    BelowTime,
}

/// Derivation of a source's key from the configured one. It can never change: another key is
/// another permutation, and two permutations make one number of two IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisguiseVersion {
    /// 1: the configured key itself. All sources that name it have the same disguise, so a caller
    /// that may have IDs of one of them decoded can read those of all.
    Shared,
    /// 2: derived from the configured key, the namespace and the source's name. For sources that
    /// are unique in the namespace, whose IDs must differ, from the key and the namespace alone.
    Derived,
}

impl DisguiseVersion {
    /// Version of new definitions.
    pub const NEWEST: Self = Self::Derived;

    /// Returns the number used in definitions.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Shared => 1,
            Self::Derived => 2,
        }
    }
}

pub(super) fn disguise(
    given: Option<&DisguiseSpec>,
    layout: Option<&Layout>,
) -> Result<Option<DisguisePlan>, SpecError> {
    let Some(spec) = given else { return Ok(None) };
    let mode = spec.mode.unwrap_or_default();
    if mode == DisguiseMode::None {
        let reject = |key, is_given| needs(key, is_given, "disguise.mode = full or ordered");
        reject("disguise.key", spec.key.is_some())?;
        reject("disguise.version", spec.version.is_some())?;
        reject("disguise.bits", spec.bits.is_some())?;
        reject("disguise.check", spec.check.is_some())?;
        return Ok(None);
    }
    let key = spec.key.unwrap_or(1);
    let version = disguise_version(spec.version)?;
    if mode == DisguiseMode::Ordered {
        if layout.is_none() {
            return Err(value("disguise.mode", "ordered", "only snowflake sources have time bits"));
        }
        needs("disguise.bits", spec.bits.is_some(), "disguise.mode = full")?;
        return Ok(Some(DisguisePlan { key, version, hides: Hides::BelowTime }));
    }
    // A snowflake's disguise has the layout's own width.
    needs("disguise.bits", layout.is_some() && spec.bits.is_some(), "kind = segment")?;
    let bits = layout.is_none().then_some(spec.bits.unwrap_or(63));
    match bits {
        None | Some(53 | 63) => Ok(Some(DisguisePlan { key, version, hides: Hides::All { bits } })),
        Some(bits) => Err(value("disguise.bits", bits, "take 63, or 53 for JavaScript readers")),
    }
}

fn disguise_version(given: Option<u8>) -> Result<DisguiseVersion, SpecError> {
    match given {
        None | Some(1) => Ok(DisguiseVersion::Shared),
        Some(2) => Ok(DisguiseVersion::Derived),
        Some(other) => Err(value(
            "disguise.version",
            other,
            "take 2, or 1 for a source of 0.1.0 that is defined again",
        )),
    }
}

impl DisguisePlan {
    pub(super) fn to_spec(self) -> DisguiseSpec {
        let (mode, bits) = match self.hides {
            Hides::All { bits } => (DisguiseMode::Full, bits),
            Hides::BelowTime => (DisguiseMode::Ordered, None),
        };
        // Texts from before there were versions stay equal, byte by byte.
        let is_written = self.version != DisguiseVersion::Shared;
        let version = is_written.then_some(self.version.number());
        DisguiseSpec { mode: Some(mode), key: Some(self.key), version, bits, check: None }
    }
}
