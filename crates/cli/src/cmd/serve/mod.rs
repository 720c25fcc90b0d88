//! `snowmint serve`: the composition root. It assembles configuration, store, node and server, and
//! stops them in the right order.

mod checks;
mod follow;
mod listening;
mod log;
mod opening;
mod reload;
mod signals;
mod supervisor;
mod traces;
mod welcome;

use std::sync::Arc;

use clap::Args;
use snowmint_coord::{BootTimer, ErrorKind, Node, PoolFull};
use snowmint_server::{Handle, HttpSettings, Settings, Traces};
use snowmint_wire::error::Code;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::Signal;

use self::checks::{checked, filter};
use self::follow::{LogFilter, RequestLimits, SetFilter, Sources, Stores};
use self::listening::{announce, listen, reach};
use self::log::log_to_stderr;
use self::opening::{AtStart, log_forecasts, open, open_the_rest, sources_at_start};
use self::reload::{ReadConfig, Reload, Reloadable};
use self::signals::{Signals, hangups};
use self::supervisor::Supervisor;
use self::welcome::Welcome;
use crate::cmd::serve::traces::Exporting;
use crate::config::{
    Config, ConfigArgs, CrashPolicy, Given, NumberChoice, WorkerReuse, WorkerSection,
};
use crate::open::node::{self, JournalUse};
use crate::open::store::code_of;
use crate::open::{store, upstreams};
use crate::security::{Security, check_public_texts, warnings};
use crate::system::descriptors;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;

/// Serve IDs over HTTP and RESP.
///
/// Defaults: the store is a file in ./snowmint-data, HTTP is on 127.0.0.1:7700, RESP on
/// 127.0.0.1:7701, and the sources default (snowflake), numbers (segment) and counters (counter)
/// exist. The first line on standard output is `listening http=ADDRESS resp=ADDRESS`; a terminal
/// also gets, once the server is ready, the console's address and a command to try it.
///
/// SIGTERM or SIGINT stops the server: it finishes requests in progress and releases worker
/// numbers. A second signal does not wait for requests. SIGHUP reloads the configuration: changes
/// of log, limits and sources apply at once, and the log names keys that need a restart.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint serve
  snowmint serve --config /etc/snowmint.toml --check
  snowmint serve --config /etc/snowmint.toml --http 0.0.0.0:7700 --resp 0.0.0.0:7701
  snowmint serve --store memory: --ephemeral --http 127.0.0.1:0 --resp 127.0.0.1:0")]
pub(crate) struct Serve {
    #[command(flatten)]
    config_args: ConfigArgs,
    /// HTTP and gRPC listen address; port 0 picks a free port.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Listen address of RESP, the protocol of Redis; port 0 picks a free port.
    #[arg(long, value_name = "ADDR")]
    resp: Option<String>,
    /// Name in `worker list`; a restart under it reclaims the worker number.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Allow addresses that other machines reach, without tokens and TLS.
    #[arg(long)]
    insecure: bool,
    /// Allow a store that forgets everything when the process ends: IDs may come again then.
    #[arg(long)]
    ephemeral: bool,
    /// Only check the configuration.
    #[arg(long)]
    check: bool,
}

impl Serve {
    pub(crate) fn run(self) -> Outcome {
        let insecure = self.insecure.then_some("true");
        let texts = [self.http.as_deref(), self.resp.as_deref(), self.owner.as_deref(), insecure];
        let flags: Vec<_> = ConfigArgs::SERVE_KEYS
            .into_iter()
            .zip(texts)
            .filter_map(|((key, name), text)| Some(Given::flag(key, name, text?)))
            .collect();
        let config = self.config_args.load(flags.clone())?;
        self.run_as(&config, flags).map_err(|failure| config.places.located(failure))
    }

