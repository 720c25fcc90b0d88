//! Numbers of 64 bits, read with one layout.

use snowmint_core::OutOfRange;
use snowmint_core::layout::{Field, ReadableLayout};
use snowmint_server::decoding::{Age, misplaced, plausible_by_form, readings};
use snowmint_server::{form_reading_body, reading_body};
use snowmint_wire::http::DecodedBody;

use super::line::DecodedLine;
use super::view::DecodeView;
use crate::terminal::exit::{Failure, Outcome};

/// Reads the ID with one layout.
pub(super) fn with_layout(
    text: &str,
    id: u64,
    layout: &ReadableLayout,
    view: &DecodeView<'_>,
) -> Outcome<DecodedLine> {
    let parts = layout.unpack(id).map_err(|error| refused(text, layout, &error))?;
    let time = layout.start_of(parts.tick);
    let has = |field| layout.bits(field) > 0;
    Ok(DecodedLine {
        body: DecodedBody {
            id: text.into(),
            number: Some(id.to_string()),
            time: Some(view.zone.show(time)),
            tick: Some(parts.tick.get()),
            worker: has(Field::Worker).then_some(parts.worker),
            worker_parts: layout.split_worker(parts.worker).map(|(high, low)| [high, low]),
            clock: has(Field::Clock).then_some(parts.clock),
            sequence: has(Field::Sequence).then_some(parts.sequence),
            layout: Some(layout.to_string()),
            ..DecodedBody::default()
        },
        age_ms: Some(Age::at(time, view.now).ms()),
        doubt: misplaced(id, layout, parts),
        ..DecodedLine::default()
    })
}

/// Reads the ID with every known layout, the most plausible reading first.
pub(super) fn with_every_layout(text: &str, id: u64, view: &DecodeView<'_>) -> DecodedLine {
    let readings = readings(id, view.now);
    DecodedLine {
        body: DecodedBody {
            id: text.into(),
            number: Some(id.to_string()),
            readings: readings
                .iter()
                .map(|reading| reading_body(reading, |time| view.zone.show(time)))
                .collect(),
            ..DecodedBody::default()
        },
        ..DecodedLine::default()
    }
}

/// Reads a text in every form of a number that it may have; `None` if no form gives a plausible
/// number.
pub(super) fn in_every_form(text: &str, view: &DecodeView<'_>) -> Option<DecodedLine> {
    let found = plausible_by_form(text, view.now);
    let show = |time| view.zone.show(time);
    let readings = found.iter().map(|found| form_reading_body(found, show)).collect();
    let body = DecodedBody { id: text.into(), readings, ..DecodedBody::default() };
    (!found.is_empty()).then(|| DecodedLine { body, ..DecodedLine::default() })
}

fn refused(text: &str, layout: &ReadableLayout, error: &OutOfRange) -> Failure {
    let hint = if text.starts_with('-') && layout.total_bits() == 63 && layout.is_by_time() {
        "; if the time ran into the top bit, give it one more bit"
    } else {
        ""
    };
    Failure::usage(format!("invalid ID {text:?} of this layout: {error}{hint}"))
}

#[cfg(test)]
mod tests {
    use snowmint_core::{Layout, UnixMillis};

    use super::*;
    use crate::terminal::when::Zone;

    fn read(id: u64, text: &str, layout: &ReadableLayout) -> Outcome<DecodedLine> {
        let zone = Zone::default();
        with_layout(text, id, layout, &DecodeView { zone: &zone, now: UnixMillis::ZERO })
    }

    #[test]
    fn an_id_beyond_the_layout_is_refused_with_its_limit() {
        let error = read(u64::MAX, "x", &Layout::TWITTER.readable()).unwrap_err();
        let Failure::Explained { message, .. } = error else { panic!("must say why") };
        assert!(message.ends_with("0 to 9223372036854775807"), "{message}");
        let error = read(u64::MAX, "-1", &Layout::TWITTER.readable()).unwrap_err();
        let Failure::Explained { message, .. } = error else { panic!("must say why") };
        assert!(message.ends_with("give it one more bit"), "{message}");
    }

    #[test]
    fn a_time_past_its_second_is_doubted() {
        let nextcloud = ReadableLayout::NEXTCLOUD;
        // The test of Nextcloud's decoder has this number and its time: 1023 ms after a second.
        let line = read(9_223_372_036_854_775_807, "x", &nextcloud).unwrap();
        assert_eq!(line.body.time.as_deref(), Some("2093-10-19T03:14:08.023Z"));
        assert!(line.doubt.unwrap().contains("past its second"));
        assert_eq!(read(4_688_076_898_113_587, "x", &nextcloud).unwrap().doubt, None);
    }
}
