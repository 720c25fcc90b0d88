//! The simulated world with all profiles, for as many seeds as time permits: `ci/seeds` runs it.
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use std::env::{VarError, var};
use std::process::ExitCode;

use snowmint_testkit::sim::{Profile, STEPS, run_many};

/// Number of seeds: a million runs, with the four profiles.
const SEEDS: u64 = 250_000;

/// Returns a variable's number, or `unset` where the variable is not set.
fn number(variable: &str, unset: u64) -> Result<u64, String> {
    match var(variable) {
        Ok(text) => text.parse().map_err(|error| format!("{variable}={text}: {error}")),
        Err(VarError::NotPresent) => Ok(unset),
        Err(error) => Err(format!("{variable}: {error}")),
    }
}

fn run() -> Result<(), String> {
    let (first, count) = (number("SNOWMINT_SIM_FIRST", 0)?, number("SNOWMINT_SIM_SEEDS", SEEDS)?);
    let end = first.checked_add(count).ok_or("there are no such seeds: the last is 2^64 - 1")?;
    let tallies = run_many(first..end, &Profile::ALL, STEPS, |progress| eprintln!("{progress}"))
        .map_err(|violation| violation.to_string())?;
    tallies.iter().for_each(|tally| println!("{tally}"));
    println!("no promise was broken by seeds {first} to {}", end.saturating_sub(1));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
