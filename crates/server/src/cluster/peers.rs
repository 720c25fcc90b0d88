//! Peers: the other servers of a namespace, to which this server forwards requests.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::{Full, LengthLimitError};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use snowmint_coord::{Timer, lock, within};
use snowmint_wire::error::Code;
use snowmint_wire::http::JSON;
use tokio::sync::mpsc;

use crate::access::Access;
use crate::clients::share::{Client as Asker, Share, Shares};
use crate::error::{Error, OwnerFailure};
use crate::net::tls::{Tls, no_tls};
use crate::observe::live::Live;
use crate::observe::trace::Traces;

/// Header of forwarded requests: the peer that gets one responds or rejects, and forwards it no
/// further.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("snowmint-passed-on");

/// Reasons why a peer rejected the request.
const TOKEN_REJECTED: &str = "peer rejects this server's token (peers.token)";
const NOT_NAMED: &str = "peer rejects the host that it announces (its http.hosts)";

/// Retries of a caller until another member has taken over: one less than the clients of gRPC make,
/// which stop after five attempts whatever the response says.
const RETRIES: u64 = 3;

/// Time in which a probed peer must respond.
const PROBE_MS: u64 = 1_000;

/// Addresses of failed requests that are queued for a probe, at most.
pub(crate) const SILENT_PEERS_MAX: usize = 16;

/// Client of the peers. Clones share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    /// Replaced when the certificates change.
    client: Arc<ArcSwap<PeerClient>>,
    tls: Option<Tls>,
    timer: Arc<dyn Timer>,
    live: Live,
    /// Holder of the token that identifies this server as a peer.
    access: Option<Access>,
    traces: Option<Traces>,
    /// Time until another member takes over from one that died.
    missed_ms: u64,
    /// Receives the addresses of peers that did not respond.
    silent_peers: mpsc::Sender<String>,
    /// Requests in flight to each peer: each takes a connection.
    waiting: Arc<Mutex<HashMap<String, Arc<Shares>>>>,
}

/// Reason why a peer was not called, or has not responded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerCallError {
    pub(crate) reason: String,
    /// Whether a quick retry is useless: the configuration of the servers or of a proxy is the
    /// cause, or the peer may have taken numbers.
    pub(crate) lasts: bool,
}

impl PeerCallError {
    pub(super) fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), lasts: true }
    }
}

impl fmt::Display for PeerCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A client, and the generation of its certificates.
#[derive(Clone, Debug)]
struct PeerClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    generation: u64,
}

impl PeerClient {
    fn new(tls: Option<&Tls>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.enforce_http(false);
        // All servers speak TLS or none does: without certificates of our own, no peer speaks TLS.
        let config = tls.map_or_else(no_tls, Tls::peers);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, generation: tls.map_or(0, Tls::generation) }
    }
}

impl Peers {
    pub(crate) fn new(
        timer: Arc<dyn Timer>,
        live: Live,
        access: Option<Access>,
        tls: Option<Tls>,
        traces: Option<Traces>,
        missed_ms: u64,
        silent_peers: mpsc::Sender<String>,
    ) -> Self {
        let client = Arc::new(ArcSwap::from_pointee(PeerClient::new(tls.as_ref())));
        let waiting = Arc::default();
        Self { client, tls, timer, live, access, traces, missed_ms, silent_peers, waiting }
    }

    /// Returns a client with the current certificates.
    fn peer_client(&self) -> Arc<PeerClient> {
        let peer_client = self.client.load_full();
        if self.tls.as_ref().is_none_or(|tls| tls.generation() == peer_client.generation) {
            return peer_client;
        }
        let peer_client = Arc::new(PeerClient::new(self.tls.as_ref()));
        self.client.store(Arc::clone(&peer_client));
        peer_client
    }

    /// Counts one request of a client in flight to the peer at this address, until the result is
    /// dropped.
    ///
    /// # Errors
    /// When the client has more than its share of `limits.passed_on_max`.
    pub(crate) fn waits(&self, address: &str, asker: Asker) -> Result<Share, Error> {
        let most = self.live.limit(|limits| limits.passed_on_max.into());
        let mut waiting = lock(&self.waiting);
        if !waiting.contains_key(address) {
            // Forget servers without requests in flight.
            waiting.retain(|_, shares| Arc::strong_count(shares) > 1);
        }
        let shares = waiting.entry(address.to_owned()).or_insert_with(|| Shares::new(most));
        shares.set_limit(most);
        shares.try_acquire(asker, 1).map_err(|over| Error::too_many_forwarded(address, &over))
    }

    pub(crate) fn timer(&self) -> &dyn Timer {
        self.timer.as_ref()
    }

