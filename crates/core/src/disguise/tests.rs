use std::collections::HashSet;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::layout::Parts;
use crate::time::Tick;

fn key(seed: u8) -> Key {
    Key::from_bytes(&[seed; 16]).unwrap()
}

/// Returns numbers that look random and are the same in every run.
fn numbers(count: u64, bits: u8) -> impl Iterator<Item = u64> {
    (1..=count).map(move |index| {
        let number = fold(index.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0xd1b5_4a32_d192_ed03);
        number & low_bits(bits)
    })
}

#[test]
fn every_width_up_to_20_is_a_permutation_that_can_be_undone() {
    for bits in 2..=20 {
        let disguise = Disguise::full_numbers(Keyring::new(key(bits)), bits, bits).unwrap();
        let mut seen = vec![false; 1 << bits];
        for id in 0..1_u64 << bits {
            let disguised = disguise.apply(id).unwrap();
            let slot = &mut seen[usize::try_from(disguised).unwrap()];
            assert!(!*slot, "{bits} bits: {disguised} comes twice");
            *slot = true;
            assert_eq!(disguise.undo(disguised), Ok(id));
        }
    }
}

#[test]
fn every_width_can_be_undone() {
    for bits in 2..=63 {
        let disguise = Disguise::full_numbers(Keyring::new(key(1)), bits, 63).unwrap();
        for id in numbers(500, bits).chain([0, low_bits(bits)]) {
            let disguised = disguise.apply(id).unwrap();
            assert!(disguised <= low_bits(bits));
            assert_eq!(disguise.undo(disguised), Ok(id), "{bits} bits");
        }
        let beyond = low_bits(bits) + 1;
        assert_eq!(
            disguise.apply(beyond),
            Err(out_of_range(beyond, low_bits(bits))),
            "{bits} bits"
        );
    }
}

/// Flips every input bit of many numbers and counts how often each output bit flips with it.
fn flips(bits: u8, permute: impl Fn(u64) -> u64) -> Vec<Vec<u32>> {
    let mut counts = vec![vec![0; usize::from(bits)]; usize::from(bits)];
    for number in numbers(4_000, bits) {
        let before = permute(number);
        for (input, row) in counts.iter_mut().enumerate() {
            let changed = before ^ permute(number ^ (1 << input));
            for (output, count) in row.iter_mut().enumerate() {
                *count = u32::from(changed >> output & 1 == 1).saturating_add(*count);
            }
        }
    }
    counts
}

#[test]
fn one_changed_bit_changes_each_bit_half_of_the_time() {
    for bits in [20, 22, 41, 53, 63] {
        let disguise = Disguise::full_numbers(Keyring::new(key(7)), bits, 63).unwrap();
        for row in flips(bits, |id| disguise.apply(id).unwrap()) {
            for count in row {
                // 4000 coin throws deviate by 32; six times that is next to impossible.
                assert!((1_800..=2_200).contains(&count), "{bits} bits: {count} of 4000");
            }
        }
    }
}

#[test]
fn one_changed_bit_of_the_key_changes_everything() {
    let base = [9_u8; 32];
    let apply = |bytes: &[u8]| {
        let ring = Keyring::new(Key::from_bytes(bytes).unwrap());
        Disguise::full(ring, Layout::TWITTER).unwrap().apply(1 << 40).unwrap()
    };
    let mut seen = HashSet::from([apply(&base), apply(&base[..16])]);
    for bit in 0..256 {
        let mut bytes = base;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let disguised = apply(&bytes);
        assert!((disguised ^ apply(&base)).count_ones() > 10, "bit {bit}");
        seen.insert(disguised);
    }
    assert_eq!(seen.len(), 258);
}

#[test]
fn a_short_key_and_the_same_with_zeros_are_two_keys() {
    assert_ne!(Key::from_bytes(&[0; 16]), Key::from_bytes(&[0; 32]));
    let tag = 16_u64.to_le_bytes();
    let mut long = [0_u8; 32];
    long[16..24].copy_from_slice(&tag);
    long[24..].copy_from_slice(&tag);
    assert_ne!(Key::from_bytes(&[0; 16]), Key::from_bytes(&long));
}

#[test]
fn ordered_keeps_the_tick_and_the_order_of_ticks() {
    for layout in [Layout::TWITTER, Layout::SONYFLAKE, Layout::CLOCK_SEQUENCE, Layout::DISCORD] {
        let disguise = Disguise::ordered(Keyring::new(key(3)), layout).unwrap();
        let mut last = None;
        for tick in (0..2_000).map(|tick| Tick::new(tick * 37)) {
            let parts = Parts { tick, clock: 0, worker: 3, sequence: tick.get() % 200 };
            let id = layout.pack(parts).unwrap();
            let disguised = disguise.apply(id).unwrap();
            assert_eq!(layout.unpack(disguised).unwrap().tick, tick);
            assert_eq!(disguise.undo(disguised), Ok(id));
            assert!(last < Some(disguised));
            last = Some(disguised);
        }
    }
}

#[test]
fn ordered_permutes_each_tick_differently() {
    let layout: Layout = "time=41,worker=4,sequence=8".parse().unwrap();
    let disguise = Disguise::ordered(Keyring::new(key(5)), layout).unwrap();
    let of_tick = |tick: u64| -> Vec<u64> {
        (0..1 << 12).map(|low| disguise.apply(tick << 12 | low).unwrap() & 0xFFF).collect()
    };
    let (first, second) = (of_tick(1_000), of_tick(1_001));
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 1 << 12);
    let alike = first.iter().zip(&second).filter(|(first, second)| first == second).count();
    assert!(alike < 12, "{alike} of 4096 alike in two ticks");
}

