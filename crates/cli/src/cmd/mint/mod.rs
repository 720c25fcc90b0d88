//! `snowmint mint`: IDs on standard output, one a line.

mod alone;
mod local;
mod named;
mod printed;
mod server;

use clap::Args;
use snowmint_coord::spec::SourceSpec;
use snowmint_core::Layout;
use snowmint_core::text::Format;
use snowmint_wire::http::Count;

use crate::client::{ApiClient, CallError, DEFAULT_SERVER};
use crate::cmd::values;
use crate::config::ConfigArgs;
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;
use printed::Printed;

/// Mint IDs.
///
/// With --server, calls a running server. With --store, joins the store and mints as a server does.
/// With --layout and --worker, needs neither: the worker number is given, and a locked file keeps
/// its mark, so that concurrent commands make no duplicate. Without these, calls the server on
/// 127.0.0.1:7700 or, if none runs, uses the store in ./snowmint-data.
///
/// Prints exactly the requested number of IDs, or reports how many it printed and why it stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint mint
  snowmint mint orders -n 1000 --format base62
  snowmint mint orders --server http://ids.example:7700
  snowmint mint orders --store sqlite:/var/lib/ids.db
  snowmint mint --layout twitter --worker 7 -n 1000
  snowmint mint uuid:v7
  snowmint mint uuid:v5 --in dns --name example.com
  snowmint mint ulid -n 3
  snowmint mint -n 3 --json")]
pub(crate) struct Mint {
    /// Source; or uuid:v1, uuid:v3 to uuid:v8 or ulid, which this command mints itself. With
    /// --server or --store, ulid is the name of a source.
    #[arg(value_name = "SOURCE", add = values::sources(), default_value = "default")]
    source: String,
    /// Number of IDs.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    count: u64,
    /// Key of a counter, or the name from which a source makes UUIDs of version 3 or 5.
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// Text form of the IDs instead of the source's own: decimal, hex, base36, base62, base32,
    /// base58 or friendly, or one of these with `-padded`.
    #[arg(long, value_name = "F", add = values::formats())]
    format: Option<Format>,
    /// Running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "config", "data_dir", "namespace"])]
    server: Option<String>,
    #[command(flatten)]
    config_args: ConfigArgs,
    /// Layout for --worker: a name, a name with overrides, or its fields in written order.
    #[arg(long, value_name = "L", add = values::layouts(), requires = "worker", conflicts_with_all = ["source", "key", "server", "store", "config",
        "namespace", "namespace_of_name", "name"])]
    layout: Option<Layout>,
    /// Worker number.
    #[arg(long, value_name = "W", conflicts_with_all = ["source", "key", "server", "store", "config",
        "namespace", "namespace_of_name", "name"])]
    worker: Option<u64>,
    /// Keep no mark and take no lock for --worker.
    #[arg(long, requires = "worker", conflicts_with_all = ["source", "key", "server", "store", "config",
        "namespace", "namespace_of_name", "name"])]
    no_state: bool,
    /// Namespace of the name for uuid:v3 and uuid:v5: dns, url, oid, x500 or a UUID.
    #[arg(long = "in", value_name = "NAMESPACE", requires = "name")]
    namespace_of_name: Option<String>,
    /// Name for uuid:v3 and uuid:v5.
    #[arg(long, value_name = "NAME", requires = "namespace_of_name")]
    name: Option<String>,
    /// Print one JSON object, {"ids":["…"]}, as in the server's response.
    #[arg(long)]
    json: bool,
}

fn count(text: &str) -> Result<u64, &'static str> {
    match Count::from_digits(text.as_bytes()) {
        Some(Count::MAX) | None => Err("count is not a whole number of at least 1; correct it"),
        Some(count) => Ok(count.get()),
    }
}

impl Mint {
    pub(crate) fn run(self) -> Outcome {
        let mut out = Printed::new(Output::new(), self.json);
        let mut done = 0;
        let outcome = self.mint(&mut done, &mut out);
        // Minted IDs are printed even if minting failed later.
        out.end()?;
        outcome.map_err(|failure| self.counted(failure, done))
    }

    fn mint(&self, done: &mut u64, out: &mut Printed) -> Outcome {
        if let Some(worker) = self.worker {
            return self.mint_named(worker, done, out);
        }
        if let Some(spec) = self.alone()? {
            return self.mint_alone(&spec, done, out);
        }
        if let Some(server) = &self.server {
            return Ok(self.ask_server(&ApiClient::new(server)?, done, out)?);
        }
        let config = self.config_args.load(Vec::new())?;
        if self.config_args.is_empty() {
            match self.ask_server(&ApiClient::new(DEFAULT_SERVER)?, done, out) {
                Err(CallError::NotReached(_)) if *done == 0 => complain(format_args!(
                    "no server on {DEFAULT_SERVER}, so the store is {}",
                    store::shown(&config)
                )),
                result => return Ok(result?),
            }
        }
        self.mint_from_store(&config, done, out)
    }

    /// Returns the definition of IDs made here without a store; `None` for a source.
    fn alone(&self) -> Outcome<Option<SourceSpec>> {
        let is_configured = self.server.is_some() || !self.config_args.is_empty();
        let made = match self.source.as_str() {
            "ulid" if is_configured => None,
            source => alone::alone(source, self.namespace_of_name.as_deref())?,
        };
        // An option that would be ignored is rejected, because it requests something else.
        match made {
            Some(_) if is_configured => Err(Failure::usage(format!(
                "{} is minted by this command; leave out the server or store",
                self.source
            ))),
            Some(_) if self.key.is_some() => Err(Failure::usage(
                "--key needs a source; name the data of a UUID by --in and --name",
            )),
            None if self.name.is_some() => Err(Failure::usage(
                "--in and --name need uuid:v3 or uuid:v5; a source mints its UUIDs from --key",
            )),
            made => Ok(made),
        }
    }

    /// Adds the number of IDs printed before to a failure.
    fn counted(&self, failure: Failure, done: u64) -> Failure {
        match done {
            0 => failure,
            _ => failure.after(&format!("{done} of {} IDs were minted, then", self.count)),
        }
    }
}
