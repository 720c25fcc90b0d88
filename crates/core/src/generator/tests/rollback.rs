//! The policies for a clock that is set back, each at its limit -1, 0, +1.

use super::*;
use crate::clock::{Clock, Pause};

/// Mints once, sets the clock back, and tries again.
fn after_step_back(rollback: Rollback, back_ms: u64) -> Result<u64, MintError> {
    let clock = clock();
    let ids = generator(LAYOUT, with(rollback), &clock);
    let before = ids.try_mint().unwrap();
    clock.step_back_ms(back_ms);
    let after = ids.try_mint();
    if let Ok(after) = after {
        assert!(after > before, "{after} after {before}");
    }
    after
}

#[test]
fn hold_keeps_minting_up_to_its_lead_and_refuses_beyond() {
    let hold = Rollback::Hold { lead_max_ms: 5_000 };
    assert!(after_step_back(hold, 4_999).is_ok());
    assert!(after_step_back(hold, 5_000).is_ok());
    assert_eq!(
        after_step_back(hold, 5_001),
        Err(MintError::ClockBehind { by_ms: 5_001, limit_ms: 5_000, retry_after_ms: 1 })
    );
}

#[test]
fn fail_refuses_from_the_first_tick_on() {
    assert!(after_step_back(Rollback::Fail, 0).is_ok());
    assert_eq!(
        after_step_back(Rollback::Fail, 1),
        Err(MintError::ClockBehind { by_ms: 1, limit_ms: 0, retry_after_ms: 1 })
    );
}

#[test]
fn wait_hints_at_twice_the_offset_up_to_its_limit() {
    let refused =
        |by_ms, retry_after_ms| Err(MintError::ClockBehind { by_ms, limit_ms: 5, retry_after_ms });
    assert_eq!(after_step_back(Rollback::WAIT, 4), refused(4, 8));
    assert_eq!(after_step_back(Rollback::WAIT, 5), refused(5, 10));
    assert_eq!(after_step_back(Rollback::WAIT, 6), refused(6, 6));
}

#[test]
fn a_blocking_mint_waits_twice_the_offset_once() {
    for (back_ms, minted) in [(4, true), (5, true), (6, false)] {
        let clock = clock();
        let ids = generator(LAYOUT, with(Rollback::WAIT), &clock);
        ids.mint().unwrap();
        clock.step_back_ms(back_ms);
        let from_ms = clock.read().elapsed().get();
        assert_eq!(ids.mint().is_ok(), minted, "{back_ms} ms");
        let waited_ms = clock.read().elapsed().get() - from_ms;
        assert_eq!(waited_ms, if minted { 2 * back_ms } else { 0 }, "{back_ms} ms");
    }
}

#[test]
fn a_fixed_wait_is_three_milliseconds_whatever_the_offset() {
    let fixed = Rollback::Wait(WaitFor::Fixed { wait_ms: WAIT_FIXED_MS });
    for (back_ms, minted) in [(2, true), (3, true), (4, false), (1_000, false)] {
        let clock = clock();
        let ids = generator(LAYOUT, with(fixed), &clock);
        ids.mint().unwrap();
        clock.step_back_ms(back_ms);
        let from_ms = clock.read().elapsed().get();
        assert_eq!(ids.mint().is_ok(), minted, "{back_ms} ms");
        assert_eq!(clock.read().elapsed().get() - from_ms, 3);
    }
}

#[test]
fn borrow_leads_up_to_its_limit_with_retry_time() {
    let clock = clock();
    let ids = generator(NARROW, with(Rollback::Borrow { lead_max_ms: 10 }), &clock);
    // This tick and ten ahead, four IDs each.
    let mut last = 0;
    for n in 0..44 {
        let id = ids.try_mint().unwrap();
        assert!(id > last);
        assert_eq!(since_start(&NARROW, id), n / 4);
        last = id;
    }
    assert_eq!(ids.stats().lead_ms, 10);
    let error = ids.try_mint().unwrap_err();
    assert_eq!(error, MintError::TickFull { next: START.saturating_add(1), retry_after_ms: 1 });
    clock.advance_ms(1);
    assert!(ids.try_mint().unwrap() > last);
    // A rollback adds to the lead: the error has the time until the lead is within the limit again.
    clock.step_back_ms(5);
    let error = ids.try_mint().unwrap_err();
    assert_eq!(error.retry_after_ms(), Some(5), "{error:?}");
}

