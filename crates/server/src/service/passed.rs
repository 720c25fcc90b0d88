//! What another server is asked for a caller whose protocol cannot pass a request on as it is, in the
//! JSON that each server speaks.

use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use snowmint_coord::Values;
use snowmint_wire::http::{Count, CounterBody, ErrorBody, MintRequest};

use super::{Error, Minted, Service};
use crate::peers::Peers;

/// The most bytes of an ID in an answer, and of all around the IDs.
const ID_BYTES_MAX: usize = 24;
const AROUND_BYTES_MAX: usize = 4_096;

/// Another server.
#[derive(Debug)]
pub(super) struct Other<'a> {
    pub(super) peers: &'a Peers,
    pub(super) address: &'a str,
}

/// Why it did not give what it was asked for.
#[derive(Debug)]
pub(super) enum Failure {
    /// It says so.
    Refused(Error),
    /// It said nothing that could be understood.
    NoAnswer(String),
}

/// An answer's IDs as numbers.
#[derive(Deserialize)]
struct Numbers {
    ids: Vec<u64>,
}

impl Service {
    /// As [`Service::mint_anywhere`], and numbers of a key from the server that owns it.
    ///
    /// # Errors
    /// As [`Service::mint_anywhere`].
    pub async fn mint_for(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<Minted, Error> {
        let refusal = match self.mint_anywhere(name, count, key).await {
            Ok((_, minted)) => return Ok(minted),
            Err(refusal) => refusal,
        };
        let (Some(key), Some(other)) = (key, self.elsewhere(&refusal)) else {
            return Err(refusal);
        };
        let hold = self.hold(u32::try_from(count).unwrap_or(u32::MAX))?;
        let ids = other.ids(name, count, Some(key)).await;
        let ids = ids.map_err(|failure| failure.after(&refusal, &other))?;
        Ok(Minted { values: Values::Numbers(ids), hold })
    }

    /// As [`Service::counted`], and from the server that owns the key.
    ///
    /// # Errors
    /// As [`Service::counted`].
    pub async fn counted_for(&self, name: &str, key: &str) -> Result<u64, Error> {
        let refusal = match self.counted(name, key).await {
            Ok(bound) => return Ok(bound),
            Err(refusal) => refusal,
        };
        let Some(other) = self.elsewhere(&refusal) else {
            return Err(refusal);
        };
        let bound = other.bound(name, key).await;
        bound.map_err(|failure| failure.after(&refusal, &other))
    }

    /// The server that a refusal names, if it speaks HTTP.
    fn elsewhere<'a>(&'a self, refusal: &'a Error) -> Option<Other<'a>> {
        let address = refusal.elsewhere()?.reach.http.as_deref()?;
        Some(Other { peers: self.peers(), address })
    }
}

impl Failure {
    /// What the caller is told whose request was refused here before.
    fn after(self, refusal: &Error, other: &Other<'_>) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::NoAnswer(why) => {
                tracing::warn!(address = %other.address, why, "a request could not be passed on");
                other.peers.not_reached(format!("{refusal}; it could not be reached"))
            }
        }
    }
}

impl Other<'_> {
    /// Exactly `count` numbers, each greater than the one before.
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
            let why = format!("{} IDs instead of {wanted} in order", ids.len());
            return Err(Failure::NoAnswer(why));
        }
        Ok(ids)
    }

    async fn bound(&self, source: &str, key: &str) -> Result<u64, Failure> {
        let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let path = format!("/v1/counters/{source}/{key}");
        let CounterBody { bound } =
            self.ask(Method::GET, &path, Vec::new(), AROUND_BYTES_MAX).await?;
        bound.parse().map_err(|_| Failure::NoAnswer(format!("{bound:?} is no bound")))
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
        let no_answer = |error: &dyn std::error::Error| Failure::NoAnswer(error.to_string());
        let body = axum::body::to_bytes(body, bytes_max).await;
        let body = body.map_err(|error| no_answer(&error))?;
        if head.status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| no_answer(&error));
        }
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(said) => Err(Failure::Refused(Error::said(said.error))),
            Err(_) => Err(Failure::NoAnswer(format!("{} is no answer", head.status))),
        }
    }
}
