//! A worker that the program named: no ID twice, whatever the clock, the processes and the file do.

use std::sync::Arc;

use crate::common::{Seen, TempDir};
use snowmint::core::generator::{Rollback, WaitFor};
use snowmint::core::{Clock as _, ManualClock, SequenceStart, UnixMillis};
use snowmint::{
    Builder, CATCH_UP_MS, ErrorKind, JUMP_MAX_MS, Layout, Settings, Snowflake, WINDOW_MS,
};

const YEAR_MS: u64 = 31_556_952_000;
/// 2026-11-20.
const START: UnixMillis = UnixMillis::new(1_795_132_800_000);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

fn builder(dir: &TempDir, clock: &Arc<ManualClock>) -> Builder {
    Snowflake::builder()
        .layout(Layout::TWITTER)
        .worker(7)
        .data_dir(dir.path())
        .lock_wait_ms(0)
        .with_clock(clock.clone())
}

/// Ends a handle like a crash: the file stays in its present state.
fn crash(ids: Snowflake, dir: &TempDir) {
    let file = dir.mark_file();
    let before = std::fs::read(&file).unwrap();
    drop(ids);
    std::fs::write(&file, before).unwrap();
}

/// Fifty times: open, mint through several windows, end cleanly or by a crash, and set the clock
/// back.
fn reopen_fifty_times(settings: Settings, layout: Layout) {
    let (dir, clock) = (TempDir::new(), clock());
    let mut seen = Seen::default();
    let mut back_ms = 1;
    let mut refused = 0;
    for round in 0..50_u64 {
        let open = || builder(&dir, &clock).layout(layout).settings(settings).build();
        let ids = match open() {
            Ok(ids) => ids,
            Err(error) => {
                let ErrorKind::ClockBehind { behind_ms, limit_ms } = *error.kind() else {
                    panic!("{error}")
                };
                assert!(behind_ms > limit_ms, "{error}");
                refused += 1;
                clock.step_ahead_ms(behind_ms);
                open().unwrap()
            }
        };
        for step in 0..40 {
            for _ in 0..3 {
                seen.add(ids.mint().unwrap());
            }
            clock.advance_ms(1 + round * step % 97);
        }
        if round % 3 == 0 {
            crash(ids, &dir);
        } else if round % 3 == 1 {
            ids.close().unwrap();
        }
        clock.step_back_ms(back_ms);
        back_ms = if back_ms > 10 * YEAR_MS / 2 { 1 } else { back_ms * 2 };
    }
    assert_eq!(seen.len(), 50 * 40 * 3);
    assert!(refused > 10, "{refused}");
}

#[test]
fn fifty_openings_with_clock_rollbacks_repeat_no_id() {
    for rollback in [Rollback::HOLD, Rollback::WAIT, Rollback::Fail, Rollback::BORROW] {
        reopen_fifty_times(Settings::with_rollback(rollback), Layout::TWITTER);
    }
    let fixed = Rollback::Wait(WaitFor::Fixed { wait_ms: 3 });
    reopen_fifty_times(Settings::with_rollback(fixed), Layout::BAIDU);
    let start = SequenceStart::RandomBelow { bound: 100, seed: 1 };
    let settings = Settings { burst_ms: 50, sequence_start: start, ..Settings::DEFAULT };
    reopen_fifty_times(settings, Layout::TWITTER);
    reopen_fifty_times(settings, Layout::SONYFLAKE);
}

#[test]
fn ids_continue_after_a_close_and_after_a_crash() {
    let (dir, clock) = (TempDir::new(), clock());
    let first = builder(&dir, &clock).build().unwrap();
    let last = first.mint().unwrap();
    first.close().unwrap();
    let second = builder(&dir, &clock).build().unwrap();
    let next = second.decode(second.mint().unwrap()).unwrap();
    assert_eq!(next.time.since(second.decode(last).unwrap().time), 1);
    assert_eq!(next.worker, 7);
    crash(second, &dir);
    let third = builder(&dir, &clock).build().unwrap();
    let lead_ms = third.decode(third.mint().unwrap()).unwrap().time.since(clock.read().wall());
    assert!((WINDOW_MS - 10..=WINDOW_MS + 2).contains(&lead_ms), "{lead_ms}");
}

