//! `snowmint doctor`: checks of clock, store, data directory, ports and layouts, in sentences.

mod access;
mod finding;
mod journal;

use std::net::ToSocketAddrs as _;
use std::path::Path;

use anstyle::AnsiColor;
use clap::Args;
use rtime_clock::adjtime::{Timex, adjtimex};
use snowmint_coord::external::is_external;
use snowmint_coord::journal::Past;
use snowmint_coord::recovery::compare_journal;
use snowmint_coord::spec::{Plan, SourceSpec};
use snowmint_coord::{
    Definition, Doubt, ErrorKind, Forecast, SlotInfo, StoreIdentity, forecast, is_worker_pool,
};
use snowmint_core::UnixMillis;
use snowmint_core::layout::EPOCH_DEFAULT;

use crate::config::{Config, ConfigArgs};
use crate::open::node::{Others, others_in};
use crate::open::store;
use crate::system::ntp::Ntp;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::print;
use crate::terminal::plural::{after, counted};
use crate::terminal::when::{self, Zone};
use finding::{Finding, Severity};
use journal::{JournalCheck, Store};

/// Check clock, store, data directory, ports and layouts, and report the results in sentences.
///
/// Changes nothing. Exit code 1 if a check fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint doctor
  snowmint doctor --config /etc/snowmint.toml --json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    config_args: ConfigArgs,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> Outcome {
        let config = self.config_args.load(Vec::new())?;
        let now = when::now();
        let mut findings = vec![clock(now), kernel_clock(), data_dir(&config.server.data_dir)];
        findings.extend([("http", &config.server.http), ("resp", &config.server.resp)].map(port));
        findings.extend(access::inspect(&config, now));
        findings.extend(layouts(&config, now));
        let runtime = store::runtime()?;
        findings.extend(runtime.block_on(time_server(&config)));
        let past = match journal::inspect(&config.server.data_dir, &config.store.namespace) {
            JournalCheck::Usable(past) => Some(past),
            JournalCheck::Checked(finding) => {
                findings.extend(finding);
                None
            }
        };
        findings.extend(runtime.block_on(the_store(&config, now, past.as_deref())));
        print(self.json, &findings, |out| {
            findings.iter().try_for_each(|Finding { severity, subject, message }| {
                let (colour, severity) = match severity {
                    Severity::Ok => (AnsiColor::Green, "ok"),
                    Severity::Warning => (AnsiColor::Yellow, "WARNING"),
                    Severity::Error => (AnsiColor::Red, "ERROR"),
                };
                let rest = format!("{subject:<10}{message}");
                out.styled(colour.on_default(), &format!("{severity:<8}"), &rest)
            })
        })?;
        if findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Failure::Negative);
        }
        Ok(())
    }
}

fn clock(now: UnixMillis) -> Finding {
    let shown = Zone::default().show(now);
    if now < EPOCH_DEFAULT {
        return Finding::error(
            "clock",
            format!("clock shows {shown}, a time before this program was built; set the clock"),
        );
    }
    Finding::ok("clock", format!("clock shows {shown}"))
}

/// Checks the kernel's state of the clock: `adjtimex(2)`.
fn kernel_clock() -> Finding {
    let mut timex = Timex::new();
    match adjtimex(&mut timex) {
        Ok(state) => kernel_says(state, timex.0.status, timex.0.maxerror),
        Err(error) => Finding::warning(
            "clock",
            format!("kernel does not report whether the clock is synchronised: {error}"),
        ),
    }
}

/// Describes the state that `adjtimex` returns, the status bits, and the largest error in
/// microseconds. <https://man7.org/linux/man-pages/man2/adjtimex.2.html>
fn kernel_says(state: i32, status: i32, error_us_max: i64) -> Finding {
    /// `STA_UNSYNC`.
    const UNSYNCHRONISED: i32 = 0x40;
    let leap = match state {
        // The states TIME_INS, TIME_DEL and TIME_OOP.
        1 => "a leap second is added at the end of this UTC day",
        2 => "a leap second is left out at the end of this UTC day",
        3 => "a leap second is being added now",
        // TIME_ERROR covers the bit, and more.
        _ if state == 5 || status & UNSYNCHRONISED != 0 => {
            return Finding::warning(
                "clock",
                "kernel reports an unsynchronised clock; run chrony, systemd-timesyncd or another \
                 time service on this machine (for a container or a virtual machine, on its host)",
            );
        }
        _ => {
            let error_ms = error_us_max.div_euclid(1000);
            return Finding::ok(
                "clock",
                format!(
                    "kernel reports a synchronised clock, to within {error_ms} ms, and no leap \
                     second near"
                ),
            );
        }
    };
    let what = "unless the time service smears it, the clock steps by a second, which every \
                on_rollback policy except fail handles";
    Finding::warning("clock", format!("{leap}; {what}"))
}

