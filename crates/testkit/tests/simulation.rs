//! The simulated world, for a few seeds at each run, or for one that is to be replayed.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use snowmint_testkit::sim::{Profile, SEED_VARIABLE, run};

/// How many seeds a run tries, unless told otherwise.
const SEEDS: u64 = 40;
const STEPS: u32 = 600;

fn seeds() -> Vec<u64> {
    let number = |variable: &str| {
        std::env::var(variable).ok().map(|text| text.parse::<u64>().expect("a number"))
    };
    match number(SEED_VARIABLE) {
        Some(seed) => vec![seed],
        None => (0..number("SNOWMINT_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

#[test]
fn no_id_comes_twice_over_a_failing_network_and_everybody_recovers() {
    let minted: usize =
        seeds().into_iter().map(|seed| run(seed, Profile::Network, STEPS).minted).sum();
    assert!(minted > 1_000, "only {minted} IDs: nothing was tried");
}

#[test]
fn no_id_comes_twice_whatever_the_clocks_do() {
    let minted: usize =
        seeds().into_iter().map(|seed| run(seed, Profile::Clocks, STEPS).minted).sum();
    assert!(minted > 1_000, "only {minted} IDs: nothing was tried");
}

#[test]
fn a_seed_is_a_whole_run() {
    for profile in [Profile::Network, Profile::Clocks] {
        for seed in [1, 2, 3] {
            assert_eq!(run(seed, profile, 300), run(seed, profile, 300), "{seed} {profile:?}");
        }
    }
}
