//! The simulated world, for some seeds at each run, or for one seed that is replayed.
//! `docs/evidence/proof.md` explains how to run more.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use snowmint_testkit::sim::{Profile, SEED_VARIABLE, STEPS, run_many, try_run};

/// Default number of seeds for each profile: a thousand runs optimised, as the product ships, and
/// two hundred with all checks, which take as long.
const SEEDS: u64 = if cfg!(debug_assertions) { 50 } else { 250 };

fn seeds() -> std::ops::Range<u64> {
    match std::env::var(SEED_VARIABLE) {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    }
}

/// Runs all seeds, and checks that everything that can happen did.
fn all_seeds(profile: Profile) {
    match run_many(seeds(), &[profile], STEPS, |progress| eprintln!("{profile:?}: {progress}")) {
        Ok(tallies) => println!("{}", tallies[0]),
        Err(violation) => panic!("{violation}"),
    }
}

#[test]
fn failing_network_repeats_no_id_and_members_recover() {
    all_seeds(Profile::Network);
}

#[test]
fn wrong_clocks_repeat_no_id() {
    all_seeds(Profile::Clocks);
}

#[test]
fn restored_or_copied_stores_and_directories_repeat_no_id() {
    all_seeds(Profile::Restores);
}

#[test]
fn minting_resumes_when_every_mark_was_poisoned() {
    all_seeds(Profile::Poisoned);
}

#[test]
fn seed_determines_the_whole_run() {
    for profile in Profile::ALL {
        for seed in 0..5 {
            let run = || try_run(seed, profile, 300, None).unwrap();
            assert_eq!(run(), run(), "{seed} {profile:?}");
        }
    }
}
