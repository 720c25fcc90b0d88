//! The compatibility API of CosId's proxy: segments, single IDs, and machine IDs.
//!
//! A client of segments reads the response as a number, whatever the status: an error is not a
//! number.

mod machines;
mod result;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{get, patch, post};
use snowmint_coord::spec::{Kind, Plan};
use snowmint_coord::{IdBatch, Source, SourceSpec};
use snowmint_wire::error::Code;
use snowmint_wire::http::JSON;
use snowmint_wire::http::compat::TEXT_UTF8;

use self::result::{CosId, CosIdResult, NamePath, NamesPath, part};
use super::common::{number, range, source_of, text};
use super::params::{Params, whole};
use crate::config::{CosIdSettings, KeySources};
use crate::error::Error;
use crate::http::for_caller::ForCaller;
use crate::http::id_paths::id_methods;
use crate::service::{Route, Service, invalid};

/// CosId's name for the generator of clients that name none.
const SHARE: &str = "__share__";

/// Beginnings of all its paths.
pub(super) const PREFIXES: [&str; 3] = ["/segments/", "/machines/", "/ids"];

pub(super) fn routes(service: Service, settings: &CosIdSettings, body_bytes_max: usize) -> Router {
    let CosIdSettings { enabled: _, define, machines_max, ref keys } = *settings;
    let cosid = CosId { service, keys: keys.clone(), define, machines_max, body_bytes_max };
    Router::new()
        .route("/segments/distributor/{namespace}/{name}", post(distributor))
        .route("/segments/{namespace}/{name}", patch(next_max_id))
        .route("/machines/{namespace}", machines::methods())
        .route("/ids", id_methods(get(share), "GET"))
        .route("/ids/{name}", id_methods(get(id), "GET"))
        .route("/ids/as-string", id_methods(get(share_as_string), "GET"))
        .route("/ids/as-string/{name}", id_methods(get(id_as_string), "GET"))
        .with_state(Arc::new(cosid))
}

async fn distributor(cosid: ForCaller<CosId>, names: NamesPath, request: Request) -> CosIdResult {
    let key = key_of(names)?;
    let params = Params::of(request, cosid.body_bytes_max).await?;
    let offset = whole("offset", params.need("offset")?, 0)?;
    whole("step", params.need("step")?, 1)?;
    cosid.distributor(&segment_source_of(&cosid.keys, &key), offset).await?;
    Ok(StatusCode::OK.into_response())
}

async fn next_max_id(cosid: ForCaller<CosId>, names: NamesPath, request: Request) -> CosIdResult {
    let key = key_of(names)?;
    let params = Params::of(request, cosid.body_bytes_max).await?;
    let step = whole("step", params.need("step")?, 1)?;
    let max_id = cosid.next_max_id(&segment_source_of(&cosid.keys, &key), step).await?;
    Ok(text(JSON, max_id.to_string()))
}

async fn share(cosid: ForCaller<CosId>) -> CosIdResult {
    cosid.id(SHARE).await
}

async fn id(cosid: ForCaller<CosId>, name: NamePath) -> CosIdResult {
    cosid.id(&part(name)?).await
}

async fn share_as_string(cosid: ForCaller<CosId>) -> CosIdResult {
    cosid.id_as_string(SHARE).await
}

async fn id_as_string(cosid: ForCaller<CosId>, name: NamePath) -> CosIdResult {
    cosid.id_as_string(&part(name)?).await
}

impl ForCaller<CosId> {
    /// Ensures that a source for a client's segments exists. As in CosId, an existing definition
    /// wins over the client's.
    async fn distributor(&self, name: &str, offset: u64) -> Result<(), Error> {
        match self.service.source(name).await {
            Ok(source) => check(&source),
            Err(error) if error.code() == Code::UnknownSource && self.define => {
                let spec = SourceSpec {
                    first: Some(offset.saturating_add(1)),
                    ..SourceSpec::of(Kind::Segment)
                };
                match self.service.define(name, &spec).await {
                    Ok(_) => Ok(()),
                    // Another client was first, with another offset.
                    Err(error) if error.code() == Code::Conflict => {
                        check(&self.service.source(name).await?)
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the last of `step` numbers, which the client may issue now.
    async fn next_max_id(&self, name: &str, step: u64) -> Result<u64, Error> {
        check(&self.service.source(name).await?)?;
        let range = range(&self.service, name, step).await?;
        // Striped since the check: the client would take all numbers between for its own.
        if range.increment != 1 { Err(striped(name, range.increment)) } else { Ok(range.last) }
    }

    async fn id(&self, key: &str) -> CosIdResult {
        let id = number(&self.service, source_of(&self.keys, key)).await?;
        Ok(text(JSON, id.to_string()))
    }

    /// Returns an ID in its source's own form.
    async fn id_as_string(&self, key: &str) -> CosIdResult {
        let name = source_of(&self.keys, key);
        let (source, minted) = self.service.mint(name, 1, None, Route::Ordered).await?;
        let (values, _) = minted.into_parts();
        let id = match values {
            IdBatch::Texts(ids) => ids.into_iter().next(),
            IdBatch::Numbers(ids) => match ids.first() {
                Some(&id) => Some(source.encode(id, Some(source.format()))?.to_string()),
                None => None,
            },
        };
        let none = || {
            let message = "internal error: minted 0 IDs, expected 1; please report it";
            Error::new(Code::Internal, message)
        };
        Ok(text(TEXT_UTF8, id.ok_or_else(none)?))
    }
}

/// Checks the source: a client of segments counts by one.
fn check(source: &Source) -> Result<(), Error> {
    match source.plan() {
        Plan::Segment(plan) if plan.stripe.increment() == 1 => Ok(()),
        Plan::Segment(plan) => Err(striped(source.name(), plan.stripe.increment())),
        _ => {
            let (name, kind) = (source.name(), source.kind());
            let message = format!("source {name:?} has kind {kind}; ranges need kind segment");
            Err(Error::bad_request(message))
        }
    }
}

fn striped(name: &str, increment: u64) -> Error {
    Error::bad_request(format!(
        "source {name:?} has increment {increment}, but CosId clients count by 1; use another \
         source"
    ))
}

/// Returns the source of a key of segments. A group, such as the day of `shop.orders@20261129`, has
/// a source of its own, as it has a row in CosId's table. Its name has `-` for `@`, which no name
/// of a source has.
fn segment_source_of(keys: &KeySources, key: &str) -> String {
    match key.rsplit_once('@') {
        Some((name, group)) if !keys.contains_key(key) => {
            format!("{}-{group}", source_of(keys, name))
        }
        _ => source_of(keys, key).to_owned(),
    }
}

/// Returns the key of a client's segments, in CosId's joined form.
fn key_of(names: NamesPath) -> Result<String, Error> {
    match names {
        Ok(Path((namespace, name))) => Ok(format!("{namespace}.{name}")),
        Err(_) => Err(invalid::path()),
    }
}
