//! State that all connections share.

use std::sync::Arc;

use snowmint_coord::Timer;

use crate::config::RespSettings;
use crate::requests::reading::WaitingRequests;
use crate::service::Service;

/// State that all connections share.
#[derive(Debug)]
pub(super) struct RespState {
    pub(super) service: Service,
    /// Limit of all waiting requests, toward which memory kept for clients counts.
    pub(super) requests: WaitingRequests,
    pub(super) settings: RespSettings,
    pub(super) timer: Arc<dyn Timer>,
    /// Elapsed time at the start, for `INFO`.
    pub(super) started_ms: u64,
    pub(super) port: u16,
}
