//! Batches, lanes and the single-thread generator.

use super::*;
use crate::advance::SequenceStart;
use crate::clock::{CachedClock, Clock};

#[test]
fn batch_is_exact_or_reports_count_and_error() {
    let clock = clock();
    let ids = generator(NARROW, Settings::DEFAULT, &clock);
    let mut out = [0; 6];
    let short = ids.try_fill(&mut out).unwrap_err();
    assert_eq!(short.made, 4);
    assert!(matches!(short.error, MintError::TickFull { .. }));
    assert!(out[..4].windows(2).all(|pair| pair[0] < pair[1]));
    clock.advance_ms(1);
    assert_eq!(ids.try_fill(&mut out[4..]), Ok(()));
    assert!(out.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(ids.try_fill(&mut []), Ok(()));
}

#[test]
fn a_blocking_batch_waits_for_the_ticks_it_needs() {
    let clock = clock();
    let ids = generator(NARROW, Settings::DEFAULT, &clock);
    let mut out = [0; 4_001];
    ids.fill(&mut out).unwrap();
    assert!(out.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(since_start(&NARROW, out[4_000]), 1_000);
}

#[test]
fn lanes_drop_their_block_when_the_tick_ends() {
    let clock = clock();
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    let (mut a, mut b) = (ids.lane(16), ids.lane(16));
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..1_000 {
        for lane in [&mut a, &mut b] {
            let id = lane.try_mint().unwrap();
            assert!(seen.insert(id));
            let now = clock.read().wall().since(START);
            assert_eq!(since_start(&LAYOUT, id), i64::try_from(now).unwrap(), "never stale");
        }
        if n % 10 == 9 {
            clock.advance_ms(1);
        }
    }
}

#[test]
fn lane_keeps_its_block_under_a_stale_clock() {
    let clock = clock();
    let cached = CachedClock::new(&clock);
    let ids = Generator::new(LAYOUT, 0, Settings::DEFAULT, Window::UNBOUNDED, cached).unwrap();
    let mut lane = ids.lane(16);
    let first = lane.try_mint().unwrap();
    for n in 1..16 {
        assert_eq!(lane.try_mint(), Ok(first + n), "no block is dropped while its tick is open");
    }
    clock.advance_ms(1);
    assert_eq!(since_start(&LAYOUT, lane.try_mint().unwrap()), 1);
    clock.advance_ms(1);
    assert_eq!(since_start(&LAYOUT, lane.try_mint().unwrap()), 2, "never stale");
}

#[test]
fn lane_outlives_the_generator_with_its_block_only() {
    let clock = clock();
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    let mut lane = ids.lane(4);
    let first = lane.try_mint().unwrap();
    let end = ids.close();
    for n in 1..4 {
        let id = lane.try_mint().unwrap();
        assert_eq!(id, first + n);
        assert!(LAYOUT.time_of(id).unwrap() < end, "blocks taken count as taken");
    }
    assert_eq!(lane.try_mint(), Err(MintError::Closed));
}

/// A lane takes whole rounds of the shards, whatever the length of its blocks, so that the IDs that
/// others mint take turns, too.
#[test]
fn blocks_of_lanes_leave_the_turn_of_the_generator() {
    const SHARDS: u64 = 4;
    let clock = clock();
    let sequence_start = SequenceStart::Shards { count: SHARDS, seed: 1 };
    let ids = generator(LAYOUT, Settings { sequence_start, ..Settings::DEFAULT }, &clock);
    for block in 1..=9 {
        let before = ids.try_mint().unwrap();
        ids.lane(block).try_mint().unwrap();
        let after = ids.try_mint().unwrap();
        assert_eq!(after % SHARDS, (before + 1) % SHARDS, "after a block of {block}");
    }
}

#[test]
fn a_local_generator_mints_as_a_shared_one() {
    let (clock, other) = (clock(), clock());
    let shared = generator(NARROW, Settings::DEFAULT, &clock);
    let mut local =
        LocalGenerator::new(NARROW, 7, Settings::DEFAULT, Window::UNBOUNDED, &other, ()).unwrap();
    for round in 0..2_000_u64 {
        let both = [&clock, &other];
        match round % 7 {
            3 => both.map(|clock| clock.advance_ms(1)),
            5 => both.map(|clock| clock.step_back_ms(2)),
            _ => [(); 2],
        };
        match (shared.try_mint(), local.try_mint()) {
            // A shared counter may overshoot into the next tick, and loses those numbers.
            (Ok(shared), Ok(local)) => assert!(shared >= local),
            (Err(_), Err(_)) => {}
            (shared, local) => assert!(shared.is_err(), "{shared:?} {local:?}"),
        }
    }
}

#[test]
fn type_sizes_are_unchanged() {
    assert_eq!(size_of::<MintError>(), 32);
    assert!(size_of::<Generator<crate::SystemClock>>() <= 512);
    assert!(size_of::<Lane<&Generator<crate::SystemClock>>>() <= 56);
}
