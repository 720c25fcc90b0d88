//! Tests that need private parts.

use std::path::Path;
use std::sync::Arc;

use snowmint_core::generator::Rollback;
use snowmint_core::{Layout, ManualClock};

use super::record::MarkRecord;
use super::*;
use crate::clock::ClockChoice;

fn plan(dir: &Path, layout: Layout, settings: Settings, clock: &Arc<ManualClock>) -> WorkerPlan {
    WorkerPlan {
        layout,
        worker: 7,
        settings,
        dir: Some(dir.into()),
        lock_wait_ms: 0,
        catch_up_ms: 0,
        jump_max_ms: 60_000,
        clock: HandleClock::new(ClockChoice::Precise, Some(clock.clone())).unwrap(),
        observer: LoggingObserver { name: "test".into(), observer: None },
    }
}

fn temp_dir(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("snowmint-{name}-{}", std::process::id()))
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(UnixMillis::new(1_795_132_800_000)))
}

/// Returns the mark that a process would find now.
fn mark_in(dir: &Path, layout: &Layout) -> UnixMillis {
    let bytes = std::fs::read(dir.join(format!("{}.mark", place::key(layout, 7)))).unwrap();
    let copies = [&bytes[..], &bytes[4096..]].map(|copy| MarkRecord::decode(copy).unwrap());
    UnixMillis::new(copies.into_iter().max_by_key(|copy| copy.sequence).unwrap().mark_ms)
}

#[test]
fn granted_before_minted() {
    let dir = temp_dir("granted");
    for layout in [Layout::TWITTER, Layout::BAIDU, Layout::SONYFLAKE] {
        for rollback in [Rollback::HOLD, Rollback::WAIT, Rollback::BORROW] {
            let clock = clock();
            let settings = Settings { burst_ms: 30, ..Settings::with_rollback(rollback) };
            let worker = Worker::open(plan(&dir, layout, settings, &clock)).unwrap();
            let unit_ms = u64::from(layout.unit_ms());
            for round in 0..3_000_u64 {
                let wait_policy = worker.generator.wait_policy();
                let minted = worker.generator.try_mint();
                let try_mint = || worker.generator.try_mint();
                if let Ok(id) = worker.mint_slowly(minted, wait_policy, try_mint) {
                    let end = layout.time_of(id).unwrap().saturating_add(unit_ms);
                    let mark = mark_in(&dir, &layout);
                    assert!(end <= mark, "{id}: {end} is past {mark}");
                    let ahead_ms = mark.since(end);
                    let bound_ms = WINDOW_MS + 5_000 + 10_000 + 2 * unit_ms;
                    assert!(ahead_ms <= bound_ms, "{ahead_ms}");
                }
                match round % 50 {
                    10 => clock.step_back_ms(round % 4_000),
                    30 => clock.step_ahead_ms(round % 4_000),
                    _ => clock.advance_ms(round % 7),
                }
            }
            worker.close().unwrap();
            assert_eq!(mark_in(&dir, &layout), worker.generator.taken_until());
            drop(worker);
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}

#[test]
fn an_extension_that_is_refused_leaves_the_rest_of_the_window() {
    let (dir, clock) = (temp_dir("refused"), clock());
    let worker = Worker::open(plan(&dir, Layout::TWITTER, Settings::DEFAULT, &clock)).unwrap();
    let mark = worker.generator.stats().mark;
    clock.step_ahead_ms(60_001);
    let error = worker.extend_past(mark).unwrap_err();
    assert_eq!(error.kind().code(), "clock_ahead");
    clock.step_back_ms(60_001 - 300);
    let minted = worker.generator.try_mint();
    assert!(worker.maintain_window(minted).unwrap().is_ok());
    std::fs::remove_dir_all(&dir).unwrap();
}
