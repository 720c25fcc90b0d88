//! Talking to a running server, over the HTTP interface that everybody else uses too.

mod certificates;
mod hints;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use snowmint_client::Credentials;
use snowmint_wire::error::Code;
use snowmint_wire::http::ErrorBody;
use ureq::Agent;
use ureq::http::{HeaderValue, Method, Request};

pub(crate) use self::certificates::rustls_config;
use crate::exit::{Exit, Failure, Outcome};

/// Where `serve` listens when nothing is given.
pub(crate) const DEFAULT_SERVER: &str = "127.0.0.1:7700";

/// How long to wait for a server to take the connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long to wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long to wait for an answer where another server may be asked the same instead.
const ELSEWHERE_AFTER: Duration = Duration::from_secs(5);
/// The longest answer that is read: 100,000 IDs of 48 characters take 5 MB.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One server or several with the same content, of which the first that can answers.
pub(crate) struct Client {
    agent: Agent,
    bases: Vec<String>,
    /// The server that answered last is asked first.
    first: AtomicUsize,
    /// What shows who we are.
    bearer: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("bases", &self.bases).finish_non_exhaustive()
    }
}

/// Why a call brought no answer.
pub(crate) enum CallError {
    /// Nobody is there: the request cannot have had any effect.
    NotReached(String),
    /// The one who asks may not.
    Forbidden(String),
    /// Everything else.
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

impl Client {
    /// `http://host:port`, `host:port`, or `snowmint://host:port,host:port`; with TLS `https://` and
    /// `snowmints://`.
    pub(crate) fn new(url: &str) -> Outcome<Self> {
        let refused = |why: &str| {
            Failure::usage(format!(
                "--server {}: {why}; write http://host:port or snowmint://host:port,host:port, and with TLS \
                 https:// or snowmints://",
                snowmint_stores::shown(url).escape_debug()
            ))
        };
        let (scheme, hosts) = match url.split_once("://") {
            None => ("http", url),
            Some(("http" | "snowmint", hosts)) => ("http", hosts),
            Some(("https" | "snowmints", hosts)) => ("https", hosts),
            Some(_) => return Err(refused("this is no server's address")),
        };
        // It would be shown with each error of this server.
        if hosts.contains('@') {
            return Err(refused("it names a user or a token, which belongs into SNOWMINT_TOKEN"));
        }
        let mut bases = Vec::new();
        for host in hosts.trim_end_matches('/').split(',') {
            let base = format!("{scheme}://{host}");
            let uri: ureq::http::Uri =
                base.parse().map_err(|_| refused("this is no server's address"))?;
            let odd_port =
                uri.port().is_none() && uri.authority().map(|a| a.as_str()) != uri.host();
            let no_host = uri.host().is_none_or(str::is_empty);
            if no_host || odd_port || uri.path() != "/" || uri.query().is_some() {
                return Err(refused("this is no server's address"));
            }
            bases.push(base);
        }
        let credentials = Credentials::from_env().map_err(Failure::usage)?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // Proxies are for the world outside; servers are named by their own addresses.
            .proxy(None)
            .tls_config(certificates::of(&credentials, scheme == "https")?)
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_global(Some(ANSWER_MAX))
            .user_agent(concat!("snowmint/", env!("CARGO_PKG_VERSION")))
            .build();
        let (agent, bearer) = (config.into(), bearer(&credentials)?);
        Ok(Self { agent, bases, first: AtomicUsize::new(0), bearer })
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        self.call(&Method::GET, path, None::<&()>)
    }

    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, CallError> {
        self.call(&Method::POST, path, Some(body))
    }

    pub(crate) fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, CallError> {
        self.call(&Method::PUT, path, Some(body))
    }

