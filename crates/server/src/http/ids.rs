//! Handlers of `/v1/ids/{source}` and `/v1/segments/{source}`.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use snowmint_coord::{IdBatch, Source};
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use snowmint_wire::http::{
    IdsBody, MintRequest, SegmentBody, SegmentRequest, write_id_lines, write_ids,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{JsonBody, PathPart};
use super::for_caller::{ForCaller, route};
use super::response::{self, ErrorResponse, ResponseFormat};
use super::state::{HttpState, issued};
use crate::error::{Error, shown};
use crate::service::{Service, format_named};

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new().routes(routes!(get, post)).routes(routes!(segment))
}

/// Mints IDs.
#[utoipa::path(
    get,
    path = "/v1/ids/{source}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), MintRequest),
    responses((status = OK, description = "Exactly the requested number of IDs", content((IdsBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn get(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    of_source(&state.service, &name, &uri, &headers).await
}

/// Mints the IDs that the query asks for.
pub(crate) async fn of_source(
    service: &Service,
    name: &str,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, ErrorResponse> {
    mint(service, name, &queried(uri)?, headers).await
}

/// Parses the query.
fn queried(uri: &Uri) -> Result<MintRequest, ErrorResponse> {
    if uri.query().is_none() { Ok(MintRequest::default()) } else { response::query(uri) }
}

/// Mints IDs. Without a body, the query has the request, as of a `GET`; not both.
#[utoipa::path(
    post,
    path = "/v1/ids/{source}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), MintRequest),
    request_body = Option<MintRequest>,
    responses((status = OK, description = "Exactly the requested number of IDs", content((IdsBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn post(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let body = response::bytes(body, state.body_bytes_max).await?;
    let request = match uri.query() {
        _ if body.is_empty() => queried(&uri)?,
        None => response::parsed(&body)?,
        Some(query) => {
            let query = shown(query);
            let message = format!("request has query {query} and a body; send one of them");
            return Err(ErrorResponse(Error::bad_request(message)));
        }
    };
    mint(&state.service, &name, &request, &headers).await
}

async fn mint(
    service: &Service,
    name: &str,
    request: &MintRequest,
    headers: &HeaderMap,
) -> Result<Response, ErrorResponse> {
    let response_format = ResponseFormat::wanted(headers);
    let encoding = IdEncoding::read(request.format.as_deref())?;
    let count = request.count.unwrap_or_default().get();
    let key = request.key.as_deref();
    let (source, minted) = service.mint(name, count, key, route(headers)).await?;
    let (values, unsent_permit) = minted.into_parts();
    let bytes = written(&source, values, encoding, response_format)?;
    let response = response::counted_bytes(response_format.content_type(), bytes, unsent_permit);
    Ok(issued(service, response, name, count))
}

/// Takes a range of numbers for the caller to issue.
#[utoipa::path(
    post,
    path = "/v1/segments/{source}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source")),
    request_body = SegmentRequest,
    responses((status = OK, description = "A range that no other caller gets", body = SegmentBody)),
)]
pub(super) async fn segment(
    state: ForCaller<HttpState>,
    PathPart(name): PathPart<String>,
    JsonBody(SegmentRequest { length }): JsonBody<SegmentRequest>,
) -> Result<Response, ErrorResponse> {
    let range = state.service.reserve_segment(&name, length.get()).await?;
    let body = SegmentBody {
        first: range.first.to_string(),
        last: range.last.to_string(),
        increment: range.increment,
    };
    Ok(issued(&state.service, response::json(&body), &name, length.get()))
}

/// The caller's choice of a form for IDs.
#[derive(Clone, Copy, Debug)]
enum IdEncoding {
    /// The source's own form.
    Own,
    /// JSON numbers.
    Number,
    /// This format.
    As(Format),
}

impl IdEncoding {
    fn read(format: Option<&str>) -> Result<Self, ErrorResponse> {
        match format {
            None => Ok(Self::Own),
            Some("number") => Ok(Self::Number),
            Some(name) => Ok(Self::As(format_named(name)?)),
        }
    }
}

fn written(
    source: &Source,
    values: IdBatch,
    encoding: IdEncoding,
    response_format: ResponseFormat,
) -> Result<Vec<u8>, ErrorResponse> {
    let mut bytes = Vec::new();
    let texts = match (values, encoding) {
        (IdBatch::Numbers(ids), _) => {
            let format = match encoding {
                IdEncoding::Own => source.format(),
                IdEncoding::Number => Format::default(),
                IdEncoding::As(format) => format,
            };
            if format == Format::default() {
                match response_format {
                    ResponseFormat::Json => {
                        write_ids(&mut bytes, &ids, !matches!(encoding, IdEncoding::Number))
                    }
                    ResponseFormat::Text => write_id_lines(&mut bytes, &ids),
                }
                return Ok(bytes);
            }
            let mut texts = Vec::with_capacity(ids.len());
            for id in ids {
                texts.push(source.encode(id, Some(format))?.to_string());
            }
            texts
        }
        (IdBatch::Texts(texts), IdEncoding::Own) => texts,
        (IdBatch::Texts(_), IdEncoding::Number | IdEncoding::As(_)) => {
            let (name, kind) = (source.name(), source.kind());
            let message = format!("source {name:?} mints {kind}s, not numbers; leave format out");
            return Err(ErrorResponse(Error::bad_request(message)));
        }
    };
    match response_format {
        ResponseFormat::Json => serde_json::to_writer(&mut bytes, &IdsBody { ids: texts })
            .map_err(|error| {
                let message =
                    format!("internal error: IDs cannot be written: {error}; please report it");
                Error::new(Code::Internal, message)
            })?,
        ResponseFormat::Text => {
            for text in &texts {
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(b'\n');
            }
        }
    }
    Ok(bytes)
}
