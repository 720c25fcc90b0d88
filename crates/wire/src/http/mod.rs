//! Bodies of the HTTP interface, as plain data for both ends.
//!
//! Numbers that can pass 2^53, above all IDs, are strings in JSON, since many readers hold numbers
//! as floating point. Times are RFC 3339 in UTC.

mod admin;
mod cluster;
pub mod compat;
mod mint;
mod recovery;
mod server;

pub use admin::*;
pub use cluster::*;
pub use mint::*;
pub use recovery::*;
pub use server::*;

use serde::{Deserialize, Serialize};

use crate::error::Code;
pub use crate::report::{LastHour as HistoryBody, ServerReport as ServerReportBody};

/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The content type of the text form: UTF-8, each line ended by a line feed.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The body of every error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorInfo,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorInfo {
    /// The name of a [`Code`]. It is text, so that a client can read codes of newer servers.
    pub code: String,
    /// A sentence for people: what happened, with which value and limit, and what to do.
    pub message: String,
    /// Milliseconds until the same request may succeed; null when a retry does not help.
    pub retry_after_ms: Option<u64>,
    /// The section owner of the key, if the error is that another server owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerInfo>,
}

/// The section owner of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnerInfo {
    /// The key's section: 0 to 16,383, its hash slot as in a Redis cluster.
    #[cfg_attr(feature = "openapi", schema(maximum = 16_383))]
    pub section: u16,
    /// The address of that server: `resp=HOST:PORT http=HOST:PORT`, or `https=HOST:PORT`.
    pub address: String,
}

impl ErrorBody {
    /// Returns the body of an error.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>, retry_after_ms: Option<u64>) -> Self {
        let code = code.as_str().to_owned();
        let message = message.into();
        Self { error: ErrorInfo { code, message, retry_after_ms, owner: None } }
    }
}
