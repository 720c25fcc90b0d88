//! Sections machine, with results made by hand.

use super::*;
use crate::error::Error;
use crate::model::exclusive::{Acquired, stall_ms};
use crate::model::member::{Member, MemberStatus, Presence};
use crate::model::pool::{SECTIONS, sections_pool};
use snowmint_core::UnixMillis;

const LEASE_MS: u64 = 8_000;

fn at(ms: u64) -> ElapsedMillis {
    ElapsedMillis::new(ms)
}

fn moment(ms: u64) -> Now {
    Now { wall: UnixMillis::ZERO, elapsed: at(ms), chance: || 0 }
}

fn member(number: u128) -> Incarnation {
    Incarnation::new(number)
}

fn actor(address: &str) -> Actor {
    Actor {
        member: member(1),
        owner: "a".into(),
        before: None,
        address: address.into(),
        serves: Serves::All,
        list_every_ms: 1_000,
        skew_max_ms: 0,
    }
}

fn info(number: u128, renewals: u64, address: &str) -> MemberInfo {
    MemberInfo {
        member: Member {
            incarnation: member(number),
            owner: String::new(),
            host: String::new(),
            process: 0,
            address: address.into(),
        },
        presence: Presence { sample: UnixMillis::ZERO, renewals, ttl_ms: LEASE_MS },
        joined_at: UnixMillis::ZERO,
        renewed_at: UnixMillis::ZERO,
        live: true,
        status: MemberStatus::default(),
    }
}

fn machine() -> SectionsMachine {
    SectionsMachine::new(sections_pool(), 7)
}

fn want(sections: impl IntoIterator<Item = u16>) -> BTreeMap<u16, Demand> {
    sections.into_iter().map(|section| (section, Demand::Numbers { until: 1, step: 100 })).collect()
}

fn lease(slot: u64) -> Lease {
    let mark = Mark::new(50);
    Lease { pool: "sections".into(), slot, term: Term::new(1), holder: None, floor: mark, mark }
}

/// Returns the one acquire that is due.
fn acquire(machine: &mut SectionsMachine, now: u64, actor: &Actor) -> Option<Acquire> {
    machine.poll(moment(now), actor, false).into_iter().find_map(|action| match action {
        SectionsAction::Acquire(acquire) => Some(acquire),
        _ => None,
    })
}

fn extends(machine: &mut SectionsMachine, now: u64, actor: &Actor) -> Vec<Extend> {
    let actions = machine.poll(moment(now), actor, false).into_iter();
    let extends = actions.filter_map(|action| match action {
        SectionsAction::Extend(items) => Some(items),
        _ => None,
    });
    extends.flatten().collect()
}

fn unavailable() -> Error {
    Error::unavailable("store is unavailable")
}

fn granted(acquire: &Acquire) -> Result<Acquired> {
    Ok(Acquired {
        leases: acquire.slots.iter().map(|slot| lease(*slot)).collect(),
        held: Vec::new(),
    })
}

/// Acquires sections and opens them.
fn hold(machine: &mut SectionsMachine, sections: impl IntoIterator<Item = u16>, actor: &Actor) {
    machine.want(want(sections), at(0));
    let sent = acquire(machine, 0, actor).unwrap();
    machine.acquired(at(0), sent.request, granted(&sent));
}

fn acknowledge(machine: &mut SectionsMachine, now: u64, items: &[Extend]) -> Vec<SectionChange> {
    let done = |item: &Extend| Ok(Extended { mark: item.to, catalog_version: 0, writes: 1 });
    let results: Vec<_> = items.iter().map(done).collect();
    machine.extended(at(now), items, &results)
}

