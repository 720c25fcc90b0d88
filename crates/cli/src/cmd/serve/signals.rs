//! Signals to the process.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Failure, Outcome};

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> Outcome<Self> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal to end the process.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// SIGHUP.
pub(super) fn hangups() -> Outcome<Signal> {
    listen(SignalKind::hangup())
}

fn listen(kind: SignalKind) -> Outcome<Signal> {
    signal(kind)
        .map_err(|error| Failure::unavailable(format!("signal handlers cannot be set: {error}")))
}
