//! A peer, and the requests that this server writes itself, in the JSON of every server.

use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use snowmint_wire::http::{Count, CounterBody, ErrorBody, MintRequest, ServersBody};
use snowmint_wire::report::{LastHour, ServerReport};

use super::peers::{PeerCallError, Peers};
use crate::error::{Error, OwnerFailure};

/// Path of the notice that the catalog has changed.
pub(crate) const CHANGED_PATH: &str = "/v1/peers/catalog";
/// Path of the notice that the members have changed.
pub(crate) const MEMBERS_PATH: &str = "/v1/peers/members";

/// Most bytes of an ID in a response, and of an error or the text outside the IDs.
const ID_BYTES_MAX: usize = 24;
const ENVELOPE_BYTES_MAX: usize = 1 << 16;
/// Most bytes of a history: its lists of an hour, each value with all digits of 64 bits.
const HISTORY_BYTES_MAX: usize = 1 << 20;

/// A peer.
#[derive(Debug)]
pub(crate) struct RemotePeer<'a> {
    pub(crate) peers: &'a Peers,
    pub(crate) address: &'a str,
}

/// Reason why a peer did not deliver.
#[derive(Debug)]
pub(crate) enum PeerFailure {
    /// The peer returned an error.
    Refused(Error),
    /// The peer returned nothing that could be parsed.
    NoResponse(PeerCallError),
}

/// IDs of a response as numbers.
#[derive(Deserialize)]
struct ForwardedNumbers {
    ids: Vec<u64>,
}

impl PeerFailure {
    /// Returns the failure of a complete response that is not what was asked for.
    fn unusable(reason: impl Into<String>) -> Self {
        Self::NoResponse(PeerCallError::lasting(reason))
    }

    /// Returns the reason for operators, who may read addresses.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(error) => error.message().to_owned(),
            Self::NoResponse(error) => format!("server did not respond: {error}"),
        }
    }

    /// Returns the error for a caller that was rejected here before.
    pub(crate) fn after(self, remote_peer: &RemotePeer<'_>) -> OwnerFailure {
        match self {
            Self::Refused(error) => error.into(),
            Self::NoResponse(error) => remote_peer.peers.not_forwarded(remote_peer.address, &error),
        }
    }
}

impl RemotePeer<'_> {
    /// Returns exactly `count` numbers, each greater than the previous one.
    pub(crate) async fn ids(
        &self,
        source: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<Vec<u64>, PeerFailure> {
        let request = MintRequest {
            count: Count::new(count),
            key: key.map(str::to_owned),
            format: Some("number".to_owned()),
        };
        let body = serde_json::to_vec(&request).unwrap_or_default();
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let path = format!("/v1/ids/{source}");
        let ForwardedNumbers { ids } = self.ask(Method::POST, &path, body, wanted).await?;
        if ids.len() != wanted || !ids.is_sorted_by(|one, next| one < next) {
            let reason = format!("{} IDs, expected {wanted} in order", ids.len());
            return Err(PeerFailure::unusable(reason));
        }
        Ok(ids)
    }

    /// Takes `count` numbers of a counter in a row; returns the first and the last.
    pub(crate) async fn consecutive(
        &self,
        source: &str,
        key: &str,
        count: u64,
    ) -> Result<(u64, u64), PeerFailure> {
        let ids = self.ids(source, count, Some(key)).await?;
        match (ids.first(), ids.last()) {
            (Some(&first), Some(&last)) if last - first == count.saturating_sub(1) => {
                Ok((first, last))
            }
            _ => Err(PeerFailure::unusable(format!("{count} numbers that are not in a row"))),
        }
    }

    /// Returns the bound of a counter.
    pub(crate) async fn bound(&self, source: &str, key: &str) -> Result<u64, PeerFailure> {
        let path = counter_path(source, key);
        let CounterBody { bound } = self.ask(Method::GET, &path, Vec::new(), 0).await?;
        bound.parse().map_err(|_| PeerFailure::unusable(format!("bound {bound:?} is not a number")))
    }

    /// Makes every later number of a counter greater than `highest`.
    pub(crate) async fn raise(
        &self,
        source: &str,
        key: &str,
        highest: u64,
    ) -> Result<(), PeerFailure> {
        let body = serde_json::to_vec(&CounterBody { bound: highest.to_string() });
        let (path, body) = (counter_path(source, key), body.unwrap_or_default());
        self.ask::<CounterBody>(Method::PUT, &path, body, 0).await.map(drop)
    }

    /// Returns the peer's member ID and its report on itself.
    pub(crate) async fn report(&self) -> Result<(Option<String>, ServerReport), PeerFailure> {
        let ServersBody { servers, .. } =
            self.ask(Method::GET, "/v1/servers", Vec::new(), 0).await?;
        let Some((member, Some(report))) =
            servers.into_iter().next().map(|server| (server.member, server.report))
        else {
            return Err(PeerFailure::unusable("no report of the server itself"));
        };
        Ok((member, report))
    }

    /// Returns the peer's last hour.
    pub(crate) async fn history(&self) -> Result<LastHour, PeerFailure> {
        let ids = HISTORY_BYTES_MAX / ID_BYTES_MAX;
        self.ask(Method::GET, "/v1/history", Vec::new(), ids).await
    }

    /// Sends the peer the notice of this path.
    pub(crate) async fn notify(&self, path: &str) -> Result<(), PeerCallError> {
        let (method, bytes_max) = (Method::POST, ENVELOPE_BYTES_MAX);
        self.peers.ask(self.address, method, path, Vec::new(), bytes_max).await.map(drop)
    }

    /// Returns the response to a request for this many IDs.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        ids: usize,
    ) -> Result<T, PeerFailure> {
        let bytes_max = ids.saturating_mul(ID_BYTES_MAX).saturating_add(ENVELOPE_BYTES_MAX);
        let result = self.peers.ask(self.address, method, path, body, bytes_max).await;
        let response = result.map_err(PeerFailure::NoResponse)?;
        let (status, body) = (response.status(), response.body());
        if status.is_success() {
            return serde_json::from_slice(body)
                .map_err(|error| PeerFailure::unusable(error.to_string()));
        }
        Err(match serde_json::from_slice::<ErrorBody>(body) {
            Ok(reported) => PeerFailure::Refused(Error::reported(reported.error, status.as_u16())),
            Err(_) => PeerFailure::NoResponse(PeerCallError {
                reason: format!("HTTP status {status} alone"),
                // A proxy whose server restarts sends a 5xx.
                lasts: !status.is_server_error(),
            }),
        })
    }
}