#[test]
fn shards_of_a_quiet_process_are_even() {
    const SHARDS: usize = 16;
    let minted = |shards: Option<u64>| {
        let (dir, clock) = (TempDir::new(), clock());
        let plain = builder(&dir, &clock);
        let ids = match shards {
            Some(count) => plain.shards(count).build(),
            None => plain.build(),
        };
        let ids = ids.unwrap();
        let mut counts = [0; SHARDS];
        for _ in 0..320 {
            counts[usize::try_from(ids.mint().unwrap()).unwrap() % SHARDS] += 1;
            clock.advance_ms(37);
        }
        counts
    };
    assert_eq!(minted(Some(16)), [20; SHARDS]);
    assert_eq!(minted(None)[0], 320, "without it, all fall into the first");
}

#[test]
fn shards_that_the_layout_lacks_are_refused() {
    let (dir, clock) = (TempDir::new(), clock());
    for (layout, count, part) in [
        (Layout::TWITTER, 0, "1 to 4096"),
        (Layout::TWITTER, 4_097, "1 to 4096"),
        (Layout::SONYFLAKE, 2, "odd number"),
    ] {
        let error = builder(&dir, &clock).layout(layout).shards(count).build().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Invalid), "{error}");
        assert!(error.message().contains(part), "{error}");
        // Also where the settings name them.
        let sequence_start = SequenceStart::Shards { count, seed: 1 };
        let settings = Settings { sequence_start, ..Settings::DEFAULT };
        assert!(builder(&dir, &clock).layout(layout).settings(settings).build().is_err());
    }
}

#[test]
fn clock_behind_the_mark_is_awaited_up_to_the_bound() {
    for (beyond_ms, opens) in [(0, true), (1, false)] {
        let (dir, clock) = (TempDir::new(), clock());
        let fail = || builder(&dir, &clock).on_rollback(Rollback::Fail);
        let ids = fail().build().unwrap();
        let until = {
            ids.mint().unwrap();
            ids.close().unwrap();
            ids.stats().taken_until.unwrap()
        };
        clock.set(until.saturating_sub(CATCH_UP_MS + beyond_ms));
        let result = fail().build();
        assert_eq!(result.is_ok(), opens, "{result:?}");
        if let Err(error) = result {
            let text = error.to_string();
            assert!(text.contains("2001 ms behind what worker 7 may have minted"), "{text}");
            assert!(text.contains("limit 2000 ms"), "{text}");
            assert!(text.contains(".mark"), "{text}");
        } else {
            assert_eq!(clock.read().wall(), until);
        }
    }
}

#[test]
fn forward_clock_step_cannot_push_the_mark_years_ahead() {
    let (dir, clock) = (TempDir::new(), clock());
    let ids = builder(&dir, &clock).build().unwrap();
    ids.mint().unwrap();
    let mark = ids.stats().mark;
    clock.step_ahead_ms(10 * YEAR_MS);
    for _ in 0..3 {
        let error = ids.mint().unwrap_err();
        let ErrorKind::ClockAhead { ahead_ms, limit_ms } = *error.kind() else { panic!("{error}") };
        assert_eq!((ahead_ms, limit_ms), (10 * YEAR_MS, JUMP_MAX_MS));
        clock.advance_ms(60_000);
    }
    assert_eq!(ids.stats().mark, mark);
    let after_jump = ids.stats();
    assert_eq!((after_jump.steps_ahead, after_jump.steps_back), (1, 0));
    // After the clock is corrected, minting works again.
    clock.step_back_ms(10 * YEAR_MS);
    let id = ids.mint().unwrap();
    assert_eq!(ids.decode(id).unwrap().time, clock.read().wall());
    // Opening the worker again means that the operator trusts the clock.
    clock.step_ahead_ms(10 * YEAR_MS);
    ids.close().unwrap();
    builder(&dir, &clock).build().unwrap().mint().unwrap();
}

#[test]
fn clock_step_is_rejected_one_ms_beyond_the_limit() {
    for (beyond_ms, mints) in [(0, true), (1, false)] {
        let (dir, clock) = (TempDir::new(), clock());
        let ids = builder(&dir, &clock).jump_max_ms(5_000).build().unwrap();
        ids.mint().unwrap();
        clock.step_ahead_ms(5_000 + beyond_ms);
        assert_eq!(ids.mint().is_ok(), mints);
    }
}

