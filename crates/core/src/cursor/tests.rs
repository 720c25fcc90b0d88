#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    reason = "test code: a panic is how it reports"
)]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering as Std};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn numbers(cursor: &SegmentCursor) -> Vec<u64> {
    iter::from_fn(|| cursor.take(|| {})).collect()
}

#[test]
fn numbers_come_once_in_order_over_gaps() {
    let cursor = SegmentCursor::new();
    assert_eq!(cursor.take(|| {}), None);
    cursor.push(1, 3).unwrap();
    cursor.push(3, 4).unwrap();
    cursor.push(7, 9).unwrap();
    assert_eq!(cursor.left(), 5);
    assert_eq!(numbers(&cursor), [1, 2, 3, 7, 8]);
    cursor.push(9, 10).unwrap();
    assert_eq!(numbers(&cursor), [9], "a failed take costs no number");
}

#[test]
fn empty_cursor_loses_no_number() {
    let cursor = SegmentCursor::new();
    cursor.push(1, 2).unwrap();
    assert_eq!(numbers(&cursor), [1]);
    for _ in 0..1000 {
        assert_eq!(cursor.take(|| {}), None);
        assert_eq!(cursor.take_run(50, || {}), None);
    }
    cursor.push(2, 4).unwrap();
    assert_eq!(numbers(&cursor), [2, 3]);
}

#[test]
fn a_run_is_at_most_the_rest_of_a_segment() {
    let cursor = SegmentCursor::new();
    cursor.push(1, 5).unwrap();
    cursor.push(5, 9).unwrap();
    let run = |count| cursor.take_run(count, || {}).map(|run| (run.first, run.end));
    assert_eq!(run(3), Some((1, 4)));
    assert_eq!(run(3), Some((4, 5)));
    assert_eq!(run(0), Some((5, 6)), "at least one");
    assert_eq!(run(u64::MAX), Some((6, 9)));
    assert_eq!(run(1), None);
}

#[test]
fn switch_is_reported_once() {
    let cursor = SegmentCursor::new();
    cursor.push(1, 3).unwrap();
    cursor.push(3, 5).unwrap();
    let mut switches = Vec::new();
    for _ in 0..4 {
        let mut switched = false;
        cursor.take(|| switched = true);
        switches.push(switched);
    }
    assert_eq!(switches, [true, false, true, false]);
}

#[test]
fn only_rising_segments_are_accepted() {
    let cursor = SegmentCursor::new();
    cursor.push(5, 8).unwrap();
    for (first, end) in [(7, 9), (8, 8), (9, 8), (0, 3), (8, CLOSED + 1)] {
        assert_eq!(cursor.push(first, end), Err(PushError::NotAbove { above: 8 }));
    }
    for first in 8..23 {
        cursor.push(first, first + 1).unwrap();
    }
    assert_eq!(cursor.push(23, 24), Err(PushError::Full));
    assert_eq!(numbers(&cursor), (5..23).collect::<Vec<_>>());
    cursor.push(CLOSED - 1, CLOSED).unwrap();
    assert_eq!(numbers(&cursor), [CLOSED - 1]);
}

#[test]
fn close_returns_the_remaining_numbers() {
    let cursor = SegmentCursor::new();
    cursor.push(1, 10).unwrap();
    cursor.push(20, 30).unwrap();
    cursor.take_run(4, || {});
    assert_eq!(cursor.close(), 5);
    assert_eq!(cursor.take(|| {}), None);
    assert_eq!(cursor.take_run(3, || {}), None);
    assert!(cursor.close() >= CLOSED);
}

proptest! {
    #[test]
    fn any_segments_in_any_portions(
        segments in proptest::collection::vec((0_u64..20, 1_u64..50), 1..40),
        portions in proptest::collection::vec(1_u64..80, 1..60),
    ) {
        let cursor = SegmentCursor::new();
        let (mut expected, mut got) = (Vec::new(), Vec::new());
        let mut end = 1;
        let mut portions = portions.iter().cycle();
        for (gap, length) in segments {
            let first = end + gap;
            end = first + length;
            while cursor.push(first, end) == Err(PushError::Full) {
                let run = cursor.take_run(*portions.next().unwrap(), || {}).unwrap();
                got.extend(run.first..run.end);
            }
            expected.extend(first..end);
        }
        while let Some(run) = cursor.take_run(*portions.next().unwrap(), || {}) {
            got.extend(run.first..run.end);
        }
        prop_assert_eq!(got, expected);
    }
}

#[test]
fn four_threads_share_the_pushed_segments() {
    const SEGMENTS: u64 = 2000;
    let cursor = Arc::new(SegmentCursor::new());
    let done = Arc::new(AtomicBool::new(false));
    let highest = Arc::new(AtomicU64::new(0));
    let takers: Vec<_> = (0..4_u64)
        .map(|taker| {
            let (cursor, done) = (Arc::clone(&cursor), Arc::clone(&done));
            let highest = Arc::clone(&highest);
            thread::spawn(move || {
                let mut mine = Vec::new();
                loop {
                    let ended = done.load(Std::Acquire);
                    // Every number is above all numbers seen before its call began.
                    let seen = highest.load(Std::SeqCst);
                    let run = cursor.take_run(if taker % 2 == 0 { 1 } else { 7 }, || {});
                    match run {
                        Some(run) => {
                            assert!(run.first > seen, "{run:?} after {seen}");
                            highest.fetch_max(run.end - 1, Std::SeqCst);
                            mine.extend(run.first..run.end);
                        }
                        None if ended => return mine,
                        None => thread::yield_now(),
                    }
                }
            })
        })
        .collect();
    let mut end = 1;
    for segment in 0..SEGMENTS {
        let first = end + u64::from(segment % 3 == 0) * 5;
        end = first + 1 + segment % 40;
        while cursor.push(first, end) == Err(PushError::Full) {
            thread::yield_now();
        }
    }
    done.store(true, Std::Release);
    let mut got = Vec::new();
    for taker in takers {
        let mine = taker.join().unwrap();
        assert!(mine.windows(2).all(|pair| pair[0] < pair[1]));
        got.extend(mine);
    }
    let distinct: BTreeSet<u64> = got.iter().copied().collect();
    assert_eq!(distinct.len(), got.len(), "a number came twice");
    assert!(got.iter().all(|number| *number < end));
}

/// Two threads take runs over the ends of adjacent segments, and one takes single numbers between
/// them.
#[test]
fn switches_between_segments_lose_nearly_nothing() {
    let cursor = Arc::new(SegmentCursor::new());
    let done = Arc::new(AtomicBool::new(false));
    let taking = |count: u64| {
        let (cursor, done) = (Arc::clone(&cursor), Arc::clone(&done));
        thread::spawn(move || {
            let mut taken = 0;
            loop {
                let ended = done.load(Std::SeqCst);
                let run = match count {
                    1 => cursor.take(|| {}).map(|first| Run { first, end: first + 1 }),
                    _ => cursor.take_run(count, || {}),
                };
                match run {
                    Some(run) => taken += run.end - run.first,
                    None if ended => return taken,
                    None => thread::yield_now(),
                }
            }
        })
    };
    let takers = [taking(68), taking(1), taking(41)];
    let (mut first, segments) = (1, 20_000);
    for _ in 0..segments {
        while cursor.push(first, first + 100).is_err() {
            thread::yield_now();
        }
        first += 100;
    }
    done.store(true, Std::SeqCst);
    let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    let lost = first - 1 - taken;
    assert!(lost < 200, "{lost} of {} reached no caller", first - 1);
}
