//! Real threads on the real clock.

use std::sync::Arc;
use std::thread;

use super::*;
use crate::clock::{CachedClock, Refresher, SystemClock};
use crate::clock::{Clock, Pause};
use crate::layout::Field;

fn all_distinct(mut ids: Vec<u64>) -> bool {
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == count
}

fn in_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

#[test]
fn threads_never_share_an_id() {
    let ids = Generator::new(LAYOUT, 1, Settings::DEFAULT, Window::UNBOUNDED, SystemClock).unwrap();
    let minted = in_threads(4, || {
        let mine: Vec<u64> = (0..50_000).map(|_| ids.mint().unwrap()).collect();
        assert!(mine.windows(2).all(|pair| pair[0] < pair[1]));
        mine
    });
    assert!(all_distinct(minted.concat()));
}

#[test]
fn lanes_batches_and_singles_share_nothing() {
    let clock = Arc::new(CachedClock::new(SystemClock));
    let _refresher = Refresher::spawn(Arc::clone(&clock)).unwrap();
    let layout = Layout::new(41, 0, 22).unwrap();
    let ids = Generator::new(layout, 0, Settings::DEFAULT, Window::UNBOUNDED, clock).unwrap();
    let minted = in_threads(3, || {
        let mut lane = ids.lane(64);
        let mut mine = Vec::new();
        for _ in 0..500 {
            for _ in 0..100 {
                mine.push(lane.try_mint().unwrap());
                mine.push(ids.try_mint().unwrap());
            }
            let mut batch = [0; 50];
            ids.fill(&mut batch).unwrap();
            mine.extend(batch);
        }
        mine
    });
    assert!(all_distinct(minted.concat()));
}

#[test]
fn counters_that_run_over_never_reach_another_worker() {
    // One bit of worker and one of sequence, so that eight threads run over both at once.
    for fields in [
        [(Field::Time, 41), (Field::Worker, 1), (Field::Sequence, 1)],
        [(Field::Time, 41), (Field::Sequence, 1), (Field::Worker, 1)],
    ] {
        let layout = Layout::from_fields(&fields).unwrap();
        let settings = with(Rollback::Borrow { lead_max_ms: 1_000_000 });
        let workers: [_; 2] = core::array::from_fn(|worker| {
            let worker = u64::try_from(worker).unwrap();
            Generator::new(layout, worker, settings, Window::UNBOUNDED, SystemClock).unwrap()
        });
        let minted = in_threads(8, || {
            let mut mine = Vec::new();
            for _ in 0..5_000 {
                mine.extend(workers.iter().map(|ids| ids.try_mint().unwrap()));
            }
            mine
        });
        assert!(all_distinct(minted.concat()));
    }
}

#[test]
fn closing_under_load_counts_every_id() {
    for _ in 0..20 {
        let ids =
            Generator::new(LAYOUT, 1, Settings::DEFAULT, Window::UNBOUNDED, SystemClock).unwrap();
        thread::scope(|scope| {
            let minting = scope.spawn(|| {
                let mut last = 0;
                loop {
                    match ids.mint() {
                        Ok(id) => last = id,
                        Err(MintError::Closed) => return last,
                        Err(other) => panic!("{other}"),
                    }
                }
            });
            thread::yield_now();
            while ids.taken_until() == UnixMillis::ZERO {
                thread::yield_now();
            }
            let end = ids.close();
            let last = minting.join().unwrap();
            assert!(ids.layout().time_of(last).unwrap() < end);
        });
    }
}

#[test]
fn refresher_parks_when_unused_and_wakes_on_use() {
    let clock = Arc::new(CachedClock::new(SystemClock));
    let _refresher = Refresher::spawn(Arc::clone(&clock)).unwrap();
    let wait_until = |what: &str, done: &dyn Fn() -> bool| {
        for _ in 0..2_000 {
            if done() {
                return;
            }
            SystemClock.pause_until(UnixMillis::MAX, 5);
        }
        panic!("{what}");
    };
    for _ in 0..3 {
        wait_until("it goes cold", &|| !clock.is_warm());
        wait_until("it warms up when asked", &|| {
            clock.unix_ms();
            clock.is_warm()
        });
    }
}
