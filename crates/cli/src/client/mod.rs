//! Client of a running server, over its public HTTP interface.

mod certificates;
mod connection;
mod hints;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt as _, Full, Limited};
pub(crate) use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::http::uri::Authority;
use hyper::{Request, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use snowmint_client::Credentials;
use snowmint_coord::error::chain;
use snowmint_coord::{BootTimer, within};
use snowmint_wire::error::Code;
use snowmint_wire::http::{ErrorBody, JSON};
use tokio::runtime::Runtime;

pub(crate) use self::certificates::{rustls_config, server_name};
use self::connection::{HttpClient, http_client, is_not_reached};
pub(crate) use self::connection::{Socket, secured};
use crate::open::store;
use crate::terminal::exit::{Exit, Failure, Outcome};

/// Default listen address of `serve`.
pub(crate) const DEFAULT_SERVER: &str = "127.0.0.1:7700";

/// Longest wait for a response.
const RESPONSE_MS_MAX: u64 = 60_000;
/// Longest wait for a response while the same request can still be sent to another server, and for
/// calls that only look at a server.
const LOOK_MS_MAX: u64 = 5_000;
/// Longest response that is read: 100,000 IDs of 48 characters take 5 MB.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Client of one server, or of several with the same content: the first that can respond is used.
pub(crate) struct ApiClient {
    /// Runs only during calls. Calls come from outside of every runtime; inside one they would
    /// panic.
    runtime: Runtime,
    /// Base URLs of the servers.
    servers: Vec<String>,
    /// Index of the server that responded last, which is called first.
    first: AtomicUsize,
    /// Longest wait for a response of the last server that is called.
    response_ms_max: u64,
    http: HttpClient,
    /// Value of the `authorization` header.
    bearer: Option<HeaderValue>,
}

/// Error of a failed call.
pub(crate) enum CallError {
    /// No server was reached: the request had no effect.
    NotReached(String),
    /// The caller is not permitted to make this call.
    Forbidden(String),
    /// Any other failure.
    Failed(Failure),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotReached(message) => Self::unavailable(message),
            CallError::Forbidden(message) => Self::coded(Code::Forbidden, message),
            CallError::Failed(failure) => failure,
        }
    }
}

impl ApiClient {
    /// Accepts `http://host:port`, `host:port` or `snowmint://host:port,host:port`; with TLS
    /// `https://` and `snowmints://`.
    pub(crate) fn new(url: &str) -> Outcome<Self> {
        let refused = |reason: &str| {
            Failure::usage(format!(
                "--server {}: {reason}; write http://host:port or snowmint://host:port,host:port, \
                 with TLS https:// or snowmints://",
                snowmint_stores::shown(url).escape_debug()
            ))
        };
        // As a store's URL, a servers' URL needs no port; one of the web has the port of its scheme.
        let (scheme, port, hosts) = match url.split_once("://") {
            None => ("http", None, url),
            Some(("http", hosts)) => ("http", None, hosts),
            Some(("https", hosts)) => ("https", None, hosts),
            Some(("snowmint", hosts)) => ("http", Some(snowmint_client::PORT), hosts),
            Some(("snowmints", hosts)) => ("https", Some(snowmint_client::PORT), hosts),
            Some(_) => return Err(refused("invalid server address")),
        };
        // Every error of this server would show it.
        if hosts.contains('@') {
            return Err(refused("it has a user or a token, which belongs in SNOWMINT_TOKEN"));
        }
        let hosts = hosts.trim_end_matches('/').split(',');
        let server = |host| {
            let server = authority(host)?;
            let port = port.filter(|_| server.port().is_none());
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            Some(format!("{scheme}://{server}{port}"))
        };
        let servers = hosts.map(server);
        let servers: Option<_> = servers.collect();
        let servers = servers.ok_or_else(|| refused("invalid server address"))?;
        let credentials = Credentials::from_env().map_err(Failure::usage)?;
        let tls = (scheme == "https").then(|| rustls_config(&credentials)).transpose()?;
        Ok(Self {
            runtime: store::runtime()?,
            servers,
            first: AtomicUsize::new(0),
            response_ms_max: RESPONSE_MS_MAX,
            http: http_client(tls.map(|config| Arc::new(config).into())),
            bearer: bearer(&credentials)?,
        })
    }

