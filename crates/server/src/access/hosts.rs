//! Host names under which the server may be called, and the sites whose pages may call it.
//!
//! The problem: a browser sends any request that a page asks for. Where tokens are not required, a
//! page of another site could define sources and take IDs. A page whose name suddenly resolves to
//! this server (DNS rebinding) could also read.
//!
//! This module's way: without tokens the server serves only requests that name an IP address,
//! `localhost`, or a configured host: an attacker owns none of these. A request that changes
//! something and comes from a page must come from a page of the host that it names.
//!
//! Its bounds: browsers send a `GET` without `Origin` and `Sec-Fetch-Site` for pictures, to
//! addresses without TLS. It looks like a request of any program.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Request, Version};
use snowmint_wire::error::Code;

use crate::access::is_of_another_site;
use crate::error::{Error, shown};

/// Longest name of a host, with a port.
const AUTHORITY_BYTES_MAX: usize = 253 + ":65535".len();

/// Hosts under whose names the server may be called.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// `HOST` or `HOST:PORT`, as configured.
    names: Vec<String>,
    /// Whether requests that name any other host are served, too.
    serves_any: bool,
}

impl Hosts {
    /// Creates the configured hosts. Where tokens are required, the server serves other hosts, too.
    pub(crate) fn new(names: &[String], tokens_required: bool) -> Self {
        Self { names: names.to_vec(), serves_any: tokens_required }
    }

    /// Returns whether a request with this host may be served.
    pub(crate) fn serves(&self, authority: &[u8]) -> bool {
        authority_of(authority).is_ok_and(|authority| self.serves_host(&authority))
    }

    /// Checks whether a request may be served at all, by the host that it names.
    ///
    /// # Errors
    /// `BadRequest` for a missing host where its HTTP version requires it, or for several;
    /// `Misdirected` for another host.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Error> {
        if names_an_address(request) {
            return Ok(());
        }
        match named(request)? {
            Some(host) if !self.serves_host(&host) => {
                let host = shown(host.as_str());
                let message = format!(
                    "host {host} is not served without tokens; use an IP address, localhost or the name in \
                     server.announce, or add the name to http.hosts"
                );
                Err(Error::new(Code::Misdirected, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a request may change something, or take IDs, by the page that it comes from.
    ///
    /// # Errors
    /// `Forbidden` for a page of another site.
    pub(crate) fn check_page<B>(&self, request: &Request<B>) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(Code::Forbidden, message));
        if is_of_another_site(request.headers()) {
            let message = "request comes from a page of another site (Sec-Fetch-Site), which may \
                           change nothing and take no IDs; send it from a page of this server";
            return refused(message.to_owned());
        }
        let origins = request.headers().get_all(ORIGIN);
        // Programs send no `Origin`.
        if origins.iter().next().is_none() {
            return Ok(());
        }
        let host = named(request)?;
        let is_own = |origin: &HeaderValue| self.is_own(origin, host.as_ref());
        match origins.iter().find(|&origin| !is_own(origin)) {
            None => Ok(()),
            Some(origin) => refused(format!(
                "origin {} is neither the host of the request nor in http.hosts; add it there, or \
                 use a page of this server",
                shown(&String::from_utf8_lossy(origin.as_bytes()))
            )),
        }
    }

    fn serves_host(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let is_named = |name: &String| {
            name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority.as_str())
        };
        self.serves_any
            || host.eq_ignore_ascii_case("localhost")
            || is_ip(host)
            || self.names.iter().any(is_named)
    }

    /// Returns whether a page of this origin belongs to the host that it calls. Another port is
    /// another site.
    fn is_own(&self, origin: &HeaderValue, host: Option<&Authority>) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        let Some(origin) = ["https://", "http://"].iter().find_map(|it| origin.strip_prefix(it))
        else {
            return false;
        };
        let is_own_host = host.is_some_and(|host| host.as_str().eq_ignore_ascii_case(origin));
        is_own_host || self.names.iter().any(|name| name.eq_ignore_ascii_case(origin))
    }
}

