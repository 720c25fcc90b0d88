//! Settings and dependencies of a store of servers.

use std::sync::Arc;

use snowmint_coord::{BootTimer, Timer};

use crate::credentials::Credentials;

/// Time limits and retry budget for calls to servers. Every field has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time limit in milliseconds for a server to accept a connection and describe its store.
    /// Default: 1 s.
    pub connect_ms: u64,
    /// Time in milliseconds for one server to respond to a call before the next is called. Default:
    /// 2 s.
    pub attempt_ms: u64,
    /// Time limit in milliseconds for a store call with all retries. Default: 4.5 s, less than a
    /// node allows its store.
    pub call_ms: u64,
    /// Number of retries that may be made at once, over all calls; further retries wait. The first
    /// attempt of a call at each server is not a retry. Default: 32.
    pub retries_at_once: u32,
    /// Number of retries that become available per second. Default: 8.
    pub retries_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_ms: 1_000,
            attempt_ms: 2_000,
            call_ms: 4_500,
            retries_at_once: 32,
            retries_per_second: 8,
        }
    }
}

/// Dependencies of a store of servers besides its settings.
#[derive(Clone, Debug)]
pub struct ClientDeps {
    /// Trusted certificates and presented credentials.
    pub credentials: Credentials,
    /// Source of elapsed time.
    pub timer: Arc<dyn Timer>,
}

impl Default for ClientDeps {
    /// Uses the system's time and CAs, and presents nothing.
    fn default() -> Self {
        Self { credentials: Credentials::new(), timer: Arc::new(BootTimer) }
    }
}
