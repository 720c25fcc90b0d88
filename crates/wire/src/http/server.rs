//! The server itself.

use serde::{Deserialize, Serialize};

/// The responding server, and the caller: the body of `GET /v1/server`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerBody {
    /// The version of the program.
    pub version: String,
    /// The namespace of the server's sources.
    pub namespace: String,
    /// The server's label (`server.owner`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The host on which the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The server's member ID in the store: 32 hexadecimal digits, new with each start. Absent
    /// until the server has joined, and while it rejoins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Fa-f]{32}$"))]
    pub member: Option<String>,
    /// The server's store.
    pub store: StoreBody,
    /// Whether the server requires tokens.
    pub tokens_required: bool,
    /// The caller's token; absent if the server requires none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenBody>,
}

/// The capabilities and limitations of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreBody {
    /// The clock that decides whether a holder is gone: `store` or `caller`.
    pub clock: String,
    /// Whether acknowledged writes survive a loss of power.
    pub durable_on_reply: bool,
    /// Whether acknowledged writes survive the loss of the machine that acknowledged them.
    pub safe_over_failover: bool,
    /// The sign that a member is gone: a `record` that is not renewed, or a `session` that ended.
    pub presence: String,
    /// Warnings about limitations for this server, such as a missing permission, in sentences.
    pub warnings: Vec<String>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenBody {
    /// The token's name.
    pub name: String,
    /// The name of the caller's certificate that stands for the token: `CN=orders-service`. Absent
    /// if the caller sent the token itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The token's permissions, as configured: `mint,decode orders-*`.
    pub grants: Vec<String>,
    /// The token's rate limits, as configured: `1000/s orders-*`.
    pub rates: Vec<String>,
}
