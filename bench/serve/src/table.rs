//! The results, as a table that can be pasted.

use std::fmt::Display;
use std::time::{Duration, Instant};

use snowmint_bench_servers::{Process, median, ratio};

/// Prints rows as they come.
pub struct Table(());

/// How fast one of several was in one round.
#[derive(Clone, Copy)]
pub struct Sample {
    /// So many a second.
    pub rate: f64,
    /// What each took of the server's processors, in microseconds.
    pub cpu_us: f64,
}

impl Sample {
    /// Of a run that did so many.
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

/// What a row should reach.
pub enum Wanted {
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
    /// It is only stated.
    Stated,
}

impl Table {
    pub fn begin() -> Self {
        println!("| row | reached | wanted | |");
        println!("|---|---|---|---|");
        Self(())
    }

    /// One row: what was reached, in words around the number that counts.
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

    /// A row beside a rival: the ratio of the rates, and what each takes of the processors.
    pub fn beside(&mut self, name: &str, [ours, theirs]: [&[Sample]; 2], wanted: Wanted) {
        let rates = |of: &[Sample]| of.iter().map(|sample| sample.rate).collect::<Vec<_>>();
        let reached = ratio(&rates(ours), &rates(theirs));
        let [one, other] = [ours, theirs].map(|of| median(rates(of)));
        let shown =
            format!("{reached:.2}: {one:.0}/s beside {other:.0}/s; {}", cpu([ours, theirs]));
        self.row(name, reached, shown, wanted, "");
    }
}

/// What each takes of the processors.
pub fn cpu([ours, theirs]: [&[Sample]; 2]) -> String {
    let cpu = |of: &[Sample]| median(of.iter().map(|sample| sample.cpu_us).collect());
    format!("{:.2} us of CPU beside {:.2}", cpu(ours), cpu(theirs))
}
