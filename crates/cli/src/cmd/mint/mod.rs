//! `snowmint mint`: IDs on standard output, one a line.

mod server;

use clap::Args;
use snowmint_core::text::Format;
use snowmint_wire::http::Count;

use crate::client::{Client, DEFAULT_SERVER};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// How many IDs are asked for at once, so that the first are printed while others are minted, and no
/// server's limit for one request is met.
const CHUNK: u64 = 10_000;

/// Mint IDs.
///
/// Asks the server that --server names, or the one on 127.0.0.1:7700.
///
/// Prints exactly as many IDs as were asked for, or says how many it printed and why no more.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint mint
  snowmint mint orders -n 1000
  snowmint mint orders --format base62 --server http://ids.example:7700")]
pub(crate) struct Mint {
    /// The source.
    #[arg(value_name = "SOURCE", default_value = "default")]
    source: String,
    /// How many.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    count: u64,
    /// The key of a counter, or the name that a UUID of version 3 or 5 is made from.
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// The form of the IDs instead of the source's own: decimal, hex, base36, base62, base32,
    /// base58 or friendly, or one of these with `-padded`.
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// A running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

fn count(text: &str) -> Result<u64, &'static str> {
    match Count::from_digits(text.as_bytes()) {
        Some(Count::MAX) | None => Err("a count is a whole number of at least 1"),
        Some(count) => Ok(count.get()),
    }
}

impl Mint {
    pub(crate) fn run(self) -> Outcome {
        let mut out = Output::new();
        let client = Client::new(self.server.as_deref().unwrap_or(DEFAULT_SERVER))?;
        let mut done = 0;
        let outcome = self.ask_server(&client, &mut done, &mut out);
        // What was minted is printed, whatever came after.
        out.flush()?;
        outcome.map_err(|failure| self.counted(failure, done))
    }

    /// A failure that says how many IDs were printed before it.
    fn counted(&self, failure: Failure, done: u64) -> Failure {
        match failure {
            Failure::Said { exit, message } if done > 0 => Failure::Said {
                exit,
                message: format!("{done} of {} IDs were minted, then: {message}", self.count),
            },
            other => other,
        }
    }
}
