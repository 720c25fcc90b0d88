//! What sources answer.

use snowmint_core::{Layout, Parts, UnixMillis};

use super::{NumberStats, PrefillStats};

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

/// How a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether it can mint now.
    pub ready: bool,
    /// The end of everything taken, of a snowflake source.
    pub taken_until: Option<UnixMillis>,
    /// Clock steps back and ahead that its generator met.
    pub clock_steps: (u64, u64),
    /// Of a segment source.
    pub numbers: Option<NumberStats>,
    /// Keys that are known here and the bytes that they take, of a counter source.
    pub keys: Option<(u64, u64)>,
    /// The queue, of a prefilled source.
    pub prefill: Option<PrefillStats>,
}
