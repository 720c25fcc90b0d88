//! Every clock step is reported once, with size, policy and outcome, also when the policy hides it.

use super::*;
use crate::clock::{Direction, Outcome};

fn watched<'a>(
    rollback: Rollback,
    clock: &'a ManualClock,
    steps: &'a Steps,
) -> Generator<&'a ManualClock, &'a Steps> {
    Generator::with_observer(LAYOUT, 7, 0, with(rollback), Window::UNBOUNDED, clock, steps).unwrap()
}

#[test]
fn every_clock_step_is_reported() {
    let cases = [
        (Rollback::HOLD, "hold", Outcome::Held),
        (Rollback::WAIT, "wait", Outcome::Refused),
        (Rollback::Fail, "fail", Outcome::Refused),
        (Rollback::BORROW, "borrow", Outcome::Led),
    ];
    for (rollback, policy, outcome) in cases {
        let (clock, steps) = (clock(), Steps::default());
        let ids = watched(rollback, &clock, &steps);
        ids.try_mint().unwrap();
        clock.step_back_ms(800);
        for _ in 0..10 {
            let _ = ids.try_mint();
        }
        let expected = ClockStep { direction: Direction::Back, by_ms: 800, policy, outcome };
        assert_eq!(steps.take(), [expected]);
        clock.step_ahead_ms(801);
        for _ in 0..10 {
            ids.try_mint().unwrap();
        }
        let outcome = Outcome::Unaffected;
        let expected = ClockStep { direction: Direction::Ahead, by_ms: 801, policy, outcome };
        assert_eq!(steps.take(), [expected]);
        assert_eq!((ids.stats().steps_back, ids.stats().steps_ahead), (1, 1));
    }
}

#[test]
fn rollback_overtaken_by_time_is_still_reported() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = watched(Rollback::HOLD, &clock, &steps);
    ids.try_mint().unwrap();
    clock.advance_ms(10_000);
    clock.step_back_ms(300);
    ids.try_mint().unwrap();
    let observed = steps.take();
    assert_eq!(observed.len(), 1);
    assert_eq!((observed[0].by_ms, observed[0].outcome), (300, Outcome::Unaffected));
}

#[test]
fn a_step_of_one_millisecond_is_seen() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = watched(Rollback::HOLD, &clock, &steps);
    ids.try_mint().unwrap();
    clock.step_back_ms(1);
    ids.try_mint().unwrap();
    assert_eq!(steps.take().len(), 1);
}

#[test]
fn idle_generator_detects_a_step_by_a_check() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = watched(Rollback::HOLD, &clock, &steps);
    ids.check_clock();
    clock.step_back_ms(5);
    ids.check_clock();
    ids.check_clock();
    assert_eq!(steps.take().len(), 1);
}

#[test]
fn idle_generator_reports_the_outcome() {
    for (back_ms, outcome) in [(800, Outcome::Held), (20_000, Outcome::Refused)] {
        let (clock, steps) = (clock(), Steps::default());
        let ids = watched(Rollback::HOLD, &clock, &steps);
        let last = ids.try_mint().unwrap();
        clock.step_back_ms(back_ms);
        ids.check_clock();
        assert_eq!(steps.take()[0].outcome, outcome, "{back_ms}");
        match ids.try_mint() {
            Ok(id) => assert!(outcome == Outcome::Held && id > last),
            Err(error) => assert!(
                outcome == Outcome::Refused && matches!(error, MintError::ClockBehind { .. }),
                "{error}"
            ),
        }
        assert_eq!(steps.take(), [], "reported once");
    }
}

#[test]
fn time_that_only_passes_is_no_step() {
    let (clock, steps) = (clock(), Steps::default());
    let ids = watched(Rollback::HOLD, &clock, &steps);
    for ms in 0..1_000 {
        clock.advance_ms(ms);
        ids.try_mint().unwrap();
    }
    assert_eq!(steps.take(), []);
}
