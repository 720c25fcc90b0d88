//! `snowmint doctor`: is everything as it must be, in sentences.

use std::net::ToSocketAddrs as _;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use snowmint_coord::spec::{Plan, SourceSpec};
use snowmint_core::layout::{EPOCH_DEFAULT, Lifetime};
use snowmint_core::{Layout, UnixMillis};

use crate::config::{Chosen, Config};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::store;
use crate::when::{self, Zone};

/// Check clock, store, data directory, ports and layouts, and say in sentences what is found.
///
/// Changes nothing. Exit code 1 when something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint doctor
  snowmint doctor --config /etc/snowmint.toml --json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    chosen: Chosen,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Clocks further apart than this are not minted by.
const CLOCKS_APART_MS_MAX: u64 = 10_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Good,
    Warning,
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    grade: Grade,
    about: &'static str,
    sentence: String,
}

fn good(about: &'static str, sentence: impl Into<String>) -> Finding {
    Finding { grade: Grade::Good, about, sentence: sentence.into() }
}

fn warning(about: &'static str, sentence: impl Into<String>) -> Finding {
    Finding { grade: Grade::Warning, about, sentence: sentence.into() }
}

fn wrong(about: &'static str, sentence: impl Into<String>) -> Finding {
    Finding { grade: Grade::Wrong, about, sentence: sentence.into() }
}

impl Doctor {
    pub(crate) fn run(self) -> Outcome {
        let config = self.chosen.load(Vec::new())?;
        let now = when::now();
        let mut findings = vec![clock(now), data_dir(&config.server.data_dir)];
        findings.extend([("http", &config.server.http), ("resp", &config.server.resp)].map(port));
        findings.extend(layouts(&config, now));
        findings.extend(store::runtime()?.block_on(the_store(&config, now)));
        let mut out = Output::new();
        for finding in &findings {
            if self.json {
                out.json(finding)?;
                continue;
            }
            let grade = match finding.grade {
                Grade::Good => "good",
                Grade::Warning => "WARNING",
                Grade::Wrong => "WRONG",
            };
            out.line(format_args!("{grade:<8}{:<10}{}", finding.about, finding.sentence))?;
        }
        out.flush()?;
        if findings.iter().any(|finding| finding.grade == Grade::Wrong) {
            return Err(Failure::SaidNo);
        }
        Ok(())
    }
}

fn clock(now: UnixMillis) -> Finding {
    let shown = Zone::default().show(now);
    if now < EPOCH_DEFAULT {
        return wrong(
            "clock",
            format!("It says {shown}, which is before this program was made: set it."),
        );
    }
    good("clock", format!("It says {shown}."))
}

fn data_dir(dir: &Path) -> Finding {
    let shown = dir.display();
    match std::fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => match tempfile::tempfile_in(dir) {
            Ok(_) => good("data dir", format!("{shown} can be written.")),
            Err(error) => wrong("data dir", format!("{shown} cannot be written: {error}.")),
        },
        Ok(_) => wrong("data dir", format!("{shown} is not a directory.")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            good("data dir", format!("{shown} does not exist yet; the first start makes it."))
        }
        Err(error) => wrong("data dir", format!("{shown} cannot be looked at: {error}.")),
    }
}

/// Whether `serve` could listen there now.
fn port((about, address): (&'static str, &String)) -> Finding {
    let mut addresses = match address.to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => {
            return wrong(about, format!("{address} is no address to listen on: {error}."));
        }
    };
    match addresses.try_for_each(|address| std::net::TcpListener::bind(address).map(drop)) {
        Ok(()) => good(about, format!("{address} is free.")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            warning(about, format!("{address} is in use, perhaps by a server that runs already."))
        }
        Err(error) => wrong(about, format!("{address} cannot be listened on: {error}.")),
    }
}

/// How long the layout of each source lasts.
fn layouts(config: &Config, now: UnixMillis) -> Vec<Finding> {
    let builtin = config.sources.builtin.then(|| ("default".to_owned(), SourceSpec::default()));
    let defined = config.defined.iter().map(|(name, source)| (name.clone(), source.spec.clone()));
    let all = builtin.into_iter().chain(defined);
    all.filter_map(|(name, spec)| match spec.check() {
        Ok(Plan::Snowflake(plan)) => Some(lifetime(&name, &plan.layout, now)),
        _ => None,
    })
    .collect()
}

/// The store, its clock against ours, and what it holds.
async fn the_store(config: &Config, now: UnixMillis) -> Vec<Finding> {
    let url = config.store_url();
    if let Some(file) = store::file(&url)
        && !file.exists()
    {
        let file = file.display();
        return vec![good(
            "store",
            format!("{file} does not exist yet; the first start makes it."),
        )];
    }
    match look_into(&url, config, now).await {
        Ok(findings) => findings,
        Err(Failure::Said { message, .. }) => {
            let shown = snowmint_stores::shown(&url);
            vec![wrong("store", format!("{shown} cannot be used: {message}."))]
        }
        Err(_) => Vec::new(),
    }
}

async fn look_into(url: &str, config: &Config, now: UnixMillis) -> Outcome<Vec<Finding>> {
    let namespace = &config.store.namespace;
    let store = store::open(url, namespace).await?;
    let identity = store.identity().await?;
    let catalog = store.list().await?;
    let workers = store.workers(now).await?;
    let live = workers.iter().filter(|slot| slot.live).count();
    let mut findings = vec![good(
        "store",
        format!(
            "{} answers: identity {}, {} writes. Namespace {namespace} has {} sources, and live \
             members hold {live} of {} worker numbers that were ever taken.",
            snowmint_stores::shown(url),
            identity.id,
            identity.writes,
            catalog.definitions.len(),
            workers.len()
        ),
    )];
    findings.extend(store.cautions().into_iter().map(|caution| warning("store", caution + ".")));
    if let Some(store_now) = store.now().await? {
        let apart_ms = now.since(store_now).max(store_now.since(now));
        let sentence = format!("It is {apart_ms} ms from the store's.");
        findings.push(if apart_ms > CLOCKS_APART_MS_MAX {
            wrong("clock", sentence)
        } else {
            good("clock", sentence)
        });
    }
    for definition in &catalog.definitions {
        if config.defined.contains_key(&definition.name) {
            continue;
        }
        if let Ok(Plan::Snowflake(plan)) =
            SourceSpec::from_json(&definition.spec).and_then(|spec| spec.check())
        {
            findings.push(lifetime(&definition.name, &plan.layout, now));
        }
    }
    store.close().await?;
    Ok(findings)
}

fn lifetime(name: &str, layout: &Layout, now: UnixMillis) -> Finding {
    let life = layout.lifetime_at(now);
    let sentence = format!("The layout of {name} {life}.");
    match life {
        Lifetime::Long { .. } => good("layout", sentence),
        Lifetime::EndsSoon { .. } => warning("layout", sentence),
        _ => wrong("layout", sentence),
    }
}
