//! Domain values as bodies of HTTP responses.

use snowmint_coord::{Decoded, Incarnation, SlotInfo, SourceInfo, StoreStatus};
use snowmint_core::layout::{Field, PRESETS, Preset};
use snowmint_core::{Layout, Rfc3339, UnixMillis};
use snowmint_wire::http::{
    BitsBody, DecodedBody, LayoutBody, LayoutsBody, SourceBody, StoreStatusBody, WorkerBody,
};

fn time(time: UnixMillis) -> String {
    Rfc3339(time).to_string()
}

/// Returns the parts of an ID.
#[must_use]
pub fn decoded_body(id: &str, decoded: &Decoded) -> DecodedBody {
    let mut body = DecodedBody { id: id.to_owned(), ..DecodedBody::default() };
    match decoded {
        Decoded::Snowflake { id, parts, time: start, layout } => {
            let has = |field| layout.bits(field) > 0;
            body.number = Some(id.to_string());
            body.time = Some(time(*start));
            body.tick = Some(parts.tick.get());
            body.worker = has(Field::Worker).then_some(parts.worker);
            body.worker_parts = layout.split_worker(parts.worker).map(|(high, low)| [high, low]);
            body.clock = has(Field::Clock).then_some(parts.clock);
            body.sequence = Some(parts.sequence);
            body.layout = Some(layout.to_string());
        }
        Decoded::Number { id } => body.number = Some(id.to_string()),
        Decoded::Serial { period, number } => {
            body.number = Some(number.to_string());
            body.period.clone_from(period);
        }
        Decoded::Uuid { uuid } => {
            body.uuid_version = uuid.get_version_num().try_into().ok();
            body.time = uuid.get_timestamp().map(|timestamp| {
                let (seconds, nanos) = timestamp.to_unix();
                let ms = seconds.saturating_mul(1_000).saturating_add(u64::from(nanos) / 1_000_000);
                time(UnixMillis::new(ms))
            });
        }
        Decoded::Ulid { time: made, .. } => body.time = Some(time(*made)),
        // A kind that is added later shows no more than the ID itself until it is described here.
        _ => {}
    }
    body
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
#[must_use]
pub fn worker_body(slot: &SlotInfo, own: Option<Incarnation>) -> WorkerBody {
    WorkerBody {
        pool: slot.pool.clone(),
        number: slot.slot,
        owner: Some(slot.owner.clone()).filter(|owner| !owner.is_empty()),
        host: slot.host.clone(),
        process: slot.process,
        launched: slot.joined_at.map(time),
        term: slot.term.get(),
        mark: time(UnixMillis::new(slot.mark.get())),
        held_since: slot.holder.is_some().then(|| time(slot.held_since)),
        last_renewed: slot.renewed_at.map(time),
        live: slot.live,
        own: own.is_some() && slot.holder == own,
        excluded: slot.is_excluded(),
    }
}

/// Returns the properties of a layout.
#[must_use]
pub fn layout_body(layout: &Layout) -> LayoutBody {
    body_of(layout, layout.preset())
}

/// Returns every layout that has a name.
#[must_use]
pub fn layouts_body() -> LayoutsBody {
    let layouts = PRESETS.iter().map(|preset| body_of(&preset.layout(), Some(preset)));
    LayoutsBody { layouts: layouts.collect() }
}

fn body_of(layout: &Layout, preset: Option<&Preset>) -> LayoutBody {
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
        epoch: time(layout.epoch()),
        end: time(layout.end()),
        workers: layout.workers(),
        // A worker's own rate is below 2^63 a millisecond; in seconds it may exceed 64 bits.
        ids_per_second: u64::try_from(layout.ids_per_second_per_worker()).unwrap_or(u64::MAX),
        can_mint: preset.is_none_or(Preset::can_mint),
    }
}
