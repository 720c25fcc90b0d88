//! Properties of [`advance`], and of generators that only retry it.

#![allow(clippy::unwrap_used)] // A panic is how these tests report a failure.

use proptest::prelude::*;
use snowmint_core::generator::{LocalGenerator, check_shards};
use snowmint_core::layout::Field;
use snowmint_core::{
    Advance, Generator, Layout, ManualClock, MintError, Ordinal, Rollback, Rules, SequenceStart,
    Settings, State, TickWindow, UnixMillis, Window, advance,
};

fn rules() -> impl Strategy<Value = Rules> {
    let start = prop_oneof![
        Just(SequenceStart::Zero),
        Just(SequenceStart::Carried),
        (0_u64..200, any::<u64>())
            .prop_map(|(bound, seed)| SequenceStart::RandomBelow { bound, seed }),
        (0_u64..5_000, any::<u64>())
            .prop_map(|(count, seed)| SequenceStart::Shards { count, seed }),
    ];
    (1_u8..=22, 0_u8..=41, 1_u32..=41, 0_u64..50, 0_u64..50, start).prop_map(
        |(sequence_bits, other_bits, time_bits, lag_ticks, lead_ticks, start)| Rules {
            sequence_bits,
            tick_bits: sequence_bits + other_bits,
            tick_max: (1 << time_bits) - 1,
            lag_ticks,
            lead_ticks,
            start,
        },
    )
}

/// Generates ticks that are often close to each other.
fn tick() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..300, Just(u64::MAX >> 23), any::<u64>().prop_map(|tick| tick >> 22)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn advance_never_repeats_wraps_or_leaves_its_bounds(
        rules in rules(),
        next in tick(),
        sequence in any::<u64>(),
        unissued in 0_u64..4,
        now in tick(),
        wanted in 1_u64..10_000,
        floor in tick(),
        end in tick(),
    ) {
        let first = Ordinal::first_of(next, &rules).get();
        let next = Ordinal::new(first.saturating_add(sequence & rules.sequence_max()));
        let issued = Ordinal::new(next.get().saturating_sub(unissued));
        let window = TickWindow { floor, end };
        match advance(State { next, issued }, now, wanted, window, &rules) {
            Advance::Issued { first, count } => {
                prop_assert!(first >= next, "repeats");
                prop_assert!((1..=wanted).contains(&count));
                let last = Ordinal::new(first.get() + (count - 1));
                prop_assert_eq!(first.tick(&rules), last.tick(&rules), "one tick");
                let tick = first.tick(&rules);
                prop_assert!(tick <= rules.tick_max);
                prop_assert!(tick >= floor && tick < end, "granted before minted");
                prop_assert!(tick <= now.saturating_add(rules.lead_ticks), "no lead beyond the limit");
                prop_assert!(tick >= now.saturating_sub(rules.lag_ticks), "no lag beyond the limit");
            }
            Advance::TickFull { next_tick } => {
                prop_assert!(next_tick.get() > now, "waiting for it would end at once");
            }
            Advance::ClockBehind { by_ticks } => {
                prop_assert!(by_ticks > 0);
                // When the clock has advanced by that much, it is no longer behind.
                let later = now.saturating_add(by_ticks);
                let then = advance(State { next, issued }, later, wanted, window, &rules);
                let behind = matches!(then, Advance::ClockBehind { .. });
                prop_assert!(!behind);
            }
            Advance::WindowSpent => {
                let tick = next.tick(&rules).max(now.saturating_sub(rules.lag_ticks)).max(floor);
                prop_assert!(tick >= end);
            }
            Advance::EpochSpent => {
                let tick = next.tick(&rules).max(now).max(floor);
                prop_assert!(tick > rules.tick_max);
            }
        }
    }
}

/// An event of a generator and its clock.
#[derive(Clone, Debug)]
enum Event {
    Mint(u8),
    Fill(u8),
    Lane(u8),
    Pass(u16),
    Freeze(u16),
    Back(u16),
    Ahead(u16),
    Extend(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<u8>().prop_map(Event::Mint),
        2 => any::<u8>().prop_map(Event::Fill),
        1 => any::<u8>().prop_map(Event::Lane),
        3 => (0_u16..30).prop_map(Event::Pass),
        1 => (0_u16..30).prop_map(Event::Freeze),
        1 => any::<u16>().prop_map(|ms| Event::Back(ms % 9_000)),
        1 => any::<u16>().prop_map(|ms| Event::Ahead(ms % 9_000)),
        2 => any::<u16>().prop_map(|ms| Event::Extend(ms % 3_000)),
    ]
}

fn policy() -> impl Strategy<Value = Rollback> {
    prop_oneof![
        Just(Rollback::HOLD),
        Just(Rollback::WAIT),
        Just(Rollback::Fail),
        Just(Rollback::BORROW),
        (0_u64..100).prop_map(|lead_max_ms| Rollback::Hold { lead_max_ms }),
        (0_u64..100).prop_map(|lead_max_ms| Rollback::Borrow { lead_max_ms }),
    ]
}

