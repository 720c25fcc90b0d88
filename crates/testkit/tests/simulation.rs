//! The simulated world, for some seeds at each run, or for one that is to be replayed.
//! `docs/proof.md` says how to run more.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use std::collections::BTreeMap;
use std::thread;

use snowmint_testkit::sim::{Profile, SEED_VARIABLE, run};

/// How many seeds a run tries with each profile, unless told otherwise.
/// A thousand runs as the product ships, and a tenth of that while somebody works.
const SEEDS: u64 = if cfg!(debug_assertions) { 25 } else { 250 };
const STEPS: u32 = 200;
/// From so many seeds on, everything that can happen must have.
const SEEDS_ENOUGH: usize = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn seeds() -> std::ops::Range<u64> {
    match number(SEED_VARIABLE) {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("SNOWMINT_SIM_FIRST").unwrap_or(0);
            first..first + number("SNOWMINT_SIM_SEEDS").unwrap_or(SEEDS)
        }
    }
}

/// Runs all seeds, and sees to it that everything that can happen did.
fn all_seeds(profile: Profile, must_happen: &[&str]) {
    let (mut minted, mut happened) = (0, BTreeMap::new());
    let outcomes = [0, 1].map(|half| {
        let seeds: Vec<u64> = seeds().filter(|seed| seed % 2 == half).collect();
        thread::spawn(move || {
            seeds.into_iter().map(|seed| run(seed, profile, STEPS)).collect::<Vec<_>>()
        })
    });
    for outcome in outcomes.into_iter().flat_map(|half| half.join().unwrap()) {
        minted += outcome.minted;
        for (what, times) in outcome.happened {
            *happened.entry(what).or_insert(0) += times;
        }
    }
    println!("{profile:?}: {minted} IDs in {} seeds; {happened:?}", seeds().count());
    if seeds().count() >= SEEDS_ENOUGH {
        let common = [
            "start",
            "kill",
            "close",
            "freeze",
            "freeze in a call",
            "the store dies",
            "a partition",
            "a clock steps",
            "a clock drifts",
        ];
        for what in common.iter().chain(must_happen) {
            assert!(happened.contains_key(what), "{what} never happened: nothing was tried");
        }
        assert!(minted > 100 * seeds().count(), "only {minted} IDs: nothing was tried");
    }
}

#[test]
fn no_id_comes_twice_over_a_failing_network_and_everybody_recovers() {
    all_seeds(
        Profile::Network,
        &[
            "altered under partition",
            "start without the store",
            "minted without the store",
            "a slot changes hands, unanswered",
            "ordered",
            "counted",
            "freeze while counting",
            "answers come late, then none",
            "passed on",
        ],
    );
}

#[test]
fn no_id_comes_twice_whatever_the_clocks_do() {
    all_seeds(Profile::Clocks, &["a clock freezes", "a clock oscillates"]);
}

#[test]
fn no_id_comes_twice_when_stores_and_directories_are_put_back_or_copied() {
    all_seeds(
        Profile::Restores,
        &[
            "restored",
            "restored under running nodes",
            "a store that went back is refused",
            "a directory put back",
            "a directory put back, hidden",
            "a directory copied",
        ],
    );
}

#[test]
fn minting_resumes_when_every_mark_was_poisoned() {
    all_seeds(Profile::Poisoned, &["every slot poisoned"]);
}

#[test]
fn a_seed_is_a_whole_run() {
    for profile in Profile::ALL {
        for seed in 0..5 {
            assert_eq!(run(seed, profile, 300), run(seed, profile, 300), "{seed} {profile:?}");
        }
    }
}
