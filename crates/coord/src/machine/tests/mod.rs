//! Machines with a store that responds late, never, twice, or wrongly.

use super::*;
use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark, Term};
use crate::model::lease::{Extend, Extended, Lease};

const START: u64 = 1_000_000;

fn at(wall: u64, elapsed: u64) -> Now {
    Now { wall: UnixMillis::new(wall), elapsed: ElapsedMillis::new(elapsed), chance: || 0 }
}

fn lease(mark: u64) -> Lease {
    Lease {
        pool: "workers-10".into(),
        slot: 3,
        term: Term::new(7),
        holder: Some(Incarnation::new(1)),
        floor: Mark::new(mark),
        mark: Mark::new(mark),
    }
}

fn window_policy(journal: bool) -> WindowPolicy {
    WindowPolicy::new(30_000, 1, 5_000, 5_000, journal)
}

fn window(journal: bool) -> WindowMachine {
    WindowMachine::new(lease(START), UnixMillis::new(START), window_policy(journal), 42)
}

/// Errors have no equality, so their debug texts are compared.
macro_rules! assert_same {
    ($left:expr, []) => {
        assert_eq!(format!("{:?}", $left), "[]")
    };
    ($left:expr, [] , $reason:expr) => {
        assert_eq!(format!("{:?}", $left), "[]", $reason)
    };
    ($left:expr, $right:expr) => {
        assert_eq!(format!("{:?}", $left), format!("{:?}", $right))
    };
}

// Below the macro, which they use.
mod claims;
mod orders;

const WANTED: Position = Position { taken_until: UnixMillis::ZERO, wanted: true, held: false };

fn extends(actions: &[WindowAction]) -> Vec<Extend> {
    let extend = |action: &WindowAction| match action {
        WindowAction::Extend(extend) => Some(extend.clone()),
        _ => None,
    };
    actions.iter().filter_map(extend).collect()
}

fn done(extend: &Extend) -> Result<Extended> {
    Ok(Extended { mark: extend.to, catalog_version: 1, writes: 1 })
}

fn away() -> Error {
    Error::unavailable("store is unavailable")
}

#[test]
fn a_window_opens_only_once_the_store_has_acknowledged_it() {
    let mut window = window(false);
    let now = at(START, 0);
    let sent = extends(&window.poll(now, WANTED));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].from, sent[0].to), (Mark::new(START), Mark::new(START + 30_000)));
    assert_eq!(window.open_until().get(), START, "not before the result");
    assert_same!(window.poll(now, WANTED), [], "one question at a time");
    let opened = window.extended(now, sent[0].request, &done(&sent[0]));
    assert_same!(opened, [WindowAction::Open(UnixMillis::new(START + 30_000))]);
}

#[test]
fn window_is_extended_at_half_and_not_before() {
    let mut window = window(false);
    let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    assert_same!(window.poll(at(START + 14_999, 14_999), WANTED), []);
    assert_eq!(window.next_poll_ms(at(START + 14_999, 14_999), WANTED), Some(1));
    let second = extends(&window.poll(at(START + 15_000, 15_000), WANTED)).remove(0);
    assert_eq!(second.from, first.to);
    assert_eq!(second.to, Mark::new(START + 45_000));
    assert_ne!(second.request, first.request);
}

/// The driver sleeps for as long as a window says. An action that was due before would wait, and a
/// poll without an action would be repeated at once.
#[test]
fn window_acts_exactly_when_it_says() {
    let mut window = window(true);
    let (mut sent, mut written) = (0_u32, 0_u32);
    for ms in 0..40_000 {
        let now = at(START + ms, ms);
        let is_due = window.next_poll_ms(now, WANTED) == Some(0);
        let actions = window.poll(now, WANTED);
        let is_open = |action: &WindowAction| matches!(action, WindowAction::Open(_));
        assert_eq!(is_due, !actions.iter().all(is_open), "{ms}: {actions:?}");
        for action in actions {
            match action {
                WindowAction::Extend(extend) => {
                    sent += 1;
                    let result = if sent.is_multiple_of(2) { done(&extend) } else { Err(away()) };
                    window.extended(now, extend.request, &result);
                }
                WindowAction::Journal(mark) => {
                    written += 1;
                    if written.is_multiple_of(3) {
                        window.journal_failed();
                    } else {
                        window.journalled(mark);
                    }
                }
                _ => {}
            }
        }
    }
    assert!(sent >= 6 && written > 100, "{sent} extends, {written} writes");
}

/// The machine would be polled eight times for each write by the wall clock alone, at last each
/// millisecond.
#[test]
fn a_held_clock_is_looked_at_when_something_is_due() {
    let mut window = window(true);
    let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    let held = |ms| Position { taken_until: UnixMillis::new(START + ms), wanted: true, held: true };
    let (mut ms, mut looks, mut writes) = (0, 0, 0);
    while ms < 20_000 {
        // The clock stepped back by 4 s, and shows half of the time that passes.
        let (now, position) = (at(START + ms - 4_000, ms), held(ms / 2));
        for action in window.poll(now, position) {
            let WindowAction::Journal(to) = action else { continue };
            window.journalled(to);
            writes += 1;
        }
        assert!(window.open_until().get() >= START + ms / 2 + 300, "{ms}");
        looks += 1;
        ms += window.next_poll_ms(now, position).unwrap();
    }
    assert!(writes >= 40 && looks <= writes + 2, "{looks} looks for {writes} writes");
    // The wall clock has nearly caught up, and overtakes the held clock.
    let left_ms = window.open_until().get() - (START + ms / 2) - 300;
    let nearly = at(START + ms / 2 - 20, ms);
    assert_eq!(window.next_poll_ms(nearly, held(ms / 2)), Some(left_ms + left_ms.min(20)));
}

