use snowmint_core::UnixMillis;

use super::*;
use crate::error::{ErrorKind, PoolFull};
use crate::ids::Incarnation;
use crate::model::lease::SlotRow;
use crate::model::member::{Member, MemberInfo, Presence};
use crate::model::pool::Preference;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NOW: UnixMillis = UnixMillis::new(1_000_000);
const ME: u128 = 99;

fn member(incarnation: u128, live: bool) -> MemberInfo {
    let renewed_at = if live { NOW } else { NOW.saturating_sub(60_000) };
    MemberInfo {
        member: Member {
            incarnation: Incarnation::new(incarnation),
            owner: format!("owner{incarnation}"),
            host: "host".into(),
            process: 1,
            address: String::new(),
        },
        presence: Presence { sample: renewed_at, renewals: 0, ttl_ms: 10_000 },
        joined_at: renewed_at,
        renewed_at,
        live,
        status: crate::model::member::MemberStatus::default(),
    }
}

fn row(slot: u64, holder: Option<u128>, mark: u64, given_up_at: u64) -> SlotRow {
    SlotRow {
        slot,
        term: Term::new(4),
        floor: Mark::ZERO,
        mark: Mark::new(mark),
        holder: holder.map(Incarnation::new),
        owner: format!("owner{}", holder.unwrap_or(slot.into())),
        claim_request: 5,
        extend_request: 6,
        held_since: UnixMillis::new(10),
        given_up_at: UnixMillis::new(given_up_at),
    }
}

fn request(slots: u64, preference: Preference) -> ClaimRequest {
    ClaimRequest {
        pool: Pool { name: "workers".into(), slots, group: 1, reuse: Reuse::Recycle },
        member: Incarnation::new(ME),
        owner: "me".into(),
        count: 1,
        preference,
        supersedes: None,
        mark_at_most: Mark::from(NOW),
        request: 77,
    }
}

fn choose_with(
    request: &ClaimRequest,
    rows: &[SlotRow],
    members: &[MemberInfo],
) -> Result<Vec<SlotRow>> {
    let mut members = members.to_vec();
    members.push(member(ME, true));
    match choose(request, rows, &members, SlotDefaults::default(), 0, NOW, 0)? {
        Choice::Claim { rows, .. } => Ok(rows),
        Choice::Repeat(_) => panic!("no repeat was set up"),
    }
}

fn slots(rows: &[SlotRow]) -> Vec<u64> {
    rows.iter().map(|row| row.slot).collect()
}

fn full(error: &Error) -> PoolFull {
    match error.kind() {
        ErrorKind::PoolFull(full) => (**full).clone(),
        _ => panic!("{error:?}"),
    }
}

#[test]
fn claim_prefers_unused_slots_to_released_ones() {
    let rows = [row(0, None, 10, 500), row(1, None, 10, 400), row(3, Some(1), 10, 0)];
    let members = [member(1, true)];
    let take =
        |slots_in_pool| choose_with(&request(slots_in_pool, Preference::Any), &rows, &members);
    assert_eq!(slots(&take(5).unwrap()), [2]);
    let mut many = request(5, Preference::Any);
    many.count = 3;
    assert_eq!(slots(&choose_with(&many, &rows, &members).unwrap()), [1, 2, 4]);
    many.count = 9;
    assert_eq!(slots(&choose_with(&many, &rows, &members).unwrap()), [0, 1, 2, 4]);
    let used = [row(0, None, 10, 500), row(1, None, 10, 400)];
    assert_eq!(slots(&choose_with(&request(2, Preference::Any), &used, &[]).unwrap()), [1]);
}

#[test]
fn a_claim_raises_the_term_by_one_and_floors_at_the_mark() {
    let rows = [row(0, None, 123, 1)];
    let chosen = choose_with(&request(1, Preference::Any), &rows, &[]).unwrap();
    assert_eq!(chosen[0].term, Term::new(5));
    assert_eq!((chosen[0].floor, chosen[0].mark), (Mark::new(123), Mark::new(123)));
    assert_eq!(chosen[0].holder, Some(Incarnation::new(ME)));
    assert_eq!((chosen[0].claim_request, chosen[0].extend_request), (77, 0));
    let fresh = choose_with(&request(2, Preference::Any), &rows, &[]).unwrap();
    assert_eq!((fresh[0].slot, fresh[0].term, fresh[0].mark), (1, Term::new(1), Mark::ZERO));
}