#[test]
fn hold_runs_at_half_speed_until_the_clock_has_caught_up() {
    let clock = clock();
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    let mut last = ids.try_mint().unwrap();
    clock.step_back_ms(100);
    for passed_ms in 1..=300_i64 {
        clock.advance_ms(1);
        let id = ids.try_mint().unwrap();
        assert!(id > last);
        last = id;
        // The hold starts when the first of these mints detects the step.
        let expected = ((passed_ms - 1) / 2).max(passed_ms - 100);
        assert_eq!(since_start(&LAYOUT, id), expected, "after {passed_ms} ms");
    }
}

#[test]
fn held_clock_is_reported_until_caught_up() {
    let clock = clock();
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    ids.try_mint().unwrap();
    assert_eq!(ids.held_at(), None);
    clock.step_back_ms(100);
    ids.try_mint().unwrap();
    assert_eq!(ids.held_at(), Some(START));
    clock.advance_ms(100);
    assert_eq!(ids.held_at(), Some(START.saturating_add(50)), "although nothing is minted");
    clock.advance_ms(100);
    assert_eq!(ids.held_at(), None);
}

#[test]
fn hold_continues_while_the_wall_clock_is_frozen() {
    let clock = clock();
    let ids = generator(NARROW, Settings::DEFAULT, &clock);
    ids.try_mint().unwrap();
    clock.step_back_ms(50);
    let mut last = 0;
    for _ in 0..1_000 {
        clock.freeze_for_ms(2);
        // One tick of held time for two of elapsed time: never full at one ID each.
        let id = ids.try_mint().unwrap();
        assert!(id > last);
        last = id;
    }
}

#[test]
fn a_rollback_while_idle_is_as_one_while_busy() {
    for rollback in [Rollback::HOLD, Rollback::WAIT, Rollback::Fail, Rollback::BORROW] {
        let clock = clock();
        let ids = generator(LAYOUT, with(rollback), &clock);
        let before = ids.try_mint().unwrap();
        // An hour of idleness, and a step back that leaves the clock ahead of the last ID.
        clock.advance_ms(3_600_000);
        clock.step_back_ms(3_000_000);
        assert!(ids.try_mint().unwrap() > before, "{}", rollback.name());
    }
}

#[test]
fn five_rollbacks_in_a_row_never_repeat_or_go_back() {
    for rollback in [Rollback::HOLD, Rollback::BORROW] {
        let clock = clock();
        let ids = generator(LAYOUT, with(rollback), &clock);
        let mut last = ids.try_mint().unwrap();
        for _ in 0..5 {
            clock.step_back_ms(900);
            for _ in 0..10 {
                let id = ids.try_mint().unwrap();
                assert!(id > last, "{}", rollback.name());
                last = id;
            }
        }
        // A sixth would lead by more than 5 s: it fails, until the clock has caught up.
        if rollback == Rollback::HOLD {
            clock.step_back_ms(900);
            assert!(matches!(ids.try_mint(), Err(MintError::ClockBehind { .. })));
            clock.advance_ms(6_000);
            assert!(ids.try_mint().unwrap() > last);
        }
    }
}

#[test]
fn an_oscillating_clock_never_repeats() {
    let clock = clock();
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    let mut last = 0;
    for round in 0..10_000_u64 {
        match round % 4 {
            0 => clock.step_back_ms(700),
            1 => clock.advance_ms(3),
            2 => clock.step_ahead_ms(700),
            _ => clock.freeze_for_ms(5),
        }
        let id = ids.try_mint().unwrap();
        assert!(id > last, "round {round}");
        last = id;
    }
}

#[test]
fn a_leap_second_repeats_no_id() {
    // 23:59:59 is counted twice: the wall clock steps back by one second at midnight.
    let clock = ManualClock::new(UnixMillis::new(1_767_225_600_000 + 86_399_500));
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    let mut last = 0;
    for ms in 0..3_000 {
        if ms == 500 {
            clock.step_back_ms(1_000);
        }
        let id = ids.try_mint().unwrap();
        assert!(id > last);
        last = id;
        clock.advance_ms(1);
    }
}

