//! Sources, workers and layouts as messages.

use serde_json::{Map, Value};
use snowmint_coord::recovery::{self, ContinueAt};
use snowmint_coord::{Incarnation, Mark, NewStripe, SlotInfo, SourceInfo};
use snowmint_core::layout::{Field, PRESETS, Preset, ReadableLayout};
use snowmint_core::{Rfc3339, UnixMillis};
use snowmint_wire::grpc::{
    self, AlterSourceRequest, DecodeResponse, DefineSourceRequest, ListLayoutsResponse,
    ListSourcesResponse, ListWorkersResponse, RecoverRequest, RecoverResponse,
    RestripeSourceRequest, Source, Worker, recover_response,
};

use crate::error::Error;
use crate::service::{
    DecodedParts, RecoveryCall, RecoveryOutcome, Service, invalid, layout_named, recovery_mark,
    spec_of,
};

fn time(time: UnixMillis) -> String {
    Rfc3339(time).to_string()
}

/// Parses a JSON object in a field of this name; an empty text is an empty object.
fn object(name: &str, json: &str) -> Result<Map<String, Value>, Error> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json).map_err(|error| invalid::json(name, &error))
}

pub(super) fn decoded(id: String, parts: &DecodedParts<'_>) -> DecodeResponse {
    DecodeResponse {
        id,
        number: parts.number,
        period: parts.period.map(str::to_owned),
        time: parts.time.map(|time| time.to_string()),
        tick: parts.tick,
        worker: parts.worker,
        worker_parts: parts.worker_parts.map(Vec::from).unwrap_or_default(),
        clock: parts.clock,
        sequence: parts.sequence,
        layout: parts.layout.map(|layout| layout.to_string()),
        uuid_version: parts.uuid_version.map(u32::from),
    }
}

pub(super) fn source(source: &SourceInfo) -> Source {
    Source {
        name: source.name.clone(),
        version: source.version,
        next: source.next,
        keys: Value::Object(source.spec.to_json()).to_string(),
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
    let workers = slots.iter().map(|slot| worker(slot, own)).collect();
    Ok(ListWorkersResponse { workers })
}

fn worker(slot: &SlotInfo, own: Option<Incarnation>) -> Worker {
    Worker {
        pool: slot.pool.clone(),
        number: slot.slot,
        owner: Some(slot.owner.clone()).filter(|owner| !owner.is_empty()),
        host: slot.host.clone(),
        process: slot.process,
        launched: slot.joined_at.map(time),
        term: slot.term.get(),
        mark: time(slot.mark.unix_millis()),
        held_since: slot.holder.is_some().then(|| time(slot.held_since)),
        last_renewed: slot.renewed_at.map(time),
        live: slot.live,
        own: own.is_some() && slot.holder == own,
        excluded: slot.is_excluded(),
    }
}

pub(super) async fn recover(
    service: &Service,
    request: RecoverRequest,
) -> Result<RecoverResponse, Error> {
    let RecoverRequest {
        dry_run,
        mark,
        far_ahead,
        segments,
        without,
        secondary,
        other_server,
        issued,
        no_ids_ahead,
        counters_above,
    } = request;
    let numbers = segments.into_iter().map(|(name, next)| Ok((name, Mark::new(next).into())));
    let ids = issued.into_iter().map(|(name, id)| Ok((name, ContinueAt::after(&id)?)));
    let segments = numbers.chain(ids).collect::<Result<Vec<_>, Error>>();
    // The map has no order, and an error names the first source that is unknown.
    let segments = segments.map(|mut segments| {
        segments.sort_unstable();
        segments
    });
    let request = recovery_mark(mark).and_then(|mark| {
        let segments = segments?;
        let given = recovery::RecoveryRequest {
            no_ids_ahead,
            counters_above,
            ..recovery::RecoveryRequest::default()
        };
        Ok(recovery::RecoveryRequest { mark, far_ahead, segments, without, ..given })
    });
    let call = RecoveryCall { request, dry_run, secondary, other_server };
    let outcome = service.recover(call).await?;
    let RecoveryOutcome { recovery, forward, after, unsaid, undefined } = outcome;
    let journals = recovery.journals().map(|(journal, state)| recover_response::Journal {
        id: journal.id.clone(),
        owner: journal.owner.clone(),
        host: journal.host.clone(),
        last_seen: time(UnixMillis::new(journal.seen_at_ms)),
        state: recovery.state_text(journal, state),
    });
    let undefined = recovery.undefined(&forward).map(|(name, _)| name.clone()).chain(undefined);
    Ok(RecoverResponse {
        doubt: recovery.doubt().map(|doubt| doubt.clone().into_error().to_string()),
        journals: journals.collect(),
        unsaid,
        marks_at_least: forward.raised_marks().map(|mark| time(mark.unix_millis())),
        undefined: undefined.collect(),
        segments: forward.segments.iter().map(|(name, next)| (name.clone(), next.get())).collect(),
        writes_at_least: forward.raised_writes(),
        done: after.is_some(),
        writes: after.as_ref().map(|identity| identity.writes),
        store: after.map(|identity| identity.store()),
    })
}

pub(super) fn list_layouts() -> ListLayoutsResponse {
    let layouts = PRESETS.iter().map(|preset| layout(&preset.layout(), Some(preset)));
    ListLayoutsResponse { layouts: layouts.collect() }
}

pub(super) fn get_layout(text: &str) -> Result<grpc::Layout, Error> {
    let named = layout_named(text)?;
    Ok(layout(&named, named.preset()))
}

fn layout(layout: &ReadableLayout, preset: Option<&Preset>) -> grpc::Layout {
    let bits = grpc::layout::Bits {
        total: layout.total_bits().into(),
        time: layout.bits(Field::Time).into(),
        clock: layout.bits(Field::Clock).into(),
        worker: layout.bits(Field::Worker).into(),
        sequence: layout.bits(Field::Sequence).into(),
    };
    grpc::Layout {
        name: preset.map(|preset| preset.name().to_owned()),
        layout: layout.to_string(),
        about: preset.map(|preset| preset.about().to_owned()),
        bits: Some(bits),
        unit_ms: layout.unit_ms(),
        unit_ns: layout.unit_ns(),
        epoch: time(layout.epoch()),
        end: time(layout.end()),
        workers: layout.workers(),
        // As in the body of HTTP.
        ids_per_second: u64::try_from(layout.ids_per_second_per_worker()).unwrap_or(u64::MAX),
        can_mint: preset.map_or_else(|| layout.mintable().is_ok(), Preset::can_mint),
    }
}