/// Compares the clock with the configured time server.
async fn time_server(config: &Config) -> Option<Finding> {
    let ntp = Ntp::at(&config.clock.ntp)?;
    let name = format!("the NTP server {}", ntp.place());
    Some(match ntp.ask().await {
        Ok(now) => apart(&name, when::now(), now, config.clock.skew_max.ms()),
        Err(error) => {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            let reason = reason.unwrap_or_else(|| "no reason is known".to_owned());
            Finding::warning(
                "clock",
                format!(
                    "clock cannot be compared with {name}: {reason}; check that it runs and is \
                     reachable over UDP"
                ),
            )
        }
    })
}

/// Reports the difference between our clock and another.
fn apart(name: &str, ours: UnixMillis, theirs: UnixMillis, limit_ms: u64) -> Finding {
    let apart_ms = ours.since(theirs).max(theirs.since(ours));
    let message = format!("clock is {apart_ms} ms from that of {name}");
    if apart_ms > limit_ms {
        return Finding::error("clock", format!("{message}, limit {limit_ms} ms; set it"));
    }
    Finding::ok("clock", message)
}

fn data_dir(dir: &Path) -> Finding {
    let shown = dir.display();
    match std::fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => match tempfile::tempfile_in(dir) {
            Ok(_) => match others_in(dir, &metadata) {
                Others::None => {
                    let message = format!("{shown} is writable by this user only");
                    Finding::ok("data dir", message)
                }
                Others::Few(text) => Finding::warning("data dir", text),
                Others::EveryUser(reason) => Finding::error("data dir", reason),
            },
            Err(error) => {
                let message = format!(
                    "{shown} cannot be written: {error}; check owner, permissions and mount"
                );
                Finding::error("data dir", message)
            }
        },
        Ok(_) => Finding::error("data dir", format!("{shown} is not a directory; name one")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok("data dir", format!("{shown} does not exist yet; the first start makes it"))
        }
        Err(error) => {
            let message = format!("{shown} cannot be read: {error}; check its permissions");
            Finding::error("data dir", message)
        }
    }
}

/// Checks whether `serve` could listen on this address now.
fn port((subject, address): (&'static str, &String)) -> Finding {
    let mut addresses = match address.to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => {
            return Finding::error(
                subject,
                format!("{address} is not an address to listen on: {error}; correct it"),
            );
        }
    };
    match addresses.try_for_each(|address| std::net::TcpListener::bind(address).map(drop)) {
        Ok(()) => Finding::ok(subject, format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Finding::warning(subject, format!("{address} is in use, perhaps by a running server"))
        }
        Err(error) => {
            let message = format!("cannot listen on {address}: {error}; name another address");
            Finding::error(subject, message)
        }
    }
}

/// Reports how long the layouts of the sources last that the configuration would define.
fn layouts(config: &Config, now: UnixMillis) -> Vec<Finding> {
    let builtin = config.sources.builtin.then(|| ("default".to_owned(), SourceSpec::default()));
    let defined = config.defined.iter().map(|(name, source)| (name.clone(), source.spec.clone()));
    let all = builtin.into_iter().chain(defined);
    all.filter_map(|(source, spec)| match spec.check() {
        Ok(Plan::Snowflake(plan)) => Some(lasts(&Forecast::of_layout(&source, &plan, now))),
        _ => None,
    })
    .collect()
}

