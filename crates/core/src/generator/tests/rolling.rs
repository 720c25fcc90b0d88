//! Clock values (article 000) and the ring of last IDs (article 003).

use super::*;
use crate::advance::SequenceStart;
use crate::clock::Outcome;
use crate::layout::Field;

/// 41 ms | 3 clock | 7 worker | 12 sequence.
fn layout() -> Layout {
    Layout::from_fields(&[
        (Field::Time, 41),
        (Field::Clock, 3),
        (Field::Worker, 7),
        (Field::Sequence, 12),
    ])
    .unwrap()
}

type Values<'c> = [Generator<&'c ManualClock>; 8];

fn values<'c>(clock: &'c ManualClock, marks: [UnixMillis; 8]) -> Values<'c> {
    core::array::from_fn(|value| {
        let window = Window::new(marks[value], UnixMillis::MAX);
        let value = u64::try_from(value).unwrap();
        Generator::with_observer(layout(), 5, value, with(Rollback::Fail), window, clock, ())
            .unwrap()
    })
}

fn sequence<'c>(
    clock: &'c ManualClock,
    steps: &'c Steps,
) -> ClockSequence<Values<'c>, &'c ManualClock, &'c Steps> {
    ClockSequence::new(values(clock, [UnixMillis::ZERO; 8]), clock, steps)
}

#[test]
fn a_rollback_moves_to_the_next_clock_value() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = sequence(&clock, &steps);
    let mut seen = std::collections::BTreeSet::new();
    for value in 0..8 {
        for _ in 0..100 {
            let id = ids.try_mint().unwrap();
            assert_eq!(layout().unpack(id).unwrap().clock, value);
            assert!(seen.insert(id));
        }
        clock.step_back_ms(1_000);
    }
    let observed = steps.take();
    assert_eq!(observed.len(), 7, "the eighth is not met yet");
    assert!(
        observed.iter().all(|step| step.policy == "clock-sequence"),
        "as in configuration: {observed:?}"
    );
}

#[test]
fn the_ninth_rollback_is_refused_rather_than_wrapped() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = sequence(&clock, &steps);
    let mut seen = std::collections::BTreeSet::new();
    let mut mint = || ids.try_mint().inspect(|id| assert!(seen.insert(*id), "{id} came twice"));
    let clock_of = |id| layout().unpack(id).unwrap().clock;
    // Value 0 serves for a moment only, so that the eighth rollback finds its mark below the clock.
    mint().unwrap();
    clock.step_back_ms(1);
    assert_eq!(clock_of(mint().unwrap()), 1);
    clock.advance_ms(2_000);
    for rollback in 2..=8 {
        mint().unwrap();
        clock.step_back_ms(500);
        assert_eq!(clock_of(mint().unwrap()), rollback % 8, "rollback {rollback}");
        clock.advance_ms(500);
    }
    mint().unwrap();
    clock.step_back_ms(500);
    assert_eq!(mint(), Err(MintError::NoClockValue { values: 8, by_ms: 500 }));
    let observed = steps.take();
    assert_eq!(observed.len(), 9);
    assert!(observed[..8].iter().all(|step| step.outcome == Outcome::Moved));
    assert_eq!(observed[8].outcome, Outcome::Refused);
    // Minting works again when the clock has caught up.
    clock.advance_ms(500);
    mint().unwrap();
}

#[test]
fn marks_of_clock_values_outlive_the_process() {
    let clock = clock();
    let late = START.saturating_add(60_000);
    // Values 0 to 5 were used in a future from which the clock was set back.
    let marks = [late, late, late, late, late, late, START, START];
    let ids = ClockSequence::new(values(&clock, marks), &clock, ());
    assert_eq!(layout().unpack(ids.try_mint().unwrap()).unwrap().clock, 6);
    // Value 7 would serve from the next tick on; after two ticks back, no value does.
    clock.step_back_ms(2);
    assert_eq!(ids.try_mint(), Err(MintError::NoClockValue { values: 8, by_ms: 1 }));
}

fn ring<'c>(clock: &'c ManualClock, steps: &'c Steps) -> Ring<&'c ManualClock, &'c Steps> {
    Ring::new(NARROW, 7, Some(5_000), SequenceStart::Zero, Window::UNBOUNDED, clock, steps).unwrap()
}

