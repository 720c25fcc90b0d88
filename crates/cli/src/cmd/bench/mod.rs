//! `snowmint bench`: load, with latencies, IDs per second, and a comparison of all IDs.

mod alarm;
mod check;
mod cpu;
mod grpc;
mod http;
mod load;
mod local;
mod observations;
mod report;
mod resp;
mod server;
mod shared;
mod stream;
mod target;
mod work;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use snowmint_coord::spec::Span;
use snowmint_coord::{END_MS, Node};

use self::check::{Checker, IdForm};
use self::load::{LoadTarget, Sum};
use self::report::BenchReport;
use self::server::BenchServer;
use self::shared::SharedState;
use self::target::Target;
use self::work::BenchWork;
use crate::cmd::values;
use crate::config::{ConfigArgs, Given};
use crate::open::node::{self, JournalUse};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome};

/// Number of IDs that show the form of all IDs.
const FIRST_IDS: u32 = 32;
/// Default duration of a run.
const LASTS_MS: u64 = 10_000;

/// Load a server, or mint in this process, and measure the speed.
///
/// Reports IDs per second, latencies (p50 to the maximum) and errors by code, and compares all IDs
/// with each other: exit code 1 if an ID comes twice. The IDs are real and are used up. Each
/// connection sends a round of --pipeline requests, and the next round after all responses. With
/// --rate, requests are due at fixed times, and latencies count from these times: all requests that
/// a stalled server delays show it. Ctrl-C ends the run early, with a report. The report includes
/// this process's processor time: with too few processors, the figures describe the machine.
///
/// Sends the token of SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE, if set. TLS trusts the system's
/// certificates, or SNOWMINT_CA_FILE; SNOWMINT_CERT_FILE has this client's certificate.
///
/// HTTP requests /v1/ids/{source} as text. RESP sends INCR, or MINT with --batch. gRPC calls Mint.
/// --local calls no server: each thread mints by itself, on a store in memory or on the store of
/// --config, --data-dir or --store.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint bench
  snowmint bench redis://127.0.0.1:7701 --pipeline 64 --connections 50
  snowmint bench grpc://ids.example:7700 --source orders --batch 100 --rate 2000 --duration 1m
  snowmint bench https://ids.example:7700 -n 1000000 --json
  snowmint bench --local --threads 2
  snowmint bench --local --store postgres://ids@db/ids --source numbers")]
pub(crate) struct Bench {
    /// Running server: http://host:port, redis://host:port or grpc://host:port; with TLS https,
    /// rediss, grpcs.
    #[arg(value_name = "URL", conflicts_with_all = ["local", "config", "data_dir", "store", "namespace"])]
    url: Option<Target>,
    /// Mint in this process, without a server.
    #[arg(long)]
    local: bool,
    /// Source to mint from.
    #[arg(long, value_name = "SOURCE", add = values::sources(), default_value = "default")]
    source: String,
    /// Key of a counter, or the name from which a source makes UUIDs of version 3 or 5.
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// Number of connections; default 8.
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "local")]
    connections: Option<u32>,
    /// IDs per request.
    #[arg(short, long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// Requests in flight on each connection.
    #[arg(short, long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "local")]
    pipeline: u32,
    /// Stop after this time; default 10s without --total.
    #[arg(short, long, value_name = "TIME")]
    duration: Option<Span>,
    /// Stop after requesting this number of IDs.
    #[arg(short = 'n', long, value_name = "IDS", value_parser = clap::value_parser!(u64).range(1..))]
    total: Option<u64>,
    /// Requests due per second, over all connections; without it, as fast as responses come.
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    rate: Option<u32>,
    /// Number of sending threads; default: the number of processors.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Largest number of IDs compared with each other, counted from the first; 0: none.
    #[arg(long, value_name = "IDS", default_value_t = 10_000_000)]
    check: u64,
    /// Largest memory for the comparison, in MiB; the rest goes to a temporary file.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    memory: u32,
    /// Directory of the temporary file.
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config_args: ConfigArgs,
}

