//! The server itself.

use serde::{Deserialize, Serialize};

/// The server that answers, and who asks: the body of `GET /v1/server`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerBody {
    /// The version of the program.
    pub version: String,
    /// The namespace whose sources it has.
    pub namespace: String,
    /// Its label (`server.owner`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The host that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Which member of the store it is: 32 hexadecimal digits, new with each start. Absent while it has not
    /// joined, or is joining anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Its store.
    pub store: StoreBody,
    /// Whether it asks for tokens.
    pub asks_for_tokens: bool,
    /// The caller's token; absent if none is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenBody>,
}

/// What a store can do, and what it must do without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreBody {
    /// Whose clock decides whether a holder is gone: `store` or `caller`.
    pub clock: String,
    /// Whether what it acknowledged survives a loss of power.
    pub durable_on_reply: bool,
    /// Whether what it acknowledged survives the loss of the machine that did so.
    pub safe_over_failover: bool,
    /// How it sees that a member is gone: by a `record` that is not renewed, or a `session` that ended.
    pub presence: String,
    /// What this server must do without, such as a right: sentences.
    pub cautions: Vec<String>,
}

/// A token, without what it is shown by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenBody {
    /// Its name.
    pub name: String,
    /// The name of the caller's certificate that stands for it: `CN=orders-service`. Absent where the token
    /// itself was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// What it may do, as configured: `mint,decode orders-*`.
    pub grants: Vec<String>,
    /// How much it may have, as configured: `1000/s orders-*`.
    pub rates: Vec<String>,
}