    fn run_as(self, config: &Config, flags: Vec<Given>) -> Outcome {
        let forgets = config.store_url().text().starts_with("memory:");
        if forgets && !self.ephemeral {
            return Err(Failure::usage(
                "store memory: forgets everything when the process ends, so IDs may repeat; add \
                 --ephemeral to accept that",
            ));
        }
        let filter = checked(config)?;
        store::runtime()?.block_on(async { upstreams::all(&config.upstreams).map(drop) })?;
        if self.check {
            Security::load(config)?;
            check_public_texts(config)?;
            warnings(config).into_iter().for_each(complain);
            let mut out = Output::new();
            out.line("the configuration is right")?;
            return out.flush();
        }
        let set_filter = log_to_stderr(filter);
        let files = descriptors::raise_limit();
        let (http_max, resp_max) = (config.http.connections_max, config.resp.connections_max);
        if let Some(shortage) = descriptors::shortage(files, http_max, resp_max) {
            tracing::warn!("{shortage}");
        }
        let journal = if forgets { JournalUse::Without } else { JournalUse::Locked };
        let runtime = Runtime::new()
            .map_err(|error| Failure::unavailable(format!("runtime cannot start: {error}")))?;
        let config_args = self.config_args;
        let read: ReadConfig = Box::new(move || {
            let config = config_args.load(flags.clone())?;
            checked(&config).map_err(|failure| config.places.located(failure))?;
            Ok(config)
        });
        let outcome = runtime.block_on(serve(config, journal, read, set_filter));
        // Tasks that still run have used up their time.
        runtime.shutdown_background();
        outcome
    }
}

/// Starts the server, waits for its end, and stops it.
async fn serve(
    config: &Config,
    journal: JournalUse,
    read: ReadConfig,
    set_filter: SetFilter,
) -> Outcome {
    // Signals are registered first: one that comes during the start must not be lost.
    let mut signals = Signals::new()?;
    let security = Security::load(config)?;
    for warning in warnings(config) {
        tracing::warn!("{warning}");
    }
    // A reload may wait for a store, and the files of tokens do not wait with it.
    let file_hangups = hangups()?;
    let reloading = Reloading { hangups: hangups()?, read, set_filter };
    // Ports come before worker numbers: a port in use should not cost any worker number.
    let http = listen(config, &config.server.http, "server.http").await?;
    let resp = listen(config, &config.server.resp, "server.resp").await?;
    let reach = reach(config, &http, &resp).to_string();
    let exporting = Exporting::start(config)?;
    let traces = exporting.traces();
    let opening = node::open_serving(config, journal, reach, traces.as_ref());
    let Some(node) = signals.unless_stopped(opening).await? else {
        // There is nothing to finish or to release.
        exporting.stop().await;
        return Ok(());
    };
    let guards = (security, file_hangups, traces);
    let served = match signals.unless_stopped(check_workers(config, &node)).await {
        Ok(Some(())) => {
            serve_on(config, &node, guards, (http, resp), &mut signals, reloading).await
        }
        Ok(None) => Ok(()),
        Err(refused) => Err(refused),
    };
    // The generators end for good before the store is notified, and the store is closed last.
    let closed = tokio::select! {
        closed = node.end(config.limits.stop_max.ms()) => closed.map_err(Failure::from),
        () = signals.next() => Err(Failure::unavailable(
            "stopped without a release of the worker numbers; they are free once the lease expires \
             (counters.lease)",
        )),
    };
    exporting.stop().await;
    tracing::info!("stopped");
    served.and(closed)
}

