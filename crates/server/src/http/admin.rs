//! Handlers for sources, decoding, layouts and workers.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use snowmint_coord::{Listed, NewStripe};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::http::{
    AlterRequest, DecodeQuery, DecodedBody, LayoutBody, LayoutsBody, RecoveryBody, RecoveryRequest,
    RestripeRequest, ServerBody, SourceBody, SourceRequest, SourcesBody, UnreadableBody,
    WorkersBody,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::bodies::{
    decoded_body, layout_body, outcome_body, recovery_call, server_body, source_body, worker_body,
};
use super::decoded::unknown_body;
use super::extract::{JsonBody, PathPart};
use super::for_caller::ForCaller;
use super::response::{self, ErrorResponse};
use super::state::HttpState;
use crate::error::Error;
use crate::service::{DecodedParts, format_named, layout_named, spec_of};

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new()
        .routes(routes!(layouts))
        .routes(routes!(layout))
        .routes(routes!(sources, define))
        .routes(routes!(source, alter, delete))
        .routes(routes!(restripe))
        .routes(routes!(workers))
        .routes(routes!(recovery, recover))
        .routes(routes!(server))
        .routes(routes!(decode))
}

/// Decodes an ID. With neither source nor layout, reads it in every form, or in the named one, and by
/// every known layout.
#[utoipa::path(
    get,
    path = "/v1/decode/{id}",
    tag = "IDs",
    params(("id" = String, Path, description = "ID as it was minted"), DecodeQuery),
    responses((status = OK, description = "Parts of the ID", body = DecodedBody)),
)]
pub(super) async fn decode(
    state: ForCaller<HttpState>,
    PathPart(id): PathPart<String>,
    uri: Uri,
) -> Result<Response, ErrorResponse> {
    let DecodeQuery { source, layout, format } = response::query(&uri)?;
    let format = format.as_deref().map(format_named).transpose()?;
    let body = match (source, layout) {
        (Some(source), None) => {
            let decoded = state.service.decode_by_source(&id, &source, format).await?;
            decoded_body(&id, &DecodedParts::of(&decoded))
        }
        (None, Some(layout)) => {
            decoded_body(&id, &state.service.decode_by_layout(&id, &layout, format)?)
        }
        (None, None) => unknown_body(&id, &state.service.decode_unknown(&id, format)?),
        (Some(_), Some(_)) => {
            let message = "query has both source and layout; send one of them";
            return Err(ErrorResponse(Error::bad_request(message)));
        }
    };
    Ok(response::json(&body))
}

/// Lists every layout that has a name.
#[utoipa::path(
    get,
    path = "/v1/layouts",
    tag = "layouts",
    responses((status = OK, description = "Properties of each layout", body = LayoutsBody)),
)]
pub(super) async fn layouts(state: ForCaller<HttpState>, headers: HeaderMap) -> Response {
    state.layouts.response(&headers)
}

/// Returns the properties of a layout.
#[utoipa::path(
    get,
    path = "/v1/layouts/{layout}",
    tag = "layouts",
    params(("layout" = String, Path, description = "Name, name with overrides, or the fields in full")),
    responses((status = OK, description = "Properties of the layout", body = LayoutBody)),
)]
pub(super) async fn layout(PathPart(text): PathPart<String>) -> Result<Response, ErrorResponse> {
    Ok(response::json(&layout_body(&layout_named(&text)?, SystemClock.unix_ms())))
}

/// Lists every source of the namespace.
#[utoipa::path(
    get,
    path = "/v1/sources",
    tag = "sources",
    responses((status = OK, description = "Sources by name", body = SourcesBody)),
)]
pub(super) async fn sources(state: ForCaller<HttpState>) -> Result<Response, ErrorResponse> {
    let Listed { sources, unreadable } = state.service.definitions().await?;
    let unsent_permit = state.service.hold_rows(sources.len())?;
    let sources = sources.iter().map(source_body).collect();
    let in_full = state.service.caller().sees_details();
    let why = |(name, error): (String, snowmint_coord::Error)| UnreadableBody {
        name,
        why: if in_full { error.full_message() } else { error.message().into_owned() },
    };
    let unreadable = unreadable.into_iter().map(why).collect();
    Ok(response::list(unsent_permit, &SourcesBody { sources, unreadable }))
}

/// Returns the definition of a source.
#[utoipa::path(
    get,
    path = "/v1/sources/{name}",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    responses((status = OK, description = "Every key, with defaults written out", body = SourceBody)),
)]
pub(super) async fn source(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
) -> Result<Response, ErrorResponse> {
    Ok(response::json(&source_body(&state.service.definition(&name).await?)))
}

