//! Tests of the simulation itself: each planted bug is found within a stated number of seeds, by
//! the check that is named for it and no other. The same seeds without the bug keep every promise.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use snowmint_testkit::sim::{Bug, Check, Profile, try_run};

/// Number of seeds within which each bug is found, with one of the profiles.
const SEEDS: u64 = 200;
/// The same for the one that needs an exchange of the store between the two requests of a step.
const SEEDS_BETWEEN_REQUESTS: u64 = 500;
const STEPS: u32 = 400;
const PROFILES: [Profile; 3] = [Profile::Network, Profile::Restores, Profile::Clocks];

/// Checks that this check finds the bug. No other may end the run, so each check shows that it can
/// fail.
fn found(bug: Bug, check: Check) {
    let seeds = match bug {
        Bug::StoreKeyNotCompared => SEEDS_BETWEEN_REQUESTS,
        _ => SEEDS,
    };
    for seed in 0..seeds {
        for profile in PROFILES {
            if let Err(violation) = try_run(seed, profile, STEPS, Some(bug)) {
                println!("{bug:?}: seed {seed}, {profile:?}: {violation}");
                assert_eq!(violation.check, check, "{bug:?}: another check found it");
                let without = try_run(seed, profile, STEPS, None);
                assert!(without.is_ok(), "seed {seed}, {profile:?}, without {bug:?}: {without:?}");
                return;
            }
        }
    }
    panic!("{bug:?} was not found in {seeds} seeds");
}

macro_rules! planted {
    ($($name:ident: $bug:ident by $check:ident,)*) => {
        $(
            #[test]
            fn $name() {
                found(Bug::$bug, Check::$check);
            }
        )*

        #[test]
        fn every_bug_has_its_test() {
            assert_eq!(Bug::ALL, [$((Bug::$bug, Check::$check)),*]);
        }
    };
}

/// Covers all checks except that of the tests themselves: that what should happen did.
#[test]
fn every_check_has_a_bug_that_only_it_finds() {
    for check in Check::ALL.into_iter().filter(|check| *check != Check::Trial) {
        assert!(Bug::ALL.iter().any(|(_, by)| *by == check), "{check:?}");
    }
}

planted! {
    a_skipped_term_check_is_found: SkipTheTermCheck by Mark,
    an_extend_that_does_not_compare_from_is_found: ExtendWithoutComparingFrom by Mark,
    a_lease_shared_by_one_owners_processes_is_found: SameOwnerSharesALease by Unique,
    a_release_with_the_last_tick_is_found: ReleaseWithTheLastTick by Mark,
    a_journal_written_after_minting_is_found: JournalAfterMinting by Window,
    claim_at_the_requesters_clock_is_found: ClaimAtTheRequestersClock by Mark,
    a_generator_rebuilt_at_the_windows_floor_is_found: RebuiltAtTheWindowsFloor by Window,
    a_mark_in_a_coarser_unit_is_found: MarkInACoarserUnit by Mark,
    acquire_without_a_wait_is_found: AcquireWithoutWaiting by GlobalOrder,
    the_same_owner_that_skips_the_wait_is_found: SameOwnerSkipsTheWait by Healing,
    acquire_by_a_wall_clock_is_found: AcquireByAWallClock by Counters,
    a_lease_by_a_clock_that_sleeps_is_found: ElapsedTimeWithoutSleep by Counters,
    slot_acquired_at_the_previous_floor_is_found: AcquiredAtThePreviousFloor by Counters,
    a_release_that_is_not_journalled_is_found: ReleaseUnwritten by Window,
    a_tail_both_returned_and_journalled_is_found: TailReturnedAndJournalled by Unique,
    lease_counted_from_the_response_is_found: LeaseFromTheReply by Counters,
    a_surplus_given_to_a_later_request_is_found: SurplusToALaterRequest by GlobalOrder,
    a_call_that_is_waited_for_without_an_end_is_found: CallWithoutAnEnd by Bound,
    a_policy_that_is_forgotten_is_found: PolicyForgotten by Increasing,
    reserve_mistaken_for_a_repeat_is_found: ReserveMistakenForARepeat by Promise,
    a_number_that_is_skipped_is_found: NumberSkipped by Dense,
    a_number_lost_on_the_way_is_found: NumberLostOnTheWay by Account,
    a_step_that_is_too_large_is_found: StepTooLarge by Waste,
    a_member_that_is_never_forgotten_is_found: MemberNeverForgotten by Healing,
    an_elapsed_clock_beyond_the_margin_is_found: ElapsedTimeBeyondTheMargin by Counters,
    acquire_without_comparing_renewals_is_found: AcquireWithoutComparingRenewals by Counters,
    another_store_that_is_not_noticed_is_found: AnotherStoreUnnoticed by Rejection,
    another_server_that_is_not_noticed_is_found: AnotherServerUnnoticed by Rejection,
    a_recall_that_forgets_is_found: RecallForgets by Rejection,
    reports_that_are_forgotten_are_found: ReportsForgotten by Mark,
    ids_that_are_not_reported_are_found: IdsUnreported by Unique,
    reports_of_an_old_doubt_that_count_are_found: ReportsOfAnOldDoubt by Mark,
    values_raised_as_a_recovery_are_found: ValuesRaisedAsARecovery by Rejection,
    numbers_counted_in_another_store_are_found: CountedInAnotherStore by Rejection,
    cached_rows_that_are_not_compared_are_found: CachedRowsNotCompared by Promise,
    a_store_key_that_is_not_compared_is_found: StoreKeyNotCompared by Rejection,
}