#[test]
fn concurrent_demand_needs_one_acquire_and_one_extend() {
    let (mut machine, actor) = (machine(), actor(""));
    machine.want(want([3, 9, 7]), at(0));
    let sent = acquire(&mut machine, 0, &actor).unwrap();
    assert_eq!(sent.slots, [3, 7, 9]);
    assert_eq!(acquire(&mut machine, 0, &actor), None, "one at a time");
    let (changes, error) = machine.acquired(at(5), sent.request, granted(&sent));
    assert!(error.is_none());
    assert_eq!(sent.length, 100);
    assert_eq!(changes[1], SectionChange::Open(3, Mark::new(50)));
    assert_eq!(changes.len(), 6);
    machine.want(want([3, 9]), at(5));
    let items = extends(&mut machine, 5, &actor);
    let moved: Vec<_> = items.iter().map(|item| (item.from.get(), item.to.get())).collect();
    assert_eq!(moved, [(50, 150); 2]);
    let opened = acknowledge(&mut machine, 6, &items);
    assert_eq!(opened[0], SectionChange::Open(3, Mark::new(150)));
    assert!(machine.poll(moment(6), &actor, false).is_empty(), "an idle section costs nothing");
}

#[test]
fn a_server_that_counts_many_keys_soon_has_all_sections() {
    let (mut machine, actor) = (machine(), actor(""));
    let mut calls = 0;
    while machine.held.len() < usize::from(SECTIONS) {
        let next = (0..SECTIONS).find(|section| !machine.held.contains_key(section)).unwrap();
        machine.want(want([next]), at(0));
        let sent = acquire(&mut machine, 0, &actor).unwrap();
        machine.acquired(at(0), sent.request, granted(&sent));
        calls += 1;
    }
    assert!(calls <= 30, "{calls}");
}

#[test]
fn call_with_unknown_outcome_is_repeated_unchanged() {
    let (mut machine, actor) = (machine(), actor(""));
    machine.want(want([3]), at(0));
    let first = acquire(&mut machine, 0, &actor).unwrap();
    machine.acquired(at(0), first.request, Err(unavailable()));
    machine.want(want([4]), at(0));
    assert_eq!(acquire(&mut machine, 0, &actor), None, "not at once");
    assert_eq!(acquire(&mut machine, 1_000, &actor), Some(first.clone()));
    machine.acquired(at(1_000), first.request, granted(&first));
    machine.want(want([3]), at(1_000));
    let items = extends(&mut machine, 1_000, &actor);
    machine.extended(at(1_000), &items, &[Err(unavailable())]);
    assert_eq!(extends(&mut machine, 3_000, &actor), items);
}

/// A primary that became a replica, a disk that is full for a moment: the leases last, and so do
/// their windows.
#[test]
fn only_a_fencing_error_loses_a_section() {
    let passing = [
        unavailable(),
        Error::store_read_only("store is read-only"),
        Error::store_permission_denied("user lacks a permission"),
        Error::storage_full("no space left"),
        Error::internal("internal error: test; please report it"),
    ];
    let lost = [
        Error::fenced("lease is lost"),
        Error::mark_moved(Mark::new(50), Mark::new(60), "mark was moved"),
        Error::not_found("lease does not exist"),
        Error::store_rolled_back("term", 2, 1),
        Error::store_mismatch("store is another one"),
    ];
    let (mut machine, actor) = (machine(), actor(""));
    hold(&mut machine, [3], &actor);
    machine.want(want([3]), at(0));
    let items = extends(&mut machine, 0, &actor);
    for (round, error) in (0..).zip(passing) {
        let refused = [Err(error.clone())];
        assert_eq!(machine.extended(at(round * 5_000), &items, &refused), [], "{error}");
        assert_eq!(extends(&mut machine, round * 5_000 + 4_000, &actor), items, "{error}");
    }
    for error in lost {
        let mut machine = self::machine();
        hold(&mut machine, [3], &actor);
        machine.want(want([3]), at(0));
        let items = extends(&mut machine, 0, &actor);
        let refused = [Err(error.clone())];
        assert_eq!(machine.extended(at(0), &items, &refused), [SectionChange::Shut(3)], "{error}");
    }
}