/// Reports whether the store is in doubt, and which reports are missing; whether a start would put it
/// in doubt; and other namespaces that are in doubt, which no server may use.
async fn in_doubt(store: &dyn snowmint_coord::Store) -> Outcome<Vec<Finding>> {
    // Servers do not report this to clients: they check it themselves.
    if store.owner_client().is_some() {
        return Ok(Vec::new());
    }
    let standing = store.standing().await?;
    let missing = standing.missing().count();
    let others = &standing.others_in_doubt;
    let others = (!others.is_empty()).then(|| {
        Finding::warning(
            "store",
            format!(
                "other namespaces of the database are in doubt, so all of its servers take slower \
                 steps: {others}; recover each, used or not (snowmint worker recover --namespace \
                 NAME)"
            ),
        )
    });
    let in_doubt = |doubt: Doubt| {
        let reported = standing.journals.len().saturating_sub(missing) as u64;
        let has = after(reported, "has", "have");
        let (reported, missing) = (counted(reported, "journal"), missing as u64);
        let lacks = after(missing, "has", "have");
        let error = doubt.into_error();
        Finding::error(
            "store",
            format!(
                "store is in doubt, and no server mints: {error}; {reported} {has} reported, and \
                 {missing} {lacks} not; run snowmint worker recover --dry-run"
            ),
        )
    };
    let own = match standing.doubt {
        Some(doubt) => Some(in_doubt(doubt)),
        None => {
            let nothing = StoreIdentity { id: String::new(), writes: 0 };
            match store.recall("doctor", &nothing).await {
                Err(error) if matches!(error.kind(), ErrorKind::StoreRolledBack { .. }) => {
                    Some(Finding::error("store", format!("no server mints: {error}")))
                }
                recalled => recalled.map(|_| None)?,
            }
        }
    };
    Ok(own.into_iter().chain(others).collect())
}

/// Checks the store, its clock against ours, its content, and what the journal knows of it.
async fn the_store(config: &Config, now: UnixMillis, past: Option<&Past>) -> Vec<Finding> {
    let shown = store::shown(config);
    match look_into(&shown, config, now, past).await {
        Ok(findings) => findings,
        Err(failure) => {
            let message = format!("{shown} cannot be used: {}", failure.message());
            let unusable = Finding::error("store", message);
            let known = past.map(|past| journal::against(past, &Store::Silent));
            [unusable].into_iter().chain(known).collect()
        }
    }
}

async fn look_into(
    shown: &str,
    config: &Config,
    now: UnixMillis,
    past: Option<&Past>,
) -> Outcome<Vec<Finding>> {
    let namespace = &config.store.namespace;
    let obstacle = cannot_be_made(config);
    let there = match obstacle {
        Some(_) => None,
        None => store::existing(config).await?,
    };
    let Some(store) = there else {
        let none = match obstacle {
            Some(reason) => Finding::error(
                "store",
                format!("no store exists at {shown}, and none can be made: {reason}"),
            ),
            None => Finding::ok(
                "store",
                format!("no store exists at {shown} yet; the first start makes it"),
            ),
        };
        let known = past.map(|past| journal::against(past, &Store::None));
        return Ok([none].into_iter().chain(known).collect());
    };
    let identity = store.identity().await?;
    let catalog = store.list().await?;
    let workers = store.workers(now).await?;
    let mut findings = vec![Finding::ok(
        "store",
        format!(
            "{shown} responds: identity {}, {}; namespace {namespace} has {}, and {}",
            identity.store(),
            counted(identity.writes, "write"),
            counted(catalog.definitions.len(), "source"),
            claimed(&workers)
        ),
    )];
    if let Some(past) = past {
        let by = ("the journal", &past.record);
        let compared = compare_journal(&*store, by, past.marks_are_sure, now).await;
        findings.push(journal::against(past, &Store::Is(&compared)));
    }
    findings.extend(in_doubt(&*store).await?);
    findings.extend(store.warnings().into_iter().map(|text| Finding::warning("store", text)));
    if let Some(store_now) = store.now().await? {
        findings.push(apart("the store", when::now(), store_now, config.clock.skew_max.ms()));
    }
    findings.extend(supplies(config, &catalog.definitions, &workers, now));
    store.close().await?;
    Ok(findings)
}

/// Says how many worker numbers were ever claimed, and how many live members hold. Sections of
/// counters and of global order are slots as well, and no worker numbers.
fn claimed(slots: &[SlotInfo]) -> String {
    let is_worker = |slot: &&SlotInfo| is_worker_pool(&slot.pool) || is_external(&slot.pool);
    let (mut all, mut live) = (0_u64, 0_u64);
    for slot in slots.iter().filter(is_worker) {
        all += 1;
        live += u64::from(slot.live);
    }
    let were = after(all, "was", "were");
    let numbers = counted(all, "worker number");
    format!("{numbers} {were} ever claimed, of which live members hold {live}")
}

