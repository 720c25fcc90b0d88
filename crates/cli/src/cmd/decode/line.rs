//! Result of decoding one ID.

use serde::Serialize;
use snowmint_server::decoding::{ForeignId, UuidFacts};
use snowmint_wire::http::DecodedBody;

/// One line of JSON: the body of the HTTP response, and the fields that only this command adds.
#[derive(Debug, Default, Serialize)]
pub(super) struct DecodedLine {
    #[serde(flatten)]
    pub(super) body: DecodedBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) age_ms: Option<i64>,
    #[serde(flatten)]
    pub(super) uuid: Option<UuidFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ulid_random: Option<String>,
    #[serde(flatten)]
    pub(super) foreign: Option<ForeignId>,
    /// Reason against the ID as one of the given layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
}