#[test]
fn ring_continues_in_repeated_ticks() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = ring(&clock, &steps);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        for _ in 0..2 {
            assert!(seen.insert(ids.try_mint().unwrap()));
        }
        clock.advance_ms(1);
    }
    clock.step_back_ms(100);
    for ms in 0..100 {
        for _ in 0..2 {
            let id = ids.try_mint().unwrap();
            assert!(seen.insert(id));
            assert_eq!(since_start(&NARROW, id), ms, "the tick itself, not a later one");
        }
        // All four IDs of the tick are used up now.
        assert!(matches!(ids.try_mint(), Err(MintError::TickFull { .. })));
        clock.advance_ms(1);
    }
    assert_eq!(steps.take().len(), 1);
}

#[test]
fn the_ring_beyond_its_cells_leads_within_a_bound() {
    // 5 s are 25 rounds of the ring: the cell of the present tick remembers a tick that is 5 s
    // ahead.
    for (lead_max_ms, minted) in [(4_999, false), (5_000, true), (5_001, true)] {
        let clock = clock();
        let ids = Ring::new(
            NARROW,
            7,
            Some(lead_max_ms),
            SequenceStart::Zero,
            Window::UNBOUNDED,
            &clock,
            (),
        )
        .unwrap();
        let before = ids.try_mint().unwrap();
        clock.step_back_ms(5_000);
        match ids.try_mint() {
            Ok(id) => assert!(minted && id > before),
            Err(error) => {
                assert!(!minted);
                let limit_ms = lead_max_ms;
                let expected = MintError::ClockBehind { by_ms: 5_000, limit_ms, retry_after_ms: 1 };
                assert_eq!(error, expected);
            }
        }
        // The next tick's cell remembers nothing.
        clock.advance_ms(1);
        assert_eq!(since_start(&NARROW, ids.try_mint().unwrap()), -4_999);
    }
}

#[test]
fn ring_begins_each_tick_at_its_sequence_start() {
    let clock = clock();
    let start = SequenceStart::RandomBelow { bound: 4_096, seed: 7 };
    let ids = Ring::new(LAYOUT, 7, None, start, Window::UNBOUNDED, &clock, ()).unwrap();
    let mut firsts = std::collections::BTreeSet::new();
    // More than one round of the ring.
    for _ in 0..500 {
        let first = ids.try_mint().unwrap();
        assert_eq!(ids.try_mint().unwrap(), first + 1);
        let first = first & 0xfff;
        firsts.insert(first);
        clock.advance_ms(1);
    }
    assert!(firsts.len() > 400, "{} starts", firsts.len());
}

#[test]
fn the_ring_never_repeats_whatever_the_clock_does() {
    let (clock, steps) = (clock(), Steps::default());
    let ids =
        Ring::new(LAYOUT, 7, None, SequenceStart::Zero, Window::UNBOUNDED, &clock, &steps).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut random = 1_u64;
    for _ in 0..50_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match random >> 61 {
            0 => clock.step_back_ms((random >> 20) % 900),
            1 => clock.step_ahead_ms((random >> 20) % 900),
            2..=4 => clock.advance_ms(1),
            _ => {}
        }
        match ids.try_mint() {
            Ok(id) => assert!(seen.insert(id), "{id} came twice"),
            Err(MintError::ClockBehind { by_ms: 5_001.., limit_ms: 5_000, .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(seen.len() > 10_000);
}

#[test]
fn closed_ring_returns_the_end_of_taken_ids() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = ring(&clock, &steps);
    ids.try_mint().unwrap();
    clock.advance_ms(300);
    ids.try_mint().unwrap();
    clock.step_back_ms(100);
    ids.try_mint().unwrap();
    assert_eq!(ids.close(), START.saturating_add(301));
    assert_eq!(ids.try_mint(), Err(MintError::Closed));
    // The next process begins above everything taken.
    let ids = Ring::new(
        NARROW,
        7,
        None,
        SequenceStart::Zero,
        Window::new(ids.close(), UnixMillis::MAX),
        &clock,
        (),
    )
    .unwrap();
    let behind = MintError::ClockBehind { by_ms: 100, limit_ms: 5_000, retry_after_ms: 1 };
    assert_eq!(ids.try_mint(), Err(behind), "the clock is behind the floor");
    clock.advance_ms(101);
    assert!(ids.try_mint().is_ok());
}
