//! Properties of every legal layout, and of every text that a client may send.

use proptest::prelude::*;
use snowmint_core::disguise::{Disguise, DisguiseError, Key, Keyring};
use snowmint_core::layout::{Field, PRESETS, ReadableLayout, UNIT_MS_MAX};
use snowmint_core::text::{Format, Radix, Text, TextError, decode_signed};
use snowmint_core::{Layout, OutOfRange, Parts, Rfc3339, Tick, UnixMillis};

/// Generates every legal layout: any widths and order below the time, any split, unit and epoch.
fn layouts() -> impl Strategy<Value = Layout> {
    let widths = (2_u8..=64)
        .prop_flat_map(|total| (Just(total), 1..total))
        .prop_flat_map(|(total, time)| (Just(time), 1..=total - time, Just(total - time)))
        .prop_flat_map(|(time, sequence, below)| {
            (Just(time), Just(sequence), 0..=below - sequence)
        });
    let order = Just([Field::Clock, Field::Worker, Field::Sequence]).prop_shuffle();
    let unit = prop_oneof![Just(1), Just(10), Just(1_000), 1..=UNIT_MS_MAX];
    let epoch = prop_oneof![Just(0_u64), 0..2_000_000_000_000_u64, any::<u64>()];
    (widths, 0..=2_u8, order, unit, epoch, any::<u8>()).prop_map(
        |((time, sequence, rest), clock, order, unit_ms, epoch, split)| {
            let clock = clock.min(rest);
            let worker = rest - clock;
            let mut fields = vec![(Field::Time, time)];
            fields.extend(order.map(|field| match field {
                Field::Clock => (field, clock),
                Field::Worker => (field, worker),
                _ => (field, sequence),
            }));
            let layout = Layout::from_fields(&fields).expect("legal widths");
            let layout = layout.with_unit_ms(unit_ms).unwrap_or(layout);
            let span_ms = (layout.tick_max().get() + 1) * u64::from(layout.unit_ms());
            // The default epoch leaves room for the span that `from_fields` accepted; so must this
            // one.
            let epoch = epoch.min(u64::MAX - span_ms);
            let layout = layout.with_epoch(UnixMillis::new(epoch)).expect("an epoch with room");
            if worker < 2 {
                return layout;
            }
            layout.with_worker_split(split % worker).unwrap_or(layout)
        },
    )
}

/// Generates layouts that are read: fields in any order, fields without bits, any unit, a time of
/// one number or two. Some can mint, most cannot.
fn readable_layouts() -> impl Strategy<Value = ReadableLayout> {
    let fields = [Field::Time, Field::Clock, Field::Worker, Field::Sequence];
    let order = Just(fields).prop_shuffle();
    let widths = (1..=48_u8, 0..=4_u8, 0..=16_u8, 0..=16_u8, 0..=64_u8);
    let unit = prop_oneof![
        Just(1_000_000_u64),
        Just(1),
        Just(100),
        Just(10_000),
        Just(1_000_000_000),
        1..=2_000_000_000_u64
    ];
    let epoch = prop_oneof![Just(0_u64), 0..2_000_000_000_000_u64];
    (order, widths, unit, epoch, any::<u8>(), any::<u8>()).prop_map(
        |(order, (time, clock, worker, sequence, total), unit_ns, epoch, low, split)| {
            // Layouts of 63 and 64 bits, whose top bit has a meaning, come often.
            let rest = time + clock + sequence;
            let worker = if total >= 60 { total.saturating_sub(rest) } else { worker };
            let worker = worker.min(64_u8.saturating_sub(rest));
            let sequence = sequence.min(64 - time - clock);
            let fields = order.map(|field| match field {
                Field::Time => (field, time),
                Field::Clock => (field, clock),
                Field::Worker => (field, worker),
                _ => (field, sequence),
            });
            let layout = ReadableLayout::from_fields(&fields).expect("legal widths");
            let layout = layout.with_unit_ns(unit_ns).expect("a legal unit");
            let layout = layout.with_epoch(UnixMillis::new(epoch)).expect("an epoch with room");
            let layout = layout.with_time_split(low % 40).unwrap_or(layout);
            layout.with_worker_split(split % worker.max(1)).unwrap_or(layout)
        },
    )
}

/// Generates a readable layout, among them every preset, and a number that it reads.
fn readable_layouts_and_ids() -> impl Strategy<Value = (ReadableLayout, u64)> {
    let presets = prop::sample::select(PRESETS.map(|preset| preset.layout()).to_vec());
    prop_oneof![readable_layouts(), presets].prop_flat_map(|layout| {
        let max = layout.id_max();
        (Just(layout), prop_oneof![8 => 0..=max, 1 => Just(0), 1 => Just(max)])
    })
}

