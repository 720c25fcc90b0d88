//! Two takers, and one that pushes or closes, in every order.

use std::sync::Arc;
use std::vec::Vec;

use loom::thread;

use super::*;

fn take(cursor: &SegmentCursor, times: usize) -> Vec<u64> {
    let taken: Vec<u64> = (0..times).filter_map(|_| cursor.take(|| {})).collect();
    assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{taken:?}");
    taken
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
        let cursor = Arc::new(SegmentCursor::new());
        cursor.push(1, 2).unwrap();
        cursor.push(5, 7).unwrap();
        let other = thread::spawn({
            let cursor = Arc::clone(&cursor);
            move || take(&cursor, 2)
        });
        let mut taken = take(&cursor, 2);
        taken.extend(other.join().unwrap());
        assert!(taken.iter().all(|number| [1, 5, 6].contains(number)), "{taken:?}");
        assert_distinct(taken);
    });
}

#[test]
fn a_push_while_others_ask_in_vain_repeats_none() {
    loom::model(|| {
        let cursor = Arc::new(SegmentCursor::new());
        cursor.push(1, 2).unwrap();
        let other = thread::spawn({
            let cursor = Arc::clone(&cursor);
            move || take(&cursor, 2)
        });
        // At the place where a number drawn in vain may stand.
        cursor.push(3, 4).unwrap();
        let mut taken = take(&cursor, 2);
        taken.extend(other.join().unwrap());
        assert!(taken.iter().all(|number| [1, 3].contains(number)), "{taken:?}");
        assert_distinct(taken);
    });
}

#[test]
fn what_closing_says_is_left_was_taken_by_nobody() {
    loom::model(|| {
        let cursor = Arc::new(SegmentCursor::new());
        cursor.push(1, 3).unwrap();
        cursor.push(3, 5).unwrap();
        let other = thread::spawn({
            let cursor = Arc::clone(&cursor);
            move || take(&cursor, 3)
        });
        let unused = cursor.close();
        let taken = other.join().unwrap();
        assert!(taken.iter().all(|number| *number < unused), "{taken:?}, {unused}");
        assert_distinct(taken);
    });
}
