//! Every interleaving of two threads that take numbers, push or close.

use std::sync::Arc;
use std::vec::Vec;

use loom::thread;

use super::*;

fn take(cursor: &SegmentCursor, times: usize) -> Vec<u64> {
    let taken: Vec<u64> = (0..times).filter_map(|_| cursor.take(|| {})).collect();
    assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{taken:?}");
    taken
}

/// Returns a cursor with these segments, and a second thread that runs `what` on it.
fn with_other_thread(
    segments: &[(u64, u64)],
    what: impl FnOnce(&SegmentCursor) -> Vec<u64> + Send + 'static,
) -> (Arc<SegmentCursor>, thread::JoinHandle<Vec<u64>>) {
    let cursor = Arc::new(SegmentCursor::new());
    for (first, end) in segments {
        cursor.push(*first, *end).unwrap();
    }
    let other = thread::spawn({
        let cursor = Arc::clone(&cursor);
        move || what(&cursor)
    });
    (cursor, other)
}

fn assert_distinct(mut taken: Vec<u64>) {
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), count);
}

#[test]
fn a_switch_over_a_gap_repeats_none_and_leaves_the_gap_alone() {
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 2), (5, 7)], |cursor| take(cursor, 2));
        let mut taken = take(&cursor, 2);
        taken.extend(other.join().unwrap());
        assert!(taken.iter().all(|number| [1, 5, 6].contains(number)), "{taken:?}");
        assert_distinct(taken);
    });
}

#[test]
fn concurrent_push_and_take_repeat_no_number() {
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 2)], |cursor| take(cursor, 2));
        // The segment begins at a number that the other thread may have drawn out of bounds.
        cursor.push(3, 4).unwrap();
        let mut taken = take(&cursor, 2);
        taken.extend(other.join().unwrap());
        assert!(taken.iter().all(|number| [1, 3].contains(number)), "{taken:?}");
        assert_distinct(taken);
    });
}

#[test]
fn numbers_left_at_close_were_never_taken() {
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 3), (3, 5)], |cursor| take(cursor, 3));
        let unused = cursor.close();
        let taken = other.join().unwrap();
        assert!(taken.iter().all(|number| *number < unused), "{taken:?}, {unused}");
        assert_distinct(taken);
    });
}

#[test]
fn only_a_sleep_through_a_switch_loses_a_number() {
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 3), (3, 5)], |cursor| take(cursor, 2));
        let mut taken = take(&cursor, 2);
        taken.extend(other.join().unwrap());
        // A thread can draw a number before it sees its segment, and resume when that segment is
        // used up.
        assert!(taken.len() >= 3, "{taken:?}");
        assert_distinct(taken);
    });
}

#[test]
fn runs_over_a_switch_leave_no_number() {
    fn runs(cursor: &SegmentCursor, count: u64, times: usize) -> Vec<u64> {
        let runs = (0..times).filter_map(|_| cursor.take_run(count, || {}));
        runs.flat_map(|run| run.first..run.end).collect()
    }
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 4), (4, 7)], |cursor| runs(cursor, 2, 2));
        let mut taken = runs(&cursor, 2, 2);
        taken.extend(other.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6]);
    });
}

#[test]
fn lost_numbers_are_counted() {
    loom::model(|| {
        let (cursor, other) = with_other_thread(&[(1, 2)], |cursor| take(cursor, 2));
        let mut taken = take(&cursor, 1);
        taken.extend(other.join().unwrap());
        cursor.push(2, 8).unwrap();
        let rest = take(&cursor, 7);
        assert_eq!((taken.len() + rest.len()) as u64 + cursor.lost(), 7, "{taken:?} {rest:?}");
        taken.extend(rest);
        assert_distinct(taken);
    });
}