/// Generates small workers and sequences in both orders, so that counters run over into all other
/// fields.
fn layout() -> impl Strategy<Value = (Layout, u64)> {
    let shape = (any::<bool>(), 0_u8..=3, 1_u8..=6, 0_u8..=2, any::<u64>());
    shape.prop_map(|(worker_first, worker_bits, sequence_bits, clock_bits, worker)| {
        let time = (Field::Time, 41);
        let clock = (Field::Clock, clock_bits);
        let worker_field = (Field::Worker, worker_bits);
        let sequence = (Field::Sequence, sequence_bits);
        let fields = if worker_first {
            [time, clock, worker_field, sequence]
        } else {
            [time, sequence, clock, worker_field]
        };
        let layout = Layout::from_fields(&fields).unwrap();
        (layout, worker & layout.worker_max())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_clock_never_decides_uniqueness(
        rollback in policy(),
        burst_ms in 0_u64..40,
        (layout, worker) in layout(),
        unit_ms in prop_oneof![Just(1_u32), Just(7), Just(10), Just(1_000)],
        events in prop::collection::vec(event(), 1..300),
    ) {
        let layout = layout.with_unit_ms(unit_ms).unwrap();
        let start = layout.epoch().saturating_add(50_000_000);
        let clock = ManualClock::new(start);
        let settings = Settings { burst_ms, ..Settings::with_rollback(rollback) };
        let mut mark = start.saturating_add(2_000);
        let window = Window::new(start.saturating_sub(100), mark);
        let ids = Generator::new(layout, worker, settings, window, &clock).unwrap();
        let mut lane = ids.lane(3);
        let mut last = 0;
        let mut laned = 0;
        let mut seen = std::collections::HashSet::new();
        for event in events {
            let mut minted = Vec::new();
            match event {
                Event::Mint(tries) => minted.extend((0..tries).filter_map(|_| ids.try_mint().ok())),
                Event::Fill(length) => {
                    let mut out = vec![0; usize::from(length)];
                    let made = ids.try_fill(&mut out).map_or_else(|short| short.made, |()| out.len());
                    minted.extend_from_slice(&out[..made]);
                }
                Event::Lane(tries) => {
                    for id in (0..tries).filter_map(|_| lane.try_mint().ok()) {
                        prop_assert!(id > laned, "a lane increases");
                        laned = id;
                        prop_assert!(seen.insert(id));
                        prop_assert!(layout.time_of(id).unwrap() < mark);
                    }
                }
                Event::Pass(ms) => clock.advance_ms(u64::from(ms)),
                Event::Freeze(ms) => clock.freeze_for_ms(u64::from(ms)),
                Event::Back(ms) => clock.step_back_ms(u64::from(ms)),
                Event::Ahead(ms) => clock.step_ahead_ms(u64::from(ms)),
                Event::Extend(ms) => {
                    mark = mark.max(clock_now(&clock).saturating_add(u64::from(ms)));
                    ids.extend_to(mark);
                }
            }
            for id in minted {
                prop_assert!(id > last, "increasing");
                last = id;
                prop_assert!(seen.insert(id), "no ID twice");
                prop_assert_eq!(layout.unpack(id).unwrap().worker, worker, "of another worker");
                let time = layout.time_of(id).unwrap();
                prop_assert!(time >= window.floor, "not below the floor");
                let end = time.saturating_add(u64::from(unit_ms));
                prop_assert!(end <= mark, "granted before minted");
            }
        }
        let end = ids.close();
        prop_assert_eq!(ids.try_mint(), Err(MintError::Closed));
        for id in seen {
            prop_assert!(layout.time_of(id).unwrap() < end, "the result of close is above everything");
        }
    }
}

/// Layouts with a number of shards that their IDs can spread over.
fn sharded() -> impl Strategy<Value = (Layout, u64, u64)> {
    let ends_with_sequence = (0_u8..=5, 1_u8..=18, any::<u64>(), any::<u64>());
    // Few shards half of the time: each gets many IDs.
    let some = |layout: &Layout, n: u64| {
        let max = layout.ids_per_tick();
        1 + (n >> 1) % if n % 2 == 0 { max } else { max.min(24) }
    };
    let ends_with_worker = ends_with_sequence.clone().prop_map(move |(worker, sequence, n, w)| {
        let fields = [(Field::Time, 39), (Field::Sequence, sequence), (Field::Worker, worker)];
        let layout = Layout::from_fields(&fields).unwrap();
        let shards = some(&layout, n);
        (layout, w & layout.worker_max(), if worker > 0 { (shards - 1) | 1 } else { shards })
    });
    let ends_with_sequence = ends_with_sequence.prop_map(move |(worker, sequence, n, w)| {
        let layout = Layout::new(41, worker, sequence).unwrap();
        (layout, w & layout.worker_max(), some(&layout, n))
    });
    prop_oneof![2 => ends_with_sequence, 1 => ends_with_worker]
}

/// Returns the fewest and the most IDs of any shard.
fn fullest(ids: &[u64], shards: u64) -> (usize, usize) {
    let mut counts = vec![0; usize::try_from(shards).unwrap()];
    for id in ids {
        counts[usize::try_from(id % shards).unwrap()] += 1;
    }
    (counts.iter().copied().min().unwrap(), counts.iter().copied().max().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever the rate, the clock and the batches: the counts of two shards differ by 1 at most,
    /// for the IDs of a generator, of a lane, and of a generator that one thread owns.
    #[test]
    fn shards_take_turns_at_any_rate(
        (layout, worker, count) in sharded(),
        rollback in policy(),
        burst_ms in 0_u64..40,
        block in 1_usize..200,
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..300),
    ) {
        check_shards(&layout, count).unwrap();
        let start = layout.epoch().saturating_add(50_000_000);
        let clock = ManualClock::new(start);
        let sequence_start = SequenceStart::Shards { count, seed };
        let settings = Settings { burst_ms, sequence_start, ..Settings::with_rollback(rollback) };
        let window = Window::new(start.saturating_sub(100), UnixMillis::MAX);
        let ids = Generator::new(layout, worker, settings, window, &clock).unwrap();
        let mut lane = ids.lane(block);
        let mut local = LocalGenerator::new(layout, worker, settings, window, &clock, ()).unwrap();
        let (mut shared, mut laned, mut owned) = (Vec::new(), Vec::new(), Vec::new());
        let mut lane_took = false;
        for event in events {
            match event {
                Event::Mint(tries) => {
                    let tries = tries % 20;
                    shared.extend((0..tries).filter_map(|_| ids.try_mint().ok()));
                    owned.extend((0..tries).filter_map(|_| local.try_mint().ok()));
                }
                Event::Fill(length) => {
                    let mut out = vec![0; usize::from(length)];
                    let made = ids.try_fill(&mut out).map_or_else(|short| short.made, |()| out.len());
                    shared.extend_from_slice(&out[..made]);
                }
                Event::Lane(tries) => {
                    lane_took |= tries % 20 > 0;
                    laned.extend((0..tries % 20).filter_map(|_| lane.try_mint().ok()));
                }
                Event::Pass(ms) | Event::Freeze(ms) => clock.advance_ms(u64::from(ms)),
                Event::Back(ms) => clock.step_back_ms(u64::from(ms)),
                Event::Ahead(ms) | Event::Extend(ms) => clock.step_ahead_ms(u64::from(ms)),
            }
        }
        for ids in [&laned, &owned] {
            let (fewest, most) = fullest(ids, count);
            prop_assert!(most - fewest <= 1, "{fewest} to {most} of {} in {count}", ids.len());
        }
        // Where lanes take numbers in between, a block that its tick cuts short moves the turn.
        if !lane_took {
            let (fewest, most) = fullest(&shared, count);
            prop_assert!(most - fewest <= 1, "{fewest} to {most} of {} in {count}", shared.len());
        }
    }
}

/// A process that mints one ID and ends must not always mint it for the same shard, and neither
/// must one that opens a lane for each ID.
#[test]
fn shards_begin_anywhere() {
    const SHARDS: u64 = 16;
    const IDS: u64 = 8_000;
    let start = Layout::TWITTER.epoch().saturating_add(50_000_000);
    let settings = |seed| Settings {
        sequence_start: SequenceStart::Shards { count: SHARDS, seed },
        ..Settings::DEFAULT
    };
    let of_one_tick = (0..IDS).map(|seed| {
        let window = Window::new(start, UnixMillis::MAX);
        let clock = ManualClock::new(start);
        Generator::new(Layout::TWITTER, 7, settings(seed), window, &clock).unwrap().try_mint()
    });
    let of_one_seed = (0..IDS).map(|ms| {
        let start = start.saturating_add(ms);
        let window = Window::new(start, UnixMillis::MAX);
        let clock = ManualClock::new(start);
        Generator::new(Layout::TWITTER, 7, settings(1), window, &clock).unwrap().try_mint()
    });
    let clock = ManualClock::new(start);
    let window = Window::new(start, UnixMillis::MAX);
    let ids = Generator::new(Layout::TWITTER, 7, settings(1), window, &clock).unwrap();
    let of_lanes = (0..IDS).map(|_| {
        clock.advance_ms(1);
        ids.lane(64).try_mint()
    });
    let all = [of_one_tick.collect::<Vec<_>>(), of_one_seed.collect(), of_lanes.collect()];
    for minted in all {
        let minted: Vec<u64> = minted.into_iter().map(Result::unwrap).collect();
        let (fewest, most) = fullest(&minted, SHARDS);
        // 500 is even.
        assert!(fewest > 400 && most < 600, "{fewest} to {most}");
    }
}

fn clock_now(clock: &ManualClock) -> UnixMillis {
    snowmint_core::Clock::unix_ms(clock)
}
