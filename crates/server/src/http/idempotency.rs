//! `Idempotency-Key`: a request that is repeated with the same key gets the same IDs, so that a caller
//! who lost an answer need not burn what was in it. After the draft of the IETF's HTTPAPI group,
//! "The Idempotency-Key HTTP Header Field".
//!
//! Answers are kept in the memory of the server that gave them, for a stated time. None is dropped
//! before: when there is no room, requests with a new key are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use moka::future::Cache;
use snowmint_wire::error::Code;

use super::answer::Refusal;
use crate::access::Right;
use crate::config::HttpSettings;
use crate::service::{Error, Service, shown};

/// What callers send.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key in bytes.
const KEY_BYTES_MAX: usize = 255;
/// What an answer takes beside its bytes, roughly.
const ENTRY_BYTES: usize = 1024;

/// The answers that were given of late.
#[derive(Debug)]
pub(super) struct Answers {
    kept: Cache<String, Arc<Kept>>,
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// A request that may be repeated.
#[derive(Debug)]
pub(super) struct Repeatable<'a> {
    /// The caller.
    pub(super) service: &'a Service,
    /// The right that the request takes.
    pub(super) right: Right,
    /// With this source.
    pub(super) source: &'a str,
    /// What was sent.
    pub(super) headers: &'a HeaderMap,
}

/// A whole answer, and what it answered.
#[derive(Debug)]
struct Kept {
    request: String,
    parts: Parts,
    body: Bytes,
}

impl Answers {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        let bytes = Arc::new(AtomicUsize::new(0));
        let freed = Arc::clone(&bytes);
        let kept = Cache::builder()
            .time_to_live(Duration::from_millis(settings.idempotency_time.ms()))
            .eviction_listener(move |key: Arc<String>, kept: Arc<Kept>, _| {
                freed.fetch_sub(weight(&key, &kept), Ordering::AcqRel);
            })
            .build();
        Self { kept, bytes, bytes_max: settings.idempotency_bytes_max }
    }

    /// The answer to a request: where its headers have a key, the one that was given to this caller
    /// under it, if there is one. Of requests that come at once with one key, one is answered anew.
    /// A refusal is not kept.
    ///
    /// # Errors
    /// For a key that is none, that was used for another request, or that there is no room for; and
    /// as `answer` does.
    pub(super) async fn once<F>(
        &self,
        asks: Repeatable<'_>,
        request: impl FnOnce() -> String,
        answer: impl FnOnce() -> F,
    ) -> Result<Response, Refusal>
    where
        F: Future<Output = Result<Response, Refusal>>,
    {
        let mut keys = asks.headers.get_all(KEY).iter();
        let Some(key) = keys.next() else { return answer().await };
        if keys.next().is_some() {
            let message = "a request has one idempotency key, and this one has several";
            return Err(Refusal(Error::bad_request(message)));
        }
        let key = key_of(key)?;
        let caller = asks.service.caller();
        // What was answered before is for those who may still ask.
        caller.may(asks.right, asks.source)?;
        // A name has no line feed.
        let whose = format!("{}\n{key}", caller.name().unwrap_or_default());
        // Boxed: each connection has room for whatever may happen to a request, and this is rare.
        Box::pin(self.kept(&whose, key, request(), answer())).await
    }

    async fn kept(
        &self,
        whose: &str,
        key: &str,
        request: String,
        answer: impl Future<Output = Result<Response, Refusal>>,
    ) -> Result<Response, Refusal> {
        let mut is_new = false;
        let make = async {
            is_new = true;
            let answer = match self.room() {
                Ok(()) => answer.await.into_response(),
                Err(error) => Refusal(error).into_response(),
            };
            let kept = Kept::read(request.clone(), answer).await;
            if kept.parts.status != StatusCode::OK {
                return Err(kept);
            }
            self.bytes.fetch_add(weight(whose, &kept), Ordering::AcqRel);
            Ok(Arc::new(kept))
        };
        let kept = match self.kept.try_get_with_by_ref(whose, make).await {
            Ok(kept) => kept,
            Err(refusal) => return Ok(refusal.response()),
        };
        if kept.request != request {
            let message = format!(
                "the idempotency key {} was used for another request; take another key",
                shown(key)
            );
            return Err(Refusal(Error::new(Code::Conflict, message)));
        }
        let mut response = kept.response();
        if !is_new {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }

    fn room(&self) -> Result<(), Error> {
        if self.bytes.load(Ordering::Acquire) < self.bytes_max {
            return Ok(());
        }
        let message = format!(
            "the answers that are kept for their idempotency keys fill the {} bytes that they may \
             (http.idempotency_bytes_max)",
            self.bytes_max
        );
        Err(Error::new(Code::Overloaded, message))
    }
}

impl Kept {
    /// Its size is bounded by what a request may ask for.
    async fn read(request: String, mut response: Response) -> Self {
        loop {
            let (parts, body) = response.into_parts();
            match axum::body::to_bytes(body, usize::MAX).await {
                Ok(body) => return Self { request, parts, body },
                // It came from another server, which is gone.
                Err(error) => {
                    let message = format!("another server's answer broke off: {error}");
                    response = Refusal(Error::new(Code::Unavailable, message)).into_response();
                }
            }
        }
    }

    fn response(&self) -> Response {
        Response::from_parts(self.parts.clone(), Body::from(self.body.clone()))
    }
}

fn weight(key: &str, kept: &Kept) -> usize {
    ENTRY_BYTES + key.len() + kept.request.len() + kept.body.len()
}

fn key_of(value: &HeaderValue) -> Result<&str, Error> {
    let key = value.to_str().unwrap_or_default();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let message = format!("an idempotency key has 1 to {KEY_BYTES_MAX} characters of ASCII");
        return Err(Error::bad_request(message));
    }
    Ok(key)
}
