//! Rounds in which all cases take turns, so that a slow minute slows all of them.

use crate::apart;

/// Options of a measurement.
pub struct Plan {
    /// Whether to run everything once, small, to see that it works.
    pub test: bool,
    /// The server to measure.
    pub binary: String,
    /// Number of client threads: one, unless clients have processors of their own.
    pub threads: usize,
    /// Whether clients have processors of their own.
    pub apart: bool,
    arguments: Vec<String>,
}

impl Plan {
    /// Reads the command line: `--test`, `--snowmint PATH` in place of the packaged binary, and
    /// `--apart`, which puts servers on one half of the processors and clients on the other.
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

    /// Returns the argument that follows an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    /// Returns an amount of work: `tested` in a test, else `measured`.
    pub fn much<T>(&self, measured: T, tested: T) -> T {
        if self.test { tested } else { measured }
    }
}

/// Returns the measurements of each server; all take turns in each round.
pub fn rounds<S, T>(rounds: usize, servers: &[S], mut measure: impl FnMut(&S) -> T) -> Vec<Vec<T>> {
    let mut found: Vec<Vec<T>> = servers.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (server, found) in servers.iter().zip(&mut found) {
            found.push(measure(server));
        }
    }
    found
}

/// Returns the median of the ratios `one / other`, round by round.
pub fn ratio(one: &[f64], other: &[f64]) -> f64 {
    median(one.iter().zip(other).map(|(one, other)| one / other).collect())
}

/// Returns the middle value.
///
/// # Panics
/// When `values` is empty.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
