//! The results, as a Markdown table.

use std::fmt::Display;
use std::time::{Duration, Instant};

use snowmint_bench_servers::{Process, median, ratio};

/// Printer of rows, one at a time.
pub struct Table(());

/// Speed of one server in one round.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Operations per second.
    pub rate: f64,
    /// CPU time of the server per operation, in microseconds.
    pub cpu_us: f64,
}

impl Sample {
    /// Measures a run, which returns its number of operations.
    pub fn of(server: &Process, run: impl FnOnce() -> f64) -> Self {
        let (cpu, begun) = (server.cpu(), Instant::now());
        let count = run();
        let (took, cpu) = (begun.elapsed().as_secs_f64(), server.cpu().saturating_sub(cpu));
        Self { rate: count / took, cpu_us: micros(cpu) / count }
    }
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Limit of a row.
pub enum Wanted {
    /// Lower limit.
    Least(f64),
    /// Upper limit.
    Most(f64),
    /// No limit: the value is only printed.
    Stated,
}

impl Table {
    pub fn begin() -> Self {
        println!("| row | reached | wanted | |");
        println!("|---|---|---|---|");
        Self(())
    }

    /// Prints one row: the reached value decides the verdict, and `shown` presents it.
    pub fn row(
        &mut self,
        name: &str,
        reached: f64,
        shown: impl Display,
        wanted: Wanted,
        unit: &str,
    ) {
        let (wanted, verdict) = match wanted {
            Wanted::Least(least) => (format!("at least {least}{unit}"), Some(reached >= least)),
            Wanted::Most(most) => (format!("at most {most}{unit}"), Some(reached <= most)),
            Wanted::Stated => (String::new(), None),
        };
        let verdict = match verdict {
            Some(true) => "reached",
            Some(false) => "**not reached**",
            None => "stated",
        };
        println!("| {name} | {shown} | {wanted} | {verdict} |");
    }

    /// Prints a comparison with a rival: the ratio of the rates, and the CPU time per operation of
    /// both.
    pub fn compare(&mut self, name: &str, [ours, theirs]: [&[Sample]; 2], wanted: Wanted) {
        let rates = |of: &[Sample]| of.iter().map(|sample| sample.rate).collect::<Vec<_>>();
        let reached = ratio(&rates(ours), &rates(theirs));
        let [one, other] = [ours, theirs].map(|of| median(rates(of)));
        let shown =
            format!("{reached:.2}: {one:.0}/s against {other:.0}/s; {}", cpu([ours, theirs]));
        self.row(name, reached, shown, wanted, "");
    }
}

/// Returns the CPU time per operation of both as text.
pub fn cpu([ours, theirs]: [&[Sample]; 2]) -> String {
    let cpu = |of: &[Sample]| median(of.iter().map(|sample| sample.cpu_us).collect());
    format!("{:.2} us of CPU against {:.2}", cpu(ours), cpu(theirs))
}