#[test]
fn long_sleep_of_the_machine_is_not_a_clock_step() {
    let (dir, clock) = (TempDir::new(), clock());
    let ids = builder(&dir, &clock).build().unwrap();
    ids.mint().unwrap();
    clock.advance_ms(30 * 86_400_000);
    ids.mint().unwrap();
}

#[test]
fn a_held_clock_gets_the_window_that_it_needs() {
    let (dir, clock) = (TempDir::new(), clock());
    let ids = builder(&dir, &clock).build().unwrap();
    let mut seen = Seen::default();
    seen.add(ids.mint().unwrap());
    clock.step_back_ms(4_990);
    // Held ticks pass at half speed while nothing is minted; then they are far ahead of clock and
    // window.
    seen.add(ids.mint().unwrap());
    clock.advance_ms(5_000);
    for _ in 0..1_000 {
        seen.add(ids.mint().unwrap());
        clock.advance_ms(7);
    }
}

#[test]
fn borrowed_ticks_get_the_window_that_they_need() {
    let (dir, clock) = (TempDir::new(), clock());
    let lead = Rollback::Borrow { lead_max_ms: 3_000 };
    let ids = builder(&dir, &clock).on_rollback(lead).build().unwrap();
    let mut batch = vec![0; 4096 * 3_000];
    ids.try_fill(&mut batch).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
    let short = ids.try_fill(&mut batch[..2 * 4096]).unwrap_err();
    assert_eq!(short.error.kind().code(), "tick_full");
    assert!(short.made <= 4096, "{}", short.made);
}

#[test]
fn one_process_has_a_worker_and_the_next_waits_for_it() {
    let (dir, clock) = (TempDir::new(), clock());
    let first = builder(&dir, &clock).build().unwrap();
    let error = builder(&dir, &clock).lock_wait_ms(20).build().unwrap_err();
    assert_eq!(error.kind().code(), "locked");
    assert!(error.to_string().contains("worker-7"), "{error}");
    // Another worker number, and the same number in another layout, are separate workers.
    let others = [
        builder(&dir, &clock).worker(8).build().unwrap(),
        builder(&dir, &clock).layout(Layout::COSID).build().unwrap(),
    ];
    let waiter = std::thread::spawn({
        let builder = builder(&dir, &clock).lock_wait_ms(60_000);
        move || builder.build().and_then(|ids| ids.mint()).unwrap()
    });
    let last = first.mint().unwrap();
    first.close().unwrap();
    assert!(waiter.join().unwrap() > last);
    drop(others);
}

#[test]
fn a_closed_handle_stays_closed_for_every_clone() {
    let (dir, clock) = (TempDir::new(), clock());
    let ids = builder(&dir, &clock).build().unwrap();
    let clone = ids.clone();
    let mut lane = clone.lane(10);
    let first_id = lane.try_mint().unwrap();
    ids.close().unwrap();
    ids.close().unwrap();
    for error in [
        ids.try_mint().unwrap_err(),
        clone.mint().unwrap_err(),
        clone.fill(&mut [0; 3]).unwrap_err().error,
    ] {
        assert_eq!(error.kind().code(), "closed", "{error}");
    }
    // The block of the lane counts as taken: the next process starts above it.
    let mut seen = Seen::default();
    seen.add(first_id);
    while let Ok(id) = lane.try_mint() {
        seen.add(id);
    }
    let next = builder(&dir, &clock).build().unwrap();
    for _ in 0..20 {
        seen.add(next.mint().unwrap());
    }
}

