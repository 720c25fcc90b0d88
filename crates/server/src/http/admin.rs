//! Handlers for sources, decoding, layouts and workers.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use snowmint_coord::{Listed, NewStripe};
use snowmint_wire::http::{
    AlterRequest, DecodeQuery, DecodedBody, LayoutBody, LayoutsBody, RecoveryBody, RecoveryRequest,
    RestripeRequest, ServerBody, SourceBody, SourceRequest, SourcesBody, UnreadableBody,
    WorkersBody,
};

use super::Door;
use super::answer::{self, Refusal};
use super::asked::Asked;
use crate::service::{
    Error, decoded_body, layout_body, layout_named, source_body, spec_of, worker_body,
};

type Part = Result<Path<String>, PathRejection>;

/// Decodes an ID.
#[utoipa::path(
    get,
    path = "/v1/decode/{id}",
    tag = "IDs",
    params(("id" = String, Path, description = "ID as it was minted"), DecodeQuery),
    responses((status = OK, description = "Parts of the ID", body = DecodedBody)),
)]
pub(super) async fn decode(door: Asked<Door>, id: Part, uri: Uri) -> Result<Response, Refusal> {
    let id = answer::part(id)?;
    let decoded = match answer::query(&uri)? {
        DecodeQuery { source: Some(source), layout: None } => {
            door.service.decode_by_source(&id, &source).await?
        }
        DecodeQuery { source: None, layout: Some(layout) } => {
            door.service.decode_by_layout(&id, &layout)?
        }
        _ => {
            let message = "query needs either source or layout; send one of them";
            return Err(Refusal(Error::bad_request(message)));
        }
    };
    Ok(answer::json(&decoded_body(&id, &decoded)))
}

/// Lists every layout that has a name.
#[utoipa::path(
    get,
    path = "/v1/layouts",
    tag = "layouts",
    responses((status = OK, description = "Properties of each layout", body = LayoutsBody)),
)]
pub(super) async fn layouts(door: Asked<Door>, headers: HeaderMap) -> Response {
    door.layouts.answer(&headers)
}

/// Returns the properties of a layout.
#[utoipa::path(
    get,
    path = "/v1/layouts/{layout}",
    tag = "layouts",
    params(("layout" = String, Path, description = "Name, name with overrides, or the fields in full")),
    responses((status = OK, description = "Properties of the layout", body = LayoutBody)),
)]
pub(super) async fn layout(text: Part) -> Result<Response, Refusal> {
    Ok(answer::json(&layout_body(&layout_named(&answer::part(text)?)?)))
}

/// Lists every source of the namespace.
#[utoipa::path(
    get,
    path = "/v1/sources",
    tag = "sources",
    responses((status = OK, description = "Sources by name", body = SourcesBody)),
)]
pub(super) async fn sources(door: Asked<Door>) -> Result<Response, Refusal> {
    let Listed { sources, unreadable } = door.service.definitions().await?;
    let hold = door.service.hold_rows(sources.len())?;
    let sources = sources.iter().map(source_body).collect();
    let in_full = door.service.caller().sees_details();
    let why = |(name, error): (String, snowmint_coord::Error)| UnreadableBody {
        name,
        why: if in_full { error.full_message() } else { error.message().into_owned() },
    };
    let unreadable = unreadable.into_iter().map(why).collect();
    Ok(answer::list(hold, &SourcesBody { sources, unreadable }))
}

/// Returns the definition of a source.
#[utoipa::path(
    get,
    path = "/v1/sources/{name}",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    responses((status = OK, description = "Every key, with defaults written out", body = SourceBody)),
)]
pub(super) async fn source(door: Asked<Door>, name: Part) -> Result<Response, Refusal> {
    let definition = door.service.definition(&answer::part(name)?).await?;
    Ok(answer::json(&source_body(&definition)))
}

/// Defines a source; succeeds if an equal definition exists.
#[utoipa::path(
    post,
    path = "/v1/sources",
    tag = "sources",
    request_body = SourceRequest,
    responses((status = OK, description = "Definition as the catalog has it now", body = SourceBody)),
)]
pub(super) async fn define(door: Asked<Door>, body: Body) -> Result<Response, Refusal> {
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let SourceRequest { name, keys } = answer::parsed(&body)?;
    let definition = door.service.define(&name, &spec_of(keys)?).await?;
    Ok(answer::json(&source_body(&definition)))
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
pub(super) async fn alter(door: Asked<Door>, name: Part, body: Body) -> Result<Response, Refusal> {
    let name = answer::part(name)?;
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let AlterRequest { version, changes } = answer::parsed(&body)?;
    let definition = door.service.alter(&name, &changes, version).await?;
    Ok(answer::json(&source_body(&definition)))
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
    door: Asked<Door>,
    name: Part,
    body: Body,
) -> Result<Response, Refusal> {
    let name = answer::part(name)?;
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let RestripeRequest { offset, increment, first, version } = answer::parsed(&body)?;
    let stripe = NewStripe { offset, increment, first, if_version: version };
    Ok(answer::json(&source_body(&door.service.restripe(&name, stripe).await?)))
}

/// Deletes a source. Its name keeps its numbers.
#[utoipa::path(
    delete,
    path = "/v1/sources/{name}",
    tag = "sources",
    params(("name" = String, Path, description = "Name of a source")),
    responses((status = NO_CONTENT, description = "The source is deleted")),
)]
pub(super) async fn delete(door: Asked<Door>, name: Part) -> Result<Response, Refusal> {
    door.service.delete(&answer::part(name)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Describes this server and its caller.
#[utoipa::path(
    get,
    path = "/v1/server",
    tag = "health",
    responses((status = OK, description = "Properties of this server, and rights of the caller's token", body = ServerBody)),
)]
pub(super) async fn server(door: Asked<Door>) -> Result<Response, Refusal> {
    Ok(answer::json(&door.service.about()?))
}

/// Takes in a peer's notice of a catalog change.
pub(super) async fn changed(door: Asked<Door>) -> Result<StatusCode, Refusal> {
    door.service.catalog_changed()?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the holders of worker numbers.
#[utoipa::path(
    get,
    path = "/v1/workers",
    tag = "workers",
    responses((status = OK, description = "Every worker number that was ever held", body = WorkersBody)),
)]
pub(super) async fn workers(door: Asked<Door>) -> Result<Response, Refusal> {
    let slots = door.service.workers().await?;
    let hold = door.service.hold_rows(slots.len())?;
    let own = door.service.incarnation();
    let workers = slots.iter().map(|slot| worker_body(slot, own)).collect();
    Ok(answer::list(hold, &WorkersBody { workers }))
}

/// Returns the reports on a store in doubt, and the target of a recovery.
#[utoipa::path(
    get,
    path = "/v1/recovery",
    tag = "workers",
    responses((status = OK, description = "Journals, and what a recovery would move", body = RecoveryBody)),
)]
pub(super) async fn recovery(door: Asked<Door>) -> Result<Response, Refusal> {
    let request = RecoveryRequest { dry_run: true, ..RecoveryRequest::default() };
    Ok(answer::json(&door.service.recover(request).await?))
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
pub(super) async fn recover(door: Asked<Door>, body: Body) -> Result<Response, Refusal> {
    let body = answer::bytes(body, door.body_bytes_max).await?;
    Ok(answer::json(&door.service.recover(answer::parsed(&body)?).await?))
}
