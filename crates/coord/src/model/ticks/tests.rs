use proptest::prelude::*;
use snowmint_core::{
    Advance, Ordinal, Rules, SequenceStart, State, TickWindow, UnixMillis, advance,
};

use super::*;
use crate::error::{ErrorKind, Retry};
use crate::ids::Mark;
use crate::model::segment::{Bounds, Reserve, SegmentRow};

const EPOCH_MS: u64 = 1_000_000;

/// Ticks of 10 ms with 4 numbers each.
fn ticks(lag: u64, lead: u64) -> Ticks {
    let now = UnixMillis::ZERO;
    let epoch = UnixMillis::new(EPOCH_MS);
    Ticks { epoch, unit_ms: 10, sequence_bits: 2, tick_max: 1000, lag, lead, now }
}

fn within(ticks: Ticks, mark: u64, since_ms: u64) -> Result<(u64, u64), ErrorKind> {
    let within = ticks.within("orders", mark, UnixMillis::new(EPOCH_MS + since_ms));
    within.map(|within| (within.first, within.end)).map_err(|error| error.kind().clone())
}

#[test]
fn numbers_begin_with_the_tick_of_the_clock_and_end_with_it() {
    let plain = ticks(0, 0);
    assert_eq!(within(plain, 1, 0), Ok((1, 4)), "the mark of a new source is 1");
    assert_eq!(within(plain, 1, 9), Ok((1, 4)));
    assert_eq!(within(plain, 1, 10), Ok((4, 8)));
    assert_eq!(within(plain, 6, 10), Ok((6, 8)));
    assert_eq!(within(plain, 6, 505), Ok((200, 204)));
    let full = within(plain, 8, 13).unwrap_err();
    assert_eq!(full, ErrorKind::TickFull { next_in_ms: 7 });
    assert_eq!(full.retry(), Retry::AfterMs(7));
    assert_eq!(within(ticks(3, 0), 1, 505), Ok((188, 204)), "three ticks just past");
    assert_eq!(within(ticks(3, 0), 190, 505), Ok((190, 204)));
    assert_eq!(within(ticks(3, 0), 1, 15), Ok((1, 8)));
}

#[test]
fn clock_rollback_leads_up_to_the_allowed_mark() {
    // Number 200 is the first of tick 50, which begins 500 ms after the epoch.
    for (lead, since_ms, expected) in [
        (3, 489, Ok((201, 208))),
        (3, 470, Ok((201, 204))),
        (2, 480, Ok((201, 204))),
        (0, 500, Ok((201, 204))),
    ] {
        assert_eq!(within(ticks(0, lead), 201, since_ms), expected, "{lead} {since_ms}");
    }
    for (lead, since_ms, behind_ms) in [(3, 469, 31), (2, 470, 30), (0, 499, 1), (0, 489, 11)] {
        let now = UnixMillis::new(EPOCH_MS + since_ms);
        let error = ticks(0, lead).within("orders", 201, now).unwrap_err();
        let ErrorKind::ClockBehind { behind_ms: found, limit_ms } = *error.kind() else {
            panic!("{lead} {since_ms}: {error}")
        };
        assert_eq!((found, limit_ms), (behind_ms, lead * 10), "{lead} {since_ms}");
        assert!(error.message().contains("orders"), "{error}");
    }
    // The numbers are used up to the lead: the wait is never zero.
    let full = within(ticks(0, 3), 208, 480).unwrap_err();
    assert_eq!(full.retry(), Retry::AfterMs(10));
    // Numbers do not lead a clock that is right: the caller waits for the next tick.
    assert_eq!(within(ticks(0, 3), 204, 500), Err(ErrorKind::TickFull { next_in_ms: 10 }));
}

