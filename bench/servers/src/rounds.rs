//! Rounds in which all take turns, so that a slow minute slows everybody.

use crate::apart;

/// How a program was asked to measure.
pub struct Plan {
    /// Everything once, small, to see that it works.
    pub test: bool,
    /// The server to measure.
    pub binary: String,
    /// How many threads ask: one, where they have no processors of their own.
    pub threads: usize,
    /// Whether they have.
    pub apart: bool,
    arguments: Vec<String>,
}

impl Plan {
    /// As the command line says: `--test`, `--snowmint PATH` in place of the packaged binary, and `--apart`, by
    /// which servers are on one half of the processors and whoever asks on the other.
    pub fn of_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let mut plan =
            Self { test: false, binary: String::new(), threads: 1, apart: false, arguments };
        plan.apart = plan.arguments.iter().any(|argument| argument == "--apart");
        if plan.apart {
            plan.threads = apart::part();
        }
        plan.test = plan.arguments.iter().any(|argument| argument == "--test");
        plan.binary = plan.value("--snowmint").unwrap_or("../target/dist/snowmint").to_owned();
        plan
    }

    /// What stands behind an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    /// How much of something: little in a test.
    pub fn much<T>(&self, measured: T, tested: T) -> T {
        if self.test { tested } else { measured }
    }
}

/// What each of them measures, all in turn in each round.
pub fn rounds<T>(rounds: usize, all: &mut [&mut dyn FnMut() -> T]) -> Vec<Vec<T>> {
    let mut found: Vec<Vec<T>> = all.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (measure, found) in all.iter_mut().zip(&mut found) {
            found.push(measure());
        }
    }
    found
}

/// The median of what the first is of the second, round by round.
pub fn ratio(one: &[f64], other: &[f64]) -> f64 {
    median(one.iter().zip(other).map(|(one, other)| one / other).collect())
}

/// The value in the middle.
///
/// # Panics
/// When there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