/// Returns the reason why the first start cannot create the missing file of a store. It creates the
/// data directory, but no other.
fn cannot_be_made(config: &Config) -> Option<String> {
    let file = store::file(config.store_url().text()).filter(|file| !file.exists())?;
    let directory = match file.parent()? {
        nothing if nothing.as_os_str().is_empty() => Path::new("."),
        directory => directory,
    };
    if directory == config.server.data_dir {
        // The data directory has a finding of its own.
        return None;
    }
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(metadata) if !metadata.is_dir() => Some(format!("{shown} is not a directory")),
        Ok(_) => {
            let error = tempfile::tempfile_in(directory).err()?;
            Some(format!("the directory {shown} cannot be written: {error}"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(format!("directory {shown} does not exist; create it"))
        }
        Err(error) => Some(format!("the directory {shown} cannot be read: {error}")),
    }
}

/// Reports how long the sources of the store last, and their pools. Layouts of the server's own
/// sources have a finding already. A source that was defined at run time fails no check.
fn supplies(
    config: &Config,
    definitions: &[Definition],
    workers: &[SlotInfo],
    now: UnixMillis,
) -> Vec<Finding> {
    let (own, reuse) = (config.own_sources(), config.worker.reuse());
    let of_own = definitions.iter().filter(|definition| own.has(&definition.name));
    let of_own = forecast(&of_own.cloned().collect::<Vec<_>>(), workers, reuse, now);
    let is_known = |of: &Forecast| matches!(of, Forecast::Layout { .. }) && of_own.contains(of);
    let all = forecast(definitions, workers, reuse, now).into_iter();
    let found = all.filter(|forecast| !is_known(forecast)).map(|forecast| {
        let finding = lasts(&forecast);
        match finding.severity {
            Severity::Error if !of_own.contains(&forecast) => {
                Finding { severity: Severity::Warning, ..finding }
            }
            _ => finding,
        }
    });
    found.collect()
}

fn lasts(forecast: &Forecast) -> Finding {
    let subject = if matches!(forecast, Forecast::Pool(_)) { "workers" } else { "layout" };
    let message = forecast.to_string();
    match (forecast.is_wrong(), forecast.is_warning()) {
        (true, _) => Finding::error(subject, message),
        (false, true) => Finding::warning(subject, message),
        (false, false) => Finding::ok(subject, message),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::{Mark, Term};

    use super::*;

    #[test]
    fn kernel_clock_state_becomes_a_finding() {
        for (state, status, severity, part) in [
            (0, 0x2001, Severity::Ok, "to within 2 ms"),
            (5, 0x40, Severity::Warning, "unsynchronised clock"),
            (0, 0x40, Severity::Warning, "unsynchronised clock"),
            (1, 0x2011, Severity::Warning, "added at the end"),
            (2, 0x2021, Severity::Warning, "left out"),
            (3, 0x2011, Severity::Warning, "added now"),
            // The state is TIME_WAIT: the leap second is over, and the flag was not cleared.
            (4, 0x2001, Severity::Ok, "synchronised"),
        ] {
            let finding = kernel_says(state, status, 2_500);
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert!(finding.message.contains(part), "{finding:?}");
        }
        // The result depends on the machine; it always has a message.
        assert!(!kernel_clock().message.is_empty());
    }

    #[test]
    fn sections_of_counters_are_no_worker_numbers() {
        let slot = |pool: &str, slot, live| SlotInfo {
            pool: pool.into(),
            slot,
            term: Term::new(1),
            mark: Mark::new(0),
            owner: String::new(),
            holder: None,
            host: None,
            process: None,
            joined_at: None,
            held_since: UnixMillis::ZERO,
            renewed_at: None,
            live,
            kept_away: false,
        };
        let mut slots = vec![slot("counters-16384", 7, true), slot("workers-10", 0, true)];
        let one = "1 worker number was ever claimed, of which live members hold 1";
        assert_eq!(claimed(&slots), one);
        slots.extend([slot("workers-10", 1, false), slot("orders-order", 1, true)]);
        let two = "2 worker numbers were ever claimed, of which live members hold 1";
        assert_eq!(claimed(&slots), two);
    }

    #[test]
    fn clocks_may_be_as_far_apart_as_the_limit() {
        let at = UnixMillis::new;
        for (ours, theirs, severity) in [
            (5_000, 15_000, Severity::Ok),
            (15_000, 5_000, Severity::Ok),
            (5_000, 15_001, Severity::Error),
            (15_001, 5_000, Severity::Error),
        ] {
            assert_eq!(
                apart("it", at(ours), at(theirs), 10_000).severity,
                severity,
                "{ours} {theirs}"
            );
        }
    }
}
