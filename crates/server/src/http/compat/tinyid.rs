//! The compatibility API of Didi Tinyid: `IdContronller`, with the prefix `/tinyid` and without.
//!
//! Its JSON reports failures by a code, and always has status 200. Its simple forms return nothing
//! for an error; here an error has a status of its own and the JSON of the error. Its Java client
//! takes both for "no segment".

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use serde::Serialize;
use snowmint_coord::spec::{Plan, StepPlan};
use snowmint_coord::{NumberRange, Source};
use snowmint_wire::error::Code;
use snowmint_wire::http::compat::{
    JSON_UTF8, TEXT_UTF8, TINYID_ERROR, TINYID_TOKEN, TINYID_TOKEN_MESSAGE, TinyidBody,
    TinyidSegment,
};

use super::common::{PATH_ENDS, numbers, range, source_of};
use super::params::{Params, whole};
use crate::access::{ByToken, Caller, KnownAddresses, TokenHash, too_many};
use crate::config::{KeySources, TinyidSettings};
use crate::error::Error;
use crate::http::for_caller::{ForCaller, HasService};
use crate::http::id_paths::id_methods;
use crate::http::response;
use crate::service::{Limit, Service, UnsentPermit};

/// Used percentage of its segment at which a client fetches the next.
const LOADING_PERCENT: u64 = 20;

/// Beginnings of all its paths.
pub(super) const PREFIXES: [&str; 2] = ["/id/", "/tinyid/id/"];

#[derive(Debug)]
struct Tinyid {
    service: Service,
    keys: KeySources,
    /// Rights by token of Tinyid. Empty: the server's tokens count.
    rights: ByToken<(TokenTypes, KnownAddresses)>,
    segment_length: u64,
    body_bytes_max: usize,
}

/// Business types that a token may request.
#[derive(Debug)]
enum TokenTypes {
    All,
    Only(HashSet<String>),
}

/// A request that passed its checks: its caller and its source.
struct CheckedRequest {
    service: Service,
    params: Params,
    source: String,
}

pub(super) fn routes(service: Service, settings: &TinyidSettings, body_bytes_max: usize) -> Router {
    let right = |types: &String| match types.trim() {
        "*" => TokenTypes::All,
        types => TokenTypes::Only(types.split(',').map(|name| name.trim().to_owned()).collect()),
    };
    let mut rights = ByToken::default();
    for (token, types) in &settings.tokens {
        let token = token.text();
        let hash = token.parse().unwrap_or_else(|_| TokenHash::of(token.as_bytes()));
        // Once: it is the key of a table.
        rights.insert(hash, (right(types), KnownAddresses::default()));
    }
    let tinyid = Tinyid {
        service,
        keys: settings.keys.clone(),
        rights,
        segment_length: settings.segment_length,
        body_bytes_max,
    };
    let mut router = Router::new();
    let ends = |prefix| PATH_ENDS.map(|end| (prefix, end));
    for (prefix, end) in ["", "/tinyid"].into_iter().flat_map(ends) {
        let path = |name: &str| format!("{prefix}/id/{name}{end}");
        router = router
            .route(&path("nextId"), both(get(next_id).post(next_id)))
            .route(&path("nextIdSimple"), both(get(next_id_simple).post(next_id_simple)))
            .route(&path("nextSegmentId"), both(get(next_segment).post(next_segment)))
            .route(
                &path("nextSegmentIdSimple"),
                both(get(next_segment_simple).post(next_segment_simple)),
            );
    }
    router.with_state(Arc::new(tinyid))
}

fn both(methods: MethodRouter<Arc<Tinyid>>) -> MethodRouter<Arc<Tinyid>> {
    id_methods(methods, "GET,POST")
}

async fn next_id(tinyid: ForCaller<Tinyid>, request: Request) -> Response {
    match tinyid.ids(request).await {
        Ok((ids, unsent_permit)) => match serde_json::to_vec(&TinyidBody::of(ids)) {
            Ok(bytes) => response::counted_bytes(JSON_UTF8, bytes, unsent_permit),
            Err(error) => {
                let message =
                    format!("internal error: IDs cannot be written: {error}; please report it");
                refused(StatusCode::OK, &Error::new(Code::Internal, message))
            }
        },
        Err(error) => refused(StatusCode::OK, &error),
    }
}

