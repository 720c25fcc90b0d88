//! The compatibility API of Meituan Leaf: `LeafController` and `decodeSnowflakeId` of
//! `LeafMonitorController`.
//!
//! The body of a response is the ID alone. Every error has status 500, and the body of Spring Boot.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use snowmint_coord::spec::Kind;
use snowmint_core::{Clock as _, Layout, SystemClock};
use snowmint_wire::error::Code;
use snowmint_wire::http::compat::{
    JSON_UTF8, LEAF_UNDECODED, LeafDecodedBody, LeafErrorBody, LeafUndecodedBody, TEXT_UTF8,
};

use super::common::{PATH_ENDS, makes_numbers, number, source_of, status_of, text};
use super::params::Params;
use crate::access::Right;
use crate::config::{KeySources, LeafSettings};
use crate::error::Error;
use crate::http::for_caller::{ForCaller, HasService};
use crate::http::id_paths::id_methods;
use crate::http::response::{self, json_as};
use crate::service::{Service, invalid};

/// Leaf's name for its errors.
const SERVER_EXCEPTION: &str = "com.sankuai.inf.leaf.server.exception.LeafServerException";
/// Spring's name for a missing parameter.
const NO_PARAMETER: &str = "org.springframework.web.bind.MissingServletRequestParameterException";

#[derive(Debug)]
struct Leaf {
    service: Service,
    keys: KeySources,
    snowflake: String,
    layout: Layout,
    zone: TimeZone,
    body_bytes_max: usize,
}

/// Beginnings of all its paths.
pub(super) const PREFIXES: [&str; 3] =
    ["/api/segment/get/", "/api/snowflake/get/", "/decodeSnowflakeId"];

type KeyPath = Result<Path<String>, PathRejection>;

pub(super) fn routes(
    service: Service,
    settings: &LeafSettings,
    body_bytes_max: usize,
) -> Result<Router, String> {
    let leaf = Leaf {
        service,
        keys: settings.keys.clone(),
        snowflake: settings.snowflake.clone(),
        layout: settings.layout()?,
        zone: settings.zone()?,
        body_bytes_max,
    };
    let mut router = Router::new();
    for end in PATH_ENDS {
        let path = |path: &str| format!("{path}{end}");
        router = router
            .route(
                &path("/api/segment/get/{key}"),
                id_methods(get(segment).post(segment), "GET,POST"),
            )
            .route(
                &path("/api/snowflake/get/{key}"),
                id_methods(get(snowflake).post(snowflake), "GET,POST"),
            )
            .route(&path("/decodeSnowflakeId"), get(decode).post(decode));
    }
    Ok(router.with_state(Arc::new(leaf)))
}

async fn segment(leaf: ForCaller<Leaf>, key: KeyPath, uri: Uri) -> Response {
    leaf.response(Kind::Segment, key, &uri).await
}

async fn snowflake(leaf: ForCaller<Leaf>, key: KeyPath, uri: Uri) -> Response {
    leaf.response(Kind::Snowflake, key, &uri).await
}

async fn decode(leaf: ForCaller<Leaf>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let params = Params::of(request, leaf.body_bytes_max).await;
    let id = params.and_then(|params| Ok(params.get("snowflakeId")?.map(str::to_owned)));
    let refused = |status, message: &str, cause: &str| {
        error_response(status, NO_PARAMETER, message, &path, cause)
    };
    let id = leaf.service.caller().may_somewhere(Right::Decode).and(id);
    match id {
        Ok(Some(id)) => match leaf.decoded(&id) {
            Some(decoded) => json_as(StatusCode::OK, JSON_UTF8, &decoded),
            None => {
                let body = LeafUndecodedBody { error_msg: LEAF_UNDECODED.to_owned() };
                json_as(StatusCode::OK, JSON_UTF8, &body)
            }
        },
        Ok(None) => {
            let message = "Required String parameter 'snowflakeId' is not present";
            let cause = "parameter snowflakeId is missing; write /decodeSnowflakeId?snowflakeId=ID";
            refused(StatusCode::BAD_REQUEST, message, cause)
        }
        Err(error) => {
            let status = status_of(&error, StatusCode::BAD_REQUEST);
            response::error_response(&error, |message| refused(status, message, message))
        }
    }
}

impl HasService for Leaf {
    fn service(&self) -> &Service {
        &self.service
    }
}

impl ForCaller<Leaf> {
    async fn response(&self, kind: Kind, key: KeyPath, uri: &Uri) -> Response {
        let minted = match key {
            Ok(Path(key)) => self.mint(kind, &key).await,
            Err(_) => Err(invalid::path()),
        };
        match minted {
            Ok(id) => text(TEXT_UTF8, id.to_string()),
            Err(cause) => {
                let result = format!("Result{{id={}, status=EXCEPTION}}", result_of(cause.code()));
                let status = status_of(&cause, StatusCode::INTERNAL_SERVER_ERROR);
                response::error_response(&cause, |message| {
                    error_response(status, SERVER_EXCEPTION, &result, uri.path(), message)
                })
            }
        }
    }

    /// Mints one ID of the key's source, if the path is for its kind.
    async fn mint(&self, kind: Kind, key: &str) -> Result<u64, Error> {
        let any = kind == Kind::Snowflake && !self.snowflake.is_empty();
        let name = match self.keys.get(key) {
            None if any => &self.snowflake,
            _ => source_of(&self.keys, key),
        };
        let source = self.service.source(name).await?;
        if source.kind() != kind || !makes_numbers(&source) {
            let message = format!("source {name:?} has no {kind} numbers; use another path");
            return Err(Error::new(Code::UnknownSource, message));
        }
        number(&self.service, name).await
    }
}

impl Leaf {
    fn decoded(&self, id: &str) -> Option<LeafDecodedBody> {
        let parts = self.layout.unpack(id.trim().parse().ok()?).ok()?;
        let ms = self.layout.start_of(parts.tick).get();
        let time = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
        let time = time.to_zoned(self.zone.clone());
        Some(LeafDecodedBody {
            worker_id: parts.worker.to_string(),
            sequence_id: parts.sequence.to_string(),
            timestamp: format!("{ms}({})", time.strftime("%Y-%m-%d %H:%M:%S%.3f")),
        })
    }
}

/// Returns Leaf's error number: -1 not ready, -2 no such key, -3 no IDs at present.
const fn result_of(code: Code) -> i8 {
    match code {
        Code::UnknownSource
        | Code::NotFound
        | Code::BadRequest
        | Code::Unsupported
        | Code::Conflict
        | Code::Disabled => -2,
        Code::Closed => -1,
        _ => -3,
    }
}

fn error_response(
    status: StatusCode,
    exception: &str,
    message: &str,
    path: &str,
    reason: &str,
) -> Response {
    let body = LeafErrorBody {
        timestamp: SystemClock.unix_ms().get(),
        status: status.as_u16(),
        error: status.canonical_reason().unwrap_or_default().to_owned(),
        exception: exception.to_owned(),
        message: message.to_owned(),
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    json_as(status, JSON_UTF8, &body)
}
