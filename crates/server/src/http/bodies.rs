//! Domain values as bodies of HTTP, and the request of a recovery as domain values.

use std::collections::BTreeMap;

use snowmint_coord::external::is_external;
use snowmint_coord::recovery::{self, Recovery};
use snowmint_coord::{
    Capabilities, ClockOf, FastForward, Incarnation, Mark, PresenceBy, SlotInfo, SourceInfo,
    StoreIdentity, StoreStatus,
};
use snowmint_core::layout::{Field, PRESETS, Preset, ReadableLayout};
use snowmint_core::{Rfc3339, UnixMillis};
use snowmint_wire::http::{
    BitsBody, DecodedBody, JournalBody, LayoutBody, LayoutsBody, RecoveredBody, RecoveryBody,
    RecoveryRequest, ServerBody, SourceBody, StoreBody, StoreStatusBody, TokenBody, WorkerBody,
};

use crate::access::{Caller, Token};
use crate::error::Error;
use crate::service::layout_advice;
use crate::service::{DecodedParts, RecoveryCall, RecoveryOutcome, Service, recovery_mark};

fn time(time: UnixMillis) -> String {
    Rfc3339(time).to_string()
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// Returns the parts of an ID.
pub(super) fn decoded_body(id: &str, parts: &DecodedParts<'_>) -> DecodedBody {
    DecodedBody {
        id: id.to_owned(),
        number: parts.number.map(|number| number.to_string()),
        period: parts.period.map(str::to_owned),
        time: parts.time.map(|time| time.to_string()),
        tick: parts.tick,
        worker: parts.worker,
        worker_parts: parts.worker_parts,
        clock: parts.clock,
        sequence: parts.sequence,
        layout: parts.layout.map(|layout| layout.to_string()),
        uuid_version: parts.uuid_version,
        ..DecodedBody::default()
    }
}

/// Returns a definition with its keys.
#[must_use]
pub fn source_body(source: &SourceInfo) -> SourceBody {
    SourceBody {
        name: source.name.clone(),
        version: source.version,
        next: source.next.map(|next| next.to_string()),
        store_status: source.store_status.iter().map(store_status_body).collect(),
        keys: source.spec.to_json(),
    }
}

fn store_status_body(status: &StoreStatus) -> StoreStatusBody {
    StoreStatusBody {
        store: status.store.clone(),
        serving: status.serving,
        offset: status.stripe.map(|(offset, _)| offset),
        increment: status.stripe.map(|(_, increment)| increment),
        worker: status.worker,
        error: status.error.clone(),
    }
}

/// Returns a slot, from the view of the member `own`.
pub(super) fn worker_body(slot: &SlotInfo, own: Option<Incarnation>) -> WorkerBody {
    WorkerBody {
        pool: slot.pool.clone(),
        number: slot.slot,
        owner: non_empty(&slot.owner),
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
        external: is_external(&slot.pool),
    }
}

/// Returns the properties of a layout, with what to know at this time before a source gets it.
pub(super) fn layout_body(layout: &ReadableLayout, now: UnixMillis) -> LayoutBody {
    LayoutBody {
        warnings: layout_advice::warnings(layout, now),
        sample: layout_advice::sample(layout, now),
        ..body_of(layout, layout.preset())
    }
}

/// Returns every layout that has a name.
pub(super) fn layouts_body() -> LayoutsBody {
    let layouts = PRESETS.iter().map(|preset| body_of(&preset.layout(), Some(preset)));
    LayoutsBody { layouts: layouts.collect() }
}

fn body_of(layout: &ReadableLayout, preset: Option<&Preset>) -> LayoutBody {
    LayoutBody {
        name: preset.map(|preset| preset.name().to_owned()),
        layout: layout.to_string(),
        about: preset.map(|preset| preset.about().to_owned()),
        bits: BitsBody {
            total: layout.total_bits(),
            time: layout.bits(Field::Time),
            clock: layout.bits(Field::Clock),
            worker: layout.bits(Field::Worker),
            sequence: layout.bits(Field::Sequence),
        },
        unit_ms: layout.unit_ms(),
        unit_ns: layout.unit_ns(),
        epoch: time(layout.epoch()),
        end: time(layout.end()),
        workers: layout.workers(),
        // A worker's own rate is below 2^63 a millisecond; in seconds it may exceed 64 bits.
        ids_per_second: u64::try_from(layout.ids_per_second_per_worker()).unwrap_or(u64::MAX),
        can_mint: preset.map_or_else(|| layout.mintable().is_ok(), Preset::can_mint),
        warnings: Vec::new(),
        sample: BTreeMap::new(),
    }
}

/// Returns the description of this server, and of the caller's token.
pub(super) fn server_body(service: &Service) -> Result<ServerBody, Error> {
    let (node, token) = service.about()?;
    let store = node.store();
    Ok(ServerBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        namespace: store.namespace().to_owned(),
        owner: non_empty(node.owner()),
        host: non_empty(node.host()),
        member: node.incarnation().map(|member| member.to_string()),
        store: store_body(store.capabilities(), store.warnings()),
        tokens_required: service.access().is_some(),
        token: token.map(|token| token_body(&token, service.caller())),
    })
}

