//! All events of a window, in any order.

use proptest::prelude::*;

use super::*;

/// Store with one slot, as the machine's requests meet it.
#[derive(Debug)]
struct ModelSlot {
    term: Term,
    mark: Mark,
    last_request: u64,
}

impl ModelSlot {
    fn extend(&mut self, extend: &Extend) -> Result<Extended> {
        if extend.term != self.term {
            return Err(Error::fenced("lease is lost"));
        }
        if self.last_request != extend.request || self.mark != extend.to {
            if extend.from != self.mark {
                return Err(Error::mark_moved(extend.from, self.mark, "mark was moved"));
            }
            self.mark = extend.to;
            self.last_request = extend.request;
        }
        Ok(Extended { mark: self.mark, catalog_version: 0, writes: 0 })
    }
}

/// A snapshot of a running machine is resumed twice, at the same moment.
#[test]
fn only_one_of_two_memory_copies_gets_a_window() {
    let mut one = window(false);
    let mut other = one.clone();
    let now = at(START, 0);
    let first = extends(&one.poll(Now { chance: || 7, ..now }, WANTED)).remove(0);
    let second = extends(&other.poll(Now { chance: || 8, ..now }, WANTED)).remove(0);
    assert_eq!((first.from, first.to), (second.from, second.to));
    assert_ne!(first.request, second.request);
    let mut slot = ModelSlot { term: Term::new(7), mark: Mark::new(START), last_request: 0 };
    let outcome = slot.extend(&first);
    assert!(matches!(one.extended(now, first.request, &outcome)[..], [WindowAction::Open(_)]));
    let outcome = slot.extend(&second);
    let refused = other.extended(now, second.request, &outcome);
    let [WindowAction::Shut(error)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(error.kind().code(), "mark_moved");
    // Its own repeat is still recognised.
    assert!(slot.extend(&first).is_ok());
}

#[derive(Clone, Debug)]
enum Happening {
    /// Time passes, and the machine is polled.
    Pass(u64),
    /// The clock is set.
    Step(i64),
    /// The clock is set to no less than the time that has passed.
    Correct,
    /// The oldest request in flight arrives, and its result comes back.
    Response,
    /// The request arrives, but its result is lost; the machine learns that the store is
    /// unavailable.
    LoseResponse,
    /// The request is lost on its way.
    LoseRequest,
    /// The request arrives, its result comes back, and the request arrives once more later.
    Duplicate,
    /// The journal is written.
    Journal,
    /// The journal cannot be written.
    JournalFails,
    /// Another member claims the slot.
    Claim,
    /// An ID is minted, if the window allows it.
    Mint,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0_u64..20_000).prop_map(Happening::Pass),
        1 => (-100_000_i64..100_000).prop_map(Happening::Step),
        6 => Just(Happening::Response),
        2 => Just(Happening::LoseResponse),
        1 => Just(Happening::LoseRequest),
        1 => Just(Happening::Duplicate),
        4 => Just(Happening::Journal),
        1 => Just(Happening::JournalFails),
        1 => Just(Happening::Claim),
        6 => Just(Happening::Mint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Holds for any order of events. An open window was durable before, in the store and in the
    /// journal. Once the machine knows that the slot is lost, nothing opens. While no other member
    /// claims the slot, a machine with a responsive store gets its window again by itself.
    #[test]
    fn no_order_of_events_opens_more_than_was_promised(
        happenings in proptest::collection::vec(happening(), 1..120),
        journal in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut slot =
            ModelSlot { term: Term::new(7), mark: Mark::new(START), last_request: 0 };
        let start = UnixMillis::new(START);
        let mut machine = WindowMachine::new(lease(START), start, window_policy(journal), seed);
        let (mut wall, mut elapsed) = (START, 0);
        let mut in_flight: Vec<Extend> = Vec::new();
        let mut journal_pending = None;
        let mut journal_disk = start;
        let mut opened = start;
        let mut minted = start;
        let mut claimed_at = None;
        let mut knows = false;
        let steps = happenings.into_iter().chain(
            // In the end the clock is right and everything works again, for longer than the clock
            // can have been ahead plus one window: then another extension is due.
            std::iter::once(Happening::Correct).chain((0..80).flat_map(|_| {
                [Happening::Pass(2_100), Happening::Response, Happening::Journal]
            })),
        );
        for step in steps {
            let now = at(wall, elapsed);
            let mut actions = Vec::new();
            match step {
                Happening::Pass(ms) => {
                    wall += ms;
                    elapsed += ms;
                    let position = Position { taken_until: minted, wanted: true, held: false };
                    actions = machine.poll(at(wall, elapsed), position);
                }
                Happening::Step(ms) => wall = wall.saturating_add_signed(ms).max(1),
                Happening::Correct => wall = wall.max(START + elapsed).max(opened.get()),
                Happening::Response | Happening::Duplicate if !in_flight.is_empty() => {
                    let extend = if matches!(step, Happening::Response) {
                        in_flight.remove(0)
                    } else {
                        in_flight[0].clone()
                    };
                    let outcome = slot.extend(&extend);
                    actions = machine.extended(now, extend.request, &outcome);
                }
                Happening::LoseResponse if !in_flight.is_empty() => {
                    let extend = in_flight.remove(0);
                    let _ = slot.extend(&extend);
                    actions = machine.extended(now, extend.request, &Err(away()));
                }
                Happening::LoseRequest if !in_flight.is_empty() => {
                    let extend = in_flight.remove(0);
                    actions = machine.extended(now, extend.request, &Err(away()));
                }
                Happening::Journal => {
                    if let Some(mark) = journal_pending.take() {
                        journal_disk = mark;
                        actions = machine.journalled(mark).map(WindowAction::Open).into_iter().collect();
                    }
                }
                Happening::JournalFails => {
                    journal_pending = None;
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
                        in_flight.push(extend);
                    }
                    WindowAction::Journal(mark) => {
                        prop_assert!(journal && !knows && journal_pending.is_none());
                        journal_pending = Some(mark);
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
            // A new holder begins at the mark that it found: nothing of ours may lie above it.
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
