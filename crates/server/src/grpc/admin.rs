//! Sources, workers and layouts as messages: the same content as the bodies of HTTP.

use serde_json::{Map, Value};
use snowmint_coord::{NewStripe, SourceInfo};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::{
    AlterSourceRequest, DecodeResponse, DefineSourceRequest, Layout, ListLayoutsResponse,
    ListSourcesResponse, ListWorkersResponse, RecoverRequest, RecoverResponse,
    RestripeSourceRequest, Source, Worker, layout, recover_response,
};
use snowmint_wire::http::{DecodedBody, LayoutBody, RecoveryBody, RecoveryRequest, WorkerBody};

use crate::error::Error;
use crate::service::{
    Service, invalid, layout_body, layout_named, layouts_body, source_body, spec_of, worker_body,
};

/// Parses a number that HTTP writes as text.
fn number(text: Option<&str>) -> Result<Option<u64>, Error> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error| {
        let text = text.unwrap_or_default();
        let message =
            format!("internal error: number {text:?} cannot be parsed: {error}; please report it");
        Error::new(Code::Internal, message)
    })
}

/// Parses a JSON object in a field of this name; an empty text is an empty object.
fn object(name: &str, json: &str) -> Result<Map<String, Value>, Error> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json).map_err(|error| invalid::json(name, &error))
}

pub(super) fn decoded(body: DecodedBody) -> Result<DecodeResponse, Error> {
    Ok(DecodeResponse {
        number: number(body.number.as_deref())?,
        id: body.id,
        period: body.period,
        time: body.time,
        tick: body.tick,
        worker: body.worker,
        worker_parts: body.worker_parts.map(Vec::from).unwrap_or_default(),
        clock: body.clock,
        sequence: body.sequence,
        layout: body.layout,
        uuid_version: body.uuid_version.map(u32::from),
    })
}

pub(super) fn source(source: &SourceInfo) -> Source {
    let body = source_body(source);
    Source {
        name: body.name,
        version: body.version,
        next: source.next,
        keys: Value::Object(body.keys).to_string(),
    }
}

pub(super) async fn list_sources(service: &Service) -> Result<ListSourcesResponse, Error> {
    let sources = service.definitions().await?.sources.iter().map(source).collect();
    Ok(ListSourcesResponse { sources })
}

pub(super) async fn define(
    service: &Service,
    request: DefineSourceRequest,
) -> Result<Source, Error> {
    let spec = spec_of(object("keys", &request.keys)?)?;
    Ok(source(&service.define(&request.name, &spec).await?))
}

pub(super) async fn alter(service: &Service, request: AlterSourceRequest) -> Result<Source, Error> {
    let changes = object("changes", &request.changes)?;
    Ok(source(&service.alter(&request.name, &changes, request.version).await?))
}

pub(super) async fn restripe(
    service: &Service,
    request: RestripeSourceRequest,
) -> Result<Source, Error> {
    let RestripeSourceRequest { name, offset, increment, first, version } = request;
    let stripe = NewStripe { offset, increment, first, if_version: version };
    Ok(source(&service.restripe(&name, stripe).await?))
}

pub(super) async fn list_workers(service: &Service) -> Result<ListWorkersResponse, Error> {
    let own = service.incarnation();
    let slots = service.workers().await?;
    let workers = slots.iter().map(|slot| worker(worker_body(slot, own))).collect();
    Ok(ListWorkersResponse { workers })
}

fn worker(body: WorkerBody) -> Worker {
    Worker {
        pool: body.pool,
        number: body.number,
        owner: body.owner,
        host: body.host,
        process: body.process,
        launched: body.launched,
        term: body.term,
        mark: body.mark,
        held_since: body.held_since,
        last_renewed: body.last_renewed,
        live: body.live,
        own: body.own,
        excluded: body.excluded,
    }
}

pub(super) async fn recover(
    service: &Service,
    request: RecoverRequest,
) -> Result<RecoverResponse, Error> {
    let RecoverRequest { dry_run, mark, far_ahead, segments, without, secondary, other_server } =
        request;
    let segments = segments.into_iter().map(|(name, next)| (name, next.to_string())).collect();
    let request =
        RecoveryRequest { dry_run, mark, far_ahead, segments, without, secondary, other_server };
    recovered(service.recover(request).await?)
}

fn recovered(body: RecoveryBody) -> Result<RecoverResponse, Error> {
    let known = |text: &str| number(Some(text)).map(Option::unwrap_or_default);
    let journal = |journal: snowmint_wire::http::JournalBody| recover_response::Journal {
        id: journal.id,
        owner: journal.owner,
        host: journal.host,
        last_seen: journal.last_seen,
        state: journal.state,
    };
    let mut segments = std::collections::HashMap::new();
    for (name, next) in body.segments {
        segments.insert(name, known(&next)?);
    }
    Ok(RecoverResponse {
        doubt: body.doubt,
        journals: body.journals.into_iter().map(journal).collect(),
        unsaid: body.unsaid,
        marks_at_least: body.marks_at_least,
        segments,
        undefined: body.undefined,
        writes_at_least: known(&body.writes_at_least)?,
        done: body.done,
        writes: body.store.as_ref().map(|store| known(&store.writes)).transpose()?,
        store: body.store.map(|store| store.id),
    })
}

pub(super) fn list_layouts() -> ListLayoutsResponse {
    ListLayoutsResponse { layouts: layouts_body().layouts.into_iter().map(layout).collect() }
}

pub(super) fn get_layout(text: &str) -> Result<Layout, Error> {
    Ok(layout(layout_body(&layout_named(text)?)))
}

fn layout(body: LayoutBody) -> Layout {
    let bits = layout::Bits {
        total: body.bits.total.into(),
        time: body.bits.time.into(),
        clock: body.bits.clock.into(),
        worker: body.bits.worker.into(),
        sequence: body.bits.sequence.into(),
    };
    Layout {
        name: body.name,
        layout: body.layout,
        about: body.about,
        bits: Some(bits),
        unit_ms: body.unit_ms,
        epoch: body.epoch,
        end: body.end,
        workers: body.workers,
        ids_per_second: body.ids_per_second,
        can_mint: body.can_mint,
    }
}
