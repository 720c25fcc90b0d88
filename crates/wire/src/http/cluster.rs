//! All servers of a namespace.

use serde::{Deserialize, Serialize};

use crate::report::ServerReport;

/// The body of `GET /v1/servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServersBody {
    /// Every member of the store, the responding server first.
    pub servers: Vec<MemberBody>,
    /// The sections of counters, in order, with their owners. Absent while no server has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionRangeBody>,
    /// Reason that the members are those that the responding server knows: the store did not list
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_error: Option<String>,
}

/// A member of the store: a server, or a program that mints itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberBody {
    /// The member ID, 32 hexadecimal digits; absent while the responding server has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Fa-f]{32}$"))]
    pub member: Option<String>,
    /// The member's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The member's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The member's process ID on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The address at which other servers call it; absent for a program that serves no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The address of RESP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resp: Option<String>,
    /// Whether it is the responding server.
    #[serde(default)]
    pub own: bool,
    /// Whether its presence is live, by the store.
    pub live: bool,
    /// Time of its join, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub joined: Option<String>,
    /// Time of its last renewal, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub last_renewed: Option<String>,
    /// The server's own report; absent if it did not respond, and for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ServerReport>,
    /// Reason that a server has no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Neighbouring sections of counters with one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SectionRangeBody {
    /// The first section.
    #[cfg_attr(feature = "openapi", schema(maximum = 16_383))]
    pub first: u16,
    /// The last section.
    #[cfg_attr(feature = "openapi", schema(maximum = 16_383))]
    pub last: u16,
    /// The member ID of the owner.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Fa-f]{32}$"))]
    pub member: String,
}

/// The query of `GET /v1/history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// The member ID of the server; default: the responding one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}
