//! No ID lies outside the window, and none is minted after its end.

use super::*;

fn windowed(window: Window, clock: &ManualClock) -> Generator<&ManualClock> {
    Generator::new(NARROW, 7, Settings::DEFAULT, window, clock).unwrap()
}

#[test]
fn granted_before_minted() {
    let clock = clock();
    let ids = windowed(Window::new(START, START.saturating_add(3)), &clock);
    for _ in 0..3 {
        assert!(ids.try_mint().is_ok());
        clock.advance_ms(1);
    }
    assert_eq!(ids.try_mint(), Err(MintError::WindowSpent { mark: START.saturating_add(3) }));
    ids.extend_to(START.saturating_add(4));
    assert!(ids.try_mint().is_ok());
    // A late acknowledgement of an older mark neither shrinks nor extends the window.
    ids.extend_to(START.saturating_add(1));
    assert!(ids.try_mint().is_ok());
    clock.advance_ms(1);
    assert_eq!(ids.try_mint(), Err(MintError::WindowSpent { mark: START.saturating_add(4) }));
}

#[test]
fn a_tick_is_minted_only_wholly_inside_the_window() {
    let layout = NARROW.with_unit_ms(10).unwrap();
    let clock = clock();
    // From 5 ms into one tick to 5 ms into the second tick after it.
    let window = Window::new(START.saturating_add(5), START.saturating_add(25));
    let ids = Generator::new(layout, 7, Settings::DEFAULT, window, &clock).unwrap();
    clock.advance_ms(5);
    assert!(matches!(ids.try_mint(), Err(MintError::TickFull { .. })), "began before the floor");
    clock.advance_ms(5);
    assert!(ids.try_mint().is_ok());
    clock.advance_ms(10);
    assert!(matches!(ids.try_mint(), Err(MintError::WindowSpent { .. })), "ends after the mark");
}

#[test]
fn a_floor_ahead_of_the_clock_is_a_clock_behind() {
    let clock = clock();
    let window = Window::new(START.saturating_add(10_000), UnixMillis::MAX);
    let ids = windowed(window, &clock);
    assert!(matches!(ids.try_mint(), Err(MintError::ClockBehind { .. })));
    clock.advance_ms(10_000);
    assert!(ids.try_mint().is_ok());
}

#[test]
fn closed_generator_returns_the_end_of_taken_ids() {
    let clock = clock();
    let ids = windowed(Window::UNBOUNDED, &clock);
    clock.advance_ms(5);
    ids.try_mint().unwrap();
    assert_eq!(ids.close(), START.saturating_add(6));
    for _ in 0..100 {
        assert_eq!(ids.try_mint(), Err(MintError::Closed));
        clock.advance_ms(1);
    }
    assert!(ids.close() >= START.saturating_add(6));
}

#[test]
fn an_unused_generator_took_nothing() {
    let clock = clock();
    let ids = windowed(Window::new(START, UnixMillis::MAX), &clock);
    assert_eq!(ids.close(), START);
    // A clock before the layout's epoch gives the same result: time up to the epoch is not taken.
    let early = UnixMillis::new(1_000);
    let before_epoch = ManualClock::new(early);
    let ids = windowed(Window::new(early, UnixMillis::MAX), &before_epoch);
    let by_ms = LAYOUT.epoch().since(early);
    assert_eq!(ids.try_mint(), Err(MintError::BeforeEpoch { by_ms }));
    assert_eq!(ids.close(), early);
}

#[test]
fn bounds_are_checked_in_every_build() {
    // Ten bits of time: the 1024th tick is the last.
    let layout = Layout::new(10, 3, 2).unwrap().with_epoch(START).unwrap();
    let clock = clock();
    clock.advance_ms(1_023);
    let ids = Generator::new(layout, 7, Settings::DEFAULT, Window::UNBOUNDED, &clock).unwrap();
    for _ in 0..4 {
        assert!(ids.try_mint().unwrap() <= layout.id_max());
    }
    clock.advance_ms(1);
    for _ in 0..1_000 {
        assert_eq!(ids.try_mint(), Err(MintError::EpochSpent { end: layout.end() }));
        clock.advance_ms(100_000);
    }
    let worker = Generator::new(layout, 8, Settings::DEFAULT, Window::UNBOUNDED, &clock);
    assert_eq!(
        worker.unwrap_err(),
        crate::OutOfRange::Field { field: crate::layout::Field::Worker, value: 8, max: 7 }
    );
}

#[test]
fn borrowing_never_passes_the_end_of_the_layout() {
    let layout = Layout::new(4, 3, 2).unwrap().with_epoch(START).unwrap();
    let clock = clock();
    let settings = with(Rollback::Borrow { lead_max_ms: 1_000 });
    let ids = Generator::new(layout, 7, settings, Window::UNBOUNDED, &clock).unwrap();
    for _ in 0..64 {
        ids.try_mint().unwrap();
    }
    assert_eq!(ids.try_mint(), Err(MintError::EpochSpent { end: layout.end() }));
}

#[test]
fn errors_show_times_as_people_write_them() {
    let mark = UnixMillis::new(1_795_952_102_485);
    for error in [MintError::WindowSpent { mark }, MintError::EpochSpent { end: mark }] {
        let text = std::format!("{error}");
        assert!(text.contains(" 2026-11-29T11:35:02.485Z"), "{text}");
    }
}
