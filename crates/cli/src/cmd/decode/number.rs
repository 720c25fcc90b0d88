//! Numbers of 64 bits, read with one layout or with every named layout.

use snowmint_core::layout::{EPOCH_DEFAULT, PRESETS};
use snowmint_core::{Layout, OutOfRange, UnixMillis};
use snowmint_wire::http::DecodedBody;

use super::line::{DecodeView, DecodedLine};
use super::reading::Reading;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::when::Age;

/// Largest time by which an ID may be ahead of the clock before its reading counts as a misreading.
const AHEAD_MS_MAX: u64 = 24 * 3_600_000;

/// Divisor of a layout's past. Times in the first of this many parts count as misreadings: IDs read
/// with too many bits below the time fall there.
const YOUNG_SHARE: u64 = 100;

/// Reads the ID with one layout.
pub(super) fn with_layout(
    text: &str,
    id: u64,
    layout: &Layout,
    view: &DecodeView<'_>,
) -> Outcome<DecodedLine> {
    let parts = layout.unpack(id).map_err(|error| refused(text, &error))?;
    let time = layout.start_of(parts.tick);
    let has_clock = layout.clock_max() > 0;
    let has_worker = layout.worker_max() > 0;
    Ok(DecodedLine {
        body: DecodedBody {
            id: text.into(),
            number: Some(id.to_string()),
            period: None,
            time: Some(view.zone.show(time)),
            tick: Some(parts.tick.get()),
            worker: has_worker.then_some(parts.worker),
            worker_parts: layout.split_worker(parts.worker).map(|(high, low)| [high, low]),
            clock: has_clock.then_some(parts.clock),
            sequence: Some(parts.sequence),
            layout: Some(layout.to_string()),
            uuid_version: None,
        },
        age_ms: Some(Age::at(time, view.now).ms()),
        ..DecodedLine::default()
    })
}

fn refused(text: &str, error: &OutOfRange) -> Failure {
    Failure::usage(format!("invalid ID {text:?} of this layout: {error}"))
}

/// Reads the ID with every named layout, the plausible ones first.
pub(super) fn with_every_layout(text: &str, id: u64, view: &DecodeView<'_>) -> DecodedLine {
    let own = default_layout().map(|layout| ("default", layout));
    let named = PRESETS.iter().map(|preset| (preset.name(), preset.layout()));
    let mut readings: Vec<Reading> =
        own.into_iter().chain(named).map(|(name, layout)| read(name, id, &layout, view)).collect();
    readings.sort_by_key(|reading| !reading.plausible);
    DecodedLine {
        body: DecodedBody {
            id: text.into(),
            number: Some(id.to_string()),
            ..DecodedBody::default()
        },
        readings,
        ..DecodedLine::default()
    }
}

/// Returns the layout of the source `default`.
fn default_layout() -> Option<Layout> {
    Layout::new(41, 10, 12).ok()
}

fn read(name: &'static str, id: u64, layout: &Layout, view: &DecodeView<'_>) -> Reading {
    let Ok(parts) = layout.unpack(id) else {
        let why = Some(format!("more than {} bits", layout.total_bits()));
        return Reading { layout: name, why, ..Reading::default() };
    };
    let time = layout.start_of(parts.tick);
    let why = implausible(time, layout, view.now);
    Reading {
        layout: name,
        time: Some(view.zone.show(time)),
        clock: (layout.clock_max() > 0).then_some(parts.clock),
        worker: (layout.worker_max() > 0).then_some(parts.worker),
        worker_parts: layout.split_worker(parts.worker).map(|(high, low)| [high, low]),
        sequence: Some(parts.sequence),
        plausible: why.is_none(),
        why,
    }
}

/// Returns the reason why an ID of this time cannot have been minted by now, if there is one.
fn implausible(time: UnixMillis, layout: &Layout, now: UnixMillis) -> Option<String> {
    if time.since(now) > AHEAD_MS_MAX {
        return Some(Age::at(time, now).to_string());
    }
    let young_ms = now.since(layout.epoch()) / YOUNG_SHARE;
    // Systems on the default epoch are unknown, as is the date since which they mint: only the
    // first day is implausible.
    let young_ms =
        if layout.epoch() == EPOCH_DEFAULT { young_ms.min(AHEAD_MS_MAX) } else { young_ms };
    if time.since(layout.epoch()) < young_ms {
        return Some("hardly after the epoch".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::when::Zone;

    fn plausible(id: u64, now: &str) -> Vec<&'static str> {
        let zone = Zone::default();
        let view = DecodeView { zone: &zone, now: zone.read(now).unwrap() };
        let line = with_every_layout("", id, &view);
        line.readings.iter().filter(|reading| reading.plausible).map(|r| r.layout).collect()
    }

    #[test]
    fn the_layout_an_id_was_minted_with_is_among_the_plausible_ones() {
        let now = "2026-11-20T00:00:00Z";
        let minted = Zone::default().read("2026-10-01T12:00:00Z").unwrap();
        for preset in PRESETS.iter().filter(|preset| preset.can_mint()) {
            let id = preset.layout().compose(minted, 3, 5).unwrap();
            let names = plausible(id, now);
            assert!(names.contains(&preset.name()), "{}: {names:?}", preset.name());
        }
    }

    #[test]
    fn misreadings_are_marked() {
        // Discord's documented example.
        let names = plausible(175_928_847_299_117_063, "2026-11-20T00:00:00Z");
        assert!(names.contains(&"discord"), "{names:?}");
        assert!(!names.contains(&"yitter"), "{names:?}");
        // A row number is not a snowflake.
        assert_eq!(plausible(12_345, "2026-11-20T00:00:00Z"), [] as [&str; 0]);
    }

    #[test]
    fn an_id_beyond_the_layout_is_refused_with_its_limit() {
        let zone = Zone::default();
        let view = DecodeView { zone: &zone, now: UnixMillis::ZERO };
        let error = with_layout("x", u64::MAX, &Layout::TWITTER, &view).unwrap_err();
        let Failure::Explained { message, .. } = error else { panic!("must say why") };
        assert!(message.contains("9223372036854775807"), "{message}");
    }
}
