//! What is in stock, as it came: for when the source ends and somebody else may use the rest.

use crate::segment::{GiveBack, Segment};

/// Numbers that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The state of the store's row, of what was reserved by this process.
    pub(super) version: Option<u64>,
}

impl Piece {
    pub(super) const fn reserved(segment: &Segment) -> Self {
        Self { first: segment.first, last: segment.last, version: Some(segment.version) }
    }

    /// Out of a journal.
    pub(super) const fn kept(first: u64, last: u64) -> Self {
        Self { first, last, version: None }
    }
}

/// What a source had in stock when it ended: nobody has used it, and nobody will, unless it goes back to
/// the store or into the journal.
#[derive(Clone, Debug)]
pub(crate) struct Unused {
    pub(crate) source: String,
    /// The definition by which it became IDs.
    pub(crate) definition_version: u64,
    /// In rising order.
    pub(crate) pieces: Vec<Piece>,
}

impl Unused {
    /// The newest piece, which the store takes back if nobody has reserved since.
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

/// What a source begins with, of what earlier processes remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    /// Everything below was seen reserved.
    pub(crate) seen_end: u64,
    /// Firsts and lasts of numbers that were kept for this process, in rising order.
    pub(crate) kept: Vec<(u64, u64)>,
    /// How many were kept that nobody may use any more.
    pub(crate) burned: u64,
}