/// Generates a layout and an ID of it, from anywhere in its range, its ends included.
fn layouts_and_ids() -> impl Strategy<Value = (Layout, u64)> {
    layouts().prop_flat_map(|layout| {
        let max = layout.id_max();
        (Just(layout), prop_oneof![8 => 0..=max, 1 => Just(0), 1 => Just(max)])
    })
}

fn max_of(layout: &Layout, field: Field) -> u64 {
    match field {
        Field::Time => layout.tick_max().get(),
        Field::Clock => layout.clock_max(),
        Field::Worker => layout.worker_max(),
        Field::Sequence => layout.sequence_max(),
        _ => layout.id_max(),
    }
}

fn with(mut parts: Parts, field: Field, value: u64) -> Parts {
    match field {
        Field::Time => parts.tick = Tick::new(value),
        Field::Clock => parts.clock = value,
        Field::Worker => parts.worker = value,
        _ => parts.sequence = value,
    }
    parts
}

/// Generates valid and nearly valid texts, to test that parsing is strict.
fn near_texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-zA-Z]{0,21}",
        "0{0,3}[0-9]{1,20}",
        "20[0-9]{15}-[0-9]{1,5}-[0-9]{1,5}",
        ".{0,24}",
        any::<u64>().prop_map(|id| id.to_string()),
        any::<u64>().prop_map(|id| Radix::Base62.encode(id).to_string()),
        any::<u64>().prop_map(|id| Radix::Base32.encode_padded(id).to_lowercase()),
    ]
}