#[test]
fn the_owners_last_is_preferred_only_where_its_mark_allows() {
    let mut rows = [row(4, None, 10, 500), row(6, None, 10, 800), row(7, None, 10, 900)];
    rows[0].owner = "me".into();
    rows[1].owner = "me".into();
    let claim = request(9, Preference::LastOfOwner);
    assert_eq!(slots(&choose_with(&claim, &rows, &[]).unwrap()), [6], "the most recent of its two");
    rows[1].mark = Mark::new(NOW.get() + 1);
    assert_eq!(slots(&choose_with(&claim, &rows, &[]).unwrap()), [4]);
    rows[0].holder = Some(Incarnation::new(1));
    assert_eq!(slots(&choose_with(&claim, &rows, &[member(1, true)]).unwrap()), [0]);
    assert_eq!(slots(&choose_with(&claim, &rows, &[member(1, false)]).unwrap()), [4]);
    let mut nameless = claim.clone();
    nameless.owner = String::new();
    rows[0].owner = String::new();
    assert_eq!(
        slots(&choose_with(&nameless, &rows, &[]).unwrap()),
        [0],
        "no name is no preference"
    );
}

#[test]
fn expired_or_superseded_holder_does_not_count() {
    let rows = [row(0, Some(1), 10, 0)];
    let mut claim = request(1, Preference::Any);
    let refused = full(&choose_with(&claim, &rows, &[member(1, true)]).unwrap_err());
    assert_eq!((refused.groups, refused.held, refused.marked_ahead), (1, 1, 0));
    assert_eq!(refused.holders[0].incarnation, Incarnation::new(1));
    assert_eq!(refused.usable_in_ms, Some(10_000));
    assert!(choose_with(&claim, &rows, &[member(1, false)]).is_ok());
    assert!(choose_with(&claim, &rows, &[]).is_ok(), "an unknown holder is gone");
    claim.supersedes = Some(Incarnation::new(2));
    assert!(choose_with(&claim, &rows, &[member(1, true)]).is_err());
    claim.supersedes = Some(Incarnation::new(1));
    assert_eq!(choose_with(&claim, &rows, &[member(1, true)]).unwrap()[0].term, Term::new(5));
}

#[test]
fn a_claim_that_was_overtaken_passes_numbers_over() {
    let members = [member(ME, true)];
    let chosen = |request: &ClaimRequest, rows: &[SlotRow], pass| {
        let choice =
            choose(request, rows, &members, SlotDefaults::default(), 0, NOW, pass).unwrap();
        let Choice::Claim { rows, .. } = choice else { panic!("no repeat") };
        slots(&rows)
    };
    let mut claim = request(5, Preference::Any);
    // None, some, and more than exist, which starts over.
    for (pass, slot) in [(0, 0), (1, 1), (4, 4), (5, 0)] {
        assert_eq!(chosen(&claim, &[], pass), [slot]);
    }
    claim.count = 4;
    assert_eq!(chosen(&claim, &[], 1), [1, 2, 3, 4]);
    assert_eq!(chosen(&claim, &[], 2), [0, 1, 2, 3], "never fewer than there are");
    let given_up: Vec<_> = (0..5).map(|slot| row(slot, None, 10, 500 - slot)).collect();
    claim.count = 1;
    assert_eq!(chosen(&claim, &given_up, 0), [4], "the longest given up");
    assert_eq!(chosen(&claim, &given_up, 1), [3]);
    assert_eq!(chosen(&request(5, Preference::Exactly(2)), &[], 3), [2]);
}

#[test]
fn a_mark_is_allowed_up_to_the_limit_itself() {
    let limit = NOW.get();
    let claim = request(1, Preference::Any);
    for allowed in [limit - 1, limit] {
        assert!(choose_with(&claim, &[row(0, None, allowed, 1)], &[]).is_ok());
    }
    let refused = full(&choose_with(&claim, &[row(0, None, limit + 1, 1)], &[]).unwrap_err());
    assert_eq!((refused.held, refused.marked_ahead, refused.usable_in_ms), (0, 1, Some(1)));
}

