//! The machines against a store that answers late, never, twice, or wrongly often.

use proptest::prelude::*;

use super::*;
use crate::error::{Error, ErrorKind, PoolFull, Result};
use crate::lease::{Extend, Extended, Lease, Mark, Term};

const START: u64 = 1_000_000;

fn at(wall: u64, elapsed: u64) -> Now {
    Now { wall: UnixMillis::new(wall), elapsed: ElapsedMillis::new(elapsed), chance: 0 }
}

fn lease(mark: u64) -> Lease {
    Lease {
        pool: "workers-10".into(),
        slot: 3,
        term: Term::new(7),
        floor: Mark::new(mark),
        mark: Mark::new(mark),
    }
}

fn pace(journal: bool) -> Pace {
    Pace::new(30_000, 1, 5_000, 5_000, journal)
}

fn window(journal: bool) -> WindowMachine {
    WindowMachine::new(lease(START), UnixMillis::new(START), pace(journal), 42)
}

/// Errors have no equality; what they show has.
macro_rules! assert_same {
    ($left:expr, []) => {
        assert_eq!(format!("{:?}", $left), "[]")
    };
    ($left:expr, [] , $why:expr) => {
        assert_eq!(format!("{:?}", $left), "[]", $why)
    };
    ($left:expr, $right:expr) => {
        assert_eq!(format!("{:?}", $left), format!("{:?}", $right))
    };
}

const WANTED: Position = Position { taken_until: UnixMillis::ZERO, wanted: true };

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

fn refused(kind: ErrorKind) -> Result<Extended> {
    Err(Error::new("extend", kind))
}

fn away() -> ErrorKind {
    ErrorKind::Unavailable { what: "the store".into() }
}

#[test]
fn a_window_opens_only_once_the_store_has_acknowledged_it() {
    let mut window = window(false);
    let now = at(START, 0);
    let asked = extends(&window.look(now, WANTED));
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].from, asked[0].to), (Mark::new(START), Mark::new(START + 30_000)));
    assert_eq!(window.open_until().get(), START, "not before the answer");
    assert_same!(window.look(now, WANTED), [], "one question at a time");
    let opened = window.extended(now, asked[0].request, &done(&asked[0]));
    assert_same!(opened, [WindowAction::Open(UnixMillis::new(START + 30_000))]);
}