#[test]
fn bounds_are_checked_on_both_ends() {
    let plain = ticks(0, 0);
    let before = plain.within("orders", 1, UnixMillis::new(EPOCH_MS - 1)).unwrap_err();
    assert!(
        matches!(before.kind(), ErrorKind::ClockBehind { behind_ms: 1, limit_ms: 0 }),
        "{before}"
    );
    assert_eq!(within(plain, 1, 10_009), Ok((4000, 4004)));
    let spent =
        |mark, since_ms| matches!(within(ticks(0, 99), mark, since_ms), Err(ErrorKind::EpochSpent));
    assert!(spent(1, 10_010) && spent(4004, 10_000) && spent(4004, 9_990));
    assert!(spent(u64::MAX, 9_990) && spent(1, u64::MAX - EPOCH_MS));
    for (sequence_bits, unit_ms) in [(0, 1), (63, 1), (64, 1), (255, 1), (12, 0)] {
        let odd = Ticks { sequence_bits, unit_ms, ..plain };
        assert_eq!(within(odd, 1, 5).unwrap_err().code(), "invalid", "{sequence_bits} {unit_ms}");
    }
    let wide = Ticks { sequence_bits: 62, tick_max: u64::MAX, unit_ms: 1, ..plain };
    assert_eq!(within(wide, 1, 3), Ok((3 << 62, u64::MAX)));
    assert!(within(wide, 1, 4).is_err(), "no number is there");
}

/// Takes numbers as a generator at the mark would: tick after tick, by the rules of `advance`.
fn generated(ticks: Ticks, mark: u64, tick: u64, wanted: u64) -> Option<(u64, u64)> {
    let behind = ticks.tick_of(mark.saturating_sub(1)) > tick;
    let rules = Rules {
        sequence_bits: ticks.sequence_bits,
        tick_max: ticks.tick_max,
        lag_ticks: ticks.lag,
        lead_ticks: if behind { ticks.lead } else { 0 },
        tick_bits: 22,
        start: SequenceStart::Zero,
    };
    let window = TickWindow { floor: 0, end: u64::MAX };
    let mut taken: Option<(u64, u64)> = None;
    let mut next = Ordinal::new(mark);
    loop {
        let left = wanted - taken.map_or(0, |(first, end)| end - first);
        if left == 0 {
            return taken;
        }
        let Advance::Issued { first, count } = advance(State::at(next), tick, left, window, &rules)
        else {
            return taken;
        };
        let (begun, end) = (taken.map_or(first.get(), |(begun, _)| begun), first.get() + count);
        assert!(taken.is_none_or(|(_, before)| before == first.get()), "no gap within a result");
        taken = Some((begun, end));
        next = Ordinal::new(end);
    }
}

proptest! {
    /// The store takes the same numbers as a generator with its mark and its clock.
    #[test]
    fn the_store_takes_what_a_generator_would(
        mark in 1_u64..4100,
        since_ms in 0_u64..10_100,
        length in 1_u64..50,
        lag in 0_u64..5,
        lead in 0_u64..5,
    ) {
        let ticks = ticks(lag, lead);
        let row = SegmentRow { mark: Mark::new(mark), ..SegmentRow::NEW };
        let within = Some(Bounds::Now(ticks));
        let reserve = Reserve { source: "a".into(), length, definition_version: 1, within };
        let now = UnixMillis::new(EPOCH_MS + since_ms);
        let taken = reserve.decide(&row, Some(now), 1).ok().map(|(after, segment)| {
            assert_eq!((segment.first, segment.last + 1), (after.floor.get(), after.mark.get()));
            assert_eq!(segment.at, Some(now));
            (segment.first, segment.last + 1)
        });
        prop_assert_eq!(taken, generated(ticks, mark, since_ms / 10, length));
    }

    /// Clocks cause no number to be issued twice, and none further ahead of the clock than allowed.
    #[test]
    fn no_clock_makes_a_number_come_twice(
        steps in prop::collection::vec((0_u64..9_000, 1_u64..9), 1..200),
        lead in 0_u64..9,
    ) {
        let ticks = ticks(2, lead);
        let mut row = SegmentRow::NEW;
        for (since_ms, length) in steps {
            let within = Some(Bounds::Now(ticks));
            let reserve = Reserve { source: "a".into(), length, definition_version: 1, within };
            let now = UnixMillis::new(EPOCH_MS + since_ms);
            let Ok((after, segment)) = reserve.decide(&row, Some(now), 1) else { continue };
            prop_assert!(segment.first >= row.mark.get() && after.mark > row.mark);
            prop_assert!(segment.last - segment.first < length);
            prop_assert!(ticks.tick_of(segment.last) <= since_ms / 10 + lead);
            prop_assert!(ticks.tick_of(segment.first) + 2 >= since_ms / 10);
            row = after;
        }
    }
}
