//! The session with an ensemble, and a new one when it has ended.

use std::time::Duration;

use snowmint_coord::{BootTimer, Timer as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use zookeeper_client::{Client, Error};

use crate::place::Place;

/// The ensemble takes a silent session for ended after this long, as far as its own bounds allow.
const SESSION: Duration = Duration::from_secs(10);
/// How long a call waits for a session, or an answer, in milliseconds.
const ANSWER_MS: u64 = 10_000;
/// How long the last try of each server takes, which is for saying why there was no session, in milliseconds.
const LAST_TRY_MS: u64 = 1_000;

/// A session that is made anew when it has ended.
pub(crate) struct Link {
    servers: String,
    user: Option<(String, String)>,
    client: Mutex<Option<Client>>,
}

impl Link {
    pub(crate) fn new(place: &Place) -> Self {
        let servers = place.servers.join(",");
        Self { servers, user: place.user.clone(), client: Mutex::new(None) }
    }

    /// Whether nodes are ours alone.
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
        // This server may be behind what an earlier session has seen.
        within(client.sync("/")).await?;
        *current = Some(client.clone());
        Ok(client)
    }

    /// What the network says of each server, where the driver says only that it waited.
    pub(crate) async fn why_none(&self) -> std::io::Error {
        let mut reasons = Vec::new();
        for server in self.servers.split(',') {
            let reason = tokio::select! {
                biased;
                connected = TcpStream::connect(server) => match connected {
                    Err(error) => error.to_string(),
                    Ok(_) => format!("it gives no session within {ANSWER_MS} ms"),
                },
                () = BootTimer.sleep_ms(LAST_TRY_MS) => "it takes no connection".to_owned(),
            };
            reasons.push(format!("{server}: {reason}"));
        }
        std::io::Error::new(std::io::ErrorKind::NotConnected, reasons.join("; "))
    }

    pub(crate) async fn close(&self) {
        *self.client.lock().await = None;
    }
}

/// An answer that comes in time.
pub(crate) async fn within<T, E: From<Error>>(
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::select! {
        biased;
        answered = answer => answered,
        () = BootTimer.sleep_ms(ANSWER_MS) => Err(Error::Timeout.into()),
    }
}