/// If the marks of slots were due at different times, the disk would be written for each of them.
#[test]
fn a_write_of_the_journal_moves_each_mark_on() {
    let mut window = window(true);
    let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    let early = at(START, 0);
    window.journal(early, WANTED);
    assert_eq!(window.journal_target(), UnixMillis::new(START + 500));
    window.journalled(window.journal_target());
    // Not due by itself for 150 ms.
    let now = at(START + 50, 50);
    assert_same!(window.poll(now, WANTED), []);
    window.journal(now, WANTED);
    assert_eq!(window.journal_target(), UnixMillis::new(START + 550));
    assert_eq!(window.open_until(), UnixMillis::new(START + 500), "not before it is on disk");
    assert_eq!(window.next_poll_ms(now, WANTED), Some(14_950), "none is asked for meanwhile");
    assert!(window.journalled(UnixMillis::new(START + 550)).is_some());
    window.journal(now, Position::default());
    assert_eq!(window.journal_target(), UnixMillis::new(START + 550), "no caller wants more");
}

#[test]
fn idle_journal_mark_stays() {
    let window_policy = window_policy(true).idle_after(Some(2_000), 1);
    let mut window = WindowMachine::new(lease(START), UnixMillis::new(START), window_policy, 42);
    // Follows the store and the disk at once. Returns what was written.
    let poll = |window: &mut WindowMachine, ms: u64, taken: u64| {
        let now = at(START + ms, ms);
        let position = Position { taken_until: UnixMillis::new(taken), wanted: true, held: false };
        for extend in extends(&window.poll(now, position)) {
            window.extended(now, extend.request, &done(&extend));
        }
        let actions = window.poll(now, position);
        let target = window.journal_target();
        let written = target > window.open_until();
        assert!(ms == 0 || window.has_margin(now, 1), "{ms}: ready at rest");
        window.journalled(target);
        (written || !actions.is_empty(), window.next_poll_ms(now, position))
    };
    let used = START + 400;
    for ms in 0..500 {
        poll(&mut window, ms, START + ms.min(400));
    }
    // The mark is kept ahead for as long as a caller may come back at once,
    let mut ms = 500;
    while ms < 2_400 {
        poll(&mut window, ms, used);
        assert!(window.open_until().get() > START + ms + 200, "{ms}");
        ms += 10;
    }
    // then it is left behind, while the store's mark is kept ahead.
    let left = window.open_until();
    for ms in 2_400..40_000 {
        let (_, next_poll_ms) = poll(&mut window, ms, used);
        assert!(next_poll_ms.is_some_and(|wait_ms| wait_ms > 0 || ms % 15_000 < 1_000), "{ms}");
        assert_eq!(window.open_until(), left, "{ms}");
        assert!(window.mark().unix_millis().get() > START + ms + 14_000, "{ms}");
    }
    // A write for another lease changes nothing.
    window.journalled(left);
    assert_eq!(window.open_until(), left);
    // A caller that finds the window spent gets it back by one write.
    let now = at(START + 40_000, 40_000);
    window.note_demand(now);
    let position = Position { taken_until: UnixMillis::new(used), wanted: true, held: false };
    let actions = window.poll(now, position);
    let to = UnixMillis::new(START + 40_500);
    assert_same!(actions, [WindowAction::Journal(to)]);
    assert!(window.has_margin(now, 1) && window.open_until() == left);
    assert_eq!(window.journalled(to), Some(to));
    assert!(window.has_margin(now, 1));
    // The journal becomes idle again only after the same time as before.
    assert_eq!(window.poll(at(START + 40_201, 40_201), position).len(), 1);

    // A disk that fails when an idle journal is needed again makes the slot unready.
    window.journal_failed();
    assert!(!window.has_margin(at(START + 41_000, 41_000), 1));
    // Slow ticks: within one, `taken_until` does not show that anything is taken.
    let slow = WindowPolicy::new(30_000, 60_000, 0, 0, true).idle_after(Some(2_000), 60_000);
    assert_eq!(slow.journal.unwrap().idle_after_ms, Some(120_000));
}

#[test]
fn a_slot_that_does_not_serve_is_left_alone() {
    let mut window = window(true);
    let idle = Position::default();
    assert_same!(window.poll(at(START, 0), idle), []);
    assert_eq!(window.next_poll_ms(at(START, 0), idle), None);
}

