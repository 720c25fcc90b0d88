//! Requests that this server writes itself for a caller whose protocol cannot be forwarded
//! unchanged, in the JSON of every server.

use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use snowmint_coord::Values;
use snowmint_wire::error::Code;
use snowmint_wire::http::{Count, CounterBody, ErrorBody, MintRequest};

use super::owner::{ByOwner, FromOwner, Unanswered};
use super::{Error, Minted, Service};
use crate::access::Right;
use crate::peers::{NotAsked, Peers};
use crate::share::Share;

/// Most bytes of an ID in a response, and of the text outside the IDs.
const ID_BYTES_MAX: usize = 24;
const AROUND_BYTES_MAX: usize = 4_096;

/// A peer.
#[derive(Debug)]
pub(super) struct Other<'a> {
    pub(super) peers: &'a Peers,
    pub(super) address: &'a str,
}

/// Reason why a peer did not deliver.
#[derive(Debug)]
pub(super) enum Failure {
    /// The peer returned an error.
    Refused(Error),
    /// The peer returned nothing that could be parsed.
    NoAnswer(NotAsked),
}

/// IDs of a response as numbers.
#[derive(Deserialize)]
struct Numbers {
    ids: Vec<u64>,
}

impl Service {
    /// Mints like [`Service::mint_anywhere`]; takes numbers of a key from its section owner.
    ///
    /// # Errors
    /// Those of [`Service::mint_anywhere`].
    pub async fn mint_for(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<Minted, Error> {
        let admitted = self.admit_ids(name, count).await?;
        let refusal = match self.mint_admitted(name, admitted, key).await {
            Err(refusal) if refusal.code() == Code::NotOwner && key.is_some() => refusal,
            answer => return Ok(answer?.1),
        };
        let here = || -> ByOwner<'_, _> {
            Box::pin(async move { Ok(self.mint_admitted(name, admitted, key).await?.1) })
        };
        let there = |address: String| -> FromOwner<'_, _> {
            Box::pin(async move {
                let hold = self.hold(admitted.into())?;
                let _waits = self.waits_for(&address)?;
                let other = Other { peers: self.peers(), address: &address };
                let ids = other.ids(name, count, key).await;
                let ids = ids.map_err(|failure| failure.after(&other))?;
                Ok(Minted { values: Values::Numbers(ids), hold })
            })
        };
        self.ask_owner(refusal, &here, &there).await
    }

    /// Returns the bound like [`Service::counted`], from the section owner if it is another server.
    ///
    /// # Errors
    /// Those of [`Service::counted`].
    pub async fn counted_for(&self, name: &str, key: &str) -> Result<u64, Error> {
        self.admit(Right::Mint, name).await?;
        let here = || -> ByOwner<'_, _> { Box::pin(self.counted_here(name, key)) };
        let refusal = match here().await {
            Err(refusal) if refusal.code() == Code::NotOwner => refusal,
            answer => return answer,
        };
        let there = |address: String| -> FromOwner<'_, _> {
            Box::pin(async move {
                let _waits = self.waits_for(&address)?;
                let other = Other { peers: self.peers(), address: &address };
                other.bound(name, key).await.map_err(|failure| failure.after(&other))
            })
        };
        self.ask_owner(refusal, &here, &there).await
    }
}

impl Service {
    /// Counts a request of the caller that waits for a peer.
    ///
    /// # Errors
    /// When the caller has more than its share of them.
    pub(crate) fn waits_for(&self, address: &str) -> Result<Share, Error> {
        self.peers().waits(address, self.caller().client())
    }
}

impl Failure {
    const fn said_nothing(why: String) -> Self {
        Self::NoAnswer(NotAsked { why, lasts: false })
    }

    /// Returns the error for a caller that was rejected here before.
    fn after(self, other: &Other<'_>) -> Unanswered {
        match self {
            Self::Refused(error) => error.into(),
            Self::NoAnswer(why) => other.peers.not_passed_on(other.address, &why),
        }
    }
}

impl Other<'_> {
    /// Returns exactly `count` numbers, each greater than the previous one.
    pub(super) async fn ids(
        &self,
        source: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<Vec<u64>, Failure> {
        let wish = MintRequest {
            count: Count::new(count),
            key: key.map(str::to_owned),
            format: Some("number".to_owned()),
        };
        let body = serde_json::to_vec(&wish).unwrap_or_default();
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes_max = wanted.saturating_mul(ID_BYTES_MAX).saturating_add(AROUND_BYTES_MAX);
        let path = format!("/v1/ids/{source}");
        let Numbers { ids } = self.ask(Method::POST, &path, body, bytes_max).await?;
        if ids.len() != wanted || !ids.is_sorted_by(|one, next| one < next) {
            let why = format!("{} IDs, expected {wanted} in order", ids.len());
            return Err(Failure::said_nothing(why));
        }
        Ok(ids)
    }

    async fn bound(&self, source: &str, key: &str) -> Result<u64, Failure> {
        let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let path = format!("/v1/counters/{source}/{key}");
        let CounterBody { bound } =
            self.ask(Method::GET, &path, Vec::new(), AROUND_BYTES_MAX).await?;
        bound.parse().map_err(|_| Failure::said_nothing(format!("bound {bound:?} is not a number")))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        bytes_max: usize,
    ) -> Result<T, Failure> {
        let answer = self.peers.ask(self.address, method, path, None, body, bytes_max).await;
        let (head, body) = answer.map_err(Failure::NoAnswer)?.into_parts();
        let no_answer = |error: &dyn std::error::Error| Failure::said_nothing(error.to_string());
        let body = axum::body::to_bytes(body, bytes_max).await;
        let body = body.map_err(|error| no_answer(&error))?;
        if head.status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| no_answer(&error));
        }
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(said) => Err(Failure::Refused(Error::said(said.error))),
            Err(_) => Err(Failure::said_nothing(format!("HTTP status {} alone", head.status))),
        }
    }
}
