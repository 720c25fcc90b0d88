//! Medians, and ratios round by round.

use std::collections::BTreeMap;

use crate::measure::{Case, Sample};

/// Case with which all cases are compared.
const FLOOR: &str = "floor: fetch_add";

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median over the rounds in which both samples had their processors.
fn ratio(of: &[Sample], to: &[Sample]) -> f64 {
    let pairs = of.iter().zip(to).filter(|(of, to)| of.quiet && to.quiet);
    median(pairs.map(|(of, to)| of.ns / to.ns).collect())
}

pub fn print(cases: &[Case], samples: &BTreeMap<(usize, usize), Vec<Sample>>) {
    println!(
        "\n| case | threads | ns an ID, median (best) | million IDs/s | x fetch_add | quiet samples | cores |"
    );
    println!("|---|---|---|---|---|---|---|");
    let floor = cases.iter().position(|case| case.name == FLOOR).unwrap_or(0);
    for ((index, threads), measured) in samples {
        let quiet: Vec<f64> =
            measured.iter().filter(|sample| sample.quiet).map(|sample| sample.ns).collect();
        let cores = median(measured.iter().map(|sample| sample.cores).collect());
        let best = quiet.iter().copied().fold(f64::NAN, f64::min);
        let count = quiet.len();
        let middle = median(quiet);
        let to_floor = samples.get(&(floor, *threads)).map_or(f64::NAN, |to| ratio(measured, to));
        println!(
            "| {} | {threads} | {middle:.2} ({best:.2}) | {:.2} | {to_floor:.2} | {count}/{} | {cores:.2} |",
            cases[*index].name,
            1e3 / middle,
            measured.len(),
        );
    }
    targets(cases, samples);
}

/// One of the goals: a case compared with another, with a number of threads.
struct Goal {
    row: &'static str,
    of: &'static str,
    to: &'static str,
    threads: usize,
    /// Highest ratio of the time of `of` to the time of `to`.
    at_most: f64,
}

const GOALS: [Goal; 16] = [
    Goal {
        row: "shared, cached, 1 thread / fetch_add",
        of: "shared, cached time",
        to: FLOOR,
        threads: 1,
        at_most: 1.25,
    },
    Goal {
        row: "shared, cached, 1 thread / ferroid Atomic",
        of: "shared, cached time",
        to: "ferroid Atomic 41+22",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "shared, cached, 2 threads / ferroid Atomic",
        of: "shared, cached time",
        to: "ferroid Atomic 41+22",
        threads: 2,
        at_most: 1.0 / 1.3,
    },
    Goal {
        row: "shared, precise, 1 thread / one clock read",
        of: "shared, precise time",
        to: "floor: one clock read",
        threads: 1,
        at_most: 1.4,
    },
    Goal {
        row: "shared, precise, 1 thread / snowdon",
        of: "shared, precise time",
        to: "snowdon lock-free 41+22",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "shared, precise, 2 threads / snowdon",
        of: "shared, precise time",
        to: "snowdon lock-free 41+22",
        threads: 2,
        at_most: 1.0,
    },
    Goal {
        row: "shared, precise, 1 thread / idgenerator",
        of: "shared, precise time",
        to: "idgenerator, worker 1, sequence 21, mutex",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "shared, precise, 1 thread / uuid v7",
        of: "shared, precise time",
        to: "uuid v7 (fast-rng)",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "shared, precise, 1 thread / ulid",
        of: "shared, precise time",
        to: "ulid Generator, mutex",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "lane, 1 thread / ferroid Basic",
        of: "lane, cached time",
        to: "ferroid Basic 41+22, one a thread",
        threads: 1,
        at_most: 0.51,
    },
    Goal {
        row: "local, 1 thread / ferroid Basic",
        of: "local, cached time",
        to: "ferroid Basic 41+22, one a thread",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "fill of 4096, 1 thread / plain loop",
        of: "fill of 4096",
        to: "floor: writing 4096 in a loop",
        threads: 1,
        at_most: 1.5,
    },
    Goal {
        row: "segment, shared, 1 thread / fetch_add",
        of: "segment, shared",
        to: FLOOR,
        threads: 1,
        at_most: 1.3,
    },
    Goal {
        row: "segment, shared, 2 threads / fetch_add",
        of: "segment, shared",
        to: FLOOR,
        threads: 2,
        at_most: 1.0 / 0.9,
    },
    Goal {
        row: "base62 text / base62 crate",
        of: "base62 text",
        to: "base62 crate",
        threads: 1,
        at_most: 1.0,
    },
    Goal {
        row: "Crockford text / fast32 crate",
        of: "Crockford text",
        to: "fast32 crate, Crockford",
        threads: 1,
        at_most: 1.0,
    },
];

fn targets(cases: &[Case], samples: &BTreeMap<(usize, usize), Vec<Sample>>) {
    println!("\n| goal | time ratio, median of rounds | at most | |");
    println!("|---|---|---|---|");
    let find = |name: &str, threads: usize| {
        let index = cases.iter().position(|case| case.name == name)?;
        samples.get(&(index, threads))
    };
    for goal in &GOALS {
        let (Some(of), Some(to)) = (find(goal.of, goal.threads), find(goal.to, goal.threads))
        else {
            continue;
        };
        let found = ratio(of, to);
        let verdict = if found <= goal.at_most { "reached" } else { "**not reached**" };
        println!("| {} | {found:.2} | {:.2} | {verdict} |", goal.row, goal.at_most);
    }
}