impl Bench {
    pub(crate) fn run(self) -> Outcome {
        if !self.local && !self.config_args.is_empty() {
            return Err(Failure::usage(
                "--config, --data-dir, --store and --namespace need --local; add it",
            ));
        }
        if self.duration.is_some_and(|lasts| lasts.ms() == 0) {
            return Err(Failure::usage("--duration 0s is below the minimum of 1ms; raise it"));
        }
        store::runtime()?.block_on(self.measured())
    }

    async fn measured(&self) -> Outcome {
        if !self.local {
            let target = self.url.clone().unwrap_or_default();
            let name = target.to_string();
            let load_target = LoadTarget::Server(Box::new(BenchServer::new(target)?));
            let report = self.load(&load_target, name).await?;
            return self.verdict(&report);
        }
        let node = self.node().await?;
        let report = match node.source(&self.source).await {
            Ok(source) => self.load(&LoadTarget::Here(source), "this process".to_owned()).await,
            Err(error) => Err(error.into()),
        };
        let ended = node.end(END_MS).await;
        let report = report?;
        ended?;
        self.verdict(&report)
    }

    /// Opens a node of this process.
    async fn node(&self) -> Outcome<Node> {
        let forgets = [("store.url", "--local", "memory:")];
        let fallback = if self.config_args.is_empty() { &forgets[..] } else { &[] };
        let given = fallback.iter().map(|(key, name, text)| Given::flag(key, name, *text));
        let config = self.config_args.load(given.collect())?;
        node::open(&config, JournalUse::Without).await
    }

    async fn load(&self, load_target: &LoadTarget, name: String) -> Outcome<BenchReport> {
        let work = self.work();
        let first = load::first(load_target, &work, FIRST_IDS).await?;
        let form = IdForm::of(&first);
        let shared = Arc::new(SharedState::new(self.total, self.lasts_ns(), self.check));
        let memory_bytes = (self.memory as usize).saturating_mul(1024 * 1024);
        let temp_dir = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        let checker = Checker::start(form, memory_bytes, temp_dir);
        let progress = self.progress();
        let sum = {
            let keep = checker.sender();
            load::run(load_target, &work, &shared, form, &keep, || {
                self.show_progress(&shared, &progress)
            })
            .await
        };
        progress.set_message("comparing");
        let verdict = checker.verdict();
        progress.finish_and_clear();
        let sum: Sum = sum?;
        Ok(BenchReport::new(name, &work, sum, verdict?))
    }

    fn work(&self) -> BenchWork {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let wanted = self.threads.map_or(processors, number);
        // In this process each thread mints by itself.
        let connections = if self.local { wanted } else { self.connections.map_or(8, number) };
        BenchWork {
            source: self.source.clone(),
            key: self.key.clone(),
            batch: self.batch,
            connections,
            pipeline: number(self.pipeline),
            threads: std::cmp::min(wanted, connections),
            rate: self.rate,
        }
    }

    fn lasts_ns(&self) -> Option<u64> {
        let fallback = self.total.is_none().then_some(Span::from_ms(LASTS_MS));
        self.duration.or(fallback).map(|lasts| lasts.ms().saturating_mul(1_000_000))
    }

    /// Returns a progress bar, which shows on a terminal only.
    fn progress(&self) -> ProgressBar {
        let length = self.total.or(self.lasts_ns().map(|lasts| lasts / 1_000_000));
        let style = ProgressStyle::with_template("{spinner} {wide_bar} {percent} % {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(length.unwrap_or(0)).with_style(style)
    }

    fn show_progress(&self, shared: &SharedState, progress: &ProgressBar) {
        let Some(running_ns) = shared.running_ns() else { return };
        let (ids, running_ms) = (shared.ids(), running_ns / 1_000_000);
        progress.set_position(if self.total.is_some() { ids } else { running_ms });
        let each_second = ids.saturating_mul(1_000) / running_ms.max(1);
        progress.set_message(format!("{each_second} IDs a second"));
    }

    fn verdict(&self, report: &BenchReport) -> Outcome {
        report.say(self.json)?;
        if report.repeated() > 0 {
            return Err(Failure::Negative);
        }
        match report.first_error() {
            Some(error) if report.ids() == 0 => {
                Err(Failure::unavailable(format!("no ID was minted: {error}")))
            }
            _ => Ok(()),
        }
    }
}
