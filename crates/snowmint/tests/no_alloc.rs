//! A handle allocates nothing per ID, and has a known size.
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "library/common/mod.rs"]
mod common;

use allocation_counter::measure;
use common::TempDir;
use snowmint::{ClockChoice, Error, Lane, Layout, Snowflake};

#[test]
fn minting_allocates_nothing_in_steady_state() {
    for clock in [ClockChoice::Precise, ClockChoice::Cached] {
        let dir = TempDir::new();
        let ids = Snowflake::builder()
            .layout(Layout::TWITTER)
            .worker(7)
            .data_dir(dir.path())
            .clock(clock)
            .build()
            .unwrap();
        let mut lane = ids.lane(64);
        let mut batch = [0; 64];
        let mut work = || {
            for _ in 0..10_000 {
                ids.mint().unwrap();
                lane.mint().unwrap();
            }
            for _ in 0..100 {
                ids.fill(&mut batch).unwrap();
            }
        };
        work();
        // Twice a second the window is extended, which allocates a record. Everything else
        // allocates nothing, however long it takes.
        let mut without = 0;
        for _ in 0..1_000 {
            let before = ids.stats().mark;
            let allocated = measure(&mut work).count_total;
            if ids.stats().mark == before {
                assert_eq!(allocated, 0, "{clock:?}");
                without += 1;
            } else {
                assert!(allocated > 0, "{clock:?}: the counter counts");
            }
            if without == 5 {
                break;
            }
        }
        assert_eq!(without, 5, "{clock:?}: each of the others extended the window");
    }
}

#[test]
fn handles_are_small() {
    assert_eq!(size_of::<Snowflake>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<Result<u64, Error>>(), 2 * size_of::<usize>());
    assert!(size_of::<Lane>() <= 12 * size_of::<usize>(), "{}", size_of::<Lane>());
}
