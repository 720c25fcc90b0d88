//! Parts that the compatibility APIs have in common.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use snowmint_coord::spec::Kind;
use snowmint_coord::{IdBatch, NumberRange, Source};
use snowmint_wire::error::Code;

use crate::config::KeySources;
use crate::error::Error;
use crate::service::{Route, Service, UnsentPermit};

/// Ends of a path: it may end in a slash, as Spring matched paths when Leaf and Tinyid were
/// written.
pub(super) const PATH_ENDS: [&str; 2] = ["", "/"];

/// Returns the source of a key.
pub(super) fn source_of<'a>(keys: &'a KeySources, key: &'a str) -> &'a str {
    keys.get(key).map_or(key, String::as_str)
}

/// Mints exactly `count` IDs of a source whose IDs are numbers.
pub(super) async fn numbers(
    service: &Service,
    name: &str,
    count: u64,
) -> Result<(Vec<u64>, UnsentPermit), Error> {
    let source = service.source(name).await?;
    if !makes_numbers(&source) {
        return Err(no_numbers(&source));
    }
    let (source, minted) = service.mint(name, count, None, Route::Ordered).await?;
    match minted.into_parts() {
        (IdBatch::Numbers(ids), unsent_permit) => Ok((ids, unsent_permit)),
        // Another caller has just redefined the source.
        (IdBatch::Texts(_), _) => Err(no_numbers(&source)),
    }
}

pub(super) fn makes_numbers(source: &Source) -> bool {
    matches!(source.kind(), Kind::Snowflake | Kind::Segment) && !source.makes_serials()
}

fn no_numbers(source: &Source) -> Error {
    let name = source.name();
    let made = match source.kind() {
        Kind::Counter => {
            let message = format!("source {name:?} has kind counter; use one without keys");
            return Error::bad_request(message);
        }
        _ if source.makes_serials() => "serial",
        kind => kind.name(),
    };
    Error::bad_request(format!("source {name:?} has {made}s, not numbers; use another source"))
}

/// Mints one ID.
pub(super) async fn number(service: &Service, name: &str) -> Result<u64, Error> {
    let (ids, _) = numbers(service, name, 1).await?;
    ids.first().copied().ok_or_else(|| {
        let message = "internal error: minted 0 IDs, expected 1; please report it";
        Error::new(Code::Internal, message)
    })
}

/// Takes `length` numbers for a client that issues them by its own arithmetic. It knows the first,
/// the last and the distance: so all numbers between must belong to this range.
pub(super) async fn range(
    service: &Service,
    name: &str,
    length: u64,
) -> Result<NumberRange, Error> {
    let range = service.reserve_segment(name, length).await?;
    let wanted = length.checked_sub(1).and_then(|steps| steps.checked_mul(range.increment));
    if range.last.checked_sub(range.first) == wanted {
        return Ok(range);
    }
    let message = format!("stripe of source {name:?} changed during the request; retry");
    Err(Error::new(Code::Unavailable, message))
}

pub(super) fn text(content_type: &'static str, text: impl Into<String>) -> Response {
    ([(CONTENT_TYPE, content_type)], text.into()).into_response()
}

/// Returns the status of an error: its own for credentials, rights and rates; else the system's.
pub(super) fn status_of(error: &Error, otherwise: StatusCode) -> StatusCode {
    match error.code() {
        Code::Unauthenticated | Code::Forbidden | Code::RateLimited => {
            StatusCode::from_u16(error.code().row().http).unwrap_or(otherwise)
        }
        _ => otherwise,
    }
}