fn counter_path(source: &str, key: &str) -> String {
    let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
    format!("/v1/counters/{source}/{key}")
}

#[cfg(test)]
mod tests {
    use snowmint_wire::error::Code;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::Limits;
    use crate::observe::live::Live;

    /// Raises a bound at a peer that sends this response.
    async fn failure_after(status: &str, body: &str) -> OwnerFailure {
        let raise = async |peer: &RemotePeer<'_>| peer.raise("counters", "a", 7).await;
        after(status, body, raise).await.unwrap_err()
    }

    /// Calls a peer that sends this response.
    async fn after<T>(
        status: &str,
        body: &str,
        call: impl AsyncFnOnce(&RemotePeer<'_>) -> Result<T, PeerFailure>,
    ) -> Result<T, OwnerFailure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let length = body.len();
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        let responds = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 16]).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let peers = Peers::of_tests(Live::new(Limits::default(), false, None));
        let remote_peer = RemotePeer { peers: &peers, address: &address };
        let result = tokio::select! {
            result = call(&remote_peer) => result,
            () = responds => unreachable!(),
        };
        result.map_err(|failure| failure.after(&remote_peer))
    }

    /// A caller uses all numbers up to the last: one that was missing would be another caller's.
    #[tokio::test]
    async fn numbers_of_a_peer_are_in_a_row() {
        for (body, numbers) in [
            (r#"{"ids":[4]}"#, None),
            (r#"{"ids":[4,5,7]}"#, None),
            (r#"{"ids":[6,5,4]}"#, None),
            (r#"{"ids":[4,5,6,7]}"#, None),
            (r#"{"ids":[4,5,6]}"#, Some((4, 6))),
        ] {
            let call = async |peer: &RemotePeer<'_>| peer.consecutive("counters", "a", 3).await;
            match after("200 OK", body, call).await {
                Ok(taken) => assert_eq!(Some(taken), numbers, "{body}"),
                Err(failure) => assert!(numbers.is_none() && failure.lasts, "{body}: {failure:?}"),
            }
        }
    }

    #[tokio::test]
    async fn error_of_an_owner_is_kept_and_a_proxy_is_called_once() {
        let error = |code, retry| {
            serde_json::to_string(&ErrorBody::new(code, "its reason", retry)).unwrap()
        };
        for (status, code, retry, lasts) in [
            ("400 Bad Request", Code::BadRequest, None, true),
            ("503 Service Unavailable", Code::Overloaded, Some(70), true),
            ("503 Service Unavailable", Code::Unavailable, Some(70), false),
        ] {
            let failure = failure_after(status, &error(code, retry)).await;
            let OwnerFailure { error, lasts: stays } = &failure;
            assert_eq!((error.code(), error.retry_after_ms(), *stays), (code, retry, lasts));
            assert_eq!(error.message(), "its reason");
        }
        let (page, long_page) = ("<html></html>", " ".repeat(1 << 17));
        for (status, body, lasts) in [
            ("404 Not Found", page, true),
            ("308 Permanent Redirect", page, true),
            ("502 Bad Gateway", page, false),
            ("502 Bad Gateway", &long_page, false),
            ("200 OK", page, true),
            ("200 OK", &long_page, true),
        ] {
            let failure = failure_after(status, body).await;
            assert_eq!(
                (failure.error.code(), failure.lasts),
                (Code::Unavailable, lasts),
                "{status}"
            );
        }
    }
}