/// Returns whether a text is valid in `http.hosts`.
pub(crate) fn is_host(text: &str) -> bool {
    let is_name = |host: &str| {
        host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    authority_of(text.as_bytes()).is_ok_and(|authority| {
        let host = authority.host();
        let has_port = authority.as_str().len() > host.len();
        (is_name(host) || is_ip(host)) && (!has_port || authority.port_u16().is_some())
    })
}

/// Returns whether a host is an address in the form of `Host`: version 6 in brackets.
fn is_ip(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(bare) => bare.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Returns the host that a request names; `None` where it may name none.
fn named<B>(request: &Request<B>) -> Result<Option<Authority>, Error> {
    let (target, version) = (request.uri().authority(), request.version());
    let host = only_host(request.headers())?;
    match (target, host) {
        // RFC 9112, 3.2: requests of other versions may omit it.
        (_, None) if version == Version::HTTP_11 => {
            Err(Error::bad_request("header Host is missing; HTTP/1.1 needs it once"))
        }
        // RFC 9113, 8.3.1.
        (Some(target), Some(host))
            if version == Version::HTTP_2
                && !target.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()) =>
        {
            Err(Error::bad_request("header Host differs from :authority; send one of them"))
        }
        // The target was parsed with the request: this copies nothing.
        (Some(target), _) => checked(Some(target.clone()), target.as_str().as_bytes()).map(Some),
        (None, Some(host)) => authority_of(host.as_bytes()).map(Some),
        (None, None) => Ok(None),
    }
}

/// Returns whether a request names one address of version 4 and nothing else, as most do: such a
/// host is served by every server, and this copies nothing.
fn names_an_address<B>(request: &Request<B>) -> bool {
    let is_address =
        |text: &str| text.parse::<SocketAddrV4>().is_ok() || text.parse::<Ipv4Addr>().is_ok();
    let host = only_host(request.headers()).ok().flatten();
    request.uri().authority().is_none()
        && host.and_then(|host| host.to_str().ok()).is_some_and(is_address)
}

fn only_host(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Error> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => {
            Err(Error::bad_request("header Host is present more than once; send it once"))
        }
        (host, None) => Ok(host),
    }
}

fn authority_of(text: &[u8]) -> Result<Authority, Error> {
    let is_short = text.len() <= AUTHORITY_BYTES_MAX;
    checked(is_short.then(|| Authority::try_from(text).ok()).flatten(), text)
}