async fn next_id_simple(tinyid: ForCaller<Tinyid>, request: Request) -> Response {
    match tinyid.ids(request).await {
        Ok((ids, unsent_permit)) => {
            response::counted_bytes(TEXT_UTF8, joined(&ids).into_bytes(), unsent_permit)
        }
        Err(error) => refused(status_of(&error), &error),
    }
}

async fn next_segment(tinyid: ForCaller<Tinyid>, request: Request) -> Response {
    match tinyid.segment(request).await {
        Ok(segment) => json_response(StatusCode::OK, &TinyidBody::of(segment)),
        Err(error) => refused(StatusCode::OK, &error),
    }
}

async fn next_segment_simple(tinyid: ForCaller<Tinyid>, request: Request) -> Response {
    match tinyid.segment(request).await {
        Ok(TinyidSegment { current_id, loading_id, max_id, delta, remainder }) => {
            let text = joined(&[current_id, loading_id, max_id, delta.into(), remainder.into()]);
            super::common::text(TEXT_UTF8, text)
        }
        Err(error) => refused(status_of(&error), &error),
    }
}

impl HasService for Tinyid {
    fn service(&self) -> &Service {
        &self.service
    }
}

impl ForCaller<Tinyid> {
    async fn ids(&self, request: Request) -> Result<(Vec<u64>, UnsentPermit), Error> {
        let CheckedRequest { service, params, source } = self.checked(request).await?;
        let count = match params.get("batchSize")? {
            None | Some("") => 1,
            Some(count) => whole("batchSize", count, 1)?,
        };
        numbers(&service, &source, count).await
    }

    async fn segment(&self, request: Request) -> Result<TinyidSegment, Error> {
        let CheckedRequest { service, source, .. } = self.checked(request).await?;
        let opened = service.source(&source).await?;
        let length = self.length(&opened).min(service.most(&source, Limit::Segment));
        segment_of(range(&service, &source, length).await?)
    }

    /// Returns the source of a request that may use it.
    async fn checked(&self, request: Request) -> Result<CheckedRequest, Error> {
        let params = Params::of(request, self.body_bytes_max).await?;
        let token = params.get("token")?.unwrap_or_default();
        let biz_type = params.get("bizType")?.unwrap_or_default();
        let service = match self.caller(biz_type, token)? {
            Some(caller) => self.service.for_caller(caller),
            None => self.service.clone(),
        };
        let source = source_of(&self.keys, params.need("bizType")?).to_owned();
        Ok(CheckedRequest { service, params, source })
    }

    /// Returns the caller that this token names; `None` if the request's sender is the caller.
    fn caller(&self, biz_type: &str, token: &str) -> Result<Option<Caller>, Error> {
        let access = self.service.access();
        if self.rights.is_empty() {
            let caller = self.service.caller();
            // A token in the header counts first, the certificate last.
            let has_shown = caller.has_shown() && caller.is_known();
            let shown = access.filter(|_| !has_shown && !token.is_empty());
            let named = shown
                .zip(caller.connection())
                .map(|(access, from)| access.caller(token.as_bytes(), from));
            return Ok(named);
        }
        self.check(biz_type, token)?;
        let caller = access.map(|_| Caller::compat_api("compat.tinyid"));
        Ok(caller.map(|caller| caller.of_same_connection(self.service.caller())))
    }
}

impl ForCaller<Tinyid> {
    /// Checks a token of Tinyid's own, which admits its clients to these numbers.
    fn check(&self, biz_type: &str, token: &str) -> Result<(), Error> {
        let found = self.rights.find(&TokenHash::of(token.as_bytes()));
        let found = found.filter(|(right, _)| right.has(biz_type));
        let (caller, logins) = (self.service.caller(), self.service.logins());
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let from = caller.address().map_or(nowhere, |from| from.ip());
        let looked_at = match found {
            Some((_, places)) => logins.right(places, from),
            None => logins.wrong(from),
        };
        match looked_at {
            Ok(()) if found.is_some() => Ok(()),
            Ok(()) => {
                logins.failed(caller, "no such token of compat.tinyid.tokens for this bizType");
                Err(Error::new(Code::Unauthenticated, TINYID_TOKEN_MESSAGE))
            }
            Err(wait_ms) => {
                logins.failed(caller, "too many wrong tokens came from this address");
                Err(too_many(wait_ms))
            }
        }
    }
}

impl TokenTypes {
    fn has(&self, biz_type: &str) -> bool {
        match self {
            Self::All => !biz_type.is_empty(),
            Self::Only(types) => !biz_type.is_empty() && types.contains(biz_type),
        }
    }
}