    /// Returns a client for looks at a server. A frozen one accepts connections, and a probe or a
    /// view must report it soon.
    pub(crate) fn looking(url: &str) -> Outcome<Self> {
        Ok(Self { response_ms_max: LOOK_MS_MAX, ..Self::new(url)? })
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        self.call(&Method::GET, path, None::<&()>)
    }

    /// Gets the same from the first server alone, if it responds in time.
    pub(crate) fn get_within<T: DeserializeOwned>(
        &self,
        ms: u64,
        path: &str,
    ) -> Result<T, CallError> {
        let base = self.servers.first().map_or("", String::as_str);
        let read = |bytes: &[u8]| serde_json::from_slice(bytes);
        self.call_one((base, ms), &Method::GET, path, &Bytes::new(), read)
    }

    /// Returns a page that is not JSON: the metrics.
    pub(crate) fn text(&self, path: &str) -> Result<String, CallError> {
        let read = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
        self.call_for(&Method::GET, path, None::<&()>, read)
    }

    /// Deletes what the path names.
    pub(crate) fn delete(&self, path: &str) -> Result<(), CallError> {
        self.call(&Method::DELETE, path, None::<&()>)
    }

    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, CallError> {
        self.call_for(method, path, body, |bytes| serde_json::from_slice(bytes))
    }

    /// Makes a call whose response `read` reads.
    fn call_for<T, E: fmt::Display>(
        &self,
        method: &Method,
        path: &str,
        body: Option<&impl Serialize>,
        read: impl Fn(&[u8]) -> Result<T, E>,
    ) -> Result<T, CallError> {
        let body = match body.map(serde_json::to_vec).transpose() {
            Ok(body) => Bytes::from(body.unwrap_or_default()),
            Err(error) => return Err(CallError::Failed(Failure::internal(error))),
        };
        let (mut reasons, mut passing) = (Vec::new(), None);
        let twice = may_be_done_twice(method, path);
        let first = self.first.load(Ordering::Relaxed);
        let mut left = self.servers.len();
        for (index, base) in self.servers.iter().enumerate().cycle().skip(first).take(left) {
            left -= 1;
            // A frozen server still accepts connections, perhaps for long.
            let ms = if twice && left > 0 { LOOK_MS_MAX } else { self.response_ms_max };
            match self.call_one((base, ms), method, path, &body, &read) {
                Err(CallError::NotReached(reason)) => reasons.push(reason),
                // The server has died since, or is unavailable now: another may serve.
                Err(CallError::Failed(
                    failure @ Failure::Explained { exit: Exit::Unavailable, .. },
                )) => {
                    if !twice {
                        return Err(CallError::Failed(failure));
                    }
                    passing.get_or_insert(failure);
                }
                response => {
                    self.first.store(index, Ordering::Relaxed);
                    return response;
                }
            }
        }
        Err(passing.map_or_else(|| CallError::NotReached(reasons.join("; ")), CallError::Failed))
    }