/// Defines a source; succeeds if an equal definition exists.
#[utoipa::path(
    post,
    path = "/v1/sources",
    tag = "sources",
    request_body = SourceRequest,
    responses((status = OK, description = "Definition as the catalog has it now", body = SourceBody)),
)]
pub(super) async fn define(
    state: ForCaller<HttpState>,
    JsonBody(SourceRequest { name, keys }): JsonBody<SourceRequest>,
) -> Result<Response, ErrorResponse> {
    Ok(response::json(&source_body(&state.service.define(&name, &spec_of(keys)?).await?)))
}

/// Changes keys of a source, as a JSON merge patch; with `version`, only if it is current.
#[utoipa::path(
    patch,
    path = "/v1/sources/{name}",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    request_body = AlterRequest,
    responses((status = OK, description = "Definition as the catalog has it now", body = SourceBody)),
)]
pub(super) async fn alter(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
    JsonBody(AlterRequest { version, changes }): JsonBody<AlterRequest>,
) -> Result<Response, ErrorResponse> {
    Ok(response::json(&source_body(&state.service.alter(&name, &changes, version).await?)))
}

/// Gives a segment source another stripe of the numbers, while it serves.
#[utoipa::path(
    post,
    path = "/v1/sources/{name}/restripe",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    request_body = RestripeRequest,
    responses((status = OK, description = "Definition as the catalog has it now", body = SourceBody)),
)]
pub(super) async fn restripe(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
    JsonBody(request): JsonBody<RestripeRequest>,
) -> Result<Response, ErrorResponse> {
    let RestripeRequest { offset, increment, first, version } = request;
    let stripe = NewStripe { offset, increment, first, if_version: version };
    Ok(response::json(&source_body(&state.service.restripe(&name, stripe).await?)))
}

/// Deletes a source. Its name keeps its numbers.
#[utoipa::path(
    delete,
    path = "/v1/sources/{name}",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    responses((status = NO_CONTENT, description = "The source is deleted")),
)]
pub(super) async fn delete(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
) -> Result<Response, ErrorResponse> {
    state.service.delete(&name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Describes this server and its caller.
#[utoipa::path(
    get,
    path = "/v1/server",
    tag = "health",
    responses((status = OK, description = "Properties of this server, and rights of the caller's token", body = ServerBody)),
)]
pub(super) async fn server(state: ForCaller<HttpState>) -> Result<Response, ErrorResponse> {
    Ok(response::json(&server_body(&state.service)?))
}

/// Takes in a peer's notice of a catalog change.
pub(super) async fn changed(state: ForCaller<HttpState>) -> Result<StatusCode, ErrorResponse> {
    state.service.catalog_changed()?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes in a peer's notice that the members have changed.
pub(super) async fn members_changed(
    state: ForCaller<HttpState>,
) -> Result<StatusCode, ErrorResponse> {
    state.service.members_changed().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the holders of worker numbers.
#[utoipa::path(
    get,
    path = "/v1/workers",
    tag = "workers",
    responses((status = OK, description = "Every worker number that was ever held", body = WorkersBody)),
)]
pub(super) async fn workers(state: ForCaller<HttpState>) -> Result<Response, ErrorResponse> {
    let slots = state.service.workers().await?;
    let unsent_permit = state.service.hold_rows(slots.len())?;
    let own = state.service.incarnation();
    let workers = slots.iter().map(|slot| worker_body(slot, own)).collect();
    Ok(response::list(unsent_permit, &WorkersBody { workers }))
}

/// Returns the reports on a store in doubt, and the target of a recovery.
#[utoipa::path(
    get,
    path = "/v1/recovery",
    tag = "workers",
    responses((status = OK, description = "Journals, and what a recovery would move", body = RecoveryBody)),
)]
pub(super) async fn recovery(state: ForCaller<HttpState>) -> Result<Response, ErrorResponse> {
    let request = RecoveryRequest { dry_run: true, ..RecoveryRequest::default() };
    let outcome = state.service.recover(recovery_call(request)).await?;
    Ok(response::json(&outcome_body(outcome)))
}

/// Moves a store in doubt past everything that its journals reported, so that minting continues. Or
/// accepts the database server that has the store now, and puts the store in doubt.
#[utoipa::path(
    post,
    path = "/v1/recovery",
    tag = "workers",
    request_body = RecoveryRequest,
    responses((status = OK, description = "Journals, and what the recovery moved or would move", body = RecoveryBody)),
)]
pub(super) async fn recover(
    state: ForCaller<HttpState>,
    JsonBody(request): JsonBody<RecoveryRequest>,
) -> Result<Response, ErrorResponse> {
    let outcome = state.service.recover(recovery_call(request)).await?;
    Ok(response::json(&outcome_body(outcome)))
}
