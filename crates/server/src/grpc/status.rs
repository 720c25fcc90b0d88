//! Errors in the form of gRPC.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;
use snowmint_coord::error::json;
use snowmint_wire::error::Code;
use tonic::metadata::MetadataMap;
use tonic::{Code as GrpcCode, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::error::{Cause, Error, shown};

/// Domain of the reasons in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "snowmint";
/// gRPC's own header for the milliseconds until a client retries by itself.
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Longest message, in characters: it goes into headers twice, and clients accept few kilobytes of
/// those.
const MESSAGE_CHARS_MAX: usize = 1_000;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let row = error.code().row();
        let code = GrpcCode::from_i32(i32::try_from(row.grpc).unwrap_or_default());
        let mut details = ErrorDetails::new();
        details.set_error_info(row.name.to_ascii_uppercase(), DOMAIN, HashMap::new());
        let mut metadata = MetadataMap::new();
        if let Some(ms) = error.retry_after_ms() {
            details.set_retry_info(Some(Duration::from_millis(ms)));
            metadata.insert(PUSHBACK, ms.into());
        }
        let message = cut(error.message());
        let mut status = Self::with_error_details_and_metadata(code, message, details, metadata);
        if error.cause().is_some() || error.detail().is_some() {
            status.set_source(Arc::new(error));
        }
        status
    }
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
    }
}

/// Returns the error code of a response whose head is an error.
pub(super) fn error_code(headers: &HeaderMap) -> Option<Code> {
    let info = Status::from_header_map(headers)?.get_details_error_info()?;
    Code::from_name(&info.reason.to_ascii_lowercase())
}

/// Returns its message for people.
pub(super) fn message(headers: &HeaderMap) -> String {
    Status::from_header_map(headers).map(|status| status.message().to_owned()).unwrap_or_default()
}

/// Returns the cause of an error response, for the log.
pub(super) fn cause(response: &Response) -> Option<&Cause> {
    kept(response)?.cause()
}

/// Returns the error of a response, where it has more than its caller was sent.
fn kept(response: &Response) -> Option<&Error> {
    let status = response.extensions().get::<Status>()?;
    std::error::Error::source(status)?.downcast_ref()
}

/// Returns the response. An error of the library gets the form of all other errors; with `in_full`,
/// for a caller that may read details, an error gets its detail.
pub(super) fn normalized(path: &str, response: Response, in_full: bool) -> Response {
    let error = match refused_by_library(path, response.headers()) {
        Some(error) => error,
        None => match kept(&response).filter(|error| in_full && error.detail().is_some()) {
            Some(error) => error.clone().in_full(),
            None => return response,
        },
    };
    Status::from(error).into_http::<Body>()
}

/// Returns the error by which the library rejected a call before our handler. Our own errors have
/// details.
fn refused_by_library(path: &str, headers: &HeaderMap) -> Option<Error> {
    let status = Status::from_header_map(headers)?;
    if status.code() == GrpcCode::Ok || !status.details().is_empty() {
        return None;
    }
    let message = status.message();
    Some(match status.code() {
        GrpcCode::Unimplemented if message.is_empty() => {
            let is_of_store = path.starts_with("/snowmint.store.");
            let path = shown(path);
            let offer = if is_of_store { ", or set store.offered = true there" } else { "" };
            let message =
                format!("method {path} does not exist; correct it, or update the server{offer}");
            Error::new(Code::Unsupported, message)
        }
        GrpcCode::Unimplemented => {
            let why = json::of_parser(message);
            Error::new(Code::Unsupported, format!("call is not supported: {why}; change it"))
        }
        GrpcCode::OutOfRange => {
            let why = json::of_parser(message.strip_prefix("Error, ").unwrap_or(message));
            let message = format!("message exceeds http.body_bytes_max ({why}); send less");
            Error::new(Code::LimitExceeded, message)
        }
        _ => {
            let why = json::of_parser(message);
            Error::bad_request(format!("message cannot be read: {why}; correct it"))
        }
    })
}

#[cfg(test)]
mod tests {
    use snowmint_wire::error::RespPrefix;

    use super::*;

