//! Bodies of the HTTP interface, as plain data for both ends.
//!
//! Numbers that can pass 2^53, above all IDs, are strings in JSON, since many readers hold numbers
//! as floating point. Times are RFC 3339 in UTC.

mod admin;
pub mod compat;
mod mint;
mod recovery;
mod server;

pub use admin::{
    AlterRequest, BitsBody, DecodeQuery, DecodedBody, LayoutBody, LayoutsBody, ReadyBody,
    RestripeRequest, ShareBody, SourceBody, SourceRequest, SourcesBody, UnreadableBody, WorkerBody,
    WorkersBody,
};
pub use mint::{
    Count, CounterBody, IdsBody, MintRequest, SegmentBody, SegmentRequest, number_in, one_id,
    write_id_lines, write_ids,
};
pub use recovery::{JournalBody, RecoveredBody, RecoveryBody, RecoveryRequest};
pub use server::{ServerBody, StoreBody, TokenBody};

use serde::{Deserialize, Serialize};

use crate::error::Code;

/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The content type of the text form: UTF-8, each line ended by a line feed.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// Every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorInfo,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorInfo {
    /// The name of a [`Code`]. Text, so that a client can read codes of newer servers.
    pub code: String,
    /// A sentence for people: what happened, with which value and limit, and what to do.
    pub message: String,
    /// In how many milliseconds the same request may succeed; none when a retry does not help.
    pub retry_after_ms: Option<u64>,
    /// Which server answers for the key instead, where that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<ElsewhereInfo>,
}

/// Which server answers for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ElsewhereInfo {
    /// The key's section: 0 to 16,383, its hash slot as in a Redis cluster.
    pub section: u16,
    /// Where that server is reached: `resp=HOST:PORT http=HOST:PORT`, or `https=HOST:PORT`.
    pub address: String,
}

impl ErrorBody {
    /// The body of an error.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>, retry_after_ms: Option<u64>) -> Self {
        let code = code.as_str().to_owned();
        let message = message.into();
        Self { error: ErrorInfo { code, message, retry_after_ms, elsewhere: None } }
    }
}
