//! Sources, decoding, layouts and workers.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use snowmint_coord::NewStripe;
use snowmint_wire::http::{RestripeRequest, SourceRequest, SourcesBody, WorkersBody};

use super::Door;
use super::answer::{self, Refusal};
use super::asked::Asked;
use crate::service::{
    Error, decoded_body, layout_body, layout_named, layouts_body, source_body, spec_of, worker_body,
};

type Part = Result<Path<String>, PathRejection>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecodeQuery {
    source: Option<String>,
    layout: Option<String>,
}

pub(super) async fn decode(door: Asked<Door>, id: Part, uri: Uri) -> Result<Response, Refusal> {
    let id = answer::part(id)?;
    let decoded = match answer::query(&uri)? {
        DecodeQuery { source: Some(source), layout: None } => {
            door.service.decode_by_source(&id, &source).await?
        }
        DecodeQuery { source: None, layout: Some(layout) } => {
            door.service.decode_by_layout(&id, &layout)?
        }
        _ => return Err(Refusal(Error::bad_request("say either ?source= or ?layout="))),
    };
    Ok(answer::json(&decoded_body(&id, &decoded)))
}

pub(super) async fn layouts() -> Response {
    answer::json(&layouts_body())
}

pub(super) async fn layout(text: Part) -> Result<Response, Refusal> {
    Ok(answer::json(&layout_body(&layout_named(&answer::part(text)?)?)))
}

pub(super) async fn sources(door: Asked<Door>) -> Result<Response, Refusal> {
    let definitions = door.service.definitions().await?;
    let sources = definitions.iter().map(source_body).collect();
    Ok(answer::json(&SourcesBody { sources }))
}

pub(super) async fn source(door: Asked<Door>, name: Part) -> Result<Response, Refusal> {
    let definition = door.service.definition(&answer::part(name)?).await?;
    Ok(answer::json(&source_body(&definition)))
}

pub(super) async fn define(door: Asked<Door>, body: Body) -> Result<Response, Refusal> {
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let SourceRequest { name, keys } = answer::parsed(&body)?;
    let definition = door.service.define(&name, &spec_of(keys)?).await?;
    Ok(answer::json(&source_body(&definition)))
}

pub(super) async fn alter(door: Asked<Door>, name: Part, body: Body) -> Result<Response, Refusal> {
    let name = answer::part(name)?;
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let changes: Map<String, Value> = answer::parsed(&body)?;
    let definition = door.service.alter(&name, &changes).await?;
    Ok(answer::json(&source_body(&definition)))
}

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

pub(super) async fn delete(door: Asked<Door>, name: Part) -> Result<Response, Refusal> {
    door.service.delete(&answer::part(name)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Another server tells of a change.
pub(super) async fn changed(door: Asked<Door>) -> Result<StatusCode, Refusal> {
    door.service.catalog_changed()?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn workers(door: Asked<Door>) -> Result<Response, Refusal> {
    let slots = door.service.workers().await?;
    let own = door.service.incarnation();
    let workers = slots.iter().map(|slot| worker_body(slot, own)).collect();
    Ok(answer::json(&WorkersBody { workers }))
}