/// Returns an authority that is valid for a host.
fn checked(authority: Option<Authority>, text: &[u8]) -> Result<Authority, Error> {
    match authority {
        Some(authority) if text.len() <= AUTHORITY_BYTES_MAX && !text.contains(&b'@') => {
            Ok(authority)
        }
        _ => {
            let text = shown(&String::from_utf8_lossy(text));
            Err(Error::bad_request(format!("header Host {text} is not HOST or HOST:PORT")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(tokens_required: bool) -> Hosts {
        let names = ["ids.example".to_owned(), "proxy.example:8443".to_owned()];
        Hosts::new(&names, tokens_required)
    }

    #[test]
    fn tokenless_server_serves_addresses_and_its_own_names() {
        for own in [
            "127.0.0.1",
            "10.1.2.3:7700",
            "[::1]",
            "[fd00::7]:7700",
            "localhost",
            "LOCALHOST:7700",
            "ids.example",
            "Ids.Example:7700",
            "proxy.example:8443",
        ] {
            assert!(hosts(false).serves(own.as_bytes()), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:7700",
            "ids.example.evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "proxy.example",
            "proxy.example:7700",
            "evil.example@127.0.0.1",
            "127.1",
            "[::1",
            "::1",
            "a b",
            "",
        ] {
            assert!(!hosts(false).serves(other.as_bytes()), "{other}");
        }
        assert!(hosts(true).serves(b"evil.example"));
        let long = format!("{}:7700", "a".repeat(260));
        assert!(!hosts(true).serves(long.as_bytes()));
    }

    #[test]
    fn page_is_own_by_its_host_or_name() {
        let is_own = |host: &str, origin: &str| {
            let request = Request::builder().header(HOST, host).header(ORIGIN, origin);
            hosts(false).check_page(&request.body(()).unwrap()).is_ok()
        };
        for (host, origin) in [
            ("127.0.0.1:7700", "http://127.0.0.1:7700"),
            ("ids.example", "https://ids.example"),
            ("10.0.0.7:7700", "https://ids.example"),
            ("10.0.0.7:7700", "https://proxy.example:8443"),
            ("[::1]:7700", "http://[::1]:7700"),
        ] {
            assert!(is_own(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("127.0.0.1:7700", "http://evil.example"),
            ("127.0.0.1:7700", "http://127.0.0.1:1"),
            ("127.0.0.1:7700", "http://127.0.0.1"),
            ("127.0.0.1:7700", "http://ids.example:1"),
            ("127.0.0.1:7700", "http://proxy.example"),
            ("127.0.0.1:7700", "null"),
            ("127.0.0.1:7700", "127.0.0.1:7700"),
            ("127.0.0.1:7700", "file://127.0.0.1:7700"),
            ("127.0.0.1:7700", ""),
        ] {
            assert!(!is_own(host, origin), "{host} {origin}");
        }
        let two = Request::builder()
            .header(HOST, "ids.example")
            .header(ORIGIN, "http://ids.example")
            .header(ORIGIN, "http://evil.example");
        assert!(hosts(false).check_page(&two.body(()).unwrap()).is_err());
    }

    #[test]
    fn request_names_one_host() {
        let code = |version: Version, target: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(target);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let request = request.body(()).unwrap();
            tests::hosts(false).check(&request).err().map(|error| error.code())
        };
        let (bad, other) = (Some(Code::BadRequest), Some(Code::Misdirected));
        for (version, target, hosts, expected) in [
            (Version::HTTP_11, "/", &["localhost"][..], None),
            (Version::HTTP_11, "/", &[], bad),
            (Version::HTTP_11, "/", &["localhost", "localhost"], bad),
            (Version::HTTP_11, "/", &["localhost", "evil.example"], bad),
            (Version::HTTP_11, "/", &[""], bad),
            (Version::HTTP_11, "/", &["evil.example"], other),
            // RFC 9112, 3.2.2: the target counts.
            (Version::HTTP_11, "http://evil.example/", &["localhost"], other),
            (Version::HTTP_11, "http://localhost/", &["evil.example"], None),
            (Version::HTTP_11, "http://localhost/", &[], bad),
            (Version::HTTP_10, "/", &[], None),
            (Version::HTTP_10, "/", &["evil.example"], other),
            (Version::HTTP_10, "/", &["localhost", "localhost"], bad),
            (Version::HTTP_2, "http://localhost/", &[], None),
            (Version::HTTP_2, "http://evil.example/", &[], other),
            (Version::HTTP_2, "http://localhost/", &["LOCALHOST"], None),
            (Version::HTTP_2, "http://localhost/", &["evil.example"], bad),
            (Version::HTTP_2, "/", &["evil.example"], other),
            (Version::HTTP_2, "/", &["localhost", "localhost"], bad),
        ] {
            assert_eq!(code(version, target, hosts), expected, "{version:?} {target} {hosts:?}");
        }
    }

    #[test]
    fn configured_host_is_a_name_or_an_address() {
        for host in ["ids.example", "ids_1", "ids.example:443", "10.0.0.7", "[fd00::7]:7700"] {
            assert!(is_host(host), "{host}");
        }
        for other in [
            "",
            "*",
            "*.example",
            "http://ids.example",
            "ids.example/",
            "ids.example:",
            "ids.example:https",
            "ids.example:65536",
            "a b",
            "me@ids.example",
            "fd00::7",
            "ïds.example",
        ] {
            assert!(!is_host(other), "{other}");
        }
    }
}
