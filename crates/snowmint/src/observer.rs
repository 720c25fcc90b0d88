//! Reporting of clock steps.

use std::sync::Arc;

use snowmint_coord::opaque_debug;
use snowmint_core::{ClockStep, Observer};

/// An observer given by the embedding program.
pub(crate) type GivenObserver = Arc<dyn Observer + Send + Sync>;

/// Logs every clock step and notifies the embedding program's observer.
pub(crate) struct LoggingObserver {
    pub(crate) name: String,
    pub(crate) observer: Option<GivenObserver>,
}

impl Observer for LoggingObserver {
    fn clock_step(&self, step: &ClockStep) {
        tracing::warn!(generator = %self.name, "{step}");
        if let Some(observer) = &self.observer {
            observer.clock_step(step);
        }
    }
}

opaque_debug!(LoggingObserver: name);
