//! Handles on the system's clock, for long enough to need several windows.

use std::sync::{Arc, Mutex};

use crate::common::{Seen, TempDir};
use snowmint::core::{Clock as _, ClockStep, ManualClock, Observer, SystemClock, UnixMillis};
use snowmint::{ClockChoice, Layout, Settings, Snowflake, WINDOW_MS};

/// On a busy machine a thread may wait for many ticks.
const PATIENT: Settings = Settings { wait_max_ms: 30_000, ..Settings::DEFAULT };

fn open(dir: &TempDir, clock: ClockChoice) -> Snowflake {
    Snowflake::builder()
        .layout(Layout::TWITTER)
        .worker(7)
        .settings(PATIENT)
        .data_dir(dir.path())
        .clock(clock)
        .build()
        .unwrap()
}

/// Returns the count of IDs from all threads or tasks, after checking that they are all different.
fn all_different(batches: impl IntoIterator<Item = Vec<u64>>) -> usize {
    let mut seen = Seen::default();
    for batch in batches {
        assert!(batch.is_sorted_by(|a, b| a < b));
        batch.into_iter().for_each(|id| seen.add(id));
    }
    seen.len()
}

#[test]
fn threads_lanes_and_batches_cross_windows_without_an_error() {
    for clock in [ClockChoice::Precise, ClockChoice::Cached] {
        let dir = TempDir::new();
        let ids = open(&dir, clock);
        let until = ids.elapsed().saturating_add(WINDOW_MS * 5 / 2);
        let minted = std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                let mut minted = Vec::new();
                while ids.elapsed() < until || minted.len() < 1_000 {
                    minted.extend((0..50).map(|_| ids.mint().unwrap()));
                }
                minted
            });
            let lane = scope.spawn(|| {
                let (mut minted, mut lane) = (Vec::new(), ids.lane(40));
                while ids.elapsed() < until || minted.len() < 1_000 {
                    minted.extend((0..50).map(|_| lane.mint().unwrap()));
                }
                minted
            });
            let batch = scope.spawn(|| {
                let (mut minted, mut batch) = (Vec::new(), [0; 50]);
                while ids.elapsed() < until || minted.len() < 1_000 {
                    ids.fill(&mut batch).unwrap();
                    minted.extend(batch);
                }
                minted
            });
            [one, lane, batch].map(|thread| thread.join().unwrap())
        });
        assert!(all_different(minted) >= 3_000);
        let stats = ids.stats();
        assert!(stats.lead_ms <= 1, "{stats:?}");
        let ahead_ms = stats.mark.unwrap().since(SystemClock.read().wall());
        assert!(ahead_ms <= WINDOW_MS + 2, "{ahead_ms}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_cross_windows_and_wait_for_ticks_without_an_error() {
    let dir = TempDir::new();
    // 4 IDs a tick: most calls wait.
    let ids = Snowflake::builder()
        .layout(Layout::new(41, 10, 2).unwrap())
        .worker(7)
        .settings(PATIENT)
        .data_dir(dir.path())
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let ids = ids.clone();
            tokio::spawn(async move {
                let until = ids.elapsed().saturating_add(WINDOW_MS * 3 / 2);
                let mut minted = Vec::new();
                while ids.elapsed() < until || minted.len() < 50 {
                    minted.push(ids.mint_async().await.unwrap());
                }
                minted
            })
        })
        .collect();
    let mut minted = Vec::new();
    for task in tasks {
        minted.push(task.await.unwrap());
    }
    assert!(all_different(minted) >= 200);
}

#[test]
fn waiting_ends_with_the_deadline() {
    let dir = TempDir::new();
    // Two IDs a minute.
    let layout = Layout::new(31, 10, 1).unwrap().with_unit_ms(60_000).unwrap();
    let ids = Snowflake::builder().layout(layout).worker(7).data_dir(dir.path()).build().unwrap();
    let mut batch = [0; 3];
    let waits = || {
        let begin = ids.elapsed();
        // Uses up all IDs of the tick.
        while ids.mint_by(begin).is_ok() {}
        let error = ids.mint_by(begin.saturating_add(50)).err()?;
        Some((error, ids.elapsed().since(begin)))
    };
    // A second try, because a minute may have ended meanwhile.
    let (error, waited_ms) = waits().or_else(waits).unwrap();
    assert_eq!(error.kind().code(), "tick_full");
    assert!((50..30_000).contains(&waited_ms), "{waited_ms}");
    let short = ids.try_fill(&mut batch).unwrap_err();
    assert!(short.made < 3);
    assert!(short.to_string().contains("of the batch were minted"));
    assert_eq!(snowmint::Error::from(short).kind().code(), "tick_full");
}

#[derive(Debug, Default)]
struct Steps(Mutex<Vec<ClockStep>>);

impl Observer for Steps {
    fn clock_step(&self, step: &ClockStep) {
        self.0.lock().unwrap().push(*step);
    }
}

#[test]
fn observer_gets_each_step_once() {
    let dir = TempDir::new();
    let clock = Arc::new(ManualClock::new(UnixMillis::new(1_795_132_800_000)));
    let steps = Arc::new(Steps::default());
    let ids = Snowflake::builder()
        .worker(7)
        .data_dir(dir.path())
        .with_clock(clock.clone())
        .observer(steps.clone())
        .build()
        .unwrap();
    for _ in 0..3 {
        ids.mint().unwrap();
    }
    clock.step_back_ms(1_500);
    for _ in 0..3 {
        ids.mint().unwrap();
        clock.advance_ms(2);
    }
    let observed = steps.0.lock().unwrap().clone();
    assert_eq!(observed.len(), 1, "{observed:?}");
    assert_eq!((observed[0].by_ms, observed[0].policy), (1_500, "hold"));
    assert_eq!(ids.stats().steps_back, 1);
}
