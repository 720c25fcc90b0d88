//! Results of sources.

use snowmint_core::{Layout, Parts, UnixMillis};

/// IDs of one call, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdBatch {
    /// 64-bit IDs, at most `i64::MAX`.
    Numbers(Vec<u64>),
    /// IDs of a source of texts.
    Texts(Vec<String>),
}

impl IdBatch {
    /// Returns how many IDs there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Consecutive numbers for a caller to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
    /// Distance from one number to the next.
    pub increment: u64,
}

/// Decoded parts of an ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// ID of a snowflake source.
    Snowflake {
        /// The ID without its disguise.
        id: u64,
        /// Its parts.
        parts: Parts,
        /// Start of its tick.
        time: UnixMillis,
        /// Layout, for the worker's split and the unit.
        layout: Layout,
    },
    /// ID of a segment or counter source.
    Number {
        /// The ID without its disguise.
        id: u64,
    },
    /// Serial of a segment source.
    Serial {
        /// Period of its number; `None` when numbers never restart.
        period: Option<String>,
        /// Number in its period.
        number: u64,
    },
    /// ID of a UUID source.
    Uuid {
        /// The UUID.
        uuid: uuid::Uuid,
    },
    /// ID of another source of texts.
    Text {
        /// Its time, if it shows one.
        time: Option<UnixMillis>,
    },
}
