//! The replacement for exporting, in a program built without it.

use snowmint_server::Traces;

use crate::config::Config;
use crate::terminal::exit::{Failure, Outcome};

/// Exporter that sends nothing.
pub(crate) struct Exporting;

impl Exporting {
    /// Rejects an endpoint, because this program cannot send spans.
    pub(crate) fn start(config: &Config) -> Outcome<Self> {
        if config.traces.endpoint.is_empty() {
            return Ok(Self);
        }
        Err(Failure::usage("traces.endpoint needs feature `otlp`; build with it"))
    }

    #[allow(clippy::unused_self, reason = "the other one has some")]
    pub(crate) const fn traces(&self) -> Option<Traces> {
        None
    }

    pub(crate) async fn stop(self) {}
}
