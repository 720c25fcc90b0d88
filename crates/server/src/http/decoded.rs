//! IDs of unknown origin as bodies of HTTP.

use snowmint_core::layout::Field;
use snowmint_core::{Parts, Rfc3339, UnixMillis};
use snowmint_wire::http::{DecodedBody, ReadingBody};

use crate::service::decoding::{FormReading, LayoutReading, UnknownId};

fn in_utc(time: UnixMillis) -> String {
    Rfc3339(time).to_string()
}

/// Returns the content of an ID of which only the text is known.
pub(super) fn unknown_body(text: &str, id: &UnknownId) -> DecodedBody {
    let more = id.more.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    DecodedBody {
        id: text.to_owned(),
        number: id.number.map(|number| number.to_string()),
        time: id.time.map(in_utc),
        uuid_version: id.uuid_version,
        kind: id.kind.map(str::to_owned),
        more: more.collect(),
        readings: id.readings.iter().map(in_full).collect(),
        ..DecodedBody::default()
    }
}

fn in_full(found: &FormReading) -> ReadingBody {
    ReadingBody {
        in_full: Some(found.reading.layout.to_string()),
        ..form_reading_body(found, in_utc)
    }
}

/// Returns the reading of a layout, with the form of the text that it read.
#[must_use]
pub fn form_reading_body(
    FormReading { form, reading }: &FormReading,
    show: impl Fn(UnixMillis) -> String,
) -> ReadingBody {
    ReadingBody {
        format: form.map(|(format, _)| format.name().to_owned()),
        number: form.map(|(_, number)| number.to_string()),
        ..reading_body(reading, show)
    }
}

/// Returns the reading of a layout, with the time as `show` writes it.
#[must_use]
pub fn reading_body(reading: &LayoutReading, show: impl Fn(UnixMillis) -> String) -> ReadingBody {
    let LayoutReading { name, layout, parts, plausible, why, .. } = reading;
    let part = |field, value: fn(&Parts) -> u64| {
        parts.as_ref().filter(|_| layout.bits(field) > 0).map(value)
    };
    let split = |parts: Parts| layout.split_worker(parts.worker);
    ReadingBody {
        layout: name.clone(),
        time: parts.map(|parts| show(layout.start_of(parts.tick))),
        clock: part(Field::Clock, |parts| parts.clock),
        worker: part(Field::Worker, |parts| parts.worker),
        worker_parts: parts.and_then(split).map(|(high, low)| [high, low]),
        sequence: part(Field::Sequence, |parts| parts.sequence),
        plausible: *plausible,
        why: why.clone(),
        ..ReadingBody::default()
    }
}
