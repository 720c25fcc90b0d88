//! The same, in a program that was built without it.

use snowmint_server::Traces;

use crate::config::Config;
use crate::exit::{Failure, Outcome};

/// Nothing is sent.
#[derive(Debug)]
pub(crate) struct Exporting;

impl Exporting {
    /// Refuses what it cannot do.
    pub(crate) fn start(config: &Config) -> Outcome<Self> {
        if config.traces.endpoint.is_empty() {
            return Ok(Self);
        }
        Err(Failure::usage("traces.endpoint: this program was built without feature `otlp`"))
    }

    #[allow(clippy::unused_self, reason = "the other one has some")]
    pub(crate) const fn traces(&self) -> Option<Traces> {
        None
    }

    pub(crate) async fn stop(self) {}
}