/// Generates texts that are nearly layouts.
fn near_layouts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "(time|clock|worker|sequence)=[0-9]{1,3}",
        "(worker|time)=[0-9]{0,2}\\+[0-9]{0,2}",
        "unit=[0-9]{1,15}(ns|us|ms|s|)",
        "epoch=[0-9]{1,20}",
        "epoch=20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:00:00(Z|\\+08:00)",
        "(twitter|discord|baidu|js53|sonyflake|seata|cockroachdb|nextcloud|twiter)",
        "[a-z=+ ]{0,8}",
        ".{0,8}",
    ];
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn packing_and_unpacking_are_inverse((layout, id) in layouts_and_ids()) {
        let parts = layout.unpack(id).unwrap();
        prop_assert_eq!(layout.pack(parts), Ok(id));
        for (field, _) in layout.fields() {
            let max = max_of(&layout, field);
            let full = layout.pack(with(parts, field, max)).unwrap();
            prop_assert!(full <= layout.id_max() && full <= u64::MAX >> 1);
        }
    }

    #[test]
    fn ids_sort_by_tick_and_then_by_the_fields_in_order(
        (layout, first) in layouts_and_ids(), seed in any::<u64>()
    ) {
        let second = seed % (layout.id_max() + 1);
        let key = |id: u64| {
            let parts = layout.unpack(id).unwrap();
            layout.fields().map(|(field, _)| match field {
                Field::Time => parts.tick.get(),
                Field::Clock => parts.clock,
                Field::Worker => parts.worker,
                _ => parts.sequence,
            }).collect::<Vec<_>>()
        };
        prop_assert_eq!(first.cmp(&second), key(first).cmp(&key(second)));
    }

    #[test]
    fn a_value_beyond_its_field_is_refused_by_name((layout, id) in layouts_and_ids(), add in any::<u64>()) {
        let parts = layout.unpack(id).unwrap();
        for field in [Field::Time, Field::Clock, Field::Worker, Field::Sequence] {
            let max = max_of(&layout, field);
            for value in [max + 1, (max + 1).saturating_add(add), u64::MAX] {
                prop_assert_eq!(
                    layout.pack(with(parts, field, value)),
                    Err(OutOfRange::Field { field, value, max })
                );
            }
        }
        let (value, max) = ((layout.id_max() + 1).saturating_add(add), layout.id_max());
        let error = OutOfRange::Field { field: Field::Id, value, max };
        prop_assert_eq!(layout.unpack(value), Err(error));
        prop_assert_eq!(layout.time_of(value), Err(error));
    }

    #[test]
    fn times_become_ticks_within_the_years_and_errors_outside((layout, id) in layouts_and_ids(), within_ms in any::<u32>()) {
        let tick = layout.unpack(id).unwrap().tick;
        let start = layout.start_of(tick);
        let time = start.saturating_add(u64::from(within_ms % layout.unit_ms()));
        prop_assert_eq!(layout.tick_at(time), Ok(tick));
        let (epoch, end) = (layout.epoch(), layout.end());
        prop_assert_eq!(layout.tick_at(epoch), Ok(Tick::ZERO));
        prop_assert_eq!(layout.tick_at(end.saturating_sub(1)), Ok(layout.tick_max()));
        for time in [end, end.saturating_add(u64::from(within_ms)), UnixMillis::MAX] {
            prop_assert_eq!(layout.tick_at(time), Err(OutOfRange::AfterEnd { time, end }));
        }
        if let Some(before) = epoch.get().checked_sub(1) {
            let time = UnixMillis::new(before);
            prop_assert_eq!(layout.tick_at(time), Err(OutOfRange::BeforeEpoch { time, epoch }));
            prop_assert_eq!(layout.compose(time, 0, 0), Err(OutOfRange::BeforeEpoch { time, epoch }));
        }
    }

    #[test]
    fn reading_and_packing_are_inverse((layout, id) in readable_layouts_and_ids()) {
        let parts = layout.unpack(id).unwrap();
        match layout.pack(parts) {
            Ok(packed) if layout.time_low_bits() == 0 => prop_assert_eq!(packed, id),
            // A split time that counts past its second is another ID's time.
            Ok(packed) => prop_assert_eq!(layout.unpack(packed), Ok(parts)),
            Err(error) => prop_assert!(layout.time_low_bits() > 0, "{}", error),
        }
        let start = layout.start_of(parts.tick);
        match layout.ticks_at(start) {
            Ok((first, last)) => {
                prop_assert!(first <= parts.tick);
                prop_assert!(parts.tick <= last);
            }
            Err(error) => {
                prop_assert_eq!(error, OutOfRange::AfterEnd { time: start, end: layout.end() });
                prop_assert!(parts.tick > layout.tick_max());
            }
        }
        prop_assert_eq!(layout.unpack(id | 1 << 63).is_ok(), layout.total_bits() == 64);
    }

    #[test]
    fn minting_layouts_read_as_they_mint((layout, id) in layouts_and_ids()) {
        let readable = layout.readable();
        prop_assert_eq!(readable.mintable(), Ok(layout));
        prop_assert_eq!(readable.to_string(), layout.to_string());
        prop_assert_eq!(readable.unpack(id), layout.unpack(id));
        prop_assert_eq!(readable.pack(readable.unpack(id).unwrap()), Ok(id));
        prop_assert_eq!((readable.end(), readable.tick_max()), (layout.end(), layout.tick_max()));
        let tick = layout.unpack(id).unwrap().tick;
        prop_assert_eq!(readable.start_of(tick), layout.start_of(tick));
        prop_assert_eq!(readable.ticks_at(layout.start_of(tick)), Ok((tick, tick)));
    }

    #[test]
    fn only_safe_layouts_mint(layout in readable_layouts()) {
        let is_safe = layout.is_by_time()
            && layout.bits(Field::Sequence) > 0
            && layout.unit_ns() % 1_000_000 == 0
            && layout.time_low_bits() == 0;
        let mintable = layout.mintable();
        prop_assert_eq!(mintable.is_ok(), is_safe, "{:?}", mintable);
        prop_assert_eq!(layout.to_string().parse::<Layout>().ok(), mintable.ok());
        prop_assert_eq!(layout.to_string().parse(), Ok(layout));
    }

    #[test]
    fn negative_numbers_are_the_same_bits(id in any::<u64>()) {
        prop_assert_eq!(decode_signed(&id.to_string()), Ok(id));
        prop_assert_eq!(decode_signed(&id.cast_signed().to_string()), Ok(id));
    }

    #[test]
    fn layout_reads_back_its_own_text(layout in layouts()) {
        prop_assert_eq!(layout.to_string().parse(), Ok(layout));
    }

    #[test]
    fn parsed_layout_is_valid(text in near_layouts()) {
        match text.parse::<Layout>() {
            Ok(layout) => {
                prop_assert_eq!(layout.to_string().parse(), Ok(layout));
                let id = layout.id_max();
                prop_assert_eq!(layout.pack(layout.unpack(id).unwrap()), Ok(id));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        match text.parse::<ReadableLayout>() {
            Ok(layout) => {
                prop_assert_eq!(layout.to_string().parse(), Ok(layout));
                prop_assert!(layout.unpack(layout.id_max()).is_ok());
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn numbers_survive_every_text(id in prop_oneof![any::<u64>(), 0..5_000_u64, Just(u64::MAX)]) {
        for format in Format::ALL.into_iter().filter(|format| !format.needs_layout()) {
            let text = format.encode(id, None).unwrap();
            prop_assert_eq!(format.decode(&text, None), Ok(id));
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            if reads_both_cases(format) {
                prop_assert_eq!(format.decode(&text.to_ascii_uppercase(), None), Ok(id));
                prop_assert_eq!(format.decode(&text.to_ascii_lowercase(), None), Ok(id));
            }
        }
    }

    #[test]
    fn padded_texts_sort_as_the_numbers_do(first in any::<u64>(), second in any::<u64>(), shift in 0..64_u32) {
        let second = second >> shift;
        for radix in Radix::ALL {
            let (one, two) = (radix.encode_padded(first), radix.encode_padded(second));
            prop_assert_eq!(first.cmp(&second), one.as_bytes().cmp(two.as_bytes()));
        }
    }

    #[test]
    fn friendly_texts_survive_and_sort((layout, first) in layouts_and_ids(), seed in any::<u64>()) {
        let second = seed.min(layout.id_max());
        let encode = |format: Format, id| format.encode(id, Some(&layout));
        for id in [first, second] {
            for format in [Format::Friendly, Format::FriendlyPadded] {
                match encode(format, id) {
                    Ok(text) => prop_assert_eq!(format.decode(&text, Some(&layout)), Ok(id)),
                    Err(error) => {
                        prop_assert_eq!(error, TextError::YearPast9999);
                        let time = Rfc3339(layout.time_of(id).unwrap()).to_string();
                        prop_assert!(time.starts_with('+'));
                    }
                }
            }
        }
        let padded = |id| encode(Format::FriendlyPadded, id);
        if let (Ok(one), Ok(two)) = (padded(first), padded(second)) {
            prop_assert_eq!(first.cmp(&second), one.as_bytes().cmp(two.as_bytes()));
        }
    }

    #[test]
    fn decoded_text_equals_the_encoded_one(text in near_texts()) {
        for layout in [Layout::TWITTER, Layout::SONYFLAKE, Layout::DISCORD] {
            for format in Format::ALL {
                if let Ok(id) = format.decode(&text, Some(&layout)) {
                    let written = format.encode(id, Some(&layout)).unwrap();
                    prop_assert_eq!(&*written, canonical(format, &text));
                }
            }
        }
    }

    #[test]
    fn times_survive_their_text(ms in 0..253_402_300_800_000_u64) {
        let time = Rfc3339(UnixMillis::new(ms));
        prop_assert_eq!(time.to_string().parse(), Ok(time));
    }

    #[test]
    fn disguises_can_be_undone_and_keep_what_they_promise((layout, id) in layouts_and_ids(), key in any::<[u8; 32]>()) {
        let ring = Keyring::new(Key::from_bytes(&key).unwrap());
        let full = Disguise::full(ring, layout).unwrap();
        let disguised = full.apply(id).unwrap();
        prop_assert!(disguised <= layout.id_max());
        prop_assert_eq!(full.undo(disguised), Ok(id));
        match Disguise::ordered(ring, layout) {
            Ok(ordered) => {
                let disguised = ordered.apply(id).unwrap();
                prop_assert_eq!(layout.time_of(disguised), layout.time_of(id));
                prop_assert_eq!(ordered.undo(disguised), Ok(id));
            }
            Err(error) => {
                prop_assert!(matches!(error, DisguiseError::Width { id_bits: 1, .. }), "{}", error);
            }
        }
    }
}

/// Returns whether a format's digits have one case, and are read in both.
const fn reads_both_cases(format: Format) -> bool {
    matches!(
        format,
        Format::Number(Radix::Hex | Radix::Base36 | Radix::Base32)
            | Format::Padded(Radix::Hex | Radix::Base36 | Radix::Base32)
    )
}

/// Returns the text as the format writes it, for a text that it can read.
fn canonical(format: Format, text: &str) -> String {
    match format {
        Format::Number(Radix::Base32) | Format::Padded(Radix::Base32) => {
            text.to_ascii_uppercase().replace(['I', 'L'], "1").replace('O', "0")
        }
        _ if reads_both_cases(format) => text.to_ascii_lowercase(),
        _ => text.into(),
    }
}

#[test]
fn plain_values_stay_small() {
    assert_eq!(size_of::<Layout>(), 24);
    assert_eq!(size_of::<ReadableLayout>(), 32);
    assert_eq!(size_of::<Parts>(), 32);
    assert_eq!(size_of::<Text>(), 50);
    assert_eq!(size_of::<Rfc3339>(), 8);
    assert!(size_of::<OutOfRange>() <= 24);
    assert!(size_of::<Result<u64, TextError>>() <= 48);
    assert!(size_of::<Key>() <= 96);
    assert!(size_of::<Disguise>() <= 1_280);
}