#[test]
fn numbers_that_are_not_allowed_are_not_looked_at_one_by_one() {
    let ground = SlotDefaults { mark: Mark::new(NOW.get() + 7), ..SlotDefaults::default() };
    let claim = request(1 << 50, Preference::Any);
    let chosen = choose(&claim, &[], &[member(ME, true)], ground, 0, NOW, 0);
    assert_eq!(full(&chosen.unwrap_err()).usable_in_ms, Some(7));
}

#[test]
fn exact_preference_gets_its_number_or_an_error() {
    let rows = [row(0, Some(1), 10, 0)];
    assert_eq!(slots(&choose_with(&request(9, Preference::Exactly(5)), &rows, &[]).unwrap()), [5]);
    let refused = choose_with(&request(9, Preference::Exactly(0)), &rows, &[member(1, true)]);
    assert_eq!(full(&refused.unwrap_err()).only, Some(0));
    let outside = choose_with(&request(9, Preference::Exactly(9)), &rows, &[]).unwrap_err();
    assert_eq!(outside.kind().code(), "invalid");
    let mut two = request(9, Preference::Exactly(1));
    two.count = 2;
    assert_eq!(choose_with(&two, &rows, &[]).unwrap_err().kind().code(), "invalid");
}

/// A program could otherwise take the number of a server that restarts, which then does not start.
#[test]
fn configured_number_is_taken_from_a_live_program() {
    let (program, ahead) = (Incarnation::of_program(7, 1), NOW.get() + 75_000);
    let rows = [row(3, Some(program.get()), ahead, 0), row(4, Some(1), 5, 0)];
    let mut members = vec![member(program.get(), true), member(1, true)];
    let claim = |preference| ClaimRequest { mark_at_most: Mark::MAX, ..request(9, preference) };
    let chosen = choose_with(&claim(Preference::Configured(3)), &rows, &members).unwrap();
    let SlotRow { slot, term, holder, floor, mark, .. } = chosen[0].clone();
    assert_eq!((slot, term, holder), (3, Term::new(5), Some(Incarnation::new(ME))));
    assert_eq!(
        (floor.get(), mark.get()),
        (ahead, ahead),
        "the program may have minted up to there"
    );
    // Another server keeps its number, and other claims take nothing from a program.
    for kept in [Preference::Configured(4), Preference::Exactly(3)] {
        let error = choose_with(&claim(kept), &rows, &members).unwrap_err();
        assert_eq!((full(&error).only, full(&error).held), (kept.only(), 1), "{error}");
    }
    // No program outranks another.
    let rival = Incarnation::of_program(8, 1);
    members.push(member(rival.get(), true));
    let of_rival = ClaimRequest { member: rival, ..claim(Preference::Configured(3)) };
    let error = choose_with(&of_rival, &rows, &members).unwrap_err();
    assert_eq!(full(&error).only, Some(3), "{error}");
}

#[test]
fn groups_are_claimed_whole_with_usable_marks() {
    let mut claim = request(8, Preference::Any);
    claim.pool.group = 4;
    let ahead = NOW.get() + 500;
    let rows: Vec<_> = (0..4).map(|slot| row(slot, None, ahead + slot, 1)).collect();
    assert_eq!(slots(&choose_with(&claim, &rows, &[]).unwrap()), [4, 5, 6, 7]);
    claim.pool.slots = 4;
    assert_eq!(full(&choose_with(&claim, &rows, &[]).unwrap_err()).usable_in_ms, Some(500));
    let mut one_usable = rows.clone();
    one_usable[2].mark = Mark::new(3);
    let chosen = choose_with(&claim, &one_usable, &[]).unwrap();
    assert_eq!(slots(&chosen), [0, 1, 2, 3]);
    assert_eq!(chosen[3].floor, Mark::new(ahead + 3), "each slot keeps its own mark");
    one_usable[0].holder = Some(Incarnation::new(1));
    assert!(choose_with(&claim, &one_usable, &[member(1, true)]).is_err());
    claim.pool.slots = 6;
    assert_eq!(choose_with(&claim, &rows, &[]).unwrap_err().kind().code(), "invalid");
}