fn store_body(can: Capabilities, warnings: Vec<String>) -> StoreBody {
    let Capabilities { clock, durable_on_reply, safe_over_failover, presence } = can;
    let clock = match clock {
        ClockOf::Store => "store",
        ClockOf::Caller => "caller",
    };
    let presence = match presence {
        PresenceBy::Record => "record",
        PresenceBy::Session => "session",
    };
    StoreBody {
        clock: clock.to_owned(),
        durable_on_reply,
        safe_over_failover,
        presence: presence.to_owned(),
        warnings,
    }
}

fn token_body(token: &Token, caller: &Caller) -> TokenBody {
    TokenBody {
        name: token.name().to_owned(),
        certificate: caller.certificate().map(ToString::to_string),
        grants: token.settings().grants.clone(),
        rates: token.settings().rates.clone(),
    }
}

/// Parses the texts of a recovery.
pub(super) fn recovery_call(request: RecoveryRequest) -> RecoveryCall {
    let RecoveryRequest { dry_run, far_ahead, no_ids_ahead, without, .. } = request;
    let (secondary, other_server) = (request.secondary, request.other_server);
    let value = |(name, text): (String, String)| Ok((name, recovery::ContinueAt::new(&text)?));
    let segments = || request.segments.into_iter().map(value).collect::<Result<_, Error>>();
    let request = recovery_mark(request.mark).and_then(|mark| {
        let given = recovery::RecoveryRequest {
            no_ids_ahead,
            counters_above: counters_above(request.counters_above)?,
            ..recovery::RecoveryRequest::default()
        };
        let segments = segments()?;
        Ok(recovery::RecoveryRequest { mark, far_ahead, segments, without, ..given })
    });
    RecoveryCall { request, dry_run, secondary, other_server }
}

fn counters_above(text: Option<String>) -> Result<Option<u64>, Error> {
    let number = |text: String| {
        text.parse().map_err(|_| {
            Error::bad_request(format!(
                "counters_above is {text:?}, not a whole number; give the highest number of a counter"
            ))
        })
    };
    text.map(number).transpose()
}

/// Returns the outcome of a recovery.
pub(super) fn outcome_body(outcome: RecoveryOutcome) -> RecoveryBody {
    let RecoveryOutcome { recovery, forward, after, unsaid, undefined } = outcome;
    let mut body = recovery_body(&recovery, &forward, after.as_ref());
    body.unsaid = unsaid;
    body.undefined.extend(undefined);
    body
}

/// Returns the reports on a store, the target of its move, and its identity `after` the recovery. The
/// caller adds what is unsaid.
#[must_use]
pub fn recovery_body(
    recovery: &Recovery,
    forward: &FastForward,
    after: Option<&StoreIdentity>,
) -> RecoveryBody {
    let journals = recovery.journals().map(|(journal, state)| JournalBody {
        id: journal.id.clone(),
        owner: journal.owner.clone(),
        host: journal.host.clone(),
        last_seen: time(UnixMillis::new(journal.seen_at_ms)),
        state: recovery.state_text(journal, state),
    });
    let next = |(name, mark): &(String, Mark)| (name.clone(), mark.get().to_string());
    RecoveryBody {
        doubt: recovery.doubt().map(|doubt| doubt.clone().into_error().to_string()),
        journals: journals.collect(),
        unsaid: None,
        marks_at_least: forward.raised_marks().map(|mark| time(mark.unix_millis())),
        segments: forward.segments.iter().map(next).collect(),
        undefined: recovery.undefined(forward).map(|(name, _)| name.clone()).collect(),
        writes_at_least: forward.raised_writes().map(|writes| writes.to_string()),
        done: after.is_some(),
        store: after.map(|identity| RecoveredBody {
            id: identity.store(),
            writes: identity.writes.to_string(),
        }),
    }
}