    pub(crate) fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, CallError> {
        self.call(&Method::PATCH, path, Some(body))
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, CallError> {
        let body = match body.map(serde_json::to_vec).transpose() {
            Ok(body) => body.unwrap_or_default(),
            Err(error) => return Err(failed(format!("internal error: {error}"))),
        };
        let (mut reasons, mut passing) = (Vec::new(), None);
        let twice = may_be_done_twice(method, path);
        let first = self.first.load(Ordering::Relaxed);
        let mut left = self.bases.len();
        for (index, base) in self.bases.iter().enumerate().cycle().skip(first).take(left) {
            left -= 1;
            // A server that is frozen still takes connections, and may for long.
            let within = if twice && left > 0 { ELSEWHERE_AFTER } else { ANSWER_MAX };
            match self.call_one((base, within), method, path, &body) {
                Err(CallError::NotReached(reason)) => reasons.push(reason),
                // It has died since, or cannot now: another may.
                Err(CallError::Failed(failure @ Failure::Said { exit: Exit::Unavailable, .. })) => {
                    if !twice {
                        return Err(CallError::Failed(failure));
                    }
                    passing.get_or_insert(failure);
                }
                answer => {
                    self.first.store(index, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(passing.map_or_else(|| CallError::NotReached(reasons.join("; ")), CallError::Failed))
    }

    fn call_one<T: DeserializeOwned>(
        &self,
        (base, within): (&str, Duration),
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Result<T, CallError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header("accept", "application/json")
            .header("content-type", "application/json");
        let request = match &self.bearer {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        };
        let request = request
            .body(body)
            .map_err(|error| failed(format!("no request can be made of {path}: {error}")))?;
        let request = self.agent.configure_request(request).timeout_global(Some(within)).build();
        let mut response = self.agent.run(request).map_err(|error| {
            let mut reason = format!("no answer from {base}: {error}");
            if let Some(hint) = hints::of_connection(base, &reason) {
                reason = format!("{reason}; {hint}");
            }
            match error {
                ureq::Error::HostNotFound
                | ureq::Error::ConnectionFailed
                | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                    CallError::NotReached(reason)
                }
                ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
                    CallError::NotReached(reason)
                }
                _ => failed(reason),
            }
        })?;
        let status = response.status().as_u16();
        let bytes = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()
            .map_err(|error| failed(format!("the answer from {base} broke off: {error}")))?;
        // Readiness says no by its status, in the form in which it says yes.
        if status == 200 || status == 201 || (status == 503 && path == "/readyz") {
            return serde_json::from_slice(&bytes).map_err(|error| {
                failed(format!("{base} answers {path} in a form not known here: {error}"))
            });
        }
        Err(refusal(base, path, status, &bytes, self.bearer.is_some()))
    }
}

/// Whether a call that was done, perhaps, can be made once more: what it took is lost, or it says the same again.
fn may_be_done_twice(method: &Method, path: &str) -> bool {
    let takes = ["/v1/ids/", "/v1/segments/"].iter().any(|prefix| path.starts_with(prefix));
    matches!(*method, Method::GET | Method::PUT) || (*method == Method::POST && takes)
}

/// What is shown to servers: never of the command line, where others could see it.
pub(crate) fn bearer(credentials: &Credentials) -> Outcome<Option<HeaderValue>> {
    let Some(token) = credentials.read_token().map_err(Failure::usage)? else { return Ok(None) };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Failure::usage("the token has characters that no token has".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// What a server's refusal means for a script.
fn refusal(base: &str, path: &str, status: u16, bytes: &[u8], has_token: bool) -> CallError {
    let Ok(ErrorBody { error }) = serde_json::from_slice(bytes) else {
        return failed(format!(
            "{base} answers {path} with HTTP status {status}: is it a Snowmint server?"
        ));
    };
    let message = match error.retry_after_ms {
        Some(ms) => format!("{} (a retry may help in {ms} ms)", error.message),
        None => error.message,
    };
    CallError::Failed(match Code::from_name(&error.code) {
        Some(Code::Forbidden) => return CallError::Forbidden(message),
        Some(code @ Code::Unauthenticated) => {
            let hint = hints::of_stranger(has_token);
            Failure::coded(code, format!("{base} refuses: {message}; {hint}"))
        }
        Some(code) => Failure::coded(code, message),
        // A newer server: the status still says whose turn it is.
        None if status < 500 => Failure::usage(message),
        None => Failure::unavailable(message),
    })
}

fn failed(message: String) -> CallError {
    CallError::Failed(Failure::unavailable(message))
}

/// A part of a path, escaped where it must be.
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
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn addresses_of_servers() {
        for (url, bases) in [
            ("127.0.0.1:7700", &["http://127.0.0.1:7700"][..]),
            ("http://ids.example:80/", &["http://ids.example:80"]),
            ("snowmint://a:1,b:2", &["http://a:1", "http://b:2"]),
            ("http://[::1]:7700", &["http://[::1]:7700"]),
            ("https://a:1", &["https://a:1"]),
            ("snowmints://a:1,b:2", &["https://a:1", "https://b:2"]),
        ] {
            assert_eq!(Client::new(url).unwrap().bases, bases, "{url}");
        }
        for url in
            ["", "http://", "ftp://a:1", "https://", "a:1/path", "a b", "a:1,,b:2", "sqlite:x"]
        {
            assert!(Client::new(url).is_err(), "{url}");
        }
        for url in ["snowmint://secret@a:1", "https://secret@a", "me:secret@a:1"] {
            let Err(Failure::Said { message, .. }) = Client::new(url) else { panic!("{url}") };
            assert!(!message.contains("secret"), "{message}");
        }
    }

    /// A server that answers every request so, or closes its connection when it was read; and how many it had.
    fn server(answer: &'static str) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut byte = [0];
                let mut read = Vec::new();
                // To the end of the body, which is an empty text.
                while !read.ends_with(b"\"\"") && stream.read(&mut byte).is_ok_and(|read| read > 0)
                {
                    read.extend(byte);
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address.to_string(), asked)
    }

    #[test]
    fn the_next_server_is_asked_where_one_dies_or_cannot_and_twice_is_as_once() {
        let stops = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 73\r\nconnection: close\r\n\r\n\
                     {\"error\":{\"code\":\"closed\",\"message\":\"it stops\",\"retry_after_ms\":null}}   ";
        let well =
            "HTTP/1.1 200 OK\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"ids\":[\"7\"]}";
        for ill in ["", stops] {
            let ((one, one_asked), (two, two_asked)) = (server(ill), server(well));
            let client = || Client::new(&format!("snowmint://{one},{two}")).unwrap();
            let minted = client().post::<serde_json::Value>("/v1/ids/orders", &"");
            assert!(minted.is_ok_and(|body| body["ids"][0] == "7"), "{ill}");
            // What may have been done is not done again.
            let defined = client().post::<serde_json::Value>("/v1/sources", &"");
            assert!(matches!(defined, Err(CallError::Failed(_))), "{ill}");
            let asked = (one_asked.load(Ordering::SeqCst), two_asked.load(Ordering::SeqCst));
            assert_eq!(asked, (2, 1), "{ill}");
        }
    }

    /// One that is stopped, or whose machine hangs, still takes connections.
    #[test]
    fn a_server_that_says_nothing_is_waited_for_once_and_not_for_long() {
        let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
        let well =
            "HTTP/1.1 200 OK\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"ids\":[\"7\"]}";
        let (two, asked) = server(well);
        let url = format!("snowmint://{},{two}", frozen.local_addr().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let client = Client::new(&url).unwrap();
            let mint = |_| client.post::<serde_json::Value>("/v1/ids/orders", &"").is_ok();
            tell.send((0..20).all(mint)).unwrap();
        });
        assert_eq!(told.recv_timeout(5 * ELSEWHERE_AFTER), Ok(true), "{asked:?} were answered");
    }

    #[test]
    fn parts_of_a_path_cannot_lead_out_of_it() {
        assert_eq!(segment("orders-1_x.y"), "orders-1_x.y");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("a/b?c%d\u{e9}"), "a%2Fb%3Fc%25d%C3%A9");
    }

    #[test]
    fn refusals_keep_the_servers_words_and_code() {
        let body = br#"{"error":{"code":"unknown_source","message":"there is no source x","retry_after_ms":null}}"#;
        let Failure::Said { exit, message } = refusal("http://h", "/", 404, body, false).into()
        else {
            panic!("must say why")
        };
        assert_eq!((exit as u8, message.as_str()), (1, "there is no source x"));
        let Failure::Said { exit, message } =
            refusal("http://h", "/x", 502, b"<html>", false).into()
        else {
            panic!("must say why")
        };
        assert_eq!(exit as u8, 4);
        assert!(message.contains("502"), "{message}");
    }
}
