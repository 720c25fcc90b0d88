//! Errors of this machine's clock.

use super::state::{ClockFault, Driver};
use crate::error::{Error, ErrorKind, chain};
use crate::machine::Now;

impl Driver {
    /// Returns the time as decisions may see it.
    pub(super) fn now(&mut self) -> Now {
        let (now, jumped) = self.core.ctx.now();
        match (jumped, &self.clock_fault) {
            (Some(error), None) => {
                tracing::error!(error = %chain(&error), "clock jumped ahead; continuing by elapsed time");
                self.clock_fault = Some(ClockFault::Jumped(error));
            }
            (None, Some(ClockFault::Jumped(_))) => self.clock_fault = None,
            _ => {}
        }
        now
    }

    /// Records that no better source contradicts our clock.
    pub(super) fn clock_agrees(&mut self) {
        self.core.ctx.clock_compared();
        if matches!(self.clock_fault, Some(ClockFault::Disagrees(_))) {
            self.clock_fault = None;
        }
    }

    pub(super) fn clock_disagrees(&mut self, error: &Error) {
        if let ErrorKind::ClockAhead { .. } | ErrorKind::ClockBehind { .. } = error.kind() {
            tracing::error!(error = %chain(error), "clock disagrees with its time reference");
            self.core.ctx.set_clock_error(Some(error.clone()));
            self.core.ctx.clock_compared();
            self.clock_fault = Some(ClockFault::Disagrees(error.clone()));
        }
    }
}