#[test]
fn adjacent_ids_do_not_show_in_an_ordered_disguise() {
    let disguise = Disguise::ordered(Keyring::new(key(5)), Layout::TWITTER).unwrap();
    let base = Layout::TWITTER.pack(Parts { tick: Tick::new(77), ..Parts::default() }).unwrap();
    let close = (0..4_095)
        .filter(|sequence| {
            let [one, next] = [0, 1].map(|add| disguise.apply(base + sequence + add).unwrap());
            one.abs_diff(next) < 1 << 12
        })
        .count();
    // Chance alone gives 8 in 4095.
    assert!(close < 40, "{close} neighbours stay close");
}

#[test]
fn keys_change_at_the_same_tick_and_every_id_finds_its_own() {
    let since = |tick: u64| Layout::TWITTER.start_of(Tick::new(tick));
    let ring = Keyring::new(key(1))
        .with(5, since(100), key(2))
        .and_then(|ring| ring.with(2, since(200), key(3)))
        .unwrap();
    assert_eq!(ring.newest_number(), 2);
    let ordered = Disguise::ordered(ring, Layout::TWITTER).unwrap();
    let single =
        [1, 2, 3].map(|seed| Disguise::ordered(Keyring::new(key(seed)), Layout::TWITTER).unwrap());
    for (tick, used) in [(0, 0), (99, 0), (100, 1), (101, 1), (199, 1), (200, 2), (201, 2)] {
        let id = tick << 22 | 12_345;
        let disguised = ordered.apply(id).unwrap();
        assert_eq!(disguised, single[used].apply(id).unwrap(), "tick {tick}");
        assert_eq!(ordered.undo(disguised), Ok(id));
    }
}

#[test]
fn full_shows_the_number_of_the_key_and_nothing_else() {
    let layout: Layout = "time=39,worker=9,sequence=12".parse().unwrap();
    let since = layout.start_of(Tick::new(1_000));
    let ring = Keyring::new(key(1)).with(7, since, key(2)).unwrap();
    let full = Disguise::full(ring, layout).unwrap();
    for (tick, number) in [(999, 0), (1_000, 7)] {
        let id = tick << 21 | 5;
        let disguised = full.apply(id).unwrap();
        assert_eq!(disguised >> 60, number);
        assert_eq!(full.undo(disguised), Ok(id));
        let unknown = disguised & low_bits(60) | 3 << 60;
        assert_eq!(full.undo(unknown), Err(DisguiseError::UnknownKey { number: 3 }));
    }
    // With the other key's number, nearly every ID is one that this ring never made.
    let disguised = full.apply(999 << 21).unwrap();
    let swapped = disguised | 7 << 60;
    match full.undo(swapped) {
        Ok(id) => assert_ne!(id, 999 << 21),
        Err(error) => assert_eq!(error, DisguiseError::OtherKey { number: 7, in_force: 0 }),
    }
}

#[test]
fn a_layout_without_room_has_one_key_for_ever() {
    let ring = Keyring::new(key(1)).with(1, UnixMillis::new(1), key(2)).unwrap();
    assert_eq!(
        Disguise::full(ring, Layout::TWITTER).unwrap_err().to_string(),
        "key number 1 does not fit the 0 bits that the layout leaves: take a narrower layout, an ordered disguise, or a new source"
    );
    // js53 has 52 bits, so there is room for one more key.
    assert!(Disguise::full(ring, Layout::JS53).is_ok());
    assert!(Disguise::full_numbers(ring, 55, 63).is_ok());
    assert!(Disguise::full_numbers(ring, 63, 63).is_err());
}

#[test]
fn impossible_widths_are_refused() {
    let ring = Keyring::new(key(1));
    for (id_bits, total_bits) in [(0, 63), (1, 63), (63, 62), (64, 64), (2, 64)] {
        assert_eq!(
            Disguise::full_numbers(ring, id_bits, total_bits).unwrap_err(),
            DisguiseError::Width { id_bits, total_bits }
        );
    }
    let narrow: Layout = "time=62,sequence=1".parse().unwrap();
    assert!(Disguise::ordered(ring, narrow).is_err());
    assert!(Disguise::full(ring, narrow).is_ok());
}

#[test]
fn rings_reject_ambiguous_keys() {
    let at = UnixMillis::new;
    let ring = Keyring::new(key(1)).with(1, at(10), key(2)).unwrap();
    assert_eq!(ring.with(0, at(20), key(3)), Err(KeyError::Number { number: 0 }));
    let not_later = KeyError::Since { since: at(10), newest: at(10) };
    assert_eq!(ring.with(2, at(10), key(3)), Err(not_later));
    let full = (2..8)
        .try_fold(ring, |ring, number| ring.with(number, at(10 * u64::from(number)), key(number)));
    assert_eq!(full.unwrap().with(9, at(1_000), key(9)), Err(KeyError::Full));
}

#[test]
fn keys_are_read_strictly_and_never_shown() {
    let text = "000102030405060708090a0b0c0d0e0f";
    let bytes: Vec<u8> = (0..16).collect();
    assert_eq!(text.parse(), Key::from_bytes(&bytes));
    assert_eq!(std::format!(" {}\n", text.to_uppercase()).parse(), Key::from_bytes(&bytes));
    assert_eq!("00".parse::<Key>(), Err(KeyError::Digits { digits: 2 }));
    let wrong = String::from(text).replace("0a", "0g");
    assert_eq!(wrong.parse::<Key>(), Err(KeyError::NotHex { position: 21 }));
    assert_eq!(Key::from_bytes(&[0; 17]), Err(KeyError::Length { bytes: 17 }));
    let shown = std::format!("{:?}", Keyring::new(key(0xAB)));
    assert!(shown.contains("Key(secret)"), "{shown}");
    assert!(!shown.contains("multiply"), "{shown}");
}