    fn request(
        &self,
        base: &str,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> hyper::http::Result<Request<Full<Bytes>>> {
        // The library would leave out a usual port, which `http.hosts` of a server may name.
        let (_, host) = base.split_once("://").unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(HOST, host)
            .header(USER_AGENT, concat!("snowmint/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, JSON);
        let request = match &self.bearer {
            Some(bearer) => request.header(AUTHORIZATION, bearer),
            None => request,
        };
        request.body(Full::new(body.clone()))
    }

    fn call_one<T, E: fmt::Display>(
        &self,
        (base, ms): (&str, u64),
        method: &Method,
        path: &str,
        body: &Bytes,
        read: impl Fn(&[u8]) -> Result<T, E>,
    ) -> Result<T, CallError> {
        let request = self
            .request(base, method, path, body)
            .map_err(|error| CallError::Failed(Failure::internal(error)))?;
        let (status, bytes) = self.runtime.block_on(async {
            // The runtime stood still since the last call. Here it puts that call's connection back
            // among those to use again, or notices that the server closed it.
            tokio::task::yield_now().await;
            let late = || failed(format!("no response from {base}: none within {ms} ms"));
            let response = within(&BootTimer, ms, self.response(base, request));
            response.await.unwrap_or_else(|| Err(late()))
        })?;
        // A response without content.
        let bytes = if status == 204 { Bytes::from_static(b"null") } else { bytes };
        // Readiness reports a negative result by its status, with the same body form.
        if matches!(status, 200 | 201 | 204) || (status == 503 && path == "/readyz") {
            return read(&bytes).map_err(|error| {
                failed(format!("{base} sent an unknown response for {path}: {error}"))
            });
        }
        Err(response_error(base, path, status, &bytes, self.bearer.is_some()))
    }

    /// Sends a request, and reads the whole response.
    async fn response(
        &self,
        base: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<(u16, Bytes), CallError> {
        let response = self.http.request(request).await;
        // The client's own error only names the phase.
        let response =
            response.map_err(|error| no_response(base, error.source().unwrap_or(&error)))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect().await;
        let body = body.map_err(|cause| {
            failed(format!("response from {base} was cut off: {}; retry", chain(&*cause)))
        })?;
        Ok((status, body.to_bytes()))
    }
}

/// Returns the host, and the port if there is one, of a URL without its scheme; `None` if it has
/// anything else.
pub(crate) fn authority(text: &str) -> Option<Authority> {
    // The grammar is the same for every scheme.
    let uri: Uri = format!("http://{text}").parse().ok()?;
    let authority = uri.authority()?;
    // A port must be a number.
    let odd_port = authority.port().is_none() && authority.as_str() != authority.host();
    let is_more = authority.as_str().contains('@') || uri.path() != "/" || uri.query().is_some();
    let is_server = !authority.host().is_empty() && !odd_port && !is_more;
    is_server.then(|| authority.clone())
}

/// Returns whether a call that may have been executed can be repeated: numbers taken twice are only
/// lost, and any other such call returns the same.
fn may_be_done_twice(method: &Method, path: &str) -> bool {
    let takes = ["/v1/ids/", "/v1/segments/"].iter().any(|prefix| path.starts_with(prefix));
    matches!(*method, Method::GET | Method::PUT) || (*method == Method::POST && takes)
}

/// Returns the `authorization` header for servers. The token never comes from the command line,
/// where other users could see it.
pub(crate) fn bearer(credentials: &Credentials) -> Outcome<Option<HeaderValue>> {
    let Some(token) = credentials.read_token().map_err(Failure::usage)? else { return Ok(None) };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Failure::usage("token has invalid characters; correct it".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Converts a server's error response to an error with an exit code.
fn response_error(base: &str, path: &str, status: u16, bytes: &[u8], has_token: bool) -> CallError {
    let Ok(ErrorBody { error }) = serde_json::from_slice(bytes) else {
        return failed(format!(
            "{base} sent HTTP status {status} for {path}; check that it is a Snowmint server"
        ));
    };
    let message = match error.retry_after_ms {
        Some(ms) => format!("{} (a retry may help in {ms} ms)", error.message),
        None => error.message,
    };
    CallError::Failed(match Code::from_name(&error.code) {
        Some(Code::Forbidden) => return CallError::Forbidden(message),
        Some(code @ Code::Unauthenticated) => {
            let hint = hints::of_unauthenticated(has_token);
            Failure::coded(code, format!("{base} rejected the call: {message}; {hint}"))
        }
        Some(code) => Failure::coded(code, message),
        // The code is a newer server's; the status still says whether the caller must act.
        None => {
            let exit = if status < 500 { Exit::Usage } else { Exit::Unavailable };
            Failure::of_newer_server(exit, &error.code, &message)
        }
    })
}

/// Describes why the server at `base` did not respond, and what to do.
fn no_response(base: &str, cause: &(dyn Error + 'static)) -> CallError {
    let hint = hints::of_connection(base, cause);
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    let message = format!("no response from {base}: {}{hint}", chain(cause));
    match cause.downcast_ref().is_some_and(is_not_reached) {
        true => CallError::NotReached(message),
        false => failed(message),
    }
}

fn failed(message: String) -> CallError {
    CallError::Failed(Failure::unavailable(message))
}

/// Escapes a path segment where necessary.
pub(crate) fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-_~".contains(&byte)
            || (byte == b'.' && text.len() > 2)
        {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use serde_json::Value;
    use snowmint_testkit::servers::free_port;

    use super::*;

    #[test]
    fn server_urls_give_base_addresses() {
        for (url, bases) in [
            ("127.0.0.1:7700", &["http://127.0.0.1:7700"][..]),
            ("http://ids.example:80/", &["http://ids.example:80"]),
            ("snowmint://a:1,b:2", &["http://a:1", "http://b:2"]),
            ("snowmint://a,b:2,[::1]", &["http://a:7700", "http://b:2", "http://[::1]:7700"]),
            ("snowmints://a/", &["https://a:7700"]),
            ("http://a", &["http://a"]),
            ("http://[::1]:7700", &["http://[::1]:7700"]),
            ("https://a:1", &["https://a:1"]),
            ("snowmints://a:1,b:2", &["https://a:1", "https://b:2"]),
        ] {
            let client = ApiClient::new(url).unwrap();
            assert_eq!(client.servers, bases, "{url}");
        }
        for url in
            ["", "http://", "ftp://a:1", "https://", "a:1/path", "a b", "a:1,,b:2", "sqlite:x"]
        {
            assert!(ApiClient::new(url).is_err(), "{url}");
        }
        for url in ["snowmint://secret@a:1", "https://secret@a", "me:secret@a:1"] {
            let Err(Failure::Explained { message, .. }) = ApiClient::new(url) else {
                panic!("{url}")
            };
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn requests_name_the_server_as_its_url_does() {
        for (url, host) in [
            ("http://ids.example:80", "ids.example:80"),
            ("https://ids.example:443", "ids.example:443"),
            ("[::1]:7700", "[::1]:7700"),
            ("ids.example", "ids.example"),
        ] {
            let client = ApiClient::new(url).unwrap();
            let base = &client.servers[0];
            let request = client.request(base, &Method::GET, "/readyz", &Bytes::new()).unwrap();
            assert_eq!(request.headers()[HOST], host, "{url}");
        }
    }

    const WELL: &str =
        "HTTP/1.1 200 OK\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"ids\":[\"7\"]}";

    /// Starts a server that calls `serve` for one connection after the other, and then closes it.
    fn serving(serve: impl Fn(&mut TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            listener.incoming().for_each(|stream| serve(&mut stream.unwrap()))
        });
        address
    }

    /// Reads to the end of the body, which is an empty JSON string.
    fn read_request(stream: &mut TcpStream) {
        let (mut byte, mut read) = ([0], Vec::new());
        while !read.ends_with(b"\"\"") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
            read.extend(byte);
        }
    }

    /// Starts a server that sends this response to every request, or closes the connection after
    /// reading it; counts the requests.
    fn server(response: &'static str) -> (String, Arc<AtomicUsize>) {
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        let address = serving(move |stream| {
            read_request(stream);
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(response.as_bytes());
        });
        (address, requests)
    }

    fn mint(client: &ApiClient) -> Result<Value, CallError> {
        client.call(&Method::POST, "/v1/ids/orders", Some(&""))
    }

    fn mint_at(url: &str) -> Result<Value, CallError> {
        mint(&ApiClient::new(url).unwrap())
    }

    #[test]
    fn client_keeps_a_connection_until_the_server_closes_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let address = serving(move |stream| {
            for _ in 0..3 {
                read_request(stream);
                stream.write_all(WELL.replace("close", "keep-alive").as_bytes()).unwrap();
            }
            stream.shutdown(Shutdown::Both).unwrap();
            sender.send(()).unwrap();
        });
        let client = ApiClient::new(&address).unwrap();
        for _ in 0..20 {
            assert!((0..3).all(|_| mint(&client).is_ok()));
            receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }

    #[test]
    fn client_distinguishes_missing_server_and_lost_response() {
        let refusing = format!("127.0.0.1:{}", free_port());
        let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
        // No resolver is called for a label of 64 letters.
        let unknown = format!("{}:1", "x".repeat(64));
        let silent_tls = format!("https://{}", frozen.local_addr().unwrap());
        for url in [refusing, unknown, silent_tls] {
            assert!(matches!(mint_at(&url), Err(CallError::NotReached(_))), "{url}");
        }

        let closed = serving(read_request);
        // Unread bytes turn the close into a reset.
        let reset = serving(|stream| drop(stream.read(&mut [0; 16])));
        let cut = serving(|stream| {
            read_request(stream);
            let _ = stream.write_all(WELL.trim_end_matches('}').as_bytes());
        });
        let endless = serving(|stream| {
            read_request(stream);
            let length = RESPONSE_BYTES_MAX + 1;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all(&[head.into_bytes(), vec![b' '; length]].concat());
        });
        for (url, part) in [
            (closed, "no response from"),
            (reset, "no response from"),
            (cut, "cut off"),
            (endless, "limit exceeded"),
        ] {
            let Err(CallError::Failed(Failure::Explained { message, .. })) = mint_at(&url) else {
                panic!("{url}: {part}")
            };
            assert!(message.contains(part) && message.contains(&url), "{part}: {message}");
        }
    }

    #[test]
    fn client_names_the_scheme_that_the_server_speaks() {
        for (scheme, response, part) in [
            ("https", "HTTP/1.1 400 Bad Request\r\n\r\n", "write http://"),
            ("https", "", "SNOWMINT_CERT_FILE"),
            // A TLS alert.
            ("http", "\x15\x03\x03\0\x02\x02\x32", "write https://"),
            ("http", "-ERR unknown command\r\n", "RESP has a port of its own"),
            ("http", "", "this is the port of RESP"),
        ] {
            let address = serving(|stream| {
                let _ = stream.read(&mut [0; 16 * 1024]);
                let _ = stream.write_all(response.as_bytes());
            });
            let Err(CallError::Failed(Failure::Explained { message, .. })) =
                mint_at(&format!("{scheme}://{address}"))
            else {
                panic!("{part}")
            };
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    #[test]
    fn client_tries_the_next_server_for_repeatable_calls() {
        let stops = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 73\r\nconnection: close\r\n\r\n\
                     {\"error\":{\"code\":\"closed\",\"message\":\"it stops\",\"retry_after_ms\":null}}   ";
        for ill in ["", stops] {
            let ((one, one_requests), (two, two_requests)) = (server(ill), server(WELL));
            let client = || ApiClient::new(&format!("snowmint://{one},{two}")).unwrap();
            let minted = mint(&client());
            assert!(minted.is_ok_and(|body| body["ids"][0] == "7"), "{ill}");
            // A request that may have been executed is not sent again.
            let defined = client().call::<Value>(&Method::POST, "/v1/sources", Some(&""));
            assert!(matches!(defined, Err(CallError::Failed(_))), "{ill}");
            let requests =
                (one_requests.load(Ordering::SeqCst), two_requests.load(Ordering::SeqCst));
            assert_eq!(requests, (2, 1), "{ill}");
        }
    }

    /// A server that is stopped, or on a hung machine, still accepts connections.
    #[test]
    fn silent_server_is_waited_for_once_and_briefly() {
        let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
        let (two, requests) = server(WELL);
        let url = format!("snowmint://{},{two}", frozen.local_addr().unwrap());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let client = ApiClient::new(&url).unwrap();
            sender.send((0..20).all(|_| mint(&client).is_ok())).unwrap();
        });
        assert_eq!(
            receiver.recv_timeout(Duration::from_millis(5 * LOOK_MS_MAX)),
            Ok(true),
            "{requests:?} got a response"
        );
    }

    #[test]
    fn parts_of_a_path_cannot_lead_out_of_it() {
        assert_eq!(segment("orders-1_x.y"), "orders-1_x.y");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("a/b?c%d\u{e9}"), "a%2Fb%3Fc%25d%C3%A9");
    }

    #[test]
    fn errors_keep_the_servers_text_and_code() {
        let body = br#"{"error":{"code":"unknown_source","message":"there is no source x","retry_after_ms":null}}"#;
        let Failure::Explained { exit, code, message } =
            response_error("http://h", "/", 404, body, false).into()
        else {
            panic!("must say why")
        };
        assert_eq!((exit as u8, message.as_str()), (1, "there is no source x"));
        assert_eq!(code, Some(Code::UnknownSource));
        let newer = br#"{"error":{"code":"too_new","message":"not yet","retry_after_ms":null}}"#;
        let Failure::Explained { exit, code, message } =
            response_error("http://h", "/", 409, newer, false).into()
        else {
            panic!("must say why")
        };
        assert_eq!((exit as u8, code, message.as_str()), (2, None, "not yet [too_new]"));
        let Failure::Explained { exit, code, message } =
            response_error("http://h", "/x", 502, b"<html>", false).into()
        else {
            panic!("must say why")
        };
        assert_eq!((exit as u8, code), (4, Some(Code::Unavailable)));
        assert!(message.contains("502"), "{message}");
    }
}