    #[test]
    fn every_error_has_a_status_its_reason_and_its_retry_hint() {
        for &code in Code::ALL {
            let error = Error::new(code, "it happened");
            let hint = error.retry_after_ms();
            let status = Status::from(error);
            let row = code.row();
            assert_eq!(u32::try_from(i32::from(status.code())).unwrap(), row.grpc, "{code}");
            assert!(!matches!(status.code(), GrpcCode::Ok | GrpcCode::Unknown), "{code}");
            assert_eq!(status.message(), "it happened");

            let info = status.get_details_error_info().unwrap();
            assert_eq!(info.domain, DOMAIN);
            assert_eq!(Code::from_name(&info.reason.to_ascii_lowercase()), Some(code));

            // The hint is present exactly where a retry helps, for the code of people and of
            // libraries.
            assert_eq!(hint.is_some(), row.resp == RespPrefix::TryAgain, "{code}");
            let delay = status.get_details_retry_info().and_then(|info| info.retry_delay);
            assert_eq!(delay, hint.map(Duration::from_millis), "{code}");
            let pushback = status.metadata().get(PUSHBACK).map(|ms| ms.to_str().unwrap());
            assert_eq!(pushback, hint.map(|ms| ms.to_string()).as_deref(), "{code}");

            // On the wire, it counts as ours.
            let response = status.clone().into_http::<Body>();
            assert_eq!(refused_by_library("/x", response.headers()), None, "{code}");
            assert_eq!(error_code(response.headers()), Some(code));
            let read = Status::from_header_map(response.headers()).unwrap();
            assert_eq!((read.code(), read.details()), (status.code(), status.details()));
        }
    }

    #[test]
    fn the_codes_are_those_of_the_interface() {
        for (code, status) in [
            (Code::BadRequest, GrpcCode::InvalidArgument),
            (Code::Unauthenticated, GrpcCode::Unauthenticated),
            (Code::Forbidden, GrpcCode::PermissionDenied),
            (Code::UnknownSource, GrpcCode::NotFound),
            (Code::NotFound, GrpcCode::NotFound),
            (Code::Conflict, GrpcCode::FailedPrecondition),
            (Code::Disabled, GrpcCode::FailedPrecondition),
            (Code::LimitExceeded, GrpcCode::ResourceExhausted),
            (Code::RateLimited, GrpcCode::ResourceExhausted),
            (Code::Unsupported, GrpcCode::Unimplemented),
            (Code::Internal, GrpcCode::Internal),
            (Code::Unavailable, GrpcCode::Unavailable),
            (Code::Overloaded, GrpcCode::Unavailable),
            (Code::NotOwner, GrpcCode::Unavailable),
            (Code::TickFull, GrpcCode::Unavailable),
            (Code::StoreRolledBack, GrpcCode::Unavailable),
        ] {
            assert_eq!(Status::from(Error::new(code, "")).code(), status, "{code}");
        }
    }

    #[test]
    fn long_messages_fit_into_headers() {
        let status = Status::from(Error::bad_request("é".repeat(100_000)));
        let response = status.into_http::<Body>();
        let bytes: usize = response.headers().values().map(|value| value.len()).sum();
        assert!(bytes < 12 * 1024, "{bytes} bytes of headers");
    }

    #[test]
    fn detail_is_in_the_message_of_operators_alone() {
        let error = || Error::new(Code::Unavailable, "MySQL is unavailable").with_detail("at db:1");
        for (in_full, message) in
            [(false, "MySQL is unavailable"), (true, "MySQL is unavailable (at db:1)")]
        {
            let response = Status::from(error()).into_http::<Body>();
            let response = normalized("/x/y", response, in_full);
            assert_eq!(self::message(response.headers()), message);
            assert_eq!(error_code(response.headers()), Some(Code::Unavailable));
        }
    }

    #[test]
    fn library_errors_have_the_form_of_our_own() {
        for (status, code) in [
            (Status::unimplemented(""), Code::Unsupported),
            (Status::unimplemented("Content is `compressed`"), Code::Unsupported),
            (Status::out_of_range("Error, message too large"), Code::LimitExceeded),
            (Status::internal("Wrong wire type"), Code::BadRequest),
        ] {
            let response = status.into_http::<Body>();
            let error = refused_by_library("/x/y", response.headers()).unwrap();
            assert_eq!(error.code(), code, "{error}");
            for raw_text in ["Content", "Error", "Wrong", "`"] {
                assert!(!error.message().contains(raw_text), "{error}");
            }
        }
        assert_eq!(refused_by_library("/x/y", &HeaderMap::new()), None);
    }
}
