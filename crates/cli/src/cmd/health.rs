//! `snowmint health`: checks whether a server can mint, for images that have no other client.

use clap::Args;
use snowmint_wire::http::ReadyBody;

use crate::client::{ApiClient, DEFAULT_SERVER};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::print;

/// Ask a server whether it is ready to mint.
///
/// Exit code 0 if it is ready, 1 with the reasons if it is not, 4 without a response within 5 s.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint health
  snowmint health --server http://ids.example:7700 --json")]
pub(crate) struct Health {
    /// Running server: http://host:port.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Health {
    pub(crate) fn run(self) -> Outcome {
        let readiness: ReadyBody = ApiClient::looking(&self.server)?.get("/readyz")?;
        print(self.json, [&readiness], |out| match &readiness.without_store_until {
            Some(until) if readiness.ready => {
                out.line(format_args!("ready, without the store until {until}"))
            }
            None if readiness.ready => out.line("ready"),
            _ => {
                // Without the permission, the server sends the codes only.
                let reasons = if readiness.reasons.is_empty() {
                    &readiness.codes
                } else {
                    &readiness.reasons
                };
                out.line(format_args!("not ready: {}", reasons.join("; ")))
            }
        })?;
        if readiness.ready { Ok(()) } else { Err(Failure::Negative) }
    }
}
