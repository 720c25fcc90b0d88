//! Prefetched numbers as they came, so that another process can use the rest when the source ends.

use crate::model::segment::{GiveBack, Segment};

/// Numbers that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Version of the store's row, for numbers that this process reserved.
    pub(super) version: Option<u64>,
}

impl Piece {
    pub(super) const fn reserved(segment: &Segment) -> Self {
        Self { first: segment.first, last: segment.last, version: Some(segment.version) }
    }

    /// Creates a piece from a journal.
    pub(super) const fn kept(first: u64, last: u64) -> Self {
        Self { first, last, version: None }
    }
}

/// Prefetched numbers of a source that ended: unused for good, unless the store or journal gets
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Unused {
    pub(crate) source: String,
    /// Version of the definition by which they became IDs.
    pub(crate) definition_version: u64,
    /// In rising order.
    pub(crate) pieces: Vec<Piece>,
}

impl Unused {
    /// Returns the newest piece, which the store takes back unless there was a reserve since.
    pub(crate) fn newest(&self) -> Option<GiveBack> {
        let piece = self.pieces.last()?;
        Some(GiveBack {
            source: self.source.clone(),
            first: piece.first,
            last: piece.last,
            version: piece.version?,
        })
    }
}

/// Initial state of a source, recorded by earlier processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialState {
    /// End of all numbers seen reserved.
    pub(crate) seen_end: u64,
    /// First and last of the numbers kept for this process, in rising order.
    pub(crate) kept: Vec<(u64, u64)>,
    /// Kept numbers that must not be used any more.
    pub(crate) burned: u64,
}

/// Prefetched numbers, and whether the source is closed.
pub(super) struct Prefetched {
    pub(super) left: u64,
    pub(super) closed: bool,
}
