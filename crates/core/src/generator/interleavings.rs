//! Every interleaving of two threads. A sequence of 2 bits brings a full tick, an overshoot and a
//! rollback inside the model.
//!
//! `ci/loom` runs these tests, and states the bound (preemptions per execution) and its cost.
// A panic is how these tests report a failure.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::sync::Arc;
use std::vec::Vec;

use loom::thread;

use super::*;
use crate::clock::ManualClock;
use crate::layout::Layout;
use crate::time::{UnixMillis, Window};

/// 41 bits of milliseconds, 10 of worker, 2 of sequence.
const NARROW: Layout = match Layout::new(41, 10, 2) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

const START: UnixMillis = UnixMillis::new(1_767_225_600_100);

type Ids = Generator<Arc<ManualClock>>;

fn generator(settings: Settings, window: Window) -> (Arc<Ids>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let ids = Generator::new(NARROW, 3, settings, window, Arc::clone(&clock)).unwrap();
    (Arc::new(ids), clock)
}

fn mint(ids: &Ids, tries: usize) -> Vec<u64> {
    let minted: Vec<u64> = (0..tries).filter_map(|_| ids.try_mint().ok()).collect();
    assert!(minted.windows(2).all(|pair| pair[0] < pair[1]), "{minted:?}");
    minted
}

fn assert_distinct(mut minted: Vec<u64>) {
    let count = minted.len();
    minted.sort_unstable();
    minted.dedup();
    assert_eq!(minted.len(), count);
}

#[test]
fn a_full_tick_is_never_overrun() {
    loom::model(|| {
        let (ids, _clock) = generator(Settings::DEFAULT, Window::UNBOUNDED);
        let other = thread::spawn({
            let ids = Arc::clone(&ids);
            move || mint(&ids, 3)
        });
        let mut minted = mint(&ids, 3);
        minted.extend(other.join().unwrap());
        assert!(minted.len() <= 4);
        for &id in &minted {
            assert_eq!(NARROW.time_of(id).unwrap(), START);
        }
        assert_distinct(minted);
    });
}

#[test]
fn a_rollback_between_two_ids_repeats_none() {
    loom::model(|| {
        let (ids, clock) = generator(Settings::DEFAULT, Window::UNBOUNDED);
        let other = thread::spawn({
            let ids = Arc::clone(&ids);
            move || mint(&ids, 2)
        });
        let mut minted = mint(&ids, 1);
        clock.step_back_ms(1);
        minted.extend(mint(&ids, 1));
        minted.extend(other.join().unwrap());
        assert_distinct(minted);
    });
}

#[test]
fn a_new_tick_between_two_ids_repeats_none() {
    loom::model(|| {
        let (ids, clock) = generator(Settings::DEFAULT, Window::UNBOUNDED);
        let other = thread::spawn({
            let ids = Arc::clone(&ids);
            move || mint(&ids, 2)
        });
        let mut minted = mint(&ids, 1);
        clock.advance_ms(1);
        minted.extend(mint(&ids, 1));
        minted.extend(other.join().unwrap());
        assert_distinct(minted);
    });
}

#[test]
fn nothing_is_minted_past_the_result_of_close() {
    loom::model(|| {
        let (ids, _clock) = generator(Settings::DEFAULT, Window::UNBOUNDED);
        let other = thread::spawn({
            let ids = Arc::clone(&ids);
            move || mint(&ids, 2)
        });
        let first = mint(&ids, 1);
        let end = ids.close();
        assert_eq!(ids.try_mint(), Err(MintError::Closed));
        let mut minted = other.join().unwrap();
        for &id in &minted {
            assert!(NARROW.time_of(id).unwrap() < end);
        }
        minted.extend(first);
        assert_distinct(minted);
    });
}

#[test]
fn a_window_that_grows_meanwhile_is_never_passed() {
    loom::model(|| {
        let window = Window::new(START, START.saturating_add(1));
        let borrow = Settings::with_rollback(Rollback::Borrow { lead_max_ms: 5 });
        let (ids, _clock) = generator(borrow, window);
        let minter = thread::spawn({
            let ids = Arc::clone(&ids);
            move || mint(&ids, 5)
        });
        ids.extend_to(START.saturating_add(2));
        let minted = minter.join().unwrap();
        assert!(minted.len() >= 4);
        for &id in &minted {
            assert!(NARROW.time_of(id).unwrap() < START.saturating_add(2));
        }
        assert_distinct(minted);
    });
}

#[test]
fn lanes_and_singles_share_nothing() {
    loom::model(|| {
        let (ids, _clock) = generator(Settings::DEFAULT, Window::UNBOUNDED);
        let other = thread::spawn({
            let ids = Arc::clone(&ids);
            move || {
                let mut lane = ids.lane(2);
                (0..2).filter_map(|_| lane.try_mint().ok()).collect::<Vec<_>>()
            }
        });
        let mut minted = mint(&ids, 2);
        minted.extend(other.join().unwrap());
        assert_distinct(minted);
    });
}