/// Claims the worker numbers before the server serves, if the configuration restricts them.
/// Otherwise sources that need no number are served while the others wait for theirs. Only the
/// server's own sources delay or end the start: anyone with `admin` over a name can define others.
async fn check_workers(config: &Config, node: &Node) -> Outcome {
    let WorkerSection { number, reuse, after_crash, .. } = &config.worker;
    if (*number, *reuse, *after_crash == CrashPolicy::Refuse)
        == (NumberChoice::Any, WorkerReuse::Recycle, false)
    {
        return Ok(());
    }
    let sources = match node.sources().await {
        // An earlier start checked them while the store was reachable.
        Err(error) if node::is_away(&error) && !node.saved_sources().is_empty() => return Ok(()),
        listed => listed?.sources,
    };
    let own = sources.iter().filter(|source| node.is_own(&source.name));
    for source in own.filter(|source| source.spec.is_enabled()) {
        let Err(error) = node.source(&source.name).await else { continue };
        let message =
            |more: &str| format!("source {}: {}{more}", source.name, error.full_message());
        match error.kind() {
            // Worker numbers are reserved beyond the clock's time.
            ErrorKind::ClockBehind { .. } if *after_crash == CrashPolicy::Refuse => {
                return Err(Failure::refused(Code::ClockBehind, message("")));
            }
            ErrorKind::PoolFull(full) if *number != NumberChoice::Any => {
                let holder = holder(node, full).await;
                let ways = format!("{holder}; stop that process or choose another worker.number");
                return Err(Failure::refused(Code::PoolFull, message(&ways)));
            }
            ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Unsupported => {
                return Err(Failure::coded(code_of(&error), message("")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Describes the process that holds the number, as far as the store knows.
async fn holder(node: &Node, full: &PoolFull) -> String {
    let Some(holder) = full.holders.first() else { return String::new() };
    let workers = node.workers().await.unwrap_or_default();
    let held = workers.iter().find(|slot| slot.pool == full.pool && slot.slot == holder.slot);
    match held.and_then(|slot| Some((slot.host.as_ref()?, slot.process?))) {
        Some((host, process)) => format!("; held by process {process} on host {host}"),
        None => String::new(),
    }
}

/// Inputs of a reload.
struct Reloading {
    hangups: Signal,
    read: ReadConfig,
    set_filter: SetFilter,
}

/// Returns the settings of HTTP, with the name by which peers call this server.
fn http_settings(config: &Config) -> HttpSettings {
    let mut settings = config.http.clone();
    settings.hosts.push(config.server.name());
    settings
}

async fn serve_on(
    config: &Config,
    node: &Node,
    (security, file_hangups, traces): (Security, Signal, Option<Traces>),
    (http, resp): (TcpListener, TcpListener),
    signals: &mut Signals,
    reloading: Reloading,
) -> Outcome {
    let settings = Settings {
        limits: config.limits.clone(),
        http: http_settings(config),
        resp: config.resp.clone(),
        compat: config.compat.clone(),
        access_log: config.log.access,
    };
    let parts = snowmint_server::ServerDeps {
        node: node.clone(),
        configured: config.specs(),
        offered: config.store.offered.then(|| Arc::clone(node.store())),
        timer: Arc::new(BootTimer),
        http: Some(http),
        resp: Some(resp),
        access: security.access(),
        tls: security.tls(),
        traces,
    };
    let scheme = if parts.tls.is_some() { "https" } else { "http" };
    // The server is not ready before it has its worker numbers.
    node.begin_opening();
    let handle = snowmint_server::start(settings, parts)
        .map_err(|error| Failure::unavailable(format!("server cannot start: {error}")))?;
    announce(&handle)?;
    let welcome = Welcome::for_terminal(config, handle.http(), scheme);
    let greeting = welcome.map(|welcome| tokio::spawn(welcome.once_ready(node.clone())));
    let supervisor = Supervisor::default();
    let attending = tokio::spawn({
        let (node, supervisor) = (node.clone(), supervisor.clone());
        async move {
            let AtStart { own, others, is_complete } = sources_at_start(&node).await;
            node.opening_of(own.clone());
            open(&node, own).await;
            node.opening_of([]);
            let rest = async {
                open(&node, others).await;
                // A node that waits for an operator has listed the sources, but opened none.
                if !is_complete || node.incarnation().is_none() {
                    open_the_rest(&node).await;
                }
            };
            tokio::join!(supervisor.attend(node.clone()), rest);
        }
    });
    let forecasts = tokio::spawn(log_forecasts(node.clone()));
    let following = tokio::spawn(security.follow(file_hangups));
    run(config, node, &handle, signals, reloading, &supervisor).await;
    tracing::info!("stopping: requests in progress are finished; a second signal does not wait");
    attending.abort();
    if let Some(greeting) = greeting {
        greeting.abort();
    }
    forecasts.abort();
    following.abort();
    supervisor.stopping();
    let stopped = async {
        handle.hand_over().await;
        handle.stop();
        handle.stopped().await;
    };
    tokio::select! {
        () = stopped => {}
        () = signals.next() => tracing::warn!("requests in progress are cut off"),
    }
    Ok(())
}

/// Serves until a signal ends it, and reloads the configuration meanwhile.
async fn run(
    config: &Config,
    node: &Node,
    handle: &Handle,
    signals: &mut Signals,
    reloading: Reloading,
    supervisor: &Supervisor,
) {
    let Reloading { mut hangups, read, set_filter } = reloading;
    let service = handle.service();
    let followers: Vec<Box<dyn Reloadable>> = vec![
        Box::new(LogFilter(set_filter)),
        Box::new(RequestLimits(service.clone())),
        Box::new(Stores(node.clone())),
        Box::new(Sources(service.for_configuration())),
    ];
    let mut reload = Reload::new(read, config.clone(), followers);
    loop {
        tokio::select! {
            () = signals.next() => return,
            _ = hangups.recv() => supervisor.reloading(),
        }
        tokio::select! {
            _ = reload.run() => supervisor.reloaded(),
            () = signals.next() => return,
        }
    }
}