    /// Returns the timer, to keep.
    pub(crate) fn shared_timer(&self) -> Arc<dyn Timer> {
        Arc::clone(&self.timer)
    }

    /// Returns the error for a caller when the peer that had to serve it could not be reached.
    pub(crate) fn not_reached(&self, message: impl Into<String>) -> Error {
        let error = Error::new(Code::Unavailable, message);
        error.retry_in_ms(self.missed_ms.div_ceil(RETRIES))
    }

    /// Returns the same error for a request that the section owner should have served.
    pub(crate) fn not_forwarded(&self, address: &str, error: &PeerCallError) -> OwnerFailure {
        tracing::warn!(%address, %error, "failed to forward a request");
        let unreached = self.not_reached("owner of the key could not be reached; retry");
        OwnerFailure {
            error: unreached.with_detail(format!("server {address}")),
            lasts: error.lasts,
        }
    }

    /// Returns the credential that identifies this server to a peer.
    fn shown(&self) -> Option<Result<HeaderValue, String>> {
        let secret = self.access.as_ref()?.shown_to_peers()?;
        Some(secret.bearer().ok_or_else(|| "peers.token has invalid characters".to_owned()))
    }

    /// Forwards a request to the peer at this address, such as `http://HOST:PORT`, and returns its
    /// response, of at most `bytes_max` bytes. Fails without one within twice `limits.wait_max`.
    pub(crate) async fn ask(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Vec<u8>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, PeerCallError> {
        if self.tls.is_some() && !address.starts_with("https://") {
            // The token could be intercepted.
            return Err(PeerCallError::lasting("peer does not use TLS, but this server does"));
        }
        if self.tls.is_none() && address.starts_with("https://") {
            // We would accept any certificate.
            return Err(PeerCallError::lasting("peer uses TLS, but this server does not"));
        }
        let request = Request::builder()
            .method(method)
            .uri(format!("{address}{path}"))
            .header(FORWARDED, HeaderValue::from_static("1"))
            .header(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let request = match self.shown() {
            Some(shown) => request.header(AUTHORIZATION, shown.map_err(PeerCallError::lasting)?),
            None => request,
        };
        let mut request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| PeerCallError::lasting(error.to_string()))?;
        if let Some(traces) = &self.traces {
            traces.send(request.headers_mut());
        }
        let (peer_client, within_ms) = (self.peer_client(), self.within_ms());
        let response = whole(peer_client.client.request(request), bytes_max);
        match within(&*self.timer, within_ms, response).await {
            // The status is about this server, not about the caller.
            Some(Ok(response)) => match refuses_us(response.status()) {
                Some(reason) => {
                    tracing::warn!(%address, status = %response.status(), "{reason}");
                    Err(PeerCallError::lasting(reason))
                }
                None => Ok(response),
            },
            Some(Err(error)) if error.lasts => Err(error),
            Some(Err(error)) => Err(self.report_silent(address, error.reason)),
            None => Err(self.report_silent(address, format!("no response within {within_ms} ms"))),
        }
    }

    /// Reports a peer that did not respond, and returns the error of the call.
    fn report_silent(&self, address: &str, reason: String) -> PeerCallError {
        // When the queue is full, the next failed request reports the peer.
        let _ = self.silent_peers.try_send(address.to_owned());
        PeerCallError { reason, lasts: false }
    }

    /// Returns whether the peer at this address responds at all, within [`PROBE_MS`].
    pub(crate) async fn is_reached(&self, address: &str) -> bool {
        let call = self.ask(address, Method::GET, "/livez", Vec::new(), 1 << 16);
        let response = within(&*self.timer, PROBE_MS, call).await;
        response
            .is_some_and(|response| !matches!(response, Err(PeerCallError { lasts: false, .. })))
    }

    /// Returns the time in which a peer must respond: its own wait is as long as ours, and the rest
    /// is for the network.
    fn within_ms(&self) -> u64 {
        self.live.limit(|limits| limits.wait_max.ms()).saturating_mul(2)
    }
}

#[cfg(test)]
impl Peers {
    /// Returns peers without certificates, tokens or traces, on the system's time.
    pub(crate) fn of_tests(live: Live) -> Self {
        let timer = Arc::new(snowmint_coord::BootTimer);
        Self::new(timer, live, None, None, None, 3_000, mpsc::channel(1).0)
    }
}

/// Reads a response to its end: one that hangs after its head counts as missing.
async fn whole(
    response: ResponseFuture,
    bytes_max: usize,
) -> Result<Response<Bytes>, PeerCallError> {
    let silent = |error: hyper_util::client::legacy::Error| PeerCallError {
        reason: error.to_string(),
        lasts: false,
    };
    let (head, body) = response.await.map_err(silent)?.into_parts();
    let body = to_bytes(Body::new(body), bytes_max).await.map_err(|error| PeerCallError {
        reason: format!("response over {bytes_max} bytes, or cut off: {error}"),
        // Too long for a peer's: a web page, for example.
        lasts: error.source().is_some_and(|source| source.is::<LengthLimitError>())
            && !head.status.is_server_error(),
    })?;
    Ok(Response::from_parts(head, body))
}

/// Returns why a peer rejects this server: our token is unknown or not a server's, or the address
/// that the peer announces is not among its names.
fn refuses_us(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(TOKEN_REJECTED),
        StatusCode::MISDIRECTED_REQUEST => Some(NOT_NAMED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use snowmint_coord::spec::Span;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::Limits;

    fn patient(wait_max_ms: u64) -> Live {
        let wait_max = Span::from_ms(wait_max_ms);
        Live::new(Limits { wait_max, ..Limits::default() }, false, None)
    }

    /// A frozen server accepts connections, and may have begun its response.
    #[tokio::test]
    async fn a_server_that_hangs_is_given_up_after_twice_the_longest_wait() {
        for raw in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let hangs = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_exact(&mut [0; 16]).await.unwrap();
                stream.write_all(raw.as_bytes()).await.unwrap();
                std::future::pending::<()>().await;
            });
            let peers = Peers::of_tests(patient(50));
            let call = peers.ask(&address, Method::GET, "/", Vec::new(), 99);
            let response = tokio::time::timeout(Duration::from_secs(30), call).await;
            let error = response.expect("it is waited for without a bound").unwrap_err();
            assert_eq!(
                (error.reason.as_str(), error.lasts),
                ("no response within 100 ms", false),
                "{raw:?}"
            );
            hangs.abort();
        }
    }

    /// Starts a server that responds once, with this status.
    async fn answering(status: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 16]).await.unwrap();
            let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        address
    }

    #[tokio::test]
    async fn peer_that_rejects_our_token_gives_no_response() {
        let peers = Peers::of_tests(patient(60_000));
        for (status, key) in [
            ("401 Unauthorized", Some("peers.token")),
            ("403 Forbidden", Some("peers.token")),
            ("421 Misdirected Request", Some("http.hosts")),
            ("204 No Content", None),
            ("404 Not Found", None),
        ] {
            let address = answering(status).await;
            let response = peers.ask(&address, Method::GET, "/", Vec::new(), 99).await;
            assert_eq!(response.is_ok(), key.is_none(), "{status}: {response:?}");
            if let (Err(error), Some(key)) = (response, key) {
                assert!(error.lasts && error.reason.contains(key), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn unreached_peer_is_named_to_operators_alone() {
        let peers = Peers::of_tests(patient(50));
        let failure = peers.not_forwarded("http://one:1", &PeerCallError::lasting("no TLS"));
        assert!(!failure.error.message().contains("one:1"), "{}", failure.error);
        assert_eq!(failure.error.detail(), Some("server http://one:1"));
    }

    /// Each waiting request takes a connection, so requests for keys of a server that hangs have a
    /// bound.
    #[tokio::test]
    async fn one_client_does_not_use_all_waiting_places_of_a_peer() {
        let live = Live::new(Limits { passed_on_max: 100, ..Limits::default() }, false, None);
        let peers = Peers::of_tests(live.clone());
        let waits = |address: &str, name: &str| peers.waits(address, Asker::token(name));
        let greedy: Vec<_> = std::iter::from_fn(|| waits("http://one:1", "greedy").ok()).collect();
        assert_eq!(greedy.len(), 38);
        let refused = waits("http://one:1", "greedy").unwrap_err();
        assert_eq!(refused.code(), Code::Overloaded);
        for part in ["limits.passed_on_max", "token greedy"] {
            assert!(refused.message().contains(part), "{refused}");
        }
        assert!(!refused.message().contains("one:1"), "{refused}");
        assert_eq!(refused.detail(), Some("server http://one:1"));
        // Other clients and other servers are not affected.
        let other: Vec<_> = (0..11).map(|_| waits("http://one:1", "other").unwrap()).collect();
        let second_peer: Vec<_> =
            (0..38).map(|_| waits("http://two:2", "greedy").unwrap()).collect();
        drop((greedy, other, second_peer));
        // Servers without requests in flight are forgotten when a new one comes.
        assert!(waits("http://three:3", "greedy").is_ok());
        assert_eq!(lock(&peers.waiting).len(), 1);
        live.set_limits(Limits { passed_on_max: 1, ..Limits::default() });
        assert!(waits("http://three:3", "greedy").is_err());
    }
}
