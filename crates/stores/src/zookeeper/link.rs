//! The session with an ensemble, and a new one after it has ended.

use std::time::Duration;

use snowmint_coord::BootTimer;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use zookeeper_client::{Client, Error};

use crate::cluster_url::ClusterUrl;

/// Silence after which the ensemble ends a session, within the ensemble's own bounds.
const SESSION: Duration = Duration::from_secs(10);
/// Longest wait of a call for a session or a reply, in milliseconds.
const REPLY_TIMEOUT_MS: u64 = 10_000;
/// Duration of the last try of each server, which finds the reason for a missing session, in
/// milliseconds.
const LAST_TRY_MS: u64 = 1_000;

/// A session that is replaced after it has ended.
pub(crate) struct SessionLink {
    servers: String,
    user: Option<(String, String)>,
    client: Mutex<Option<Client>>,
}

impl SessionLink {
    pub(crate) fn new(cluster_url: &ClusterUrl) -> Self {
        let servers = cluster_url.servers.join(",");
        Self { servers, user: cluster_url.user.clone(), client: Mutex::new(None) }
    }

    /// Returns whether only our user may use the nodes.
    pub(crate) const fn has_user(&self) -> bool {
        self.user.is_some()
    }

    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let mut current = self.client.lock().await;
        if let Some(client) = current.as_ref().filter(|client| !client.state().is_terminated()) {
            return Ok(client.clone());
        }
        let mut connector = Client::connector().with_session_timeout(SESSION);
        if let Some((name, password)) = &self.user {
            connector = connector.with_auth("digest", format!("{name}:{password}").as_bytes());
        }
        let client = within(connector.connect(&self.servers)).await?;
        // This server may be behind the state that an earlier session saw.
        within(client.sync("/")).await?;
        *current = Some(client.clone());
        Ok(client)
    }

    /// Returns the network's error for each server, since the driver reports only a timeout.
    pub(crate) async fn connection_error(&self) -> std::io::Error {
        let mut reasons = Vec::new();
        for server in self.servers.split(',') {
            let connecting = TcpStream::connect(server);
            let reason = match snowmint_coord::within(&BootTimer, LAST_TRY_MS, connecting).await {
                Some(Err(error)) => error.to_string(),
                Some(Ok(_)) => format!("no session within {REPLY_TIMEOUT_MS} ms"),
                None => format!("no connection within {LAST_TRY_MS} ms"),
            };
            reasons.push(format!("{server}: {reason}"));
        }
        std::io::Error::new(std::io::ErrorKind::NotConnected, reasons.join("; "))
    }

    pub(crate) async fn close(&self) {
        *self.client.lock().await = None;
    }
}

/// Returns the reply, or a timeout.
pub(crate) async fn within<T, E: From<Error>>(
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let result = snowmint_coord::within(&BootTimer, REPLY_TIMEOUT_MS, call).await;
    result.unwrap_or_else(|| Err(Error::Timeout.into()))
}