#[test]
fn damage_to_any_byte_is_refused_or_harmless() {
    let (dir, clock) = (TempDir::new(), clock());
    let open = || builder(&dir, &clock).on_rollback(Rollback::Fail).catch_up_ms(0).build();
    let mut minted = 0;
    let mut last = UnixMillis::ZERO;
    for _ in 0..3 {
        let ids = open().unwrap();
        minted = ids.mint().unwrap();
        clock.advance_ms(WINDOW_MS);
        minted = std::cmp::max(minted, ids.mint().unwrap());
        last = ids.decode(minted).unwrap().time;
        clock.advance_ms(1);
        ids.close().unwrap();
    }
    // From here on the clock is right after the last ID, so any lowered mark is visible.
    clock.set(last);
    let file = dir.mark_file();
    let whole = std::fs::read(&file).unwrap();
    // Each byte with content, and some bytes of the gap.
    let is_used = |index: &usize| index % 4096 < 128 || index.is_multiple_of(61);
    // One of two copies is whole and has the mark.
    let is_behind = |what: &str| {
        let error = open().unwrap_err();
        assert_eq!(
            error.kind().code(),
            "clock_behind",
            "{what}: {error} although {minted} was minted"
        );
    };
    is_behind("undamaged");
    for index in (0..whole.len()).filter(is_used) {
        for flip in [0x01, 0xff] {
            let mut damaged = whole.clone();
            damaged[index] ^= flip;
            std::fs::write(&file, &damaged).unwrap();
            is_behind(&format!("byte {index}"));
        }
    }
    // A cut within the first copy leaves none; a cut behind it leaves one.
    let mut first_behind = None;
    for length in (0..whole.len()).filter(is_used) {
        std::fs::write(&file, &whole[..length]).unwrap();
        let error = open().unwrap_err();
        if error.kind().code() == "clock_behind" {
            first_behind.get_or_insert(length);
        }
        let wanted = if first_behind.is_some() { "clock_behind" } else { "journal_refused" };
        assert_eq!(error.kind().code(), wanted, "cut at {length}: {error}");
    }
    assert!((64..128).contains(&first_behind.unwrap()), "{first_behind:?}");
    // Both copies damaged: rejected, with a remedy; and the remedy works.
    let mut damaged = whole.clone();
    damaged[9] ^= 1;
    damaged[4096 + 9] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    for content in [damaged, Vec::new(), vec![0; 8192], b"hello".to_vec()] {
        std::fs::write(&file, &content).unwrap();
        let error = open().unwrap_err();
        assert_eq!(error.kind().code(), "journal_refused", "{error}");
        assert!(error.to_string().contains("remove the file"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    clock.advance_ms(1);
    assert!(open().unwrap().mint().unwrap() > minted);
}

#[test]
fn the_file_of_another_worker_is_refused() {
    let (dir, clock) = (TempDir::new(), clock());
    builder(&dir, &clock).build().unwrap().mint().unwrap();
    let file = dir.mark_file();
    let other = file.with_file_name(
        file.file_name().unwrap().to_str().unwrap().replace("worker-7-", "worker-8-"),
    );
    std::fs::rename(&file, other).unwrap();
    let error = builder(&dir, &clock).worker(8).build().unwrap_err();
    assert_eq!(error.kind().code(), "journal_refused");
    assert!(error.to_string().contains("belongs to \"worker-7-"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let (dir, clock) = (TempDir::new(), clock());
    let file = dir.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let error = builder(&dir, &clock).data_dir(file.join("below")).build().unwrap_err();
    assert_eq!(error.kind().code(), "store_read_only", "{error}");
    assert!(error.to_string().contains("a-file"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn invalid_options_are_reported_before_any_write() {
    let (dir, clock) = (TempDir::new(), clock());
    let none = Snowflake::builder().data_dir(dir.path()).with_clock(clock.clone()).build();
    assert!(none.unwrap_err().to_string().contains("no worker number given"));
    let high = builder(&dir, &clock).worker(1024).build().unwrap_err();
    assert!(high.to_string().contains("1024") && high.to_string().contains("1023"), "{high}");
    let spent = builder(&dir, &clock).layout(Layout::BAIDU_2016).build().unwrap_err();
    assert_eq!(spent.kind().code(), "epoch_spent");
    clock.set(Layout::TWITTER.end().saturating_sub(YEAR_MS / 2));
    let short = builder(&dir, &clock).build().unwrap_err();
    assert!(short.to_string().contains("within a year"), "{short}");
    assert!(!dir.path().join("workers").exists());
    builder(&dir, &clock).accept_short_life().build().unwrap().mint().unwrap();
}

#[test]
fn generator_without_state_skips_the_tick_it_starts_in() {
    let clock = clock();
    let open = || {
        Snowflake::builder().worker(7).without_state().with_clock(clock.clone()).build().unwrap()
    };
    let mut seen = Seen::default();
    for _ in 0..10 {
        let ids = open();
        for _ in 0..10 {
            seen.add(ids.try_mint().unwrap());
        }
    }
}
