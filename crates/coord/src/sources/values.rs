//! What sources answer.

use snowmint_core::{Layout, Parts, UnixMillis};

/// IDs of one call, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// IDs of 64 bits, at most `i64::MAX`.
    Numbers(Vec<u64>),
    /// UUIDs or ULIDs.
    Texts(Vec<String>),
}

impl Values {
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A row of numbers for a caller to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// The distance from one to the next.
    pub increment: u64,
}

/// What an ID is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// Of a snowflake source.
    Snowflake {
        /// The ID without its disguise.
        id: u64,
        /// Its parts.
        parts: Parts,
        /// When its tick began.
        time: UnixMillis,
        /// The layout, for the worker's split and the unit.
        layout: Layout,
    },
    /// Of a segment source.
    Number {
        /// The ID without its disguise.
        id: u64,
    },
    /// Of a segment source that writes serials.
    Serial {
        /// The period of its number; none when numbers never begin anew.
        period: Option<String>,
        /// The number in its period.
        number: u64,
    },
    /// A UUID.
    Uuid {
        /// The UUID.
        uuid: uuid::Uuid,
    },
    /// A ULID.
    Ulid {
        /// The ULID's 128 bits.
        bits: u128,
        /// Its time.
        time: UnixMillis,
    },
}
