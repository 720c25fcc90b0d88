//! Definition of a source, parsed.

use std::sync::OnceLock;

use super::id_codec::IdCodec;
use crate::model::catalog::SourceState;
use crate::spec::{Plan, SourceSpec};

/// Current definition of a source.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) plan: Plan,
    pub(crate) id_codec: IdCodec,
    pub(crate) state: SourceState,
    pub(crate) version: u64,
    /// Definition as canonical JSON, made on first use.
    pub(crate) text: OnceLock<String>,
}