impl Tinyid {
    /// Returns how many numbers a client gets at once: the number that this server would take
    /// itself, where the source defines it.
    fn length(&self, source: &Source) -> u64 {
        match source.plan() {
            Plan::Segment(plan) => match plan.step {
                StepPlan::Fixed { size } | StepPlan::Leaf { size, .. } => size,
                StepPlan::Adaptive { .. } => self.segment_length,
            },
            _ => self.segment_length,
        }
    }
}

/// Returns a range in the client's form: the client searches the first number above `current_id`
/// with the remainder `remainder`, and continues by `delta` up to `max_id`.
fn segment_of(range: NumberRange) -> Result<TinyidSegment, Error> {
    let too_far = || {
        let message = format!(
            "source has increment {}, but Tinyid clients count by at most {}; use another source",
            range.increment,
            i32::MAX
        );
        Error::bad_request(message)
    };
    let delta = i32::try_from(range.increment).ok().and_then(|delta| u32::try_from(delta).ok());
    let delta = delta.filter(|delta| *delta > 0).ok_or_else(too_far)?;
    let remainder = range.first.checked_rem(delta.into()).and_then(|rest| rest.try_into().ok());
    let remainder = remainder.ok_or_else(too_far)?;
    let current_id = range.first.saturating_sub(1);
    let width = range.last.saturating_sub(current_id);
    let loading_id = current_id.saturating_add(width.saturating_mul(LOADING_PERCENT) / 100);
    Ok(TinyidSegment { max_id: range.last, loading_id, current_id, delta, remainder })
}

fn joined(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn status_of(error: &Error) -> StatusCode {
    StatusCode::from_u16(error.code().row().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn refused(status: StatusCode, cause: &Error) -> Response {
    let is_token = matches!(cause.code(), Code::Unauthenticated | Code::Forbidden);
    let code = if is_token { TINYID_TOKEN } else { TINYID_ERROR };
    response::error_response(cause, |message| {
        json_response(status, &TinyidBody::<()>::error(code, message.to_owned()))
    })
}

fn json_response<T: Serialize>(status: StatusCode, body: &TinyidBody<T>) -> Response {
    response::json_as(status, JSON_UTF8, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issues a segment like Tinyid's client, in its own signed arithmetic (`SegmentId`).
    fn spent(segment: TinyidSegment) -> Vec<i64> {
        let (delta, remainder) = (i64::from(segment.delta), i64::from(segment.remainder));
        let (mut current, max) =
            (i64::try_from(segment.current_id).unwrap(), i64::try_from(segment.max_id).unwrap());
        if current % delta != remainder {
            let found =
                (0..=delta).map(|more| current + 1 + more).find(|id| id % delta == remainder);
            current =
                found.expect("the client finds no number and continues from a wrong one") - delta;
        }
        let mut ids = Vec::new();
        loop {
            current += delta;
            if current > max {
                return ids;
            }
            ids.push(current);
        }
    }

    #[test]
    fn a_clients_arithmetic_gives_exactly_the_numbers_of_the_row() {
        let mut rows = 0;
        for increment in [1, 2, 3, 7, 100] {
            for first in 1..=2 * increment + 3 {
                for length in [1, 2, 5, 100] {
                    let range =
                        NumberRange { first, last: first + (length - 1) * increment, increment };
                    let segment = segment_of(range).unwrap();
                    let wanted: Vec<_> = (0..length)
                        .map(|index| i64::try_from(first + index * increment).unwrap())
                        .collect();
                    assert_eq!(spent(segment), wanted, "{range:?}");
                    assert!(segment.current_id <= segment.loading_id, "{range:?}");
                    assert!(segment.loading_id <= segment.max_id, "{range:?}");
                    rows += 1;
                }
            }
        }
        assert_eq!(rows, 4 * (5 + 7 + 9 + 17 + 203));
    }

    #[test]
    fn loading_id_lies_at_a_fifth_of_the_segment() {
        let segment = segment_of(NumberRange { first: 1, last: 100_000, increment: 1 }).unwrap();
        assert_eq!((segment.current_id, segment.loading_id), (0, 20_000));
        assert_eq!((segment.delta, segment.remainder), (1, 0));
    }

    #[test]
    fn numbers_too_far_apart_for_a_client_are_refused() {
        for increment in [0, 1 << 31, u64::MAX] {
            let range = NumberRange { first: 1, last: 1, increment };
            assert!(segment_of(range).is_err(), "{increment}");
        }
    }
}
