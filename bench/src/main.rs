//! Minting speed of Snowmint, compared with floors and rivals measured in the same run.
//!
//! `cargo run --release` takes a few minutes; `-- --test` runs everything once, to see that it
//! works.

mod bursts;
mod cases;
mod measure;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use measure::{Case, Sample, check, sample};
use snowmint_core::{CachedClock, Refresher, SystemClock};

/// Options from the command line.
struct Plan {
    rounds: usize,
    length: Duration,
    check_ids: usize,
    only: Option<String>,
    /// Whether stale readings fail the run. On a machine with other work the refresher can be late
    /// by any time.
    fresh: bool,
}

fn plan() -> Plan {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let test = arguments.iter().any(|argument| argument == "--test");
    let value = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let rounds = value("--rounds").and_then(|rounds| rounds.parse().ok());
    Plan {
        rounds: rounds.unwrap_or(if test { 1 } else { 25 }),
        length: Duration::from_millis(if test { 5 } else { 20 }),
        check_ids: if test { 10_000 } else { 500_000 },
        only: value("--only").cloned(),
        fresh: !test,
    }
}

fn main() {
    let plan = plan();
    let clock = Arc::new(CachedClock::new(SystemClock));
    let refresher = Refresher::spawn(Arc::clone(&clock)).expect("a thread can be started");
    let mut cases = cases::floors::all();
    cases.extend(cases::ours::all(&clock));
    cases.extend(cases::rivals::all());
    cases.extend(cases::segments::all());
    cases.extend(cases::counters::all());
    cases.extend(cases::text::all());
    if let Some(only) = &plan.only {
        cases.retain(|case| case.name.contains(only.as_str()) || case.name.starts_with("floor"));
    }

    let bad = checks(&plan, &cases);
    let samples = rounds(&plan, &cases);
    report::print(&cases, &samples);
    if plan.only.is_none() {
        bursts::run(plan.rounds * 8);
    }
    println!("\nlongest gap between two refreshes: {} us", refresher.gap_us_max());
    if bad > 0 {
        eprintln!("{bad} checks failed");
        std::process::exit(1);
    }
}

/// Checks every ID of every case before any timing. Returns the number of failed cases.
fn checks(plan: &Plan, cases: &[Case]) -> usize {
    println!(
        "| check | threads | IDs | duplicates | out of order in a thread | stale, ms | ahead, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut bad = 0;
    for case in cases.iter().filter(|case| case.unique) {
        for &threads in case.threads {
            let ids = if case.sleeps { plan.check_ids / 100 } else { plan.check_ids };
            let found = check(case, threads, ids);
            let fresh = case.fresh.is_none_or(|(_, stale_ms, ahead_ms)| {
                found.stale_ms_max <= stale_ms && found.ahead_ms_max <= ahead_ms
            });
            let good = found.duplicates == 0 && fresh;
            // A rival's duplicates do not fail the run; ours do.
            let fails = found.duplicates > 0 || (plan.fresh && !fresh);
            bad += usize::from(fails && case.fresh.is_some());
            println!(
                "| {} | {threads} | {} | {} | {} | {} | {} |{}",
                case.name,
                found.ids,
                found.duplicates,
                found.out_of_order,
                found.stale_ms_max,
                found.ahead_ms_max,
                if good { "" } else { " **bad**" }
            );
        }
    }
    bad
}

/// Runs all cases in turn, round by round: a slow minute slows all of them.
fn rounds(plan: &Plan, cases: &[Case]) -> BTreeMap<(usize, usize), Vec<Sample>> {
    let mut samples: BTreeMap<(usize, usize), Vec<Sample>> = BTreeMap::new();
    for _ in 0..plan.rounds {
        for (index, case) in cases.iter().enumerate() {
            for &threads in case.threads {
                let length = if case.sleeps { plan.length * 3 } else { plan.length };
                let measured = sample(case, threads, length);
                samples.entry((index, threads)).or_default().push(measured);
            }
        }
    }
    samples
}
