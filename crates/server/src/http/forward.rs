//! Requests for a key that another server answers for: passed on to it, once.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use axum::response::Response;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use snowmint_coord::Timer;
use snowmint_wire::error::Code;
use snowmint_wire::http::JSON;

use crate::service::Error;

/// Says that a request was passed on: whoever gets it answers it or refuses.
const PASSED_ON: HeaderName = HeaderName::from_static("snowmint-passed-on");

/// Passes requests on to other servers.
#[derive(Clone, Debug)]
pub(super) struct Forward {
    client: Client<HttpConnector, Full<Bytes>>,
    timer: Arc<dyn Timer>,
    /// How long the other may take to begin its answer.
    within_ms: u64,
}

impl Forward {
    pub(super) fn new(timer: Arc<dyn Timer>, within_ms: u64) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, timer, within_ms }
    }

    /// The answer of whoever answers for the key, if the refusal names somebody who speaks HTTP and the
    /// request was not passed on before; else the refusal.
    pub(super) async fn or_refuse(
        &self,
        refusal: Error,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Error> {
        let address = refusal.elsewhere().and_then(|elsewhere| elsewhere.reach.http.clone());
        let Some(address) = address.filter(|_| !headers.contains_key(PASSED_ON)) else {
            return Err(refusal);
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"))
            .header(PASSED_ON, HeaderValue::from_static("1"))
            .header(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let request = match headers.get(ACCEPT) {
            Some(accept) => request.header(ACCEPT, accept),
            None => request,
        };
        let not_reached = |why: String| {
            tracing::warn!(%address, why, "a request could not be passed on");
            let message = format!("{refusal}; it could not be reached");
            Error::new(Code::Unavailable, message)
        };
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| not_reached(error.to_string()))?;
        tokio::select! {
            biased;
            answer = self.client.request(request) => match answer {
                Ok(answer) => Ok(answer.map(Body::new)),
                Err(error) => Err(not_reached(error.to_string())),
            },
            () = self.timer.sleep_ms(self.within_ms) => {
                Err(not_reached(format!("no answer within {} ms", self.within_ms)))
            }
        }
    }
}
