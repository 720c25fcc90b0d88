//! Handlers of `/v1/ids/{source}` and `/v1/segments/{source}`.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::MethodRouter;
use snowmint_coord::{Source, Values};
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use snowmint_wire::http::{
    IdsBody, MintRequest, SegmentBody, SegmentRequest, write_id_lines, write_ids,
};

use super::answer::{self, Form, Refusal};
use super::asked::Asked;
use super::forward::{Passed, is_to_pass_on, was_passed_on};
use super::{Door, issued};
use crate::service::{ByOwner, Error, Minted, Service, shown};

/// Path prefix of requests for IDs; the name of the source follows.
pub(super) const PATH: &str = "/v1/ids/";

type Name = Result<Path<String>, PathRejection>;

/// Mints IDs.
#[utoipa::path(
    get,
    path = "/v1/ids/{source}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), MintRequest),
    responses((status = OK, description = "Exactly the requested number of IDs", content((IdsBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn get(
    door: Asked<Door>,
    name: Name,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    of_source(&door.service, &answer::part(name)?, &uri, &headers).await
}

/// Mints the IDs that the query asks for.
pub(super) async fn of_source(
    service: &Service,
    name: &str,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    mint(service, name, &queried(uri)?, headers).await
}

/// Parses the query.
fn queried(uri: &Uri) -> Result<MintRequest, Refusal> {
    if uri.query().is_none() { Ok(MintRequest::default()) } else { answer::query(uri) }
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
    door: Asked<Door>,
    name: Name,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let name = answer::part(name)?;
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let request = match uri.query() {
        _ if body.is_empty() => queried(&uri)?,
        None => answer::parsed(&body)?,
        Some(query) => {
            let query = shown(query);
            let message = format!("request has query {query} and a body; send one of them");
            return Err(Refusal(Error::bad_request(message)));
        }
    };
    mint(&door.service, &name, &request, &headers).await
}

/// Returns the methods of a path that takes IDs. `HEAD` would take one and throw it away, so it is
/// rejected like all others but those in `allowed`; the router by itself would list it among them.
pub(super) fn taking<S: Clone + Send + Sync + 'static>(
    methods: MethodRouter<S>,
    allowed: &'static str,
) -> MethodRouter<S> {
    let refuse = move |method: Method, uri: Uri| async move {
        ([(ALLOW, allowed)], answer::no_such_method(method, uri).await)
    };
    methods.head(refuse).fallback(refuse)
}

async fn mint(
    service: &Service,
    name: &str,
    request: &MintRequest,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let form = Form::wanted(headers);
    let wish = Wish::read(request.format.as_deref())?;
    let count = request.count.unwrap_or_default().get();
    let key = request.key.as_deref();
    let shown = |(source, minted): (Source, Minted)| {
        let (values, hold) = minted.into_parts();
        let bytes = written(&source, values, wish, form).map_err(|Refusal(error)| error)?;
        let response = answer::held(form.content_type(), bytes, hold);
        Ok(issued(service, response, name, count))
    };
    if was_passed_on(headers) {
        return Ok(shown(service.mint(name, count, key).await?)?);
    }
    let admitted = service.admit_ids(name, count).await?;
    let answer = service.mint_admitted(name, admitted, key).await.and_then(shown);
    let refusal = match answer {
        Err(refusal) if is_to_pass_on(&refusal, headers) => refusal,
        answer => return Ok(answer?),
    };
    let here = || -> ByOwner<'_, _> {
        Box::pin(async move { shown(service.mint_admitted(name, admitted, key).await?) })
    };
    let path = format!("{PATH}{name}");
    let body = serde_json::to_vec(request).unwrap_or_default();
    let passed = Passed { service, method: Method::POST, path: &path, headers, body, ids: count };
    Ok(passed.after(refusal, &here).await?)
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
    door: Asked<Door>,
    name: Name,
    body: Body,
) -> Result<Response, Refusal> {
    let name = answer::part(name)?;
    let body = answer::bytes(body, door.body_bytes_max).await?;
    let SegmentRequest { length } = answer::parsed(&body)?;
    let row = door.service.reserve_segment(&name, length.get()).await?;
    let body = SegmentBody {
        first: row.first.to_string(),
        last: row.last.to_string(),
        increment: row.increment,
    };
    Ok(issued(&door.service, answer::json(&body), &name, length.get()))
}

/// The caller's choice of a form for IDs.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// The source's own form.
    Own,
    /// JSON numbers.
    Number,
    /// This format.
    As(Format),
}

impl Wish {
    fn read(format: Option<&str>) -> Result<Self, Refusal> {
        match format {
            None => Ok(Self::Own),
            Some("number") => Ok(Self::Number),
            Some(name) => name.parse().map(Self::As).map_err(|_| {
                let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
                let names = names.join(", ");
                let message = format!("unknown format {}; expected number, {names}", shown(name));
                Refusal(Error::bad_request(message))
            }),
        }
    }
}

fn written(source: &Source, values: Values, wish: Wish, form: Form) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let texts = match (values, wish) {
        (Values::Numbers(ids), _) => {
            let format = match wish {
                Wish::Own => source.format(),
                Wish::Number => Format::default(),
                Wish::As(format) => format,
            };
            if format == Format::default() {
                match form {
                    Form::Json => write_ids(&mut bytes, &ids, !matches!(wish, Wish::Number)),
                    Form::Text => write_id_lines(&mut bytes, &ids),
                }
                return Ok(bytes);
            }
            let texts = ids.iter().map(|&id| Ok(source.encode(id, Some(format))?.to_string()));
            texts.collect::<Result<_, Error>>()?
        }
        (Values::Texts(texts), Wish::Own) => texts,
        (Values::Texts(_), Wish::Number | Wish::As(_)) => {
            let (name, kind) = (source.name(), source.kind());
            let message = format!("source {name:?} mints {kind}s, not numbers; leave format out");
            return Err(Refusal(Error::bad_request(message)));
        }
    };
    match form {
        Form::Json => {
            serde_json::to_writer(&mut bytes, &IdsBody { ids: texts }).map_err(|error| {
                let message =
                    format!("internal error: IDs cannot be written: {error}; please report it");
                Error::new(Code::Internal, message)
            })?
        }
        Form::Text => {
            for text in &texts {
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(b'\n');
            }
        }
    }
    Ok(bytes)
}
