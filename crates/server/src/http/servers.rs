//! Handlers for all servers of the namespace, and for the last hour of one.

use std::sync::Arc;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use snowmint_core::{Rfc3339, UnixMillis};
use snowmint_wire::http::{HistoryBody, HistoryQuery, MemberBody, SectionRangeBody, ServersBody};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::for_caller::{ForCaller, route};
use super::response::{self, ErrorResponse};
use super::state::HttpState;
use crate::service::{ListedMember, ServerList};

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new().routes(routes!(servers)).routes(routes!(history))
}

/// Lists every member of the store, with each server's report on itself.
#[utoipa::path(
    get,
    path = "/v1/servers",
    tag = "health",
    responses((status = OK, description = "Members, and the owners of the sections of counters", body = ServersBody)),
)]
pub(super) async fn servers(
    state: ForCaller<HttpState>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let body = servers_body(state.service.servers(route(&headers)).await?);
    let unsent_permit = state.service.hold_rows(body.servers.len())?;
    Ok(response::list(unsent_permit, &body))
}

/// Returns the last hour of a server's metrics, as this process has sampled them.
#[utoipa::path(
    get,
    path = "/v1/history",
    tag = "health",
    params(HistoryQuery),
    responses((status = OK, description = "Samples, oldest first", body = HistoryBody)),
)]
pub(super) async fn history(
    state: ForCaller<HttpState>,
    uri: Uri,
) -> Result<Response, ErrorResponse> {
    let HistoryQuery { member } = response::query(&uri)?;
    let body = state.service.history(member.as_deref()).await?;
    let unsent_permit = state.service.hold_rows(body.times_ms.len())?;
    Ok(response::list(unsent_permit, &body))
}

fn servers_body(list: ServerList) -> ServersBody {
    let range = |(first, last, member): (u16, u16, snowmint_coord::Incarnation)| SectionRangeBody {
        first,
        last,
        member: member.to_string(),
    };
    ServersBody {
        servers: list.members.into_iter().map(member_body).collect(),
        sections: list.sections.into_iter().map(range).collect(),
        store_error: list.store_error,
    }
}

fn member_body(member: ListedMember) -> MemberBody {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let time = |time: UnixMillis| Rfc3339(time).to_string();
    MemberBody {
        member: member.member.map(|id| id.to_string()),
        owner: some(member.owner),
        host: some(member.host),
        process: member.process,
        http: member.addrs.http,
        resp: member.addrs.resp,
        own: member.own,
        live: member.live,
        joined: member.joined_at.map(time),
        last_renewed: member.renewed_at.map(time),
        report: member.report,
        error: member.error,
    }
}