#[test]
fn nothing_waits_without_a_bound() {
    /// A clock that is set back during every wait.
    struct Sinking(ManualClock);
    impl Clock for Sinking {
        fn unix_ms(&self) -> UnixMillis {
            self.0.unix_ms()
        }
        fn read(&self) -> crate::clock::Reading {
            self.0.read()
        }
    }
    impl Pause for Sinking {
        fn pause_until(&self, _: UnixMillis, at_most_ms: u64) {
            self.0.freeze_for_ms(at_most_ms);
            self.0.step_back_ms(20_000);
        }
    }
    let fixed = Rollback::Wait(WaitFor::Fixed { wait_ms: 3 });
    for rollback in [Rollback::HOLD, Rollback::WAIT, Rollback::Fail, Rollback::BORROW, fixed] {
        let clock = Sinking(clock());
        let settings = with(rollback);
        let ids = Generator::new(NARROW, 7, settings, Window::UNBOUNDED, &clock).unwrap();
        while ids.try_mint().is_ok() {}
        let from_ms = clock.read().elapsed().get();
        for error in [ids.mint().unwrap_err(), ids.fill(&mut [0; 3]).unwrap_err().error] {
            assert!(matches!(error, MintError::ClockBehind { .. }), "{error:?}");
        }
        let waited_ms = clock.read().elapsed().get() - from_ms;
        assert!(waited_ms <= 2 * settings.wait_max_ms, "{rollback:?}: {waited_ms}");
    }
}

/// The wall clock stands still, so no tick follows.
#[test]
fn a_full_tick_that_never_ends_ends_a_batch() {
    struct Frozen(ManualClock);
    impl Clock for Frozen {
        fn unix_ms(&self) -> UnixMillis {
            self.0.unix_ms()
        }
        fn read(&self) -> crate::clock::Reading {
            self.0.read()
        }
    }
    impl Pause for Frozen {
        fn pause_until(&self, _: UnixMillis, at_most_ms: u64) {
            self.0.freeze_for_ms(at_most_ms);
        }
    }
    let clock = Frozen(clock());
    let settings = with(Rollback::Fail);
    let ids = Generator::new(NARROW, 7, settings, Window::UNBOUNDED, &clock).unwrap();
    let from_ms = clock.read().elapsed().get();
    let short = ids.fill(&mut [0; 1_000]).unwrap_err();
    assert!(short.made > 0 && matches!(short.error, MintError::TickFull { .. }), "{short:?}");
    assert_eq!(clock.read().elapsed().get() - from_ms, settings.wait_max_ms);
}

#[test]
fn a_clock_before_the_epoch_is_refused() {
    let clock = ManualClock::new(UnixMillis::new(1_000));
    let ids = generator(LAYOUT, Settings::DEFAULT, &clock);
    assert_eq!(ids.try_mint(), Err(MintError::BeforeEpoch { by_ms: 1_767_225_599_000 }));
    clock.set(START);
    let id = ids.try_mint().unwrap();
    clock.set(UnixMillis::new(1_000));
    assert!(matches!(ids.try_mint(), Err(MintError::ClockBehind { .. })));
    clock.set(START);
    assert!(ids.try_mint().unwrap() > id);
}

#[test]
fn units_above_a_millisecond_follow_the_same_rules() {
    let layout = NARROW.with_unit_ms(10).unwrap();
    let clock = clock();
    let ids = generator(layout, Settings::DEFAULT, &clock);
    let mut last = 0;
    for _ in 0..4 {
        last = ids.try_mint().unwrap();
    }
    assert_eq!(
        ids.try_mint(),
        Err(MintError::TickFull { next: START.saturating_add(10), retry_after_ms: 10 })
    );
    clock.advance_ms(9);
    assert_eq!(
        ids.try_mint(),
        Err(MintError::TickFull { next: START.saturating_add(10), retry_after_ms: 1 })
    );
    clock.advance_ms(1);
    assert!(ids.try_mint().unwrap() > last);
}
