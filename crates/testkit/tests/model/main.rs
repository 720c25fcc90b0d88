//! Small models, checked exhaustively: every order in which messages can arrive, late, twice or
//! never, from processes that live, die, pause and return. The store's decisions are the real ones,
//! of `snowmint_coord::{lease, pool, segment}`; only the transport is a model.
//!
//! | model | bounds | states |
//! |---|---|---|
//! | leases | 1 slot, 2 processes of up to 2 lives, with a journal, 3 ticks, 3 terms, 4 requests in all | 693,352 |
//! | leases, two slots | 2 slots, 2 processes, 2 ticks, 3 terms, 5 requests in all | 271,565 |
//! | segments | 2 processes, 5 numbers, 5 requests in all | 1,383,156 |
//!
//! The tests print the exact numbers. A sent message stays in flight for ever: it can be delivered
//! at any time and any number of times. There are no clocks: whether a member looks live, and which
//! tick of its window a process mints next, is open each time.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod leases;
mod segments;

use leases::{Flaw, Leases};
use segments::Segments;
use stateright::{Checker, HasDiscoveries, Model};

const ONE_SLOT: Leases =
    Leases { flaw: None, slots: 1, ticks: 3, requests: 4, terms: 3, lives: 2, journal: true };
const TWO_SLOTS: Leases =
    Leases { flaw: None, slots: 2, ticks: 2, requests: 5, terms: 3, lives: 1, journal: false };
const SEGMENTS: Segments = Segments { skip_the_version: false, numbers: 5, requests: 5 };

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

/// Checks that the model with a wrong decision breaks this promise.
fn breaks<M>(promise: &'static str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let until = HasDiscoveries::AnyOf([promise].into());
    let checked = model.checker().finish_when(until).spawn_bfs().join();
    let path = checked.assert_any_discovery(promise).into_actions();
    println!("{promise}: broken in {} steps, {path:?}", path.len());
}

#[test]
fn no_two_leases_of_a_slot_mint_the_same_tick() {
    exhaust("leases", ONE_SLOT);
}

#[test]
fn no_two_leases_of_two_slots_mint_the_same_tick() {
    exhaust("leases, two slots", TWO_SLOTS);
}

#[test]
fn no_two_segments_hold_the_same_number() {
    exhaust("segments", SEGMENTS);
}

#[test]
fn a_skipped_term_check_mints_a_tick_twice() {
    let flaw = Some(Flaw::SkipTheTermCheck);
    breaks("no tick is minted twice", Leases { flaw, ..ONE_SLOT });
}

#[test]
fn an_extend_that_does_not_compare_from_lowers_a_mark() {
    let flaw = Some(Flaw::ExtendWithoutComparingFrom);
    breaks("a mark never falls below anything minted or mintable", Leases { flaw, ..ONE_SLOT });
}

#[test]
fn a_release_with_the_last_tick_leaves_the_mark_below_it() {
    let flaw = Some(Flaw::ReleaseWithTheLastTick);
    breaks("a mark never falls below anything minted or mintable", Leases { flaw, ..ONE_SLOT });
}

#[test]
fn numbers_that_come_back_too_late_are_used_twice() {
    breaks("no number is used twice", Segments { skip_the_version: true, ..SEGMENTS });
}
