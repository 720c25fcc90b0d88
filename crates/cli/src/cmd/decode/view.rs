//! Inputs of decoding besides the ID.

use snowmint_core::UnixMillis;

use crate::terminal::when::Zone;

/// Inputs of decoding besides the ID.
pub(super) struct DecodeView<'a> {
    pub(super) zone: &'a Zone,
    pub(super) now: UnixMillis,
}
