//! Decoding of one ID: what it needs, and what it shows.

use serde::Serialize;
use snowmint_core::UnixMillis;
use snowmint_wire::http::DecodedBody;

use super::reading::Reading;
use super::uuid_facts::UuidFacts;
use crate::terminal::when::Zone;

/// Inputs of decoding besides the ID.
pub(super) struct DecodeView<'a> {
    pub(super) zone: &'a Zone,
    pub(super) now: UnixMillis,
}

/// One line of JSON: the body of the HTTP response, and the fields that only this command adds.
#[derive(Debug, Default, Serialize)]
pub(super) struct DecodedLine {
    #[serde(flatten)]
    pub(super) body: DecodedBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) age_ms: Option<i64>,
    /// Readings of all layouts, if no layout was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) readings: Vec<Reading>,
    #[serde(flatten)]
    pub(super) uuid: Option<UuidFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ulid_random: Option<String>,
}
