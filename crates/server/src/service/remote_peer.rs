//! A peer, and the requests that this server writes itself, in the JSON of every server.

use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use snowmint_wire::http::{Count, CounterBody, ErrorBody, MintRequest};

use crate::cluster::peers::{PeerCallError, Peers};
use crate::error::{Error, OwnerFailure};

/// Most bytes of an ID in a response, and of the text outside the IDs.
const ID_BYTES_MAX: usize = 24;
const ENVELOPE_BYTES_MAX: usize = 4_096;

/// A peer.
#[derive(Debug)]
pub(super) struct RemotePeer<'a> {
    pub(super) peers: &'a Peers,
    pub(super) address: &'a str,
}

/// Reason why a peer did not deliver.
#[derive(Debug)]
pub(super) enum PeerFailure {
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
    const fn no_response(reason: String) -> Self {
        Self::NoResponse(PeerCallError { reason, lasts: false })
    }

    /// Returns the error for a caller that was rejected here before.
    pub(super) fn after(self, remote_peer: &RemotePeer<'_>) -> OwnerFailure {
        match self {
            Self::Refused(error) => error.into(),
            Self::NoResponse(error) => remote_peer.peers.not_forwarded(remote_peer.address, &error),
        }
    }
}

impl RemotePeer<'_> {
    /// Returns exactly `count` numbers, each greater than the previous one.
    pub(super) async fn ids(
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
        let bytes_max = wanted.saturating_mul(ID_BYTES_MAX).saturating_add(ENVELOPE_BYTES_MAX);
        let path = format!("/v1/ids/{source}");
        let ForwardedNumbers { ids } = self.ask(Method::POST, &path, body, bytes_max).await?;
        if ids.len() != wanted || !ids.is_sorted_by(|one, next| one < next) {
            let reason = format!("{} IDs, expected {wanted} in order", ids.len());
            return Err(PeerFailure::no_response(reason));
        }
        Ok(ids)
    }

    pub(super) async fn bound(&self, source: &str, key: &str) -> Result<u64, PeerFailure> {
        let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let path = format!("/v1/counters/{source}/{key}");
        let CounterBody { bound } =
            self.ask(Method::GET, &path, Vec::new(), ENVELOPE_BYTES_MAX).await?;
        bound
            .parse()
            .map_err(|_| PeerFailure::no_response(format!("bound {bound:?} is not a number")))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        bytes_max: usize,
    ) -> Result<T, PeerFailure> {
        let result = self.peers.ask(self.address, method, path, None, body, bytes_max).await;
        let (head, body) = result.map_err(PeerFailure::NoResponse)?.into_parts();
        let unreadable =
            |error: &dyn std::error::Error| PeerFailure::no_response(error.to_string());
        let body = axum::body::to_bytes(body, bytes_max).await;
        let body = body.map_err(|error| unreadable(&error))?;
        if head.status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| unreadable(&error));
        }
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(reported) => Err(PeerFailure::Refused(Error::reported(reported.error))),
            Err(_) => Err(PeerFailure::no_response(format!("HTTP status {} alone", head.status))),
        }
    }
}