#[test]
fn repeated_claim_returns_the_first_result() {
    let mut rows = [row(2, Some(ME), 10, 0), row(3, Some(ME), 10, 0)];
    rows[1].claim_request = 77;
    let members = [member(ME, true)];
    let claim = request(9, Preference::Any);
    let choice = choose(&claim, &rows, &members, SlotDefaults::default(), 0, NOW, 0).unwrap();
    assert_eq!(choice, Choice::Repeat(vec![rows[1].clone()]));
    rows[1].holder = None;
    let late = choose(&claim, &rows, &members, SlotDefaults::default(), 0, NOW, 0).unwrap_err();
    assert_eq!(late.kind().code(), "fenced", "released since");
    let new_claim = ClaimRequest { request: 78, ..claim };
    let choice = choose(&new_claim, &rows, &members, SlotDefaults::default(), 0, NOW, 0).unwrap();
    assert!(matches!(choice, Choice::Claim { .. }));
}

#[test]
fn only_members_claim_and_only_sensible_numbers() {
    let claim = request(9, Preference::Any);
    let refused = choose(&claim, &[], &[], SlotDefaults::default(), 0, NOW, 0).unwrap_err();
    assert_eq!(refused.kind().code(), "not_found");
    for (count, code) in [(0, "invalid"), (CLAIM_COUNT_MAX + 1, "limit_exceeded")] {
        let bad = ClaimRequest { count, ..claim.clone() };
        assert_eq!(choose_with(&bad, &[], &[]).unwrap_err().kind().code(), code);
    }
}

#[test]
fn the_ground_holds_for_slots_without_a_row() {
    let (mark, term) = (Mark::new(NOW.get() - 5), Term::new(1 << 32));
    let ground = SlotDefaults { mark, term, ..SlotDefaults::default() };
    let members = [member(ME, true)];
    let mut claim = request(2, Preference::Any);
    let Ok(Choice::Claim { rows, .. }) = choose(&claim, &[], &members, ground, 0, NOW, 0) else {
        panic!("the ground's mark is allowed")
    };
    assert_eq!((rows[0].floor, rows[0].term), (ground.mark, ground.term.next()));
    claim.mark_at_most = Mark::new(NOW.get() - 6);
    let refused = full(&choose(&claim, &[], &members, ground, 0, NOW, 0).unwrap_err());
    assert_eq!((refused.marked_ahead, refused.usable_in_ms), (2, Some(1)));
}

#[test]
fn accepted_lead_is_the_last_resort_up_to_its_limit() {
    let ahead = |by: u64| NOW.get() + by;
    let rows = [row(0, None, ahead(500), 1), row(1, Some(1), ahead(900), 0), row(2, None, 5, 2)];
    let members = [member(ME, true), member(1, true)];
    let take = |rows: &[SlotRow], preference, accepted_lead| {
        let ground =
            SlotDefaults { accepted_lead: Mark::new(accepted_lead), ..SlotDefaults::default() };
        let claim = request(u64::try_from(rows.len()).unwrap(), preference);
        match choose(&claim, rows, &members, ground, 0, NOW, 0) {
            Ok(Choice::Claim { rows, .. }) => Ok(rows[0].slot),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(full(&error).usable_in_ms),
        }
    };
    assert_eq!(take(&rows, Preference::Any, ahead(500)), Ok(2), "one that does not lead is better");
    let (two, any) = (&rows[..2], Preference::Any);
    assert_eq!(take(two, any, 0), Err(Some(500)));
    assert_eq!(take(two, any, ahead(499)), Err(Some(500)));
    assert_eq!(take(two, any, ahead(500)), Ok(0));
    assert_eq!(take(two, any, ahead(5_000)), Ok(0), "the live holder keeps its own");
    assert_eq!(take(two, Preference::Exactly(1), ahead(5_000)), Err(Some(10_000)));
}

#[test]
fn a_pool_without_reuse_counts_on_forgets_and_ends() {
    let mut claim = request(300, Preference::LastOfOwner);
    claim.pool.reuse = Reuse::Never;
    let members = [member(ME, true)];
    let mut rows: Vec<SlotRow> = Vec::new();
    let mut next = 0;
    for expected in 0..300 {
        claim.request = expected + 1;
        let choice =
            choose(&claim, &rows, &members, SlotDefaults::default(), next, NOW, 0).unwrap();
        let Choice::Claim { rows: chosen, next: after, forget } = choice else {
            panic!("no repeat")
        };
        assert_eq!(slots(&chosen), [expected]);
        next = after;
        rows.retain(|row| !forget.contains(&row.slot));
        rows.extend(chosen.iter().map(|row| crate::model::lease::given_up(row, row.mark, NOW)));
        assert!(rows.len() <= NEVER_ROWS_KEPT + 1);
    }
    claim.request = 1000;
    let spent = choose(&claim, &rows, &members, SlotDefaults::default(), next, NOW, 0).unwrap_err();
    assert_eq!(spent.kind().code(), "exhausted", "{spent}");
    assert!(spent.message().contains("all its 300 numbers"), "{spent}");
    claim.preference = Preference::Exactly(3);
    assert!(choose(&claim, &rows, &members, SlotDefaults::default(), next, NOW, 0).is_err());
}

