//! Checks of every line of `vectors/layouts.json`, which was computed independently of this code.

use serde_json::Value;
use snowmint_core::disguise::{Disguise, Key, Keyring};
use snowmint_core::layout::{PRESETS, Preset, ReadableLayout};
use snowmint_core::text::{Format, decode_signed};
use snowmint_core::{Layout, Parts, Rfc3339, Tick, UnixMillis};

fn lines(key: &str) -> Vec<Value> {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../vectors/layouts.json")).expect("JSON");
    let lines = vectors[key].as_array().expect("a list").clone();
    assert!(!lines.is_empty(), "no {key}");
    lines
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_else(|| panic!("no {key} in {line}"))
}

fn number(line: &Value, key: &str) -> u64 {
    text(line, key).parse().expect("a number")
}

fn readable(line: &Value) -> ReadableLayout {
    Preset::named(text(line, "preset")).expect("a preset").layout()
}

fn layout(line: &Value) -> Layout {
    readable(line).mintable().expect("a layout that mints")
}

#[test]
fn presets_are_as_written() {
    let lines = lines("presets");
    assert_eq!(lines.len(), PRESETS.len());
    for (line, preset) in lines.iter().zip(&PRESETS) {
        assert_eq!(preset.name(), text(line, "name"));
        assert_eq!(preset.layout().to_string(), text(line, "layout"));
        assert_eq!(text(line, "layout").parse(), Ok(preset.layout()));
        assert_eq!(Some(preset.can_mint()), line["can_mint"].as_bool());
        assert_eq!(Rfc3339(preset.layout().end()).to_string(), text(line, "end"));
    }
}

#[test]
fn ids_hold_what_is_written() {
    for line in lines("ids") {
        let layout = readable(&line);
        let id = decode_signed(text(&line, "id")).expect("a number");
        let parts = Parts {
            tick: Tick::new(number(&line, "tick")),
            clock: number(&line, "clock"),
            worker: number(&line, "worker"),
            sequence: number(&line, "sequence"),
        };
        assert_eq!(layout.unpack(id), Ok(parts), "{line}");
        assert_eq!(layout.pack(parts), Ok(id), "{line}");
        let time = UnixMillis::new(number(&line, "unix_ms"));
        assert_eq!(layout.start_of(parts.tick), time, "{line}");
        assert_eq!(Rfc3339(time).to_string(), text(&line, "time"));
        // Times after the end are those of negative numbers.
        assert_eq!(id > u64::MAX >> 1, time >= layout.end(), "{line}");
        let (first, last) = layout.ticks_at(time).expect("a time of the layout");
        assert!(first <= parts.tick && parts.tick <= last, "{line}");
        let split = line
            .get("worker_high")
            .map(|_| (number(&line, "worker_high"), number(&line, "worker_low")));
        assert_eq!(layout.split_worker(parts.worker), split, "{line}");
    }
}

#[test]
fn minting_and_reading_agree_on_every_id() {
    for line in lines("ids") {
        let (Ok(layout), Ok(id)) = (readable(&line).mintable(), text(&line, "id").parse()) else {
            continue;
        };
        let parts = layout.unpack(id).expect("an ID of the layout");
        assert_eq!(readable(&line).unpack(id), Ok(parts), "{line}");
        assert_eq!(layout.pack(parts), Ok(id), "{line}");
        let time = UnixMillis::new(number(&line, "unix_ms"));
        assert_eq!(layout.time_of(id), Ok(time), "{line}");
        assert_eq!(layout.tick_at(time), Ok(parts.tick), "{line}");
        if parts.clock == 0 {
            assert_eq!(layout.compose(time, parts.worker, parts.sequence), Ok(id), "{line}");
        }
    }
}

#[test]
fn every_preset_of_another_system_has_a_published_id() {
    // Those of the articles have no publication but the article's description.
    const OWN: [&str; 4] = ["baidu", "redis", "clock-sequence", "js53"];
    // Published widths and epochs, but no published ID with its time.
    const WITHOUT: [&str; 3] = ["sonyflake", "leaf", "yitter"];
    let lines = lines("ids");
    for preset in PRESETS.iter().filter(|preset| !OWN.contains(&preset.name())) {
        let published = lines
            .iter()
            .any(|line| text(line, "preset") == preset.name() && line.get("source").is_some());
        assert_eq!(published, !WITHOUT.contains(&preset.name()), "{}", preset.name());
    }
}

#[test]
fn every_preset_has_ids_and_each_of_its_fields_alone() {
    let lines = lines("ids");
    for preset in &PRESETS {
        let of_preset: Vec<_> =
            lines.iter().filter(|line| text(line, "preset") == preset.name()).collect();
        for (field, _) in preset.layout().fields() {
            let key = if field.name() == "time" { "tick" } else { field.name() };
            assert!(
                of_preset
                    .iter()
                    .filter_map(|line| Some((line, text(line, "id").parse::<u64>().ok()?)))
                    .any(|(line, id)| number(line, key) == 1 && id.is_power_of_two()),
                "{} has no line that shows {field} alone",
                preset.name()
            );
        }
        let top_clear = u64::MAX >> 1;
        let highest = preset.layout().id_max().min(top_clear).to_string();
        // The highest number of a split time counts past a second, so no ID has it.
        assert!(
            preset.layout().time_low_bits() > 0
                || of_preset.iter().any(|line| text(line, "id") == highest),
            "{} has no line with {highest}",
            preset.name()
        );
    }
}

#[test]
fn texts_are_as_written() {
    for line in lines("texts") {
        let id = number(&line, "id");
        for format in Format::ALL.into_iter().filter(|format| !format.needs_layout()) {
            let expected = text(&line, format.name());
            assert_eq!(format.encode(id, None).unwrap(), expected, "{format}");
            assert_eq!(format.decode(expected, None), Ok(id), "{format}");
        }
    }
}

#[test]
fn friendly_texts_are_as_written() {
    for line in lines("friendly") {
        let (layout, id) = (layout(&line), number(&line, "id"));
        for format in [Format::Friendly, Format::FriendlyPadded] {
            let expected = text(&line, format.name());
            assert_eq!(format.encode(id, Some(&layout)).unwrap(), expected, "{line}");
            assert_eq!(format.decode(expected, Some(&layout)), Ok(id), "{line}");
        }
    }
}

#[test]
fn disguises_are_as_written() {
    for line in lines("disguises") {
        let ring = Keyring::new(text(&line, "key").parse::<Key>().unwrap());
        let disguise = match text(&line, "kind") {
            "full" => {
                let bits = u8::try_from(line["bits"].as_u64().unwrap()).unwrap();
                Disguise::full_numbers(ring, bits, bits).unwrap()
            }
            "ordered" => Disguise::ordered(ring, layout(&line)).unwrap(),
            kind => panic!("no disguise is {kind}"),
        };
        let (id, disguised) = (number(&line, "id"), number(&line, "disguised"));
        assert_eq!(disguise.apply(id), Ok(disguised), "{line}");
        assert_eq!(disguise.undo(disguised), Ok(id), "{line}");
    }
}