#[test]
fn steps_follow_the_pace() {
    let (mut machine, actor) = (machine(), actor(""));
    hold(&mut machine, [3], &actor);
    let mut lengths = Vec::new();
    for now in [100, 200, 300, 60_000, 120_000, 180_000] {
        machine.want(want([3]), at(now));
        let items = extends(&mut machine, now, &actor);
        lengths.push(items[0].to.get() - items[0].from.get());
        acknowledge(&mut machine, now, &items);
    }
    assert_eq!(lengths, [100, 200, 400, 200, 100, 100]);
}

#[test]
fn section_of_a_peer_is_tried_again_after_a_delay() {
    let (mut machine, actor) = (machine(), actor(""));
    machine.want(want([3]), at(0));
    let refused = acquire(&mut machine, 0, &actor).unwrap();
    let held = vec![(3, member(2))];
    machine.acquired(at(0), refused.request, Ok(Acquired { leases: Vec::new(), held }));
    machine.want(want([3]), at(1));
    assert_eq!(acquire(&mut machine, 1, &actor), None);
    machine.want(want([3]), at(FRESH_MS));
    assert!(acquire(&mut machine, FRESH_MS, &actor).is_some());
}

#[test]
fn only_members_stalled_for_lease_and_margin_are_named() {
    let (mut machine, actor) = (machine(), actor("a"));
    machine.listed(at(0), &actor, Ok(vec![info(1, 0, "a"), info(2, 5, "b")]));
    let silent_at = stall_ms(LEASE_MS);
    for (now, named) in [(silent_at - 1, false), (silent_at, true)] {
        machine.want(want([3]), at(now));
        let sent = acquire(&mut machine, now, &actor).unwrap();
        assert_eq!(sent.stalled.iter().any(|stalled| stalled.member == member(2)), named, "{now}");
        machine.acquired(at(now), sent.request, Ok(Acquired::default()));
        machine.wanted.clear();
    }
}

