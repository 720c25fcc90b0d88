//! The simulation finds bugs: each of those that are planted is found within a stated number of seeds,
//! and the same seeds without it keep every promise.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use snowmint_testkit::sim::{Bug, Profile, try_run};

/// Each bug is found within this many seeds of one of the profiles.
const SEEDS: u64 = 200;
const STEPS: u32 = 400;
const PROFILES: [Profile; 3] = [Profile::Network, Profile::Restores, Profile::Clocks];

fn found(bug: Bug) {
    for seed in 0..SEEDS {
        for profile in PROFILES {
            if let Err(violation) = try_run(seed, profile, STEPS, Some(bug)) {
                println!("{bug:?}: seed {seed}, {profile:?}: {violation}");
                let without = try_run(seed, profile, STEPS, None);
                assert!(without.is_ok(), "seed {seed}, {profile:?}, without {bug:?}: {without:?}");
                return;
            }
        }
    }
    panic!("{bug:?} was not found in {SEEDS} seeds");
}

macro_rules! planted {
    ($($name:ident: $bug:ident,)*) => {
        $(
            #[test]
            fn $name() {
                found(Bug::$bug);
            }
        )*

        #[test]
        fn every_bug_has_its_test() {
            assert_eq!(Bug::ALL, [$(Bug::$bug),*]);
        }
    };
}

planted! {
    a_skipped_term_check_is_found: SkipTheTermCheck,
    an_extend_that_does_not_compare_from_is_found: ExtendWithoutComparingFrom,
    a_lease_shared_by_one_owners_processes_is_found: SameOwnerSharesALease,
    a_release_with_the_last_tick_is_found: ReleaseWithTheLastTick,
    a_journal_written_after_minting_is_found: JournalAfterMinting,
    a_take_over_by_the_requesters_clock_is_found: TakeOverByTheRequestersClock,
    a_generator_rebuilt_at_the_windows_floor_is_found: RebuiltAtTheWindowsFloor,
    a_mark_in_a_coarser_unit_is_found: MarkInACoarserUnit,
    a_take_without_a_wait_is_found: TakeWithoutWaiting,
    the_same_owner_that_skips_the_wait_is_found: SameOwnerSkipsTheWait,
    a_take_over_by_a_wall_clock_is_found: TakeOverByAWallClock,
    a_lease_by_a_clock_that_sleeps_is_found: ElapsedTimeWithoutSleep,
    a_slot_taken_at_the_floor_before_is_found: TakenAtTheFloorBefore,
    a_release_that_is_not_journalled_is_found: ReleaseUnwritten,
    a_tail_both_returned_and_journalled_is_found: TailReturnedAndJournalled,
    a_lease_that_counts_from_the_answer_is_found: LeaseFromTheAnswer,
    a_surplus_given_to_a_later_request_is_found: SurplusToALaterRequest,
}
