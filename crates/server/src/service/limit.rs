//! Limits of one request.

use crate::config::Limits;

/// Limit of one request, which the admin right over the source widens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// IDs of one response.
    Batch,
    /// IDs of a stream.
    Stream,
    /// Numbers of a range, for the caller to issue.
    Segment,
    /// Numbers in a row, of which the reply has the last.
    InARow,
}

impl Limit {
    pub(super) fn of(self, limits: &Limits) -> u64 {
        match self {
            Self::Batch => limits.batch_max.into(),
            Self::Stream => limits.stream_max,
            Self::Segment => limits.segment_max,
            Self::InARow => limits.incrby_max,
        }
    }

    /// Returns the limit for callers with the admin right.
    pub(super) fn widest(self) -> u64 {
        match self {
            Self::Batch => u32::MAX.into(),
            Self::Stream | Self::Segment | Self::InARow => u64::MAX,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Batch => "limits.batch_max",
            Self::Stream => "limits.stream_max",
            Self::Segment => "limits.segment_max",
            Self::InARow => "limits.incrby_max",
        }
    }
}