#[test]
fn section_of_a_peer_is_relinquished_before_redirects() {
    let (mut machine, actor) = (machine(), actor("a"));
    machine.listed(at(0), &actor, Ok(vec![info(1, 0, "a")]));
    while machine.held.len() < 400 {
        let next = (0..SECTIONS).find(|section| !machine.held.contains_key(section)).unwrap();
        hold(&mut machine, [next], &actor);
    }
    let leaving = machine.listed(at(1_000), &actor, Ok(vec![info(1, 0, "a"), info(2, 0, "b")]));
    assert!((100..600).contains(&leaving.len()), "{}", leaving.len());
    let are_leaving = |machine: &mut SectionsMachine| {
        let assignment = machine.assignment(at(1_000), &actor);
        leaving.iter().filter(|section| assignment.is_leaving(**section)).count()
    };
    assert_eq!(are_leaving(&mut machine), leaving.len());
    machine.want(want(leaving.iter().copied()), at(1_000));
    let actions = machine.poll(moment(1_000), &actor, false);
    let [SectionsAction::Relinquish(relinquish)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(relinquish.slots.len(), leaving.len());
    machine.relinquished(at(1_000), &relinquish.slots, &Err(unavailable()));
    assert_eq!(are_leaving(&mut machine), leaving.len());
    machine.relinquished(at(2_000), &relinquish.slots, &Ok(()));
    assert_eq!(are_leaving(&mut machine), 0);
    let assignment = machine.assignment(at(2_000), &actor);
    assert!(leaving.iter().all(|section| !assignment.is_own(*section)));
}

#[test]
fn a_lost_membership_leaves_nothing_behind() {
    let (mut machine, actor) = (machine(), actor("a"));
    hold(&mut machine, [1, 2, 3], &actor);
    machine.want(want([4]), at(0));
    let late = acquire(&mut machine, 0, &actor).unwrap();
    machine.lose();
    let (changes, _) = machine.acquired(at(1), late.request, granted(&late));
    assert!(changes.is_empty() && machine.held.is_empty());
    assert!(extends(&mut machine, 1, &actor).is_empty());
}

#[test]
fn unconfirmed_section_is_relinquished() {
    let (mut machine, actor) = (machine(), actor("here:1"));
    machine.want(want([3]), at(0));
    let sent = acquire(&mut machine, 0, &actor).unwrap();
    let held_by_another = Acquired { leases: Vec::new(), held: vec![(3, member(2))] };
    machine.acquired(at(1), sent.request, Ok(held_by_another));
    // A section that was never requested cannot be ours, and repeated misdirected callers do not
    // cause more calls.
    machine.misdirected([3, 4].into(), at(2_000));
    assert_eq!(acquire(&mut machine, 2_000, &actor), None);
    machine.misdirected([3, 4].into(), at(10_001));
    let again = acquire(&mut machine, 10_001, &actor).unwrap();
    assert_eq!((&again.slots[..], again.length), (&[3][..], 0));
    let (changes, _) = machine.acquired(at(10_002), again.request, granted(&again));
    assert_eq!(changes, [], "no member serves from it");
    relinquish_all(&mut machine, 10_002, &actor, &[3]);
    machine.misdirected([3].into(), at(10_500));
    assert_eq!(acquire(&mut machine, 10_500, &actor), None);
    machine.misdirected([3].into(), at(20_002));
    assert!(acquire(&mut machine, 20_002, &actor).is_some());
}

fn relinquish_all(machine: &mut SectionsMachine, now: u64, actor: &Actor, sections: &[u16]) {
    let actions = machine.poll(moment(now), actor, false).into_iter();
    let relinquish = actions.filter_map(|action| match action {
        SectionsAction::Relinquish(relinquish) => Some(relinquish),
        _ => None,
    });
    let [relinquish] = &relinquish.collect::<Vec<_>>()[..] else {
        panic!("one call relinquishes them")
    };
    let held: Vec<_> = sections.iter().map(|one| (u64::from(*one), Term::new(1))).collect();
    assert_eq!(relinquish.slots, held);
    machine.relinquished(at(now), &relinquish.slots, &Ok(()));
}

/// Returns a machine with a lease that had expired for a moment, in which another member joined:
/// the sections that are its own, and those that no longer are.
fn expired_next_to_a_peer(actor: &Actor) -> (SectionsMachine, Vec<u16>, Vec<u16>) {
    let mut machine = machine();
    hold(&mut machine, 0..64, actor);
    machine.expire_all();
    let members = vec![info(1, 0, &actor.address), info(2, 0, "there:1")];
    assert!(machine.listed(at(0), actor, Ok(members)).is_empty(), "we know of none");
    let assignment = machine.assignment(at(0), actor);
    let (own, others) = (0..64).partition(|section| assignment.is_own(*section));
    (machine, own, others)
}

#[test]
fn reassigned_section_is_relinquished_after_lease_end() {
    let actor = actor("here:1");
    let (mut machine, own, others) = expired_next_to_a_peer(&actor);
    assert!(!own.is_empty() && !others.is_empty());
    let found = acquire(&mut machine, 1, &actor).unwrap();
    let slots: Vec<_> = others.iter().map(|one| u64::from(*one)).collect();
    assert_eq!((found.slots.clone(), found.length), (slots, 0));
    machine.acquired(at(2), found.request, granted(&found));
    relinquish_all(&mut machine, 2, &actor, &others);
    assert_eq!(acquire(&mut machine, 3, &actor), None, "what is ours is taken when it is wanted");
}

#[test]
fn misdirected_sections_are_acquired_at_once() {
    let (mut machine, actor) = (machine(), actor("here:1"));
    hold(&mut machine, [3, 4], &actor);
    machine.expire_all();
    machine.misdirected([3].into(), at(1));
    machine.misdirected([4].into(), at(2));
    assert_eq!(acquire(&mut machine, 2, &actor).unwrap().slots, [3, 4]);
}

#[test]
fn waiting_caller_costs_at_most_one_list() {
    let actor = actor("here:1");
    let (mut machine, own, others) = expired_next_to_a_peer(&actor);
    // A slow store: a few sections at a time.
    machine.acquiring.batch_max = 8;
    machine.want(want(own.iter().copied().take(1)), at(1));
    let (mut now, mut lengths) = (1, Vec::new());
    while let Some(due) = acquire(&mut machine, now, &actor) {
        lengths.push(due.length);
        now += 60;
        machine.acquired(at(now), due.request, granted(&due));
    }
    assert_eq!(lengths[..3], [0, 100, 0]);
    assert_eq!(lengths.len(), 1 + others.len().div_ceil(8));
}

#[test]
fn slots_of_global_order_move_by_time_and_by_themselves() {
    let (mut machine, actor) = (machine(), actor(""));
    let time = |taken_until: u64| Demand::Time {
        taken_until: UnixMillis::new(taken_until),
        window_ms: 500,
        lead_max_ms: 5_000,
    };
    let slot = SECTIONS + 7;
    machine.want([(3, Demand::Numbers { until: 1, step: 100 }), (slot, time(0))].into(), at(0));
    let sent = acquire(&mut machine, 0, &actor).unwrap();
    assert_eq!((&sent.slots[..], sent.length), (&[u64::from(slot)][..], 0));
    machine.acquired(at(0), sent.request, granted(&sent));
    let actor = Actor { skew_max_ms: 1_000, ..actor };
    let now = Now { wall: UnixMillis::new(9_000), ..moment(1) };
    let extend = |machine: &mut SectionsMachine, now| {
        let actions = machine.poll(now, &actor, false).into_iter();
        let extends = actions.filter_map(|action| match action {
            SectionsAction::Extend(items) => Some(items),
            _ => None,
        });
        extends.flatten().find(|item| item.slot == u64::from(slot)).unwrap()
    };
    let item = extend(&mut machine, now);
    assert_eq!((item.to.get(), item.ahead_max_ms), (9_500, Some(6_500)));
    acknowledge(&mut machine, 2, std::slice::from_ref(&item));
    // The clock stepped back by four seconds, and IDs continue ahead of it.
    machine.want([(slot, time(9_400))].into(), at(3));
    let item = extend(&mut machine, Now { wall: UnixMillis::new(5_000), ..moment(3) });
    assert_eq!(item.to.get(), 9_525);
    // A wrong clock loses only time.
    let refused = vec![Err(Error::clock_ahead(9, 1, "clock is 9 ms ahead"))];
    assert_eq!(machine.extended(at(4), std::slice::from_ref(&item), &refused), []);
    machine.want([(slot, time(9_400))].into(), at(5_000));
    let item = extend(&mut machine, Now { wall: UnixMillis::new(9_600), ..moment(5_000) });
    assert_eq!((item.from.get(), item.to.get()), (9_500, 10_100));
}

#[test]
fn order_rejected_by_the_stores_time_is_clock_ahead() {
    let (mut machine, actor) = (machine(), actor(""));
    let ordered = SECTIONS + 7;
    let time = || Demand::Time { taken_until: UnixMillis::ZERO, window_ms: 500, lead_max_ms: 0 };
    hold(&mut machine, [3], &actor);
    machine.want(BTreeMap::from([(ordered, time())]), at(0));
    let sent = acquire(&mut machine, 0, &actor).unwrap();
    assert_eq!(sent.slots, [u64::from(ordered)]);
    machine.acquired(at(0), sent.request, granted(&sent));
    let refuse = |machine: &mut SectionsMachine, now: u64| {
        let items = extends(machine, now, &actor);
        assert_eq!(items.len(), 1);
        let ahead = Error::clock_ahead(9, 1, "clock is 9 ms ahead");
        machine.extended(at(now), &items, &[Err(ahead)]);
    };
    refuse(&mut machine, 1);
    assert!(machine.take_clock_ahead());
    assert!(!machine.take_clock_ahead(), "reported once");
    machine.want(want([3]), at(5_000));
    refuse(&mut machine, 5_000);
    assert!(!machine.take_clock_ahead(), "counters have no clock");
}
