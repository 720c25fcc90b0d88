//! The burst span, and the sequence number with which a tick begins.

use super::*;
use crate::advance::SequenceStart;

#[test]
fn a_burst_uses_the_ticks_just_past_in_order_and_no_future_ones() {
    let clock = clock();
    let ids = generator(NARROW, Settings { burst_ms: 10, ..Settings::DEFAULT }, &clock);
    // 11 ticks of 4 IDs: ten past ticks and the present one.
    for n in 0..44 {
        assert_eq!(since_start(&NARROW, ids.try_mint().unwrap()), n / 4 - 10);
    }
    assert!(matches!(ids.try_mint(), Err(MintError::TickFull { .. })));
    clock.advance_ms(1);
    for _ in 0..4 {
        assert_eq!(since_start(&NARROW, ids.try_mint().unwrap()), 1);
    }
    // After idling, it serves the last ten ticks again, and no earlier ones.
    clock.advance_ms(1_000);
    assert_eq!(since_start(&NARROW, ids.try_mint().unwrap()), 991);
}

#[test]
fn a_burst_never_reaches_below_the_floor() {
    let clock = clock();
    let settings = Settings { burst_ms: 10, ..Settings::DEFAULT };
    let window = Window::new(UnixMillis::new(START.get() - 3), UnixMillis::MAX);
    let ids = Generator::new(NARROW, 7, settings, window, &clock).unwrap();
    assert_eq!(since_start(&NARROW, ids.try_mint().unwrap()), -3);
}

/// Measures how unevenly `id % n` falls at one ID a tick: the fullest class over the mean.
fn skew(start: SequenceStart, n: u64) -> f64 {
    const IDS: u32 = 8_192;
    let clock = clock();
    let ids = generator(LAYOUT, Settings { sequence_start: start, ..Settings::DEFAULT }, &clock);
    let mut classes = [0_u32; 64];
    for _ in 0..IDS {
        let class = ids.try_mint().unwrap() % n;
        classes[usize::try_from(class).unwrap()] += 1;
        clock.advance_ms(1);
    }
    let fullest = *classes.iter().max().unwrap();
    f64::from(fullest) * f64::from(u32::try_from(n).unwrap()) / f64::from(IDS)
}

#[test]
fn carried_and_random_starts_spread_the_remainders() {
    let random = SequenceStart::RandomBelow { bound: 4_096, seed: 1 };
    for n in 2..64 {
        // From tick to tick a carried ID grows by 2^22 + 1, which 5 divides: multiples of 5 do not
        // spread.
        assert!(n % 5 == 0 || skew(SequenceStart::Carried, n) < 1.15, "carried, {n}");
        assert!(skew(random, n) < 1.7, "random, {n}: {}", skew(random, n));
    }
    // From zero, powers of two put every ID in one class; the other starts prevent this.
    assert!(skew(SequenceStart::Zero, 16) > 15.9);
}

#[test]
fn a_random_start_stays_below_its_bound() {
    let clock = clock();
    let start = SequenceStart::RandomBelow { bound: 100, seed: 42 };
    let ids = generator(LAYOUT, Settings { sequence_start: start, ..Settings::DEFAULT }, &clock);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5_000 {
        clock.advance_ms(1);
        let sequence = LAYOUT.unpack(ids.try_mint().unwrap()).unwrap().sequence;
        assert!(sequence < 100);
        seen.insert(sequence);
    }
    assert!(seen.len() > 95);
}

#[test]
fn a_carried_start_begins_again_at_half_of_the_sequence() {
    let clock = clock();
    let start = SequenceStart::Carried;
    let ids = generator(LAYOUT, Settings { sequence_start: start, ..Settings::DEFAULT }, &clock);
    let mut highest = 0;
    for _ in 0..5_000 {
        clock.advance_ms(1);
        highest = highest.max(LAYOUT.unpack(ids.try_mint().unwrap()).unwrap().sequence);
    }
    assert_eq!(highest, 2_047);
}
