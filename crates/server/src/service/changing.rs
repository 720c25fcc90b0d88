//! What may change while the server runs.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Service;
use crate::config::Limits;
use crate::live::Live;

impl Service {
    /// What one request may ask for now.
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        self.live.limits()
    }

    /// Other limits, for all requests from now on. Needs a Tokio runtime.
    pub fn set_limits(&self, limits: Limits) {
        let room = permits(limits.unsent_max);
        let before = permits(self.live.set_limits(limits).unsent_max);
        if room >= before {
            return self.unsent.add_permits(room - before);
        }
        // What is unsent now may be more than the new limit: it is taken away as it is sent.
        let less = before - room;
        let rest = less - self.unsent.forget_permits(less);
        let unsent = Arc::clone(&self.unsent);
        tokio::spawn(async move {
            // The semaphore is never closed, and has no more permits than fit.
            let rest = u32::try_from(rest).unwrap_or(u32::MAX);
            if let Ok(permits) = unsent.acquire_many(rest).await {
                permits.forget();
            }
        });
    }

    /// Whether each request gets a line in the log, from now on.
    pub fn log_access(&self, access: bool) {
        self.live.log_access(access);
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }
}

/// How many IDs may be unsent, as the semaphore counts them.
pub(super) fn permits(unsent_max: u32) -> usize {
    usize::try_from(unsent_max).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS)
}
