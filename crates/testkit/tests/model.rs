//! Small worlds, exhausted: every order in which messages can arrive, late, twice or never, from
//! processes that live, die, pause and come back. The store's decisions are the real ones, of
//! `snowmint_coord::{lease, pool, segment}`; only what carries them is a model.
//!
//! | model | bounds | states |
//! |---|---|---|
//! | leases | 1 slot, 2 processes of up to 2 lives, with a journal, 3 ticks, 3 terms, 4 requests in all | 693,352 |
//! | leases, two slots | 2 slots, 2 processes, 2 ticks, 3 terms, 5 requests in all | 271,565 |
//! | segments | 2 processes, 5 numbers, 5 requests in all | 1,383,156 |
//!
//! The tests print the exact numbers. A message, once sent, stays on its way for ever: delivering it
//! is possible at any time and any number of times. Clocks do not appear at all: whether a member
//! looks live, and which tick of its window a process mints next, is open each time.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod model {
    pub(super) mod leases;
    pub(super) mod segments;
}

use model::{leases::Leases, segments::Segments};
use stateright::{Checker, Model};

fn exhaust<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let checked = model.checker().spawn_bfs().join();
    println!("{name}: {} states", checked.unique_state_count());
    assert!(checked.is_done(), "{name} was not exhausted");
    checked.assert_properties();
}

#[test]
fn no_two_leases_of_a_slot_mint_the_same_tick() {
    exhaust(
        "leases",
        Leases { slots: 1, ticks: 3, requests: 4, terms: 3, lives: 2, journal: true },
    );
}

#[test]
fn no_two_leases_of_two_slots_mint_the_same_tick() {
    exhaust(
        "leases, two slots",
        Leases { slots: 2, ticks: 2, requests: 5, terms: 3, lives: 1, journal: false },
    );
}

#[test]
fn no_two_segments_hold_the_same_number() {
    exhaust("segments", Segments { numbers: 5, requests: 5 });
}