#[test]
fn unreachable_store_stops_minting_only_at_the_mark() {
    let mut window = window(false);
    let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    let mut requests = Vec::new();
    for ms in 0..60_000 {
        let now = at(START + ms, ms);
        for extend in extends(&window.poll(now, WANTED)) {
            requests.push(extend.clone());
            assert_same!(window.extended(now, extend.request, &Err(away())), []);
        }
        assert_eq!(window.open_until().get(), START + 30_000);
        assert_eq!(window.has_margin(now, 0), ms < 30_000, "{ms}");
    }
    assert!((20..60).contains(&requests.len()), "{}", requests.len());
    // The outcome is unknown, so only the very same request may be sent.
    assert!(requests.iter().all(|extend| *extend == requests[0]));
    // The store comes back: first the old request, then one for what is needed now.
    let now = at(START + 62_000, 62_000);
    let again = extends(&window.poll(now, WANTED)).remove(0);
    assert_eq!(again, requests[0]);
    window.extended(now, again.request, &done(&again));
    let next = extends(&window.poll(now, WANTED)).remove(0);
    assert_eq!(next.to.get(), START + 92_000);
    window.extended(now, next.request, &done(&next));
    assert!(window.has_margin(now, 29_999));
}

#[test]
fn lost_slot_ends_all_requests_and_windows() {
    let lost = [
        Error::fenced("lease is lost"),
        Error::mark_moved(Mark::ZERO, Mark::MAX, "mark was moved"),
        Error::not_found("lease does not exist"),
        Error::store_rolled_back("term", 7, 6),
    ];
    for error in lost {
        let mut window = window(true);
        let now = at(START, 0);
        let extend = extends(&window.poll(now, WANTED)).remove(0);
        let actions = window.extended(now, extend.request, &Err(error.clone()));
        assert!(
            matches!(&actions[..], [WindowAction::Shut(shut)] if shut.kind() == error.kind()),
            "{error}"
        );
        assert_same!(window.extended(now, extend.request, &done(&extend)), [], "too late");
        assert_eq!(window.journalled(UnixMillis::MAX), None);
        assert_same!(window.poll(at(START + 60_000, 60_000), WANTED), []);
        assert_eq!(window.next_poll_ms(now, WANTED), None);
        assert!(!window.has_margin(now, 0));
    }
}

#[test]
fn clock_ahead_of_the_store_retries_later() {
    let mut window = window(false);
    let first = extends(&window.poll(at(START + 90_000, 0), WANTED)).remove(0);
    let ahead = Error::clock_ahead(1, 0, "clock is 1 ms ahead");
    window.extended(at(START + 90_000, 0), first.request, &Err(ahead));
    assert_same!(window.poll(at(START, 49), WANTED), []);
    // The clock was corrected meanwhile.
    let second = extends(&window.poll(at(START, 50), WANTED)).remove(0);
    assert_eq!(second.to.get(), START + 30_000);
}

#[test]
fn a_journal_holds_the_window_to_half_a_second() {
    let mut window = window(true);
    let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
    assert_same!(window.extended(at(START, 0), first.request, &done(&first)), []);
    let journal = window.poll(at(START, 0), WANTED);
    assert_same!(journal, [WindowAction::Journal(UnixMillis::new(START + 500))]);
    assert_eq!(window.open_until().get(), START, "not before it is on the disk");
    assert_eq!(window.journalled(UnixMillis::new(START + 500)).unwrap().get(), START + 500);
    assert_same!(window.poll(at(START + 199, 199), WANTED), []);
    let journal = window.poll(at(START + 200, 200), WANTED);
    assert_same!(journal, [WindowAction::Journal(UnixMillis::new(START + 700))]);
    // The write fails: open windows stay open, and the write is repeated.
    window.journal_failed();
    assert_eq!(window.open_until().get(), START + 500);
    assert!(!window.poll(at(START + 201, 201), WANTED).is_empty());
}

#[test]
fn slow_ticks_fit_below_the_journals_mark() {
    for unit_ms in [1, 10, 100, 1_000, 60_000] {
        let policy = JournalPolicy::for_unit(unit_ms);
        assert!(policy.renew_below_ms >= 300 && policy.renew_below_ms < policy.ahead_ms);
        // When the journal is renewed, the clock's present tick still lies wholly below.
        assert!(policy.renew_below_ms > unit_ms, "{unit_ms}");
        assert!(unit_ms > 100 || policy.ahead_ms == 500, "{unit_ms}");
    }
    assert_eq!(WindowPolicy::new(30_000, 60_000, 0, 0, false).window_ms, 180_000);
    assert_eq!(WindowPolicy::new(0, 1, 0, 0, false).window_ms, WindowPolicy::WINDOW_MS_MIN);
}

#[test]
fn a_release_lies_within_the_lease() {
    for (taken, mark) in [(0, START), (START + 5, START + 5), (START + 99_000, START + 30_000)] {
        let mut window = window(false);
        let first = extends(&window.poll(at(START, 0), WANTED)).remove(0);
        window.extended(at(START, 0), first.request, &done(&first));
        let release = window.close(UnixMillis::new(taken));
        assert_eq!((release.mark.get(), release.term), (mark, Term::new(7)));
        assert!(window.is_over());
    }
}
