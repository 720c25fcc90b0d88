//! The runtime of the blocking API.

use std::future::Future;

use tokio::runtime::{Builder, Handle, Runtime};

use snowmint_coord::{Error, Result};

/// Longest time in milliseconds that the last handle waits for the thread to end.
const END_WAIT_MS: u64 = 1_000;

/// A runtime with one thread, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct OwnedRuntime {
    /// None only during drop.
    runtime: Option<Runtime>,
}

impl OwnedRuntime {
    pub(crate) fn start() -> Result<Self> {
        check_outside()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("snowmint")
            .enable_all()
            .build()
            .map_err(|error| {
                let message = "background thread cannot start; raise the process's thread limit";
                Error::unavailable(message).with_source(error)
            })?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a call to its end on the calling thread.
    pub(crate) fn block_on<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        check_outside()?;
        match &self.runtime {
            Some(runtime) => runtime.block_on(call),
            None => Err(Error::closed("runtime is closed; open the store again")),
        }
    }
}

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_ok() {
            // A thread of a runtime must not block.
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(std::time::Duration::from_millis(END_WAIT_MS));
        }
    }
}

fn check_outside() -> Result<()> {
    if Handle::try_current().is_err() {
        return Ok(());
    }
    Err(Error::unsupported("blocking call inside an async runtime; use open()"))
}
