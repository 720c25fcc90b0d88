//! Signals to the process.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::exit::{Failure, Outcome};

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

    /// Runs a step of the start. A signal ends it, and the result is `None`: a step may call a
    /// store that does not respond, which must not delay the stop.
    ///
    /// # Errors
    /// Those of the step.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        step: impl Future<Output = Outcome<T>>,
    ) -> Outcome<Option<T>> {
        tokio::select! {
            done = step => done.map(Some),
            () = self.next() => {
                tracing::info!("stopped during startup");
                Ok(None)
            }
        }
    }
}

/// Listens to SIGHUP, which from now on does not end the process.
pub(super) fn hangups() -> Outcome<Signal> {
    listen(SignalKind::hangup())
}

fn listen(kind: SignalKind) -> Outcome<Signal> {
    signal(kind)
        .map_err(|error| Failure::unavailable(format!("signal handlers cannot be set: {error}")))
}
