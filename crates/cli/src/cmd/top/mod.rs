//! `snowmint top`: servers, rates, windows, clocks and errors, live in the terminal.

mod errors;
mod fetch;
mod figures;
mod heading;
mod history;
mod live;
mod metrics;
mod overall;
mod plain;
mod servers;
mod sources;
mod state;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod view;

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::mpsc;
use std::thread;

use clap::Args;
use snowmint_coord::spec::Span;
use snowmint_coord::{BootTimer, Timer as _};
use snowmint_wire::http::ServerBody;

use self::fetch::NamedServer;
use self::state::{Moment, State};
use self::view::Theme;
use crate::client::{ApiClient, DEFAULT_SERVER};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

const INTERVAL_MS_MIN: u64 = 100;
const INTERVAL_MS_MAX: u64 = 3_600_000;

/// Watch servers, rates, windows, clocks and errors live in the terminal.
///
/// Shows all servers of the namespace, the rates of all sources over all servers, and the errors of requests. Errors,
/// runway and prefetched numbers are those of the servers that --server names, so name all of them to see all. A
/// server that stops responding keeps its last values, marked as old, and is called again. The key ? explains the keys
/// and the columns.
///
/// With tokens, the view needs `admin *` and `metrics *`; without them, it says what is missing. NO_COLOR switches
/// colours off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint top
  snowmint top --server snowmint://ids-1:7700,ids-2:7700,ids-3:7700 --interval 5s
  snowmint top --once > snapshot.txt")]
pub(crate) struct Top {
    /// Running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// Time between two calls, 100ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    interval: Span,
    /// Print one snapshot as text after --interval: the rates of errors need two calls.
    #[arg(long)]
    once: bool,
}

impl Top {
    pub(crate) fn run(self) -> Outcome {
        let (interval, interval_ms) = (self.interval, self.interval.ms());
        if !(INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(&interval_ms) {
            return Err(Failure::usage(format!(
                "--interval {interval} is not between 100ms and 1h; choose another time"
            )));
        }
        if !self.once {
            needs_terminal()?;
        }
        let named = NamedServer::all_of(&self.server)?;
        let names = named.iter().map(|server| server.name.clone()).collect();
        let state = State::new(names, interval_ms, Moment::now());
        if self.once {
            return once(&ApiClient::looking(&self.server)?, named, state);
        }
        let is_coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        live::run(&self.server, named, state, Theme::new(is_coloured))
    }
}

/// Checks that standard output can show a screen.
fn needs_terminal() -> Outcome {
    let advice = "run snowmint top --once to print one snapshot as text";
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(format!("standard output is not a terminal; {advice}")));
    }
    if env::var_os("TERM").is_some_and(|name| name == "dumb") {
        return Err(Failure::usage(format!("terminal \"dumb\" (TERM) shows no screen; {advice}")));
    }
    Ok(())
}

/// Prints one snapshot.
fn once(client: &ApiClient, named: Vec<NamedServer>, mut state: State) -> Outcome {
    // The first call's error ends the command with its own code.
    let _: ServerBody = client.get("/v1/server")?;
    let interval_ms = state.interval_ms;
    let (sender, updates) = mpsc::channel();
    // All at the same time: one that does not respond delays no other.
    for server in named {
        let (sender, pause) = (sender.clone(), store::runtime()?);
        let mut tell = move |update| drop(sender.send((Moment::now(), update)));
        let twice = move || {
            // A server that sent nothing has no rates, and a second call may take as long.
            if server.metrics(&mut tell) {
                pause.block_on(BootTimer.sleep_ms(interval_ms));
                server.metrics(&mut tell);
            }
        };
        thread::Builder::new().spawn(twice).map_err(|error| {
            Failure::unavailable(format!("a thread cannot be started: {error}"))
        })?;
    }
    drop(sender);
    // Ends with the last thread.
    for (at, update) in updates {
        state.tick(at);
        state.apply(update);
    }
    let mut tell = |update| {
        state.tick(Moment::now());
        state.apply(update);
    };
    fetch::pulse(client, &mut tell);
    fetch::cluster(client, true, &mut tell);
    let mut out = Output::new();
    plain::print(&state, &mut out)?;
    out.flush()
}
