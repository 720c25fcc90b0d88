//! Result of a run, for people and for machines.

use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::check::Verdict;
use super::cpu::Processors;
use super::load::Sum;
use super::work::BenchWork;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;
use crate::terminal::plural::{after, grouped};

/// Waiting time for a processor, as a fraction of the run, from which the figures are called too
/// low.
const WAITED_MUCH: f64 = 0.1;

/// Result of a run.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    target: String,
    source: String,
    connections: usize,
    pipeline: usize,
    /// IDs per request.
    batch: u32,
    /// Requested rate, in requests per second.
    rate: Option<u32>,
    seconds: f64,
    /// Responses with IDs.
    answers: u64,
    ids: u64,
    answers_per_s: f64,
    ids_per_s: f64,
    latency_us: Latency,
    /// Requests that were rejected or got no response, by code.
    errors: Vec<Errors>,
    /// Requests that were due but not sent before the end.
    unsent: u64,
    processors: Processors,
    unique: Unique,
}

/// Latency of responses with IDs.
#[derive(Debug, Serialize)]
struct Latency {
    /// Start of the latency: `sent`, or `due` with a rate.
    from: &'static str,
    p50: f64,
    p90: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct Errors {
    code: String,
    count: u64,
    /// Message of the first error.
    example: String,
}

/// Extent and result of the comparison.
#[derive(Debug, Serialize)]
struct Unique {
    /// Number of compared IDs.
    compared: u64,
    /// Number of compared IDs that repeat an earlier one.
    repeated: u64,
    duplicates: Vec<Duplicate>,
}

#[derive(Debug, Serialize)]
struct Duplicate {
    id: String,
    times: u64,
}

impl BenchReport {
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub(super) fn new(target: String, work: &BenchWork, sum: Sum, verdict: Verdict) -> Self {
        let seconds = sum.run_ns as f64 / 1e9;
        let each_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let responses = sum.latencies.len();
        let errors = sum.refused.into_iter().map(|(code, refused)| Errors {
            code,
            count: refused.times,
            example: refused.example,
        });
        let duplicates = verdict.duplicates.into_iter().map(|(id, times)| Duplicate { id, times });
        Self {
            target,
            source: work.source.clone(),
            connections: work.connections,
            pipeline: work.pipeline,
            batch: work.batch,
            rate: work.rate,
            seconds,
            answers: responses,
            ids: sum.ids,
            answers_per_s: each_second(responses),
            ids_per_s: each_second(sum.ids),
            latency_us: Latency::of(&sum.latencies, work.rate.is_some()),
            errors: errors.collect(),
            unsent: sum.unsent,
            processors: sum.got.in_all(work.threads, sum.run_ns),
            unique: Unique {
                compared: verdict.compared,
                repeated: verdict.repeated,
                duplicates: duplicates.collect(),
            },
        }
    }

    pub(super) const fn ids(&self) -> u64 {
        self.ids
    }

    pub(super) const fn repeated(&self) -> u64 {
        self.unique.repeated
    }

    /// Returns the first error, for a run without IDs.
    pub(super) fn first_error(&self) -> Option<String> {
        self.errors.first().map(|error| format!("{}: {}", error.code, error.example))
    }

    pub(super) fn say(&self, json: bool) -> Outcome {
        let mut out = Output::new();
        if json {
            out.json(self)?;
        } else {
            out.text(&self.to_string())?;
        }
        out.flush()
    }

    fn say_errors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.errors.is_empty() && self.unsent == 0 {
            return writeln!(f, "  errors     none");
        }
        for Errors { code, count, example } in &self.errors {
            writeln!(f, "  errors     {} × {}: {}", grouped(*count), shown(code), shown(example))?;
        }
        if self.unsent > 0 {
            let (unsent, count) = (grouped(self.unsent), self.unsent);
            let requests = after(count, "request was", "requests were");
            writeln!(
                f,
                "  unsent     {unsent} {requests} due and not sent before the end: the rate is too high"
            )?;
        }
        Ok(())
    }

    fn say_unique(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unique { compared, repeated, duplicates } = &self.unique;
        for Duplicate { id, times } in duplicates {
            writeln!(f, "  duplicate  {id} occurs {times} times")?;
        }
        let which = match *compared {
            0 => return writeln!(f, "  unique     not compared"),
            all if all >= self.ids => format!("all {}", grouped(all)),
            some => format!("the first {} of {}", grouped(some), grouped(self.ids)),
        };
        let verdict = match repeated {
            0 => "all different".to_owned(),
            repeated => {
                let repeat = after(*repeated, "repeats", "repeat");
                format!("{} {repeat} an earlier one", grouped(*repeated))
            }
        };
        let ids = after(*compared, "ID", "IDs");
        writeln!(f, "  unique     {which} {ids} compared: {verdict}")
    }
}

impl Latency {
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    fn of(latencies: &Histogram<u64>, is_paced: bool) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile: f64| us(latencies.value_at_quantile(quantile));
        Self {
            from: if is_paced { "due" } else { "sent" },
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: us(latencies.max()),
        }
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, source, connections, pipeline, batch, seconds, .. } = self;
        write!(
            f,
            "{target}, source {source}: {connections} × {pipeline} requests of {batch} at once"
        )?;
        match self.rate {
            Some(rate) => writeln!(f, ", {} requests due per second", grouped(rate.into()))?,
            None => writeln!(f)?,
        }
        let (ids, responses) = (grouped(self.ids), grouped(self.answers));
        writeln!(f, "  IDs        {ids} in {seconds:.2} s: {} a second", rounded(self.ids_per_s))?;
        writeln!(f, "  responses  {responses}: {} a second", rounded(self.answers_per_s))?;
        let Latency { from, p50, p90, p99, p99_9, max } = &self.latency_us;
        let [p50, p90, p99, p99_9, max] = [*p50, *p90, *p99, *p99_9, *max].map(time);
        let from = if *from == "due" { "from the time that each was due" } else { "from sending" };
        writeln!(
            f,
            "  latency    p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p99_9}, max {max} ({from})"
        )?;
        self.say_errors(f)?;
        let Processors { threads, ran_s, busy, waited } = self.processors;
        write!(
            f,
            "  processor  {ran_s:.2} s on {threads} threads, {:.0} % of their time",
            busy * 100.0
        )?;
        match waited {
            Some(waited) => writeln!(f, "; {:.0} % waiting for a processor", waited * 100.0)?,
            None => writeln!(f)?,
        }
        if waited.is_some_and(|waited| waited > WAITED_MUCH) {
            writeln!(
                f,
                "             this process lacked processors: the target is faster than these figures"
            )?;
        }
        self.say_unique(f)
    }
}

/// Formats a duration in the unit that reads best.
fn time(us: f64) -> String {
    if us < 10.0 {
        format!("{:.0} ns", us * 1e3)
    } else if us < 10_000.0 {
        format!("{us:.0} µs")
    } else if us < 10_000_000.0 {
        format!("{:.1} ms", us / 1e3)
    } else {
        format!("{:.1} s", us / 1e6)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and a cast saturates"
)]
fn rounded(number: f64) -> String {
    grouped(number.round() as u64)
}

/// Returns a server's message as one line that cannot control the terminal.
fn shown(text: &str) -> String {
    text.chars().take(200).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_shown_as_people_read_them() {
        assert_eq!(rounded(1234.6), "1,235");
        let times = [0.045, 9.9, 63.4, 12_345.0, 12_000_000.0].map(time);
        assert_eq!(times, ["45 ns", "9900 ns", "63 µs", "12.3 ms", "12.0 s"]);
    }
}
