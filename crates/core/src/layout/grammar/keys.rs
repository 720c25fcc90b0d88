//! The keys of a layout's text.

/// The words that may stand before `=`.
pub(super) const KEYS: [&str; 6] = ["time", "clock", "worker", "sequence", "unit", "epoch"];