prop_compose! {
    fn any_row(slots: u64)(
        slot in 0..slots,
        holder in proptest::option::of(0u128..6),
        mark in 0..2 * NOW.get(),
        given_up_at in 0..NOW.get(),
    ) -> SlotRow {
        row(slot, holder, mark, given_up_at)
    }
}

proptest! {
    /// A claim takes only groups that no live member holds and that can mint, whatever the rows. It
    /// raises each term by exactly one, moves no mark, and returns `PoolFull` only when no group is
    /// left.
    #[test]
    fn claims_are_sound_and_complete(
        group in prop_oneof![Just(1u32), Just(2), Just(4)],
        rows in proptest::collection::vec(any_row(16), 0..24),
        live in proptest::collection::vec(any::<bool>(), 6),
        preference in prop_oneof![
            Just(Preference::Any),
            Just(Preference::LastOfOwner),
            (0u64..4).prop_map(Preference::Exactly),
            (0u64..4).prop_map(Preference::Configured),
        ],
        supersedes in proptest::option::of(0u128..6),
        count in 1u32..6,
    ) {
        let rows: Vec<SlotRow> =
            rows.into_iter().map(|row| (row.slot, row)).collect::<BTreeMap<_, _>>().into_values().collect();
        let members: Vec<MemberInfo> = (0..6u128).zip(&live).map(|(number, live)| member(number, *live)).collect();
        let mut request = request(16, preference);
        request.pool.group = group;
        request.owner = "owner3".into();
        request.supersedes = supersedes.map(Incarnation::new);
        request.count = if preference.only().is_some() { 1 } else { count };

        let find = |slot: u64| rows.iter().find(|row| row.slot == slot);
        let is_live = |holder: u128| live[usize::try_from(holder).unwrap()] && supersedes != Some(holder);
        let usable = |number: u64| {
            let of_group = || number * u64::from(group)..(number + 1) * u64::from(group);
            of_group().all(|slot| {
                find(slot).and_then(|row| row.holder).is_none_or(|holder| !is_live(holder.get()))
            }) && of_group().any(|slot| find(slot).is_none_or(|row| row.mark <= request.mark_at_most))
        };
        let wanted: Vec<u64> = match preference.only() {
            Some(number) => vec![number],
            None => (0..16 / u64::from(group)).collect(),
        };
        // Where holders are not needed, they do not affect the result.
        for pass in [0, 2] {
            if !asks_for_holders(&request, &rows, SlotDefaults::default(), pass) {
                let ground = SlotDefaults::default();
                let choose = |members: &[MemberInfo]| {
                    choose(&request, &rows, members, ground, 0, NOW, pass)
                        .map_err(|error| error.kind().clone())
                };
                let mut all = members.clone();
                all.push(member(ME, true));
                prop_assert_eq!(choose(&[member(ME, true)]), choose(&all));
            }
        }
        let usable_count = wanted.iter().filter(|number| usable(**number)).count();
        match choose_with(&request, &rows, &members) {
            Ok(chosen) => {
                let groups: BTreeSet<u64> = chosen.iter().map(|row| row.slot / u64::from(group)).collect();
                prop_assert_eq!(chosen.len(), groups.len() * usize::try_from(group).unwrap());
                prop_assert_eq!(groups.len(), usable_count.min(usize::try_from(request.count).unwrap()));
                for number in groups {
                    prop_assert!(usable(number) && wanted.contains(&number));
                }
                for after in &chosen {
                    let (term, mark) = find(after.slot).map_or((Term::ZERO, Mark::ZERO), |row| (row.term, row.mark));
                    prop_assert_eq!(after.term, term.next());
                    prop_assert_eq!((after.floor, after.mark), (mark, mark));
                }
            }
            Err(error) => {
                prop_assert_eq!(usable_count, 0);
                prop_assert!(full(&error).usable_at.is_some());
            }
        }
    }
}