#[test]
fn it_is_extended_at_half_and_not_before() {
    let mut window = window(false);
    let first = extends(&window.look(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    assert_same!(window.look(at(START + 14_999, 14_999), WANTED), []);
    assert_eq!(window.look_in_ms(at(START + 14_999, 14_999), WANTED), Some(1));
    let second = extends(&window.look(at(START + 15_000, 15_000), WANTED)).remove(0);
    assert_eq!(second.from, first.to);
    assert_eq!(second.to, Mark::new(START + 45_000));
    assert_ne!(second.request, first.request);
}

#[test]
fn a_journal_rests_when_nothing_is_taken() {
    let pace = pace(true).resting_after(Some(2_000), 1);
    let mut window = WindowMachine::new(lease(START), UnixMillis::new(START), pace, 42);
    // Follows the store and the disk at once. Answers what was written.
    let look = |window: &mut WindowMachine, ms: u64, taken: u64| {
        let now = at(START + ms, ms);
        let position = Position { taken_until: UnixMillis::new(taken), wanted: true };
        for extend in extends(&window.look(now, position)) {
            window.extended(now, extend.request, &done(&extend));
        }
        let actions = window.look(now, position);
        let target = window.journal_target();
        let written = target > window.open_until();
        assert!(ms == 0 || window.has_margin(now, 1), "{ms}: ready at rest");
        window.journalled(target);
        (written || !actions.is_empty(), window.look_in_ms(now, position))
    };
    let used = START + 400;
    for ms in 0..500 {
        look(&mut window, ms, START + ms.min(400));
    }
    // Kept ahead for as long as somebody may come back at once,
    let mut ms = 500;
    while ms < 2_400 {
        look(&mut window, ms, used);
        assert!(window.open_until().get() > START + ms + 200, "{ms}");
        ms += 10;
    }
    // then left behind, with the store's mark kept ahead.
    let left = window.open_until();
    for ms in 2_400..40_000 {
        let (_, look_in_ms) = look(&mut window, ms, used);
        assert!(look_in_ms.is_some_and(|wait_ms| wait_ms > 0 || ms % 15_000 < 1_000), "{ms}");
        assert_eq!(window.open_until(), left, "{ms}");
        assert!(window.mark().unix_millis().get() > START + ms + 14_000, "{ms}");
    }
    // A write for somebody else changes nothing.
    window.journalled(left);
    assert_eq!(window.open_until(), left);
    // Whoever finds it spent gets it back by one write.
    let now = at(START + 40_000, 40_000);
    window.stir(now);
    let position = Position { taken_until: UnixMillis::new(used), wanted: true };
    let actions = window.look(now, position);
    let to = UnixMillis::new(START + 40_500);
    assert_same!(actions, [WindowAction::Journal(to)]);
    assert!(window.has_margin(now, 1) && window.open_until() == left);
    assert_eq!(window.journalled(to), Some(to));
    assert!(window.has_margin(now, 1));
    // And it rests again only after as long as before.
    assert_eq!(window.look(at(START + 40_201, 40_201), position).len(), 1);

    // A disk that fails on the way out of a rest is a reason not to be ready.
    window.journal_failed();
    assert!(!window.has_margin(at(START + 41_000, 41_000), 1));
    // Slow ticks: within one, nobody can see that anything is taken.
    let slow = Pace::new(30_000, 60_000, 0, 0, true).resting_after(Some(2_000), 60_000);
    assert_eq!(slow.journal.unwrap().rest_after_ms, Some(120_000));
}

#[test]
fn a_slot_that_does_not_serve_is_left_alone() {
    let mut window = window(true);
    let idle = Position::default();
    assert_same!(window.look(at(START, 0), idle), []);
    assert_eq!(window.look_in_ms(at(START, 0), idle), None);
}

#[test]
fn a_store_away_costs_nothing_until_the_mark_and_nothing_is_opened_beyond() {
    let mut window = window(false);
    let first = extends(&window.look(at(START, 0), WANTED)).remove(0);
    window.extended(at(START, 0), first.request, &done(&first));
    let mut requests = Vec::new();
    for ms in 0..60_000 {
        let now = at(START + ms, ms);
        for extend in extends(&window.look(now, WANTED)) {
            requests.push(extend.clone());
            assert_same!(window.extended(now, extend.request, &refused(away())), []);
        }
        assert_eq!(window.open_until().get(), START + 30_000);
        assert_eq!(window.has_margin(now, 0), ms < 30_000, "{ms}");
    }
    assert!((20..60).contains(&requests.len()), "{}", requests.len());
    // The outcome is not known, so only the very same question may be asked.
    assert!(requests.iter().all(|extend| *extend == requests[0]));
    // The store comes back: first the old question, then one for what is needed now.
    let now = at(START + 62_000, 62_000);
    let again = extends(&window.look(now, WANTED)).remove(0);
    assert_eq!(again, requests[0]);
    window.extended(now, again.request, &done(&again));
    let next = extends(&window.look(now, WANTED)).remove(0);
    assert_eq!(next.to.get(), START + 92_000);
    window.extended(now, next.request, &done(&next));
    assert!(window.has_margin(now, 29_999));
}

#[test]
fn after_losing_the_slot_nothing_is_asked_or_opened_ever_again() {
    let lost = [
        ErrorKind::Fenced { slot: "s".into(), held: Term::new(7), newest: Term::new(8) },
        ErrorKind::MarkMoved { what: "s".into(), expected: Mark::ZERO, found: Mark::MAX },
        ErrorKind::NotFound { what: "slot".into() },
        ErrorKind::StoreWentBack { witness: "term".into(), seen: 7, found: 6 },
    ];
    for kind in lost {
        let mut window = window(true);
        let now = at(START, 0);
        let asked = extends(&window.look(now, WANTED)).remove(0);
        let actions = window.extended(now, asked.request, &refused(kind.clone()));
        assert!(matches!(&actions[..], [WindowAction::Shut(error)] if *error.kind() == kind));
        assert_same!(window.extended(now, asked.request, &done(&asked)), [], "too late");
        assert_eq!(window.journalled(UnixMillis::MAX), None);
        assert_same!(window.look(at(START + 60_000, 60_000), WANTED), []);
        assert_eq!(window.look_in_ms(now, WANTED), None);
        assert!(!window.has_margin(now, 0));
    }
}

#[test]
fn a_clock_too_far_ahead_for_the_store_is_asked_anew_later() {
    let mut window = window(false);
    let first = extends(&window.look(at(START + 90_000, 0), WANTED)).remove(0);
    let kind = ErrorKind::ClockAhead {
        ahead_ms: 1,
        limit_ms: 0,
        compared_with: "the store's time".into(),
    };
    window.extended(at(START + 90_000, 0), first.request, &refused(kind));
    assert_same!(window.look(at(START, 49), WANTED), []);
    // The clock was corrected meanwhile.
    let second = extends(&window.look(at(START, 50), WANTED)).remove(0);
    assert_eq!(second.to.get(), START + 30_000);
}

#[test]
fn a_journal_holds_the_window_to_half_a_second() {
    let mut window = window(true);
    let first = extends(&window.look(at(START, 0), WANTED)).remove(0);
    assert_same!(window.extended(at(START, 0), first.request, &done(&first)), []);
    let journal = window.look(at(START, 0), WANTED);
    assert_same!(journal, [WindowAction::Journal(UnixMillis::new(START + 500))]);
    assert_eq!(window.open_until().get(), START, "not before it is on the disk");
    assert_eq!(window.journalled(UnixMillis::new(START + 500)).unwrap().get(), START + 500);
    assert_same!(window.look(at(START + 199, 199), WANTED), []);
    let journal = window.look(at(START + 200, 200), WANTED);
    assert_same!(journal, [WindowAction::Journal(UnixMillis::new(START + 700))]);
    // It fails: what is open stays open, and it is tried again.
    window.journal_failed();
    assert_eq!(window.open_until().get(), START + 500);
    assert!(!window.look(at(START + 201, 201), WANTED).is_empty());
}

#[test]
fn slow_ticks_fit_below_the_journals_mark() {
    for unit_ms in [1, 10, 100, 1_000, 60_000] {
        let pace = JournalPace::for_unit(unit_ms);
        assert!(pace.renew_below_ms >= 300 && pace.renew_below_ms < pace.ahead_ms);
        // When the journal is renewed, the tick that the clock is in still lies wholly below.
        assert!(pace.renew_below_ms > unit_ms, "{unit_ms}");
        assert!(unit_ms > 100 || pace.ahead_ms == 500, "{unit_ms}");
    }
    assert_eq!(Pace::new(30_000, 60_000, 0, 0, false).window_ms, 180_000);
    assert_eq!(Pace::new(0, 1, 0, 0, false).window_ms, Pace::WINDOW_MS_MIN);
}

#[test]
fn a_release_lies_within_the_lease() {
    for (taken, mark) in [(0, START), (START + 5, START + 5), (START + 99_000, START + 30_000)] {
        let mut window = window(false);
        let first = extends(&window.look(at(START, 0), WANTED)).remove(0);
        window.extended(at(START, 0), first.request, &done(&first));
        let release = window.close(UnixMillis::new(taken));
        assert_eq!((release.mark.get(), release.term), (mark, Term::new(7)));
        assert!(window.is_over());
    }
}

fn granted(mark: u64) -> Result<Vec<Granted>> {
    Ok(vec![Granted { lease: lease(mark), floor: UnixMillis::new(mark) }])
}

fn full() -> ErrorKind {
    ErrorKind::PoolFull(PoolFull {
        pool: "workers".into(),
        groups: 1,
        only: None,
        held: 1,
        marked_ahead: 0,
        holders: Vec::new(),
        usable_at: None,
        usable_in_ms: None,
    })
}

fn claim_of(actions: &[LeaseAction]) -> u64 {
    match actions {
        [LeaseAction::Claim { request }] => *request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_is_repeated_under_its_number_until_its_outcome_is_known() {
    let mut machine = LeaseMachine::new(pace(false), 1);
    let look = LeaseEvent::Look(&[]);
    let first = claim_of(&machine.on(at(START, 0), look));
    assert_same!(machine.on(at(START, 1), LeaseEvent::Look(&[])), [], "one claim at a time");
    let fail =
        |request, kind| LeaseEvent::Claimed { request, answer: Err(Error::new("claim", kind)) };
    machine.on(at(START, 1), fail(first, away()));
    assert_same!(machine.on(at(START, 50), LeaseEvent::Look(&[])), []);
    let again = claim_of(&machine.on(at(START, 51), LeaseEvent::Look(&[])));
    assert_eq!(again, first);
    // One that is still on its way must find the outcome of this one, should it arrive after it.
    machine.on(at(START, 52), fail(again, full()));
    let again = claim_of(&machine.on(at(START, 5_052), LeaseEvent::Look(&[])));
    assert_eq!(again, first);
    // Another refusal is an outcome: the next claim is another one.
    machine.on(at(START, 5_052), fail(again, ErrorKind::Invalid { what: "pool".into() }));
    assert!(machine.claim_error().is_some());
    assert_same!(machine.on(at(START, 10_051), LeaseEvent::Look(&[])), []);
    let other = claim_of(&machine.on(at(START, 10_052), LeaseEvent::Look(&[])));
    assert_ne!(other, first);
    let late = LeaseEvent::Claimed { request: first, answer: granted(START) };
    assert_same!(machine.on(at(START, 10_053), late), [], "an answer to a settled claim");
    let event = LeaseEvent::Claimed { request: other, answer: granted(START) };
    assert_same!(machine.on(at(START, 10_054), event), [LeaseAction::Granted]);
    assert_eq!(machine.windows().len(), 1);
    assert!(machine.claim_error().is_none());
}

#[test]
fn a_forgotten_member_loses_its_claim_and_hurry_shortens_a_wait() {
    let mut machine = LeaseMachine::new(pace(false), 1);
    let request = claim_of(&machine.on(at(START, 0), LeaseEvent::Look(&[])));
    let answer = Err(Error::new("claim", ErrorKind::Invalid { what: "pool".into() }));
    machine.on(at(START, 0), LeaseEvent::Claimed { request, answer });
    machine.hurry();
    let request = claim_of(&machine.on(at(START, 1), LeaseEvent::Look(&[])));
    let answer = Err(Error::new("claim", ErrorKind::NotFound { what: "member".into() }));
    let lost = machine.on(at(START, 2), LeaseEvent::Claimed { request, answer });
    assert!(matches!(&lost[..], [LeaseAction::Lost(_)]));
    assert!(machine.is_over() && machine.on(at(START, 3), LeaseEvent::Look(&[])).is_empty());
}

/// A store with one slot, as the machine's questions meet it.
#[derive(Debug)]
struct ModelSlot {
    term: Term,
    mark: Mark,
    last_request: u64,
}

impl ModelSlot {
    fn extend(&mut self, extend: &Extend) -> Result<Extended> {
        if extend.term != self.term {
            let (held, newest) = (extend.term, self.term);
            return refused(ErrorKind::Fenced { slot: "s".into(), held, newest });
        }
        if self.last_request != extend.request || self.mark != extend.to {
            if extend.from != self.mark {
                let (expected, found) = (extend.from, self.mark);
                return refused(ErrorKind::MarkMoved { what: "s".into(), expected, found });
            }
            self.mark = extend.to;
            self.last_request = extend.request;
        }
        Ok(Extended { mark: self.mark, catalog_version: 0, writes: 0 })
    }
}

/// A snapshot of a running machine that is resumed twice, at the same moment.
#[test]
fn of_two_copies_of_one_memory_only_one_is_granted_the_next_window() {
    let mut one = window(false);
    let mut other = one.clone();
    let now = at(START, 0);
    let first = extends(&one.look(Now { chance: 7, ..now }, WANTED)).remove(0);
    let second = extends(&other.look(Now { chance: 8, ..now }, WANTED)).remove(0);
    assert_eq!((first.from, first.to), (second.from, second.to));
    assert_ne!(first.request, second.request);
    let mut slot = ModelSlot { term: Term::new(7), mark: Mark::new(START), last_request: 0 };
    let answer = slot.extend(&first);
    assert!(matches!(one.extended(now, first.request, &answer)[..], [WindowAction::Open(_)]));
    let answer = slot.extend(&second);
    let refused = other.extended(now, second.request, &answer);
    let [WindowAction::Shut(error)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(error.kind().code(), "mark_moved");
    // Its own repeat is still recognised.
    assert!(slot.extend(&first).is_ok());
}

#[derive(Clone, Debug)]
enum Happening {
    /// Time passes, and the machine is looked at.
    Pass(u64),
    /// The clock is set.
    Step(i64),
    /// The clock is set to no less than what has passed.
    Correct,
    /// The oldest question on its way arrives, and its answer comes back.
    Answer,
    /// It arrives, but the answer is lost; the machine hears that the store is away.
    LoseAnswer,
    /// It is lost on the way there.
    LoseQuestion,
    /// It arrives, is answered, and arrives once more later.
    Duplicate,
    /// The journal is written.
    Journal,
    /// The journal cannot be written.
    JournalFails,
    /// Somebody else claims the slot.
    Claim,
    /// An ID is minted, if the window allows.
    Mint,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0_u64..20_000).prop_map(Happening::Pass),
        1 => (-100_000_i64..100_000).prop_map(Happening::Step),
        6 => Just(Happening::Answer),
        2 => Just(Happening::LoseAnswer),
        1 => Just(Happening::LoseQuestion),
        1 => Just(Happening::Duplicate),
        4 => Just(Happening::Journal),
        1 => Just(Happening::JournalFails),
        1 => Just(Happening::Claim),
        6 => Just(Happening::Mint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: what is open was durable before, in the store and in the
    /// journal; once the machine knows that the slot is lost, nothing opens; and as long as nobody
    /// else claims, a machine whose questions are answered gets its window again by itself.
    #[test]
    fn no_order_of_events_opens_more_than_was_promised(
        happenings in proptest::collection::vec(happening(), 1..120),
        journal in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut slot =
            ModelSlot { term: Term::new(7), mark: Mark::new(START), last_request: 0 };
        let start = UnixMillis::new(START);
        let mut machine = WindowMachine::new(lease(START), start, pace(journal), seed);
        let (mut wall, mut elapsed) = (START, 0);
        let mut asked: Vec<Extend> = Vec::new();
        let mut journal_asked = None;
        let mut journal_disk = start;
        let mut opened = start;
        let mut minted = start;
        let mut claimed_at = None;
        let mut knows = false;
        let steps = happenings.into_iter().chain(
            // In the end the clock is right and everything works again, for longer than the clock can
            // have been ahead and a window more: then another extension is due.
            std::iter::once(Happening::Correct).chain((0..80).flat_map(|_| {
                [Happening::Pass(2_100), Happening::Answer, Happening::Journal]
            })),
        );
        for step in steps {
            let now = at(wall, elapsed);
            let mut actions = Vec::new();
            match step {
                Happening::Pass(ms) => {
                    wall += ms;
                    elapsed += ms;
                    let position = Position { taken_until: minted, wanted: true };
                    actions = machine.look(at(wall, elapsed), position);
                }
                Happening::Step(ms) => wall = wall.saturating_add_signed(ms).max(1),
                Happening::Correct => wall = wall.max(START + elapsed).max(opened.get()),
                Happening::Answer | Happening::Duplicate if !asked.is_empty() => {
                    let extend = if matches!(step, Happening::Answer) {
                        asked.remove(0)
                    } else {
                        asked[0].clone()
                    };
                    let answer = slot.extend(&extend);
                    actions = machine.extended(now, extend.request, &answer);
                }
                Happening::LoseAnswer if !asked.is_empty() => {
                    let extend = asked.remove(0);
                    let _ = slot.extend(&extend);
                    actions = machine.extended(now, extend.request, &refused(away()));
                }
                Happening::LoseQuestion if !asked.is_empty() => {
                    let extend = asked.remove(0);
                    actions = machine.extended(now, extend.request, &refused(away()));
                }
                Happening::Journal => {
                    if let Some(mark) = journal_asked.take() {
                        journal_disk = mark;
                        actions = machine.journalled(mark).map(WindowAction::Open).into_iter().collect();
                    }
                }
                Happening::JournalFails => {
                    journal_asked = None;
                    machine.journal_failed();
                }
                Happening::Claim => {
                    slot.term = slot.term.next();
                    claimed_at.get_or_insert(slot.mark);
                }
                Happening::Mint => {
                    let tick_end = UnixMillis::new(wall + 1).max(minted);
                    if !machine.is_over() && tick_end <= opened {
                        minted = tick_end;
                    }
                }
                _ => {}
            }
            for action in actions {
                match action {
                    WindowAction::Extend(extend) => {
                        prop_assert!(!knows);
                        prop_assert!(extend.to > extend.from);
                        asked.push(extend);
                    }
                    WindowAction::Journal(mark) => {
                        prop_assert!(journal && !knows && journal_asked.is_none());
                        journal_asked = Some(mark);
                    }
                    WindowAction::Open(until) => {
                        prop_assert!(!knows, "opened after the slot was known to be lost");
                        prop_assert!(until > opened, "nothing is taken back");
                        prop_assert!(until <= slot.mark.unix_millis(), "beyond the store's mark");
                        prop_assert!(!journal || until <= journal_disk, "beyond the journal's mark");
                        opened = until;
                    }
                    WindowAction::Shut(_) => {
                        prop_assert!(claimed_at.is_some(), "lost without a reason");
                        knows = true;
                    }
                }
            }
            // A new holder begins at the mark that it found: nothing of ours may lie above.
            if let Some(mark) = claimed_at {
                prop_assert!(minted <= mark.unix_millis());
                prop_assert!(opened <= mark.unix_millis());
            }
        }
        if claimed_at.is_none() {
            prop_assert!(!knows);
            let caught_up = UnixMillis::new(wall);
            let ahead = minted > caught_up;
            prop_assert!(ahead || machine.has_margin(at(wall, elapsed), 0), "did not recover");
        } else {
            prop_assert!(knows, "never noticed that the slot was lost");
        }
    }
}
